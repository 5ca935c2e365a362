"""CONV_2D and the transposed convolutions: file form and kernel code."""

import math
from collections.abc import Sequence

import numpy as np
import tflite

from ..code.expressions import Slice
from ..code.kernel_writer import KernelWriter, Pack
from ..code.product_forms import Products
from ..code.vocabulary import X0, Z0, AddTo, Declare, Name, Value
from ..code.window_taps import TapIndex, axis_at, strided_axis_at, taps_of
from ..model.graph import (
    ABSENT,
    NO_PADDING,
    Attributes,
    Conv2D,
    DepthwiseConv2D,
    Graph,
    Node,
    Pool2D,
    Shape,
    Size2,
    TransposeConv2D,
)
from ..model.layout import aligned_channels, shape_of
from ..model.operators import EncodedOperator, Operator, attributes_of, integers
from ..model.packing import Float32Array, bias_of, convolution_blocks
from ..model.rewrite import float_data
from .record import ACTIVATED_STRUCT, WINDOW_STRUCT, ByteRules, Emission, Example, FileForm, OpRecord, OptionsStruct
from .sliding import dilated_options, positive, read_dilation, read_stride, slide, window_options, written_taps

SLICES_AT_ONCE = 8  # of a convolution's outputs: each tap is written out for each of them


def is_pointwise_convolution(graph: Graph, node: Node) -> bool:
    """A CONV_2D that reads and writes one pixel: 1x1 kernel, stride 1, no padding."""
    conv = node.attributes
    if node.op not in ("CONV_2D", "COMPUTED_CONV_2D") or not isinstance(conv, Conv2D):
        return False
    return graph.tensors[node.inputs[1]].shape[1:3] == (1, 1) and conv.stride == (1, 1) and conv.padding == NO_PADDING


# How files say them -------------------------------------------------------------------------------------------------


def read_conv(operator: Operator) -> Attributes:
    options = operator.options("Conv2DOptions")
    batch, height, width, channels = operator.shape(0, rank=4)
    outputs, kernel_h, kernel_w, depth = operator.shape(1, rank=4)
    if not depth or channels % depth or outputs % (channels // depth):  # more than one group of channels is possible
        operator.damaged(f"weights for {depth} channels, input with {channels}")
    operator.check_bias(2, outputs)
    stride, dilation = read_stride(operator, options), read_dilation(operator, options)
    size, padding = slide(operator, (height, width), (kernel_h, kernel_w), stride, dilation, options.Padding())
    operator.expect((batch, *size, outputs))
    return Conv2D(operator.activation(options), stride, dilation, padding)


def write_conv(graph: Graph, node: Node) -> EncodedOperator:
    """A bias of zeros where there is none: TensorFlow Lite requires one."""
    x, weights, bias = node.inputs
    given = np.zeros(graph.tensors[weights].shape[0], np.float32) if bias == ABSENT else bias
    return EncodedOperator((x, weights, given), "Conv2DOptions", dilated_options(attributes_of(node, Conv2D)))


def _transpose(operator: Operator, x: int, stride: Size2, scheme: int, activation: str) -> Attributes:
    """Checks and padding of a transposed convolution: the windows of its output must be its input."""
    batch, height, width, channels = operator.shape(x, rank=4)
    outputs, kernel_h, kernel_w, depth = operator.shape(1, rank=4)
    if depth != channels:
        operator.damaged(f"weights for {depth} channels, input with {channels}")
    taps = (kernel_h, kernel_w) if scheme == tflite.Padding.VALID else stride
    usual = (height - 1) * stride[0] + taps[0], (width - 1) * stride[1] + taps[1]
    out = operator.output_size(usual)
    operator.expect((batch, *out, outputs))
    size, padding = slide(operator, out, (kernel_h, kernel_w), stride, (1, 1), scheme)
    if size != (height, width):
        if x == 0:  # whose size no input gives
            operator.expect((batch, *usual, outputs))
        made, said = [batch, *usual, outputs], [batch, *out, outputs]
        operator.damaged(f"its input makes the output's shape {made}, another one, {said}, is given")
    return TransposeConv2D(activation, stride, padding)


def read_transpose(operator: Operator) -> Attributes:
    options = operator.options("TransposeConvOptions")
    operator.expect(operator.integers(0))
    operator.check_bias(3, operator.shape(1, rank=4)[0])
    return _transpose(operator, 2, read_stride(operator, options), options.Padding(), operator.activation(options))


def read_transpose_bias(operator: Operator) -> Attributes:
    """MediaPipe's op: its custom options are TfLiteTransposeConvParams (int32 padding, stride width, stride height)."""
    if len(operator.custom_options) < 12:
        operator.damaged("its options are too short")
    scheme, stride_w, stride_h = (int(value) for value in np.frombuffer(operator.custom_options, "<i4", 3))
    operator.check_bias(2, operator.shape(1, rank=4)[0])
    stride = positive(operator, "stride", stride_h, stride_w)
    return _transpose(operator, 0, stride, scheme - 1, "NONE")  # kTfLitePaddingSame is 1, the schema's SAME is 0


def write_transpose(graph: Graph, node: Node) -> EncodedOperator:
    """Both ops as the builtin TRANSPOSE_CONV: MediaPipe's op computes the same, but only some runtimes have it."""
    x, weights, bias = node.inputs
    shape = integers(*graph.tensors[node.outputs[0]].shape)
    return EncodedOperator(
        (shape, weights, x, bias), "TransposeConvOptions", window_options(attributes_of(node, TransposeConv2D))
    )


def channel_groups(graph: Graph, node: Node) -> int:
    """Groups of the channels of a CONV_2D's input."""
    return graph.tensors[node.inputs[0]].shape[-1] // graph.tensors[node.inputs[1]].shape[3]


# What they cost -----------------------------------------------------------------------------------------------------


def convolution_macs(graph: Graph, node: Node) -> int:
    """A multiply-accumulate for each weight and each pixel of the output."""
    return _weight_count(graph, node) * shape_of(graph.tensors[node.outputs[0]]).pixels


def _transposed_macs(graph: Graph, node: Node) -> int:
    """A multiply-accumulate for each weight and each pixel of the input."""
    return _weight_count(graph, node) * shape_of(graph.tensors[node.inputs[0]]).pixels


def _weight_count(graph: Graph, node: Node) -> int:
    return math.prod(graph.tensors[node.inputs[1]].shape)


def dense_weight_bytes(graph: Graph, node: Node) -> int:
    """Bytes of OHWI or OI weights with whole slices of inputs and outputs."""
    outputs, *window, depth = graph.tensors[node.inputs[1]].shape
    return 4 * aligned_channels(outputs) * math.prod(window) * aligned_channels(depth)


def window_taps(graph: Graph, node: Node) -> int:
    """Pixels of the window of OHWI or 1HWC weights."""
    return math.prod(graph.tensors[node.inputs[1]].shape[1:3])


def written_window_taps(graph: Graph, node: Node) -> int:
    """Those of them that a kernel's text has."""
    return written_taps(window_taps(graph, node))


def _text_taps(graph: Graph, node: Node) -> int:
    """Each tap multiplies matrices, one for each of the output slices that are computed at once."""
    slices = shape_of(graph.tensors[node.outputs[0]]).slices
    return written_window_taps(graph, node) * (2 + 2 * min(slices, SLICES_AT_ONCE) // SLICES_AT_ONCE)


# Code ---------------------------------------------------------------------------------------------------------------


def start(writer: KernelWriter, node: Node) -> None:
    """Declare the accumulators of a convolution and set them to its bias."""
    out, products = node.outputs[0], writer.products(node)
    bias = writer.weights(node, "bias", products_bias(products))
    for index in writer.held_slices(out):
        first = writer.held(out, 0, index)
        writer.add(Declare(first, products.start(bias.texel(writer.output_slice(index)))))
        for row in list(writer.rows)[1:]:
            writer.add(Declare(writer.held(out, row, index), first))


def accumulate(writer: KernelWriter, node: Node, at: Slice, source: Slice | None = None) -> None:
    """Add one input slice to every output slice: out[o] += sum over taps and lanes of x * w.

    Where weights are of other slices than those of the input, `source` is the input's.
    """
    out = node.outputs[0]
    weights = writer.graph.tensors[node.inputs[1]]
    products = writer.products(node)
    lanes = min(4, weights.shape[3] - 4 * at.index) if at.index is not None else 4
    texels = range(products.texels_of_block(lanes))
    blocks = writer.weights(node, "weights", packed_blocks(products))
    registers = [
        (writer.output_slice(index), [writer.held(out, row, index) for row in writer.rows])
        for index in writer.held_slices(out)
    ]
    height, width = weights.shape[1:3]
    for ky, kx in taps_of(writer, (height, width)):
        values, tap = taps_of_window(writer, node, source or at, (ky, kx)), ky.times(width).plus(kx).code
        for position, sums in registers:
            _multiply(writer, products, lanes, sums, values, [blocks.texel(at, tap, position, k) for k in texels])


def accumulate_group(writer: KernelWriter, node: Node, at: Slice) -> None:
    """Slice `at` of the group of channels to which all output slices of a thread belong."""
    slices = writer.shape(node.outputs[0]).slices // channel_groups(writer.graph, node)
    each = writer.graph.tensors[node.inputs[1]].shape[3] // 4
    first = writer.position("n", Z0 / slices * each) if slices > 1 else writer.position("n", Z0 * each)
    accumulate(writer, node, at, Slice(first + at.at))


def gather(writer: KernelWriter, node: Node, at: Slice) -> Sequence[Value]:
    """One output slice of a 1x1 convolution over held input."""
    weights = writer.graph.tensors[node.inputs[1]]
    products = writer.products(node)
    bias = writer.weights(node, "bias", products_bias(products))
    blocks = writer.weights(node, "gathered", lambda *of: products.blocks(_gathered_blocks(constant_weights(*of))))
    first = writer.declare([products.start(bias.texel(at))], "b")[0]
    sums = writer.declare([first for _ in writer.rows], "b")
    for index in range(blocks.values.shape[1]):  # (N, S, 4 in, 4 out)
        values = [writer.held(node.inputs[0], row, index) for row in writer.rows]
        lanes = min(4, weights.shape[3] - 4 * index)
        texels = range(products.texels_of_block(lanes))
        _multiply(writer, products, lanes, sums, values, [blocks.texel(at, index, k) for k in texels])
    return sums


def packed_blocks(products: Products) -> Pack:
    """The matrices of a convolution: (input slices, taps, output slices, texels of a block, 4)."""
    return lambda *of: products.blocks(convolution_blocks(constant_weights(*of)))


def _gathered_blocks(weights_ohwi: Float32Array) -> Float32Array:
    """OHWI of one tap -> (N, S, 4 in, 4 out)."""
    return convolution_blocks(weights_ohwi)[:, 0].transpose(1, 0, 2, 3)


def products_bias(products: Products) -> Pack:
    """The bias of a convolution, or of a depthwise one, as its sums of products begin."""
    return lambda graph, node: products.bias(bias_of(graph, node), lambda: weight_rows(graph, node))


def constant_weights(graph: Graph, node: Node) -> Float32Array:
    """Those of a convolution, as they are in the file: OHWI or 1HWC. Raises UnsupportedError as float_data."""
    return float_data(graph.tensors[node.inputs[1]])


def weight_rows(graph: Graph, node: Node) -> Float32Array:
    """The constant weights of a convolution, or of a depthwise one, as (outputs, products) of a sum each."""
    values = np.moveaxis(constant_weights(graph, node), 3 if isinstance(node.attributes, DepthwiseConv2D) else 0, 0)
    return values.reshape(len(values), -1)


def _multiply(
    writer: KernelWriter,
    products: Products,
    lanes: int,
    sums: Sequence[Name],
    values: Sequence[Value],
    weights: Sequence[Value],
) -> None:
    """sums[row] += values[row].x * weights[0] + ...; the weights are named first where several rows share them."""
    if len(sums) > 1:
        weights = writer.declare(weights, "w")
    for total, value in zip(sums, values, strict=True):
        writer.add(AddTo(total, products.of_block(value, weights, lanes)))


def taps_of_window(writer: KernelWriter, node: Node, at: Slice, tap: TapIndex) -> Sequence[Value]:
    """The input under one tap of the window, for each of the thread's pixels."""
    if is_pointwise_convolution(writer.graph, node):
        return writer.value(node.inputs[0], at)
    source, domain = writer.shape(node.inputs[0]), writer.domain
    attributes = node.attributes
    ky, kx = tap
    places = []
    if isinstance(attributes, TransposeConv2D):
        stride, padding = attributes.stride, attributes.padding
        column = strided_axis_at(writer, X0, stride[1], kx.times(-1).plus(padding.left), source.width)
        base = writer.map_row()
        offsets = (ky.times(-1).plus(row + padding.top) for row in writer.rows)
        places = [(strided_axis_at(writer, base, stride[0], each, source.height), column) for each in offsets]
    else:
        assert isinstance(attributes, Conv2D)
        stride, dilation, padding = attributes.stride, attributes.dilation, attributes.padding
        across, together = kx.times(dilation[1]).plus(-padding.left), 1 if writer.tile.flat else writer.tile.rows
        for row in writer.rows:
            y, ahead, x = writer.map_place(row)
            down = ky.times(dilation[0]).plus(ahead * stride[0] - padding.top)
            column = axis_at(writer, x, stride[1], across, source.width, domain.width - 1)
            places.append((axis_at(writer, y, stride[0], down, source.height, domain.height - together), column))
    return [writer.tap(node.inputs[0], at, row, column) for row, column in places]


def slid_size(size: int, kernel: int, stride: int, before: int, after: int, dilation: int = 1) -> int:
    return (size + before + after - (kernel - 1) * dilation - 1) // stride + 1


def slides_over(node: Node, shape: Shape, kernel: Shape, output: Shape) -> bool:
    """Whether windows of (h, w) slide over a BHWC shape as often as the output has pixels."""
    window = node.attributes
    assert isinstance(window, Conv2D | Pool2D)
    pad, (dilation_h, dilation_w) = window.padding, window.dilation if isinstance(window, Conv2D) else (1, 1)
    height = slid_size(shape[1], kernel[0], window.stride[0], pad.top, pad.bottom, dilation_h)
    width = slid_size(shape[2], kernel[1], window.stride[1], pad.left, pad.right, dilation_w)
    return output[:3] == (shape[0], height, width)


def convolves(node: Node, inputs: list[Shape], output: Shape) -> bool:
    """Also of vectors, which passes make of FULLY_CONNECTED: their kernels have one pixel."""
    conv, (x, weights, *bias) = attributes_of(node, Conv2D), inputs
    outputs, channels = weights[0], weights[3]
    if isinstance(conv, DepthwiseConv2D):
        outputs, channels = weights[3], weights[3] // conv.multiplier
    slides = slides_over(node, x, weights[1:3], output) if len(x) == 4 == len(output) else weights[1:3] == (1, 1)
    grouped = not isinstance(conv, DepthwiseConv2D) and x[-1] % channels == 0 and outputs % (x[-1] // channels) == 0
    fits = x[-1] == channels or grouped
    return slides and fits and output[-1] == outputs == math.prod(bias[0] if bias else (outputs,))


def scatters(node: Node, inputs: list[Shape], output: Shape) -> bool:
    attributes_of(node, TransposeConv2D)
    x, weights = inputs[:2]
    return x[3] == weights[3] and output[3] == weights[0] and x[0] == output[0]


_TRANSPOSED = Example(out=(1, 16, 16, 8), constants=((8, 2, 2, 8), (8,)), attributes=TransposeConv2D(stride=(2, 2)))

RECORDS = (
    OpRecord(
        "CONV_2D",
        "contraction",
        FileForm(
            read_conv,
            write_conv,
            (0, 1, 2),
            (2, 3),
            struct=OptionsStruct(
                "Conv2DOptions", f"{WINDOW_STRUCT} {ACTIVATED_STRUCT} DilationWFactor:i DilationHFactor:i"
            ),
        ),
        Example(constants=((8, 1, 1, 8), (8,)), attributes=Conv2D()),
        short_name="conv",
        emission=Emission(stream=gather, start=start, accumulate=accumulate),
        pixelwise=is_pointwise_convolution,
        weighted=True,
        macs=convolution_macs,
        weight_bytes=dense_weight_bytes,
        taps=window_taps,
        text_taps=_text_taps,
        quantized=ByteRules(weights=0),
        agrees=convolves,
    ),
    OpRecord(
        "GROUPED_CONV_2D",
        "contraction",
        example=Example(constants=((8, 1, 1, 4), (8,)), attributes=Conv2D()),
        emission=Emission(start=start, accumulate=accumulate_group),
        weighted=True,
        groups=channel_groups,
        macs=convolution_macs,
        weight_bytes=dense_weight_bytes,
        taps=window_taps,
        text_taps=_text_taps,
    ),
    *(
        OpRecord(
            name,
            "contraction",
            file,
            _TRANSPOSED,
            emission=Emission(start=start, accumulate=accumulate),
            weighted=True,
            macs=_transposed_macs,
            weight_bytes=dense_weight_bytes,
            taps=window_taps,
            text_taps=_text_taps,
            quantized=ByteRules(weights=0),
            agrees=scatters,
        )
        for name, file in (
            (
                "TRANSPOSE_CONV",
                FileForm(
                    read_transpose,
                    write_transpose,
                    (2, 1, 3),
                    (3, 4),
                    version=3,
                    struct=OptionsStruct("TransposeConvOptions", f"{WINDOW_STRUCT} {ACTIVATED_STRUCT}"),
                ),
            ),
            (
                "Convolution2DTransposeBias",
                FileForm(read_transpose_bias, write_transpose, (0, 1, 2), (2, 3), builtin="TRANSPOSE_CONV", version=3),
            ),
        )
    ),
)
