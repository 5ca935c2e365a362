"""Copies planes that a depthwise window reads with zeros around them, where most vectors have reads outside of the map.

A window of 3x3 taps that lie 4 apart is wholly inside a map of 33x33 at 25x25 places, and there are few vectors of 8 of
which all are. So each plane is copied into the first cache, a small part of the work, and no read needs a condition.
"""

from dataclasses import dataclass, replace
from types import MappingProxyType

from ...device.tile import Tile
from ...model.graph import DepthwiseConv2D, Node, Padding
from ...model.layout import FLOAT_BYTES, MapShape, Storages, ceil_div, shape_of
from ...model.operators import attributes_of
from ...model.packing import Blob
from ...ops.nodes import is_elementwise
from ...plan.body import Body
from .ir import FLOAT, I64, Function, Register, filled, integer, number, vector
from .machine import CpuTarget
from .plane_emitter import PlaneEmitter

MOST_PLANE_BYTES = 24 << 10  # of the first cache, beside what is stored
MOST_INSIDE = 0.6  # of all vectors: where more read no place outside, code of their own is enough; estimated


@dataclass(frozen=True)
class PaddedPlane:
    """A plane with zeros around it, and the rows of it that a row of the output reads."""

    tensor: int
    source: MapShape
    padding: Padding
    height: int
    width: int
    reach: int  # from the first row that a row of the output reads to the last one

    @property
    def floats(self) -> int:
        """Of the plane."""
        return self.height * self.width


def padded_plane(body: Body, tile: Tile, target: CpuTarget) -> PaddedPlane | None:
    """The plane that a body should copy; None where it reads no window so, or gains nothing."""
    node, graph, domain = _windowed(body), body.graph, body.domain
    if node is None or tile.flat or tile.z_slices != 1 or domain.batch > 1:
        return None
    conv, source = attributes_of(node, DepthwiseConv2D), shape_of(graph.tensors[node.inputs[0]])
    if conv.stride != (1, 1):
        return None
    taps = graph.tensors[node.inputs[1]].shape[1:3]
    reaches = [(count - 1) * apart for count, apart in zip(taps, conv.dilation, strict=True)]
    height, width = domain.height + reaches[0], domain.width + reaches[1]
    found = PaddedPlane(node.inputs[0], source, conv.padding, height, width, reaches[0])
    fits = FLOAT_BYTES * found.floats <= MOST_PLANE_BYTES and source.width >= target.lanes
    covers = conv.padding.top + source.height <= height and conv.padding.left + source.width <= width
    return found if fits and covers and _inside(found, domain, tile, target.lanes) <= MOST_INSIDE else None


def _windowed(body: Body) -> Node | None:
    """The depthwise convolution of a map in memory that a body is, with what is computed of each pixel alone."""
    windows = [node for node in body.nodes if isinstance(node.attributes, DepthwiseConv2D)]
    if len(windows) != 1 or not all(node is windows[0] or is_elementwise(node) for node in body.nodes):
        return None
    (node,), graph = windows, body.graph
    readers = sum(node.inputs.count(windows[0].inputs[0]) for node in body.nodes)
    if node.op != "DEPTHWISE_CONV_2D" or node.inputs[0] not in body.inputs or readers > 1 or body.maps:
        return None
    return None if any(graph.tensors[tensor].steps for tensor in (*body.inputs, *body.outputs)) else node


def _inside(plane: PaddedPlane, domain: MapShape, tile: Tile, lanes: int) -> float:
    """The part of all vectors of which no read is outside."""
    found, padding, source = 1.0, plane.padding, plane.source
    for size, together, before, inside, whole in (
        (domain.height, tile.rows, padding.top, source.height, plane.height),
        (domain.width, lanes, padding.left, source.width, plane.width),
    ):
        starts = [min(k * together, max(0, size - together)) for k in range(ceil_div(size, together))]
        ends = [min(start + together, size) + whole - size for start in starts]
        are_inside = [start >= before and end <= before + inside for start, end in zip(starts, ends, strict=True)]
        found *= sum(are_inside) / len(starts)
    return found


class PaddedEmitter(PlaneEmitter):
    """Builds the code of a window over the plane, of one channel at a time: no place is outside."""

    def __init__(
        self, body: Body, tile: Tile, target: CpuTarget, blob: Blob, storages: Storages, plane: PaddedPlane
    ) -> None:
        super().__init__(_padded(body, plane), tile, target, blob, storages)
        self._plane = plane

    def slice_stride(self, tensor: int) -> int:
        """There is but one plane."""
        return 0 if tensor == self._plane.tensor else super().slice_stride(tensor)


def _padded(body: Body, plane: PaddedPlane) -> Body:
    """The body as if its window read a map as large as the plane."""
    tensor = body.graph.tensors[plane.tensor]
    larger = replace(tensor, shape=(1, plane.height, plane.width, tensor.shape[3]))
    graph = replace(body.graph, tensors=MappingProxyType({**body.graph.tensors, plane.tensor: larger}))
    nodes = tuple(_without_padding(node) for node in body.nodes)
    return replace(body, graph=graph, nodes=nodes, producers={out: node for node in nodes for out in node.outputs})


def _without_padding(node: Node) -> Node:
    conv = node.attributes
    return replace(node, attributes=replace(conv, padding=Padding())) if isinstance(conv, DepthwiseConv2D) else node


def fill_with_zeros(f: Function, memory: Register, floats: int, lanes: int) -> None:
    """All of some memory, and less than a vector more."""
    with f.loop(integer(0, I64), integer(ceil_div(floats, lanes), I64)) as block:
        place = f.at(memory, f.binary("mul nsw", block, integer(lanes, I64)))
        f.store(filled(number(0.0), lanes), place)


def copy_plane(
    f: Function, plane: PaddedPlane, source: Register, memory: Register, rows: tuple[Register, Register], lanes: int
) -> None:
    """What is read for some rows of the output, from the first up to before the last."""
    top, height, width = plane.padding.top, plane.source.height, plane.source.width
    low, high = (
        f.binary("add nsw", each, integer(k, I64)) for each, k in zip(rows, (-top, plane.reach - top), strict=True)
    )
    start = f.call("llvm.smax.i64", I64, low, integer(0, I64))
    with f.loop(start, f.call("llvm.smin.i64", I64, high, integer(height, I64))) as row:
        read = f.at(source, f.binary("mul nsw", row, integer(width, I64)))
        target_row = f.binary("mul nsw", f.binary("add nsw", row, integer(top, I64)), integer(plane.width, I64))
        written = f.at(f.at(memory, target_row), plane.padding.left)
        for start_column in (min(k * lanes, width - lanes) for k in range(ceil_div(width, lanes))):
            values = f.load(vector(FLOAT, lanes), f.at(read, start_column))
            f.store(values, f.at(written, start_column))
