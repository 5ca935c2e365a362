"""Products with weights that the model computes: BATCH_MATMUL's file form, and the kernel code of all of them.

Weights lie in memory as any tensor does. A matrix of K rows and N columns has rows as pixels and columns as channels:
texel o of row k holds what input value k is multiplied by for output slice o. A matrix of N rows and K columns, and the
OHWI weights of a convolution, have their terms along channels: texel s of row n is factors of slice s for value n.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ..code.expressions import Slice
from ..code.indices import Index, Place
from ..code.kernel_writer import KernelWriter
from ..code.vocabulary import ZEROS, AddTo, Declare, Lane, Name, Operand, Value, Vector, combined
from ..code.whole_numbers import WholeRange, product_range, repeated_sum
from ..code.window_taps import taps_of
from ..model.graph import Attributes, Conv2D, DepthwiseConv2D, Graph, Node, Shape, TransposeConv2D
from ..model.layout import ceil_div, shape_of
from ..model.operators import EncodedOperator, Operator, attributes_of
from .convolution import (
    SLICES_AT_ONCE,
    convolution_macs,
    convolves,
    is_pointwise_convolution,
    scatters,
    taps_of_window,
    window_taps,
    written_window_taps,
)
from .record import ByteRules, Emission, Example, FileForm, OpRecord, OptionsStruct, always
from .window import computed_depthwise


@dataclass(frozen=True)
class MatrixProduct(Attributes):
    """BATCH_MATMUL: inputs (x, y), matrices in the last two dimensions; the others broadcast."""

    adj_x: bool = False  # whether a matrix of x stands with rows and columns exchanged
    adj_y: bool = False


def read_matrix_product(operator: Operator) -> Attributes:
    options = operator.options("BatchMatMulOptions")
    product = MatrixProduct(bool(options.AdjX()), bool(options.AdjY()))
    x, y = operator.shape(0), operator.shape(1)
    shape = shape_of_product(x, y, product)
    if shape is None:
        operator.damaged(f"matrices of shape {list(x)} and {list(y)} with {product}")
    operator.expect(shape)
    return product


def shape_of_product(x: Shape, y: Shape, product: MatrixProduct) -> Shape | None:
    """The shape of the product of two tensors of matrices; None where they do not fit."""
    if min(len(x), len(y)) < 2:
        return None
    rows, depth = x[-2:] if not product.adj_x else x[:-3:-1]
    terms, columns = y[-2:] if not product.adj_y else y[:-3:-1]
    count = max(len(x), len(y))
    ones = ((1,) * (count - len(shape)) + shape for shape in (x, y))
    sides = list(zip(*(shape[:-2] for shape in ones), strict=True))
    if depth != terms or any(min(pair) not in (1, max(pair)) for pair in sides):
        return None
    return (*map(max, sides), rows, columns)


def write_matrix_product(graph: Graph, node: Node) -> EncodedOperator:
    product = attributes_of(node, MatrixProduct)
    return EncodedOperator(node.inputs, "BatchMatMulOptions", {"AdjX": product.adj_x, "AdjY": product.adj_y})


def _product_macs(graph: Graph, node: Node) -> int:
    """A multiply-accumulate for each term of each output value."""
    x, out = (graph.tensors[i].shape for i in (node.inputs[0], node.outputs[0]))
    return math.prod(out) * x[-2 if attributes_of(node, MatrixProduct).adj_x else -1]


def _text(graph: Graph, node: Node) -> int:
    """Texels of weights that are written out, for one tap four for each of the output slices computed at once."""
    return written_window_taps(graph, node) * (
        2 + 4 * min(shape_of(graph.tensors[node.outputs[0]]).slices, SLICES_AT_ONCE)
    )


# Code ---------------------------------------------------------------------------------------------------------------


def start_product(writer: KernelWriter, node: Node) -> None:
    """Declare the sums."""
    for index in writer.held_slices(node.outputs[0]):
        for row in writer.rows:
            writer.add(Declare(writer.held(node.outputs[0], row, index), ZEROS))


def accumulate_product(writer: KernelWriter, node: Node, at: Slice) -> None:
    """Add one slice of the rows of x, times the rows of y or their columns, to every output slice."""
    values, lanes = _with_known_lanes(writer, node, writer.value(node.inputs[0], at), at)
    for target, sums in _registers(writer, node):
        for total, value in zip(sums, _products(writer, node, values, lanes, at, target), strict=True):
            writer.add(AddTo(total, value))


def stream_product(writer: KernelWriter, node: Node, at: Slice) -> Sequence[Value]:
    """One output slice over held rows of x."""
    return _over_held(writer, node, lambda values, lanes, source: _products(writer, node, values, lanes, source, at))


def stream_pixels(writer: KernelWriter, node: Node, at: Slice) -> Sequence[Value]:
    """One output slice of a 1x1 convolution over held pixels."""
    weights = node.inputs[1]
    count = writer.graph.tensors[weights].shape[0]

    def products(values: Sequence[Value], lanes: int, source: Slice) -> list[Value]:
        rows = _rows_of_slice(writer, weights, source, at, count, lambda row: (row, Index.of(0), Index.of(0)))
        return [_across_rows(value, rows, lanes) for value in values]

    return _over_held(writer, node, products)


def _over_held(
    writer: KernelWriter, node: Node, products: Callable[[Sequence[Value], int, Slice], Sequence[Value]]
) -> Sequence[Value]:
    """The sums, for each pixel, of what each held slice of x adds to one output slice."""
    sums = writer.declare([ZEROS for _ in writer.rows], "b")
    for index in range(writer.shape(node.inputs[0]).slices):
        source = Slice(index)
        held = [writer.held(node.inputs[0], row, index) for row in writer.rows]
        values, lanes = _with_known_lanes(writer, node, held, source)
        for total, value in zip(sums, products(values, lanes, source), strict=True):
            writer.add(AddTo(total, value))
    return sums


def accumulate_window(writer: KernelWriter, node: Node, at: Slice) -> None:
    """Add one slice of a convolution's input under each tap, times the weights there, to every output slice."""
    weights = node.inputs[1]
    outputs, kernel_h, kernel_w, _ = writer.graph.tensors[weights].shape
    for ky, kx in taps_of(writer, (kernel_h, kernel_w)):
        values, lanes = _with_known_lanes(writer, node, taps_of_window(writer, node, at, (ky, kx)), at)

        def place(row: Index, y: Index = ky, x: Index = kx) -> "Place":
            return row, y, x

        for target, sums in _registers(writer, node):
            rows = _rows_of_slice(writer, weights, at, target, outputs, place)
            for total, value in zip(sums, values, strict=True):
                writer.add(AddTo(total, _across_rows(value, rows, lanes)))


def _registers(writer: KernelWriter, node: Node) -> list[tuple[Slice, list[Name]]]:
    """The output slices of a thread, and their sums for each of its pixels."""
    out = node.outputs[0]
    return [
        (writer.output_slice(index), [writer.held(out, row, index) for row in writer.rows])
        for index in writer.held_slices(out)
    ]


def _with_known_lanes(
    writer: KernelWriter, node: Node, values: Sequence[Value], at: Slice
) -> tuple[Sequence[Value], int]:
    """A slice with zeros in lanes past the last channel, and how many lanes count: what is in them may be anything."""
    channels = writer.shape(node.inputs[0]).channels
    if at.index is not None:
        return values, min(4, channels - 4 * at.index)
    kept = [writer.masked(value, channels, at) for value in values]
    return (values if kept == list(values) else writer.declare(kept, "v")), 4


def _products(
    writer: KernelWriter, node: Node, values: Sequence[Value], lanes: int, at: Slice, target: Slice
) -> list[Value]:
    """For each pixel what an input slice adds to an output slice; a thread's pixels are rows of one matrix."""
    assert writer.tile.across or writer.tile.rows == 1, "pixels of several matrices share no weights"
    y, out = node.inputs[1], writer.shape(node.outputs[0])
    batch, height, _ = writer.place(out, 0)
    shape = writer.shape(y)
    image = Index.of(0) if shape.batch == 1 else batch
    matrix = Index.of(0) if shape.height == 1 else height
    if attributes_of(node, MatrixProduct).adj_y:

        def place(row: Index) -> "Place":
            return image, matrix, row

        rows = _rows_of_slice(writer, y, at, target, shape.width, place)
        return [_across_rows(value, rows, lanes) for value in values]
    first = _first_of(at, ceil_div(shape.width, 4))
    texels = [
        writer.once("w", writer.texel_at(y, target, (image, matrix, first.plus(lane).clamped(0, shape.width - 1))))
        for lane in range(lanes)
    ]
    return [combined("add", [Lane(value, lane) * texel for lane, texel in enumerate(texels)]) for value in values]


def _first_of(at: Slice, slices: int) -> Index:
    """The number of the first value of a slice."""
    return Index.of(4 * at.index) if at.index is not None else Index.variable(at.at, 0, slices - 1).times(4)


def _rows_of_slice(
    writer: KernelWriter, tensor: int, at: Slice, target: Slice, count: int, place: Callable[[Index], Place]
) -> list[Name]:
    """Slice `at` of the four rows whose sums are the lanes of an output slice; behind the last row that again."""
    first = _first_of(target, ceil_div(count, 4))
    rows = (first.plus(lane).clamped(0, count - 1) for lane in range(4))
    return [writer.once("w", writer.texel_at(tensor, at, place(row))) for row in rows]


def _across_rows(value: Value, rows: Sequence[Value], lanes: int) -> Vector:
    """The products of a texel with each of four others, each as one number."""
    sums: list[Operand] = [combined("add", [Lane(value, k) * Lane(row, k) for k in range(lanes)]) for row in rows]
    return Vector(tuple(sums))


def _multiplies(node: Node, inputs: list[Shape], output: Shape) -> bool:
    product, (x, y) = attributes_of(node, MatrixProduct), inputs
    return output == shape_of_product(x, y, product)


def _product_of_matrices(graph: Graph, node: Node, inputs: Sequence[WholeRange]) -> WholeRange:
    """Sums of as many products as a matrix of x has columns, or rows."""
    product = product_range(*inputs[:2])
    is_adjoint = isinstance(node.attributes, MatrixProduct) and node.attributes.adj_x
    return repeated_sum(product, graph.tensors[node.inputs[0]].shape[-2 if is_adjoint else -1])


_WEIGHTS = Example(shapes=((1, 8, 8, 8), (8, 1, 1, 8)), attributes=Conv2D())

RECORDS = (
    OpRecord(
        "BATCH_MATMUL",
        "contraction",
        FileForm(
            read_matrix_product,
            write_matrix_product,
            (0, 1),
            (2, 2),
            struct=OptionsStruct("BatchMatMulOptions", "AdjX:b AdjY:b AsymmetricQuantizeInputs:b"),
        ),
        Example(shapes=((2, 3, 8), (2, 8, 5)), out=(2, 3, 5), attributes=MatrixProduct()),
        short_name="matmul",
        emission=Emission(stream=stream_product, start=start_product, accumulate=accumulate_product),
        pixelwise=always,
        from_memory=(1,),
        multiplies_rows=True,
        macs=_product_macs,
        quantized=ByteRules(may_be_narrow=True),
        agrees=_multiplies,
        ranges=(_product_of_matrices,),
    ),
    OpRecord(
        "COMPUTED_CONV_2D",
        "contraction",
        example=_WEIGHTS,
        emission=Emission(stream=stream_pixels, start=start_product, accumulate=accumulate_window),
        pixelwise=is_pointwise_convolution,
        from_memory=(1,),
        macs=convolution_macs,
        taps=window_taps,
        text_taps=_text,
        agrees=convolves,
    ),
    OpRecord(
        "COMPUTED_TRANSPOSE_CONV",
        "contraction",
        example=Example(
            shapes=((1, 8, 8, 8), (8, 2, 2, 8)), out=(1, 16, 16, 8), attributes=TransposeConv2D(stride=(2, 2))
        ),
        emission=Emission(start=start_product, accumulate=accumulate_window),
        from_memory=(1,),
        macs=convolution_macs,
        taps=window_taps,
        text_taps=_text,
        agrees=scatters,
    ),
    OpRecord(
        "COMPUTED_DEPTHWISE_CONV_2D",
        "window",
        example=Example(shapes=((1, 8, 8, 8), (1, 1, 1, 8)), attributes=DepthwiseConv2D()),
        emission=Emission(stream=computed_depthwise),
        from_memory=(1,),
        macs=convolution_macs,
        taps=window_taps,
        text_taps=written_window_taps,
        agrees=convolves,
    ),
)
