"""RESIZE_BILINEAR and RESIZE_NEAREST_NEIGHBOR: file form, source positions as in TensorFlow Lite, and kernel code."""

from collections.abc import Sequence
from functools import reduce
from operator import add

import numpy as np

from ..code.expressions import Slice
from ..code.kernel_writer import KernelWriter
from ..code.vocabulary import X0, Name, Operand, Operation, Value, clamp, to_float, to_int
from ..model.graph import Attributes, Graph, Node, Resize, Shape
from ..model.interpolation import first_position, scale_of
from ..model.operators import EncodedOperator, Operator, attributes_of, integers
from .facts import first_range
from .record import ONE_SCALE, Emission, Example, FileForm, OpRecord, OptionsStruct

Between = tuple[Name, Name, Operand]  # two source coordinates, and the second one's weight


def read_resize(operator: Operator) -> Attributes:
    bilinear = operator.op == "RESIZE_BILINEAR"
    options = operator.options("ResizeBilinearOptions" if bilinear else "ResizeNearestNeighborOptions")
    batch, _, _, channels = operator.shape(0, rank=4)
    size = operator.integers(1)
    if len(size) != 2:
        operator.damaged(f"input 1, the size, has {len(size)} integers instead of 2")
    operator.expect((batch, *size, channels))
    align, half = bool(options.AlignCorners()), bool(options.HalfPixelCenters())
    if align and half and bilinear:
        operator.damaged("aligned corners and half-pixel centers exclude each other")
    return Resize(align, half)


def write_resize(graph: Graph, node: Node) -> EncodedOperator:
    resize = attributes_of(node, Resize)
    _, height, width, _ = graph.tensors[node.outputs[0]].shape
    table = "ResizeBilinearOptions" if node.op == "RESIZE_BILINEAR" else "ResizeNearestNeighborOptions"
    options = {"AlignCorners": resize.align_corners, "HalfPixelCenters": resize.half_pixel_centers}
    return EncodedOperator((*node.inputs, integers(height, width)), table, options)


def bilinear(writer: KernelWriter, node: Node, at: Slice) -> Sequence[Value]:
    """One slice of RESIZE_BILINEAR: source rows are interpolated along x first, so pixels in a column share them."""
    attributes = attributes_of(node, Resize)
    if attributes.in_products:
        return _four_products(writer, node, at)
    source, target = writer.shape(node.inputs[0]), writer.shape(node.outputs[0])
    left, right, weight_x = _columns(writer, attributes, source.width, target.width)
    results = []
    for row in writer.rows:
        above, below, weight_y = _rows(writer, attributes, source.height, target.height, row)
        mixed = []
        for line in (above, below):
            a, b = (writer.tap(node.inputs[0], at, (line, None), (column, None)) for column in (left, right))
            mixed.append(writer.once("h", a + (b - a) * weight_x))
        results.append(mixed[0] + (mixed[1] - mixed[0]) * weight_y)
    return writer.declare(results)


def _four_products(writer: KernelWriter, node: Node, at: Slice) -> Sequence[Value]:
    """One slice of RESIZE_BILINEAR as TensorFlow Lite's reference kernel adds: each place times both its weights.

    Products have names of their own, so that they are rounded before they are added.
    """
    attributes = attributes_of(node, Resize)
    source, target = writer.shape(node.inputs[0]), writer.shape(node.outputs[0])
    left, right, weight_x = _columns(writer, attributes, source.width, target.width)
    results = list[Value]()
    for row in writer.rows:
        above, below, weight_y = _rows(writer, attributes, source.height, target.height, row)
        products = list[Value]()
        for column, by_column in ((left, 1.0 - weight_x), (right, weight_x)):
            for line, by_line in ((above, 1.0 - weight_y), (below, weight_y)):
                value = writer.tap(node.inputs[0], at, (line, None), (column, None))
                products.append(writer.once("h", value * by_line * by_column))
        results.append(reduce(add, products))
    return writer.declare(results)


def nearest(writer: KernelWriter, node: Node, at: Slice) -> Sequence[Value]:
    """One slice of RESIZE_NEAREST_NEIGHBOR."""
    attributes = node.attributes
    assert isinstance(attributes, Resize)
    source, target = writer.shape(node.inputs[0]), writer.shape(node.outputs[0])
    column = _nearest(writer, X0, attributes, source.width, target.width)
    return [
        writer.tap(
            node.inputs[0],
            at,
            (_nearest(writer, writer.map_row() + row, attributes, source.height, target.height), None),
            (column, None),
        )
        for row in writer.rows
    ]


def _nearest(writer: KernelWriter, base: Value, attributes: Resize, source: int, target: int) -> Name:
    """Origin index along an axis, in TensorFlow Lite's float32 arithmetic: exact values would differ near integers."""
    scale = float(np.float32(scale_of(source, target, attributes)))
    at = writer.position("f", (to_float(base) + 0.5 if attributes.half_pixel_centers else to_float(base)) * scale)
    index: Value = to_int(at)
    if attributes.align_corners:  # rounded to nearest, halves up
        index = index + to_int(Operation("at least", (Operation("fraction", (at,)), 0.5)))
    return writer.position("p", Operation("minimum", (index, source - 1)))


def _doubles(source: int, target: int, attributes: Resize) -> bool:
    return target == 2 * source and attributes.half_pixel_centers and not attributes.align_corners


def _columns(writer: KernelWriter, attributes: Resize, source: int, target: int) -> Between:
    return _between(writer, X0, attributes, source, target)


def _rows(writer: KernelWriter, attributes: Resize, source: int, target: int, row: int) -> Between:
    """Origin rows above and below a pixel and the weight of the lower; whole-number offsets where the size doubles.

    With an even number of rows in each thread y0 is even, and pixel y0 + row lies a quarter off a source row.
    """
    if not _doubles(source, target, attributes) or len(writer.rows) % 2 or target % 2:
        return _between(writer, writer.map_row() + row, attributes, source, target)
    first, base = (row - 1) // 2, writer.map_row()
    lines = [writer.position("p", clamp(base / 2 + (first + k), 0, source - 1)) for k in (0, 1)]
    return lines[0], lines[1], 0.75 if row % 2 == 0 else 0.25


def _between(writer: KernelWriter, base: Value, attributes: Resize, source: int, target: int) -> Between:
    scale = float(np.float32(scale_of(source, target, attributes)))
    place: Value = to_float(base)
    if attributes.in_1024ths:
        found = place * scale + first_position(scale, attributes)
    else:
        found = (place + 0.5) * scale - 0.5 if attributes.half_pixel_centers else place * scale
    exact = writer.position("f", found)
    low = writer.position("p", to_int(Operation("floor", (exact,))))
    first = Operation("maximum", (low, 0)) if attributes.in_products else low
    weight = writer.position("f", exact - to_float(first))
    pair = [writer.position("p", clamp(low + k, 0, source - 1)) for k in (0, 1)]
    return pair[0], pair[1], weight


def _keeps_maps(node: Node, inputs: list[Shape], output: Shape) -> bool:
    x = inputs[0]
    return len(x) == len(output) == 4 and (x[0], x[3]) == (output[0], output[3])


def _form(table: str) -> FileForm:
    struct = OptionsStruct(table, "AlignCorners:b HalfPixelCenters:b")
    return FileForm(read_resize, write_resize, count=(2, 2), version=3, struct=struct)


_DOUBLE = Example(out=(1, 16, 16, 8), attributes=Resize())

RECORDS = (
    OpRecord(
        "RESIZE_BILINEAR",
        "window",
        _form("ResizeBilinearOptions"),
        _DOUBLE,
        short_name="up",
        emission=Emission(stream=bilinear),
        quantized=ONE_SCALE,
        agrees=_keeps_maps,
    ),
    OpRecord(
        "RESIZE_NEAREST_NEIGHBOR",
        "window",
        _form("ResizeNearestNeighborOptions"),
        _DOUBLE,
        emission=Emission(stream=nearest),
        quantized=ONE_SCALE,
        agrees=_keeps_maps,
        ranges=(first_range,),
    ),
)
