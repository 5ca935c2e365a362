"""Packs what a convolution reads for a few pixels into a panel, which is then read for each block of output slices.

All values that these pixels are made of lie in the panel in the order of the sum, with zeros where a window is outside
of its map: no block of slices looks for them, picks every second one, or asks whether they are inside. So pixels may
be taken in the order of memory, whatever their rows. After "Anatomy of High-Performance Matrix Multiplication" (Goto,
van de Geijn, ACM TOMS 2008), section 4.2.1, for windows as in "High Performance Convolutional Neural Networks for
Document Processing" (Chellapilla et al., IWFHR 2006), section 3.2, of one panel at a time.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ...code.vocabulary import (
    AddTo,
    Declare,
    ForEach,
    Lane,
    LoadFrom,
    Name,
    PairProducts,
    Statement,
    StoreTo,
    Sum,
    Weight,
    values_in,
)
from ...model.graph import Conv2D, DepthwiseConv2D, Node
from ...model.layout import FLOAT_BYTES, plane_floats, shape_of
from ...ops.nodes import groups_of_channels, is_contraction, is_elementwise, is_pixelwise_contraction
from ...plan.body import Body
from ...plan.tiling import domain_sides

PANEL = "panel"  # its memory
LANE = Name("lane", "int")  # of a vector in it
MOST_BYTES = 192 << 10  # of the stack, and of the second cache
LEAST_SLICES = 8  # of the output that read a panel, so that packing is a small part of the work: not measured
MOST_PIXELS = 40 * 40  # of maps whose windows have tables of where they are inside
LEAST_MOVED_SLICES = 2  # that read what is moved for them, value by value
MOST_MOVED_PIXELS = 1 << 13  # of maps of them, which have tables of where they lie
LONG_SUM = 96  # slices of an input from which on planes lie too far apart for the first cache ...
MOST_PAGES = 64  # ... or channels, each in a page of its own, of which a core's first table has so many ...
PAGE_BYTES = 4096
MANY_SLICES = 20  # ... for so many slices of the output


@dataclass(frozen=True)
class Packing:
    """Statements that write a panel, those that use it, and how many floats it has, if these say it.

    In pairs it has two bfloat16 in each, of what is multiplied so and used for nothing else. What remains to be done
    when all that is used is summed up is apart where sums lie in the panel, too.
    """

    pack: tuple[Statement, ...]
    use: tuple[Statement, ...]
    floats: int = 0
    channels: int = 4  # of each slice
    in_pairs: bool = False
    finish: tuple[Statement, ...] = ()


def convolved(body: Body) -> Node | None:
    """The convolution of maps that a body is, with what is computed of each of its pixels alone."""
    contractions = [node for node in body.nodes if is_contraction(node)]
    others = [node for node in body.nodes if not is_contraction(node)]
    if len(contractions) != 1 or not all(map(is_elementwise, others)):
        return None
    (node,), graph = contractions, body.graph
    shapes = {tensor: shape_of(graph.tensors[tensor]) for tensor in body.inputs}
    source = shapes.get(node.inputs[0])
    if not isinstance(node.attributes, Conv2D) or isinstance(node.attributes, DepthwiseConv2D):
        return None
    if not graph.tensors[node.inputs[1]].is_constant or {t for n in body.nodes for t in n.inputs} & body.through.keys():
        return None  # what is moved lies at other pixels
    if source is None or source.is_vector or groups_of_channels(graph, node) > 1:
        return None
    added = [shape for tensor, shape in shapes.items() if tensor != node.inputs[0] and not shape.is_vector]
    return node if all(domain_sides(shape) == domain_sides(body.domain) for shape in added) else None


def packs(body: Body, in_pairs: bool = False) -> bool:
    """Whether a panel pays off: enough slices read it, and of a pointwise sum it is long, or rounds or moves values."""
    slices = shape_of(body.graph.tensors[body.outputs[0]]).slices
    if sums_moved(body):
        return slices >= LEAST_MOVED_SLICES
    node = convolved(body)
    if node is None or slices < LEAST_SLICES:
        return False
    source = shape_of(body.graph.tensors[node.inputs[0]])
    fills_pages = source.channels >= MOST_PAGES and FLOAT_BYTES * plane_floats(source) >= PAGE_BYTES
    is_far = source.slices >= LONG_SUM or (fills_pages and slices >= MANY_SLICES)
    return in_pairs or is_far or not is_pixelwise_contraction(body.graph, node)


def sums_moved(body: Body) -> bool:
    """Whether a body is a pointwise sum that reads through maps, which it would do anew for each block of slices."""
    contractions, graph = [node for node in body.nodes if is_contraction(node)], body.graph
    if len(contractions) != 1 or not all(is_elementwise(node) or node in contractions for node in body.nodes):
        return False
    (node,) = contractions
    is_sum = is_pixelwise_contraction(graph, node) and graph.tensors[node.inputs[1]].is_constant
    return is_sum and body.split and node.inputs[0] in body.through and groups_of_channels(graph, node) == 1


def may_be_flat(body: Body) -> bool:
    """Whether pixels of windows, or of what is moved, may be taken in the order of memory."""
    most = MOST_MOVED_PIXELS if sums_moved(body) else MOST_PIXELS
    return packs(body) and body.domain.batch == 1 and body.domain.pixels <= most and _has_one_size(body)


def _has_one_size(body: Body) -> bool:
    """Whether what is read from memory pixel by pixel is a map of the body's size, or a vector."""
    read = {tensor for node in body.nodes if is_elementwise(node) for tensor in node.inputs} & set(body.inputs)
    shapes = [shape_of(body.graph.tensors[tensor]) for tensor in read]
    return all(shape.is_vector or domain_sides(shape) == domain_sides(body.domain) for shape in shapes)


def packed(statements: Sequence[Statement], lanes: int) -> Packing | None:
    """What reads and adds in one loop in two parts; None where there is no such loop, or its panel is too large.

    A loop that writes a panel already is the first part, and the next one that does the sums.
    """
    writers = [each for each in statements if isinstance(each, ForEach) and _writes_panel(each)]
    if writers:
        positions, rest = tuple(_positions(statements)), tuple(each for each in statements if each not in writers)
        pack = (*positions, writers[0])
        return Packing(pack, (*positions, *writers[1:]), finish=rest) if len(writers) > 1 else Packing(pack, rest)
    loops = {k: _joined(each) for k, each in enumerate(statements) if isinstance(each, ForEach)}
    found = [k for k, loop in loops.items() if any(isinstance(each, AddTo) for each in loop.body)]
    if len(found) != 1:
        return None
    loop = loops[found[0]]
    adds = [each for each in loop.body if isinstance(each, AddTo)]
    declared = [each for each in loop.body if isinstance(each, Declare)]
    multiplied = dict.fromkeys(value for each in adds for value in values_in(each) if isinstance(value, Name))
    packed_names = [each.name for each in declared if each.name in multiplied and not isinstance(each.value, Weight)]
    in_pairs, channels = _multiplies_pairs(adds, packed_names), _multiplied_channels(adds, packed_names)
    texel_floats = (2 if in_pairs else channels) * lanes
    floats, turns = len(packed_names) * texel_floats, list[tuple[Name, int]]()
    for name, count in reversed(loop.over):
        turns.append((name, floats))
        floats *= count
    if len(adds) + len(declared) < len(loop.body) or not 0 < floats * FLOAT_BYTES <= MOST_BYTES:
        return None
    places = {name: Sum((*reversed(turns), (LANE, 1)), k * texel_floats) for k, name in enumerate(packed_names)}
    stores = [StoreTo(PANEL, place, name) for name, place in places.items()]
    uses = [
        Declare(each.name, LoadFrom(PANEL, places[each.name])) if each.name in places else each for each in declared
    ]
    before, behind = statements[: found[0]], statements[found[0] + 1 :]
    pack = (*_positions(before), ForEach(loop.over, (*declared, *stores)))
    return Packing(pack, (*before, ForEach(loop.over, (*uses, *adds)), *behind), floats, channels, in_pairs)


def _positions(statements: Sequence[Statement]) -> Iterator[Statement]:
    return (each for each in statements if isinstance(each, Declare) and each.name.type in ("int", "bool"))


def _multiplies_pairs(adds: Sequence[AddTo], names: Sequence[Name]) -> bool:
    """Whether slices are multiplied in pairs, all four channels of each, and used for nothing else."""
    products = [each.value for each in adds]
    return all(isinstance(each, PairProducts) and each.value in names and each.channels == 4 for each in products)


def _multiplied_channels(adds: Sequence[AddTo], names: Sequence[Name]) -> int:
    """How many channels of slices are multiplied: of an input with fewer than four, no others are packed."""
    values = [value for each in adds for value in values_in(each)]
    lanes = [value for value in values if isinstance(value, Lane) and value.value in names]
    whole = len(lanes) < sum(value in names for value in values)
    return 4 if whole else 1 + max((each.lane for each in lanes if isinstance(each.lane, int)), default=3)


def _joined(loop: ForEach) -> ForEach:
    """Loops of which one has nothing else but the next one, as one over several variables."""
    while len(loop.body) == 1 and isinstance(inner := loop.body[0], ForEach):
        loop = ForEach((*loop.over, *inner.over), inner.body)
    return loop


def _writes_panel(loop: ForEach) -> bool:
    return any(isinstance(part, StoreTo) and part.target == PANEL for part in loop.body)
