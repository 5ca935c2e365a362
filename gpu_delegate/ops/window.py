"""DEPTHWISE_CONV_2D and pooling, windows over each channel separately: file form and kernel code."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ..code.expressions import Slice
from ..code.indices import Index
from ..code.kernel_writer import KernelWriter
from ..code.vocabulary import (
    X0,
    ZEROS,
    AddTo,
    Arithmetic,
    Assign,
    Name,
    Operand,
    Operation,
    SourceIndex,
    Splat,
    Value,
    combined,
    to_float,
)
from ..code.whole_numbers import WholeRange
from ..code.window_taps import TapIndex, axis_at, taps_of
from ..model.graph import Attributes, DepthwiseConv2D, Graph, Node, Padding, Pool2D, Shape, Size2, Steps
from ..model.layout import aligned_channels
from ..model.operators import EncodedOperator, Operator, attributes_of
from ..model.packing import depthwise_taps
from .convolution import (
    constant_weights,
    convolution_macs,
    convolves,
    products_bias,
    slides_over,
    window_taps,
    written_window_taps,
)
from .facts import first_range
from .record import (
    ACTIVATED_STRUCT,
    ONE_SCALE,
    WINDOW_STRUCT,
    ByteRules,
    Emission,
    Example,
    FileForm,
    OpRecord,
    OptionsStruct,
)
from .sliding import dilated_options, positive, read_dilation, read_stride, slide, window_options, written_taps

LOWEST = Splat(-3.402823466e38)


@dataclass(frozen=True)
class SlidingWindow:
    """How an op slides over its input, sizes as (h, w)."""

    kernel: Size2
    stride: Size2
    padding: Padding
    dilation: Size2 = (1, 1)


def read_depthwise(operator: Operator) -> Attributes:
    options = operator.options("DepthwiseConv2DOptions")
    batch, height, width, channels = operator.shape(0, rank=4)
    one, kernel_h, kernel_w, outputs = operator.shape(1, rank=4)
    if one != 1 or outputs % channels:
        operator.damaged(f"weights of shape {[one, kernel_h, kernel_w, outputs]} for {channels} channels")
    if len(operator.inputs) < 3 or operator.inputs[2] is None:
        operator.unsupported("no bias")  # TensorFlow Lite crashes on it
    operator.check_bias(2, outputs)
    stride, dilation = read_stride(operator, options), read_dilation(operator, options)
    size, padding = slide(operator, (height, width), (kernel_h, kernel_w), stride, dilation, options.Padding())
    operator.expect((batch, *size, outputs))
    return DepthwiseConv2D(operator.activation(options), stride, dilation, padding, outputs // channels)


def write_depthwise(graph: Graph, node: Node) -> EncodedOperator:
    conv = attributes_of(node, DepthwiseConv2D)
    options = dilated_options(conv) | {"DepthMultiplier": conv.multiplier}
    return EncodedOperator(node.inputs, "DepthwiseConv2DOptions", options)


def read_pool(operator: Operator) -> Attributes:
    options = operator.options("Pool2DOptions")
    batch, height, width, channels = operator.shape(0, rank=4)
    kernel = positive(operator, "window", options.FilterHeight(), options.FilterWidth())
    stride = read_stride(operator, options)
    size, padding = slide(operator, (height, width), kernel, stride, (1, 1), options.Padding())
    operator.expect((batch, *size, channels))
    return Pool2D(operator.activation(options), kernel, stride, padding)


def write_pool(graph: Graph, node: Node) -> EncodedOperator:
    pool = attributes_of(node, Pool2D)
    height, width = pool.kernel
    return EncodedOperator(
        node.inputs, "Pool2DOptions", window_options(pool) | {"FilterHeight": height, "FilterWidth": width}
    )


def _depthwise_bytes(graph: Graph, node: Node) -> int:
    """Above multiplier 1 a pass turns it into a convolution with zeros across channels."""
    multiplier = attributes_of(node, DepthwiseConv2D).multiplier
    depth = graph.tensors[node.inputs[1]].shape[3]
    rows = aligned_channels(depth // multiplier) if multiplier > 1 else 1
    return 4 * rows * window_taps(graph, node) * aligned_channels(depth)


def pool_taps(graph: Graph, node: Node) -> int:
    kernel = attributes_of(node, Pool2D).kernel
    return kernel[0] * kernel[1]


def written_pool_taps(graph: Graph, node: Node) -> int:
    return written_taps(pool_taps(graph, node))


def depthwise(writer: KernelWriter, node: Node, at: Slice) -> Sequence[Value]:
    """One slice of a depthwise convolution: bias + sum over taps of x * w, lane by lane."""
    products = writer.products(node)
    taps = writer.weights(node, "taps", lambda *of: products.taps(depthwise_taps(constant_weights(*of))))
    bias = writer.weights(node, "bias", products_bias(products))
    several = writer.tile.rows > 1  # then the thread's pixels share their weights
    start = products.start(bias.texel(at))
    first = writer.declare([start], "b")[0] if several else start
    sums = writer.declare([first for _ in writer.rows], "d")
    window = _depthwise_window(writer, node)
    for row, tap, value in window_values(writer, node, window, at):
        weight = taps.texel(at, tap_number(window, tap))
        if several:
            weight = writer.once("w", weight)
        writer.add(AddTo(sums[row], products.of_lanes(value, weight)))
    return sums


def computed_depthwise(writer: KernelWriter, node: Node, at: Slice) -> Sequence[Value]:
    """The same with weights in memory, where slice `at` of pixel (ky, kx) is that of a tap; there is no bias."""
    sums = writer.declare([ZEROS for _ in writer.rows], "d")
    for row, tap, value in window_values(writer, node, _depthwise_window(writer, node), at):
        weight = writer.once("w", writer.texel_at(node.inputs[1], at, (Index.of(0), *tap)))
        writer.add(AddTo(sums[row], value * weight))
    return sums


def _depthwise_window(writer: KernelWriter, node: Node) -> SlidingWindow:
    conv, (_, height, width, _) = attributes_of(node, DepthwiseConv2D), writer.graph.tensors[node.inputs[1]].shape
    return SlidingWindow((height, width), conv.stride, conv.padding, conv.dilation)


def pool(writer: KernelWriter, node: Node, at: Slice) -> Sequence[Value]:
    """One slice of average or maximum pooling; padding does not count in either."""
    attributes = node.attributes
    assert isinstance(attributes, Pool2D)
    average = node.op == "AVERAGE_POOL_2D"
    window = SlidingWindow(attributes.kernel, attributes.stride, attributes.padding)
    outside = ZEROS if average else LOWEST
    results = writer.declare([outside for _ in writer.rows], "m")
    for row, _, value in window_values(writer, node, window, at, outside):
        operation: Arithmetic = "add" if average else "maximum"
        writer.add(Assign(results[row], Operation(operation, (results[row], value))))
    if not average:
        return results
    return writer.declare([result / _count(writer, node, window, row) for row, result in enumerate(results)])


def _count(writer: KernelWriter, node: Node, window: SlidingWindow, row: int) -> Value:
    """How many taps of a pixel's window lie inside the map."""
    return Operation("multiply", (_rows_inside(writer, node, window, row), _columns_inside(writer, node, window)))


def _rows_inside(writer: KernelWriter, node: Node, window: SlidingWindow, row: int) -> Operand:
    (taps, _), (step, _), top = window.kernel, window.stride, window.padding.top
    if any(writer.looped_axes(window.kernel)):
        first = writer.map_row() * step + (row * step - top)
        return _overlap(writer, first, taps, writer.shape(node.inputs[0]).height)
    return _inside([_row(writer, node, window, row, Index.of(tap)) for tap in range(taps)])


def _columns_inside(writer: KernelWriter, node: Node, window: SlidingWindow) -> Operand:
    (_, taps), (_, step), left = window.kernel, window.stride, window.padding.left
    if any(writer.looped_axes(window.kernel)):
        return _overlap(writer, X0 * step - left, taps, writer.shape(node.inputs[0]).width)
    return _inside([_column(writer, node, window, Index.of(tap)) for tap in range(taps)])


def _inside(axes: Sequence[SourceIndex]) -> Operand:
    return combined("add", [1.0 if valid is None else to_float(valid) for _, valid in axes])


def _overlap(writer: KernelWriter, first: Value, taps: int, size: int) -> Operand:
    """How many of so many places from the first one on are among 0 ... size - 1."""
    start = writer.position("p", first)
    last = Operation("minimum", (start + taps, size))
    return to_float(last - Operation("maximum", (start, 0)))


def _row(writer: KernelWriter, node: Node, window: SlidingWindow, row: int, tap: Index) -> SourceIndex:
    """The origin row under a tap of the window of one of the thread's pixels."""
    source, domain, step = writer.shape(node.inputs[0]), writer.domain, window.stride[0]
    offset = tap.times(window.dilation[0]).plus(row * step - window.padding.top)
    return axis_at(writer, writer.map_row(), step, offset, source.height, domain.height - writer.tile.rows)


def _column(writer: KernelWriter, node: Node, window: SlidingWindow, tap: Index) -> SourceIndex:
    """The origin column under a tap."""
    source, domain = writer.shape(node.inputs[0]), writer.domain
    offset = tap.times(window.dilation[1]).plus(-window.padding.left)
    return axis_at(writer, X0, window.stride[1], offset, source.width, domain.width - 1)


def tap_number(window: SlidingWindow, tap: TapIndex) -> Operand:
    """A tap's number, row by row."""
    row, column = tap
    return row.times(window.kernel[1]).plus(column).code


def window_values(
    writer: KernelWriter, node: Node, window: SlidingWindow, at: Slice, outside: Value = ZEROS
) -> Iterator[tuple[int, TapIndex, Name]]:
    """(row of the thread, tap, value), to be used one by one: in a loop, or source row by source row, so that pixels
    share their loads."""
    if not any(writer.looped_axes(window.kernel)):
        yield from _written_values(writer, node, window, at, outside)
        return
    for ky, kx in taps_of(writer, window.kernel):
        column = _column(writer, node, window, kx)
        for row in writer.rows:
            source_row = _row(writer, node, window, row, ky)
            yield row, (ky, kx), writer.tap(node.inputs[0], at, source_row, column, outside)


def _written_values(
    writer: KernelWriter, node: Node, window: SlidingWindow, at: Slice, outside: Value
) -> list[tuple[int, TapIndex, Name]]:
    uses: dict[int, list[tuple[int, int]]] = {}
    for row in writer.rows:
        for ky in range(window.kernel[0]):
            uses.setdefault(row * window.stride[0] + ky * window.dilation[0], []).append((row, ky))
    found = []
    down, along = (list(map(Index.of, range(size))) for size in window.kernel)
    rows: dict[int, list[SourceIndex]] = {}  # of the origin, under the window of each of the thread's pixels
    columns: list[SourceIndex] = []
    for source_row in sorted(uses):
        for row, ky in uses[source_row]:
            if row not in rows:
                rows[row] = [_row(writer, node, window, row, each) for each in down]
                columns = columns or [_column(writer, node, window, each) for each in along]
            for kx, column in zip(along, columns, strict=True):
                value = writer.tap(node.inputs[0], at, rows[row][ky], column, outside)
                found.append((row, (down[ky], kx), value))
    return found


def agrees_as_pool(node: Node, inputs: list[Shape], output: Shape) -> bool:
    (x,), pool = inputs, attributes_of(node, Pool2D)
    return x[3] == output[3] and slides_over(node, x, pool.kernel, output)


def places_in_window(graph: Graph, node: Node, inputs: Sequence[WholeRange]) -> WholeRange:
    """The numbers of places in a window."""
    return Steps(0, math.prod(attributes_of(node, Pool2D).kernel) - 1)


_POOL_STRUCT = OptionsStruct("Pool2DOptions", f"{WINDOW_STRUCT} FilterWidth:i FilterHeight:i {ACTIVATED_STRUCT}")
_HALF = Example(out=(1, 4, 4, 8), attributes=Pool2D(kernel=(2, 2), stride=(2, 2)))

RECORDS = (
    OpRecord(
        "DEPTHWISE_CONV_2D",
        "window",
        FileForm(
            read_depthwise,
            write_depthwise,
            (0, 1, 2),
            (2, 3),
            version=2,
            struct=OptionsStruct(
                "DepthwiseConv2DOptions",
                f"{WINDOW_STRUCT} DepthMultiplier:i {ACTIVATED_STRUCT} DilationWFactor:i DilationHFactor:i",
            ),
        ),
        Example(constants=((1, 1, 1, 8), (8,)), attributes=DepthwiseConv2D()),
        short_name="dw",
        emission=Emission(stream=depthwise),
        weighted=True,
        macs=convolution_macs,
        weight_bytes=_depthwise_bytes,
        taps=window_taps,
        text_taps=written_window_taps,
        quantized=ByteRules(weights=3),
        agrees=convolves,
    ),
    *(
        OpRecord(
            name,
            "window",
            FileForm(read_pool, write_pool, struct=_POOL_STRUCT),
            _HALF,
            emission=Emission(stream=pool),
            taps=pool_taps,
            text_taps=written_pool_taps,
            quantized=ONE_SCALE,
            agrees=agrees_as_pool,
            ranges=ranges,
        )
        for name, ranges in (("AVERAGE_POOL_2D", ()), ("MAX_POOL_2D", (first_range,)))
    ),
    OpRecord(
        "L2_POOL_2D", "window", FileForm(read_pool, write_pool, struct=_POOL_STRUCT), _HALF
    ),  # passes say it by others
)
