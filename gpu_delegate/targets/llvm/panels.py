"""Packs what a convolution reads for a few pixels into a panel, which is then read for each block of output slices.

All values that these pixels are made of lie in the panel in the order of the sum, with zeros where a window is outside
of its map: no block of slices looks for them, picks every second one, or asks whether they are inside. So pixels may
be taken in the order of memory, whatever their rows. After "Anatomy of High-Performance Matrix Multiplication" (Goto,
van de Geijn, ACM TOMS 2008), section 4.2.1, for windows as in "High Performance Convolutional Neural Networks for
Document Processing" (Chellapilla et al., IWFHR 2006), section 3.2, of one panel at a time.
"""

from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass

from ...code.vocabulary import (
    AddTo,
    Declare,
    ForEach,
    LoadFrom,
    Name,
    PairProducts,
    Statement,
    StoreTo,
    Sum,
    Tap,
    blocks_in,
    values_in,
)
from ...model.graph import Conv2D, DepthwiseConv2D, Node
from ...model.layout import FLOAT_BYTES, shape_of
from ...ops.nodes import groups_of_channels, is_contraction, is_elementwise, is_pixelwise_contraction
from ...plan.body import Body
from ...plan.tiling import domain_sides

PANEL = "panel"  # its memory
LANE = Name("lane", "int")  # of a vector in it
MOST_BYTES = 192 << 10  # of the stack, and of the second cache
LEAST_SLICES = 8  # of the output that read a panel, so that packing is a small part of the work: not measured
MOST_PIXELS = 40 * 40  # of maps whose windows have tables of where they are inside
LONG_SUM = 96  # slices of an input from which on planes lie too far apart for the first cache


@dataclass(frozen=True)
class Packing:
    """Statements that write a panel, those that use it, and how many floats it has, if these say it.

    In pairs it has two bfloat16 in each, of what is multiplied so and used for nothing else.
    """

    pack: tuple[Statement, ...]
    use: tuple[Statement, ...]
    floats: int = 0
    in_pairs: bool = False


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
    """Whether a panel pays off: enough slices read it, and of a pointwise sum it is long, or rounds what it has."""
    node = convolved(body)
    if node is None or shape_of(body.graph.tensors[node.outputs[0]]).slices < LEAST_SLICES:
        return False
    source = shape_of(body.graph.tensors[node.inputs[0]])
    return in_pairs or source.slices >= LONG_SUM or not is_pixelwise_contraction(body.graph, node)


def may_be_flat(body: Body) -> bool:
    """Whether pixels of windows may be taken in the order of memory."""
    return packs(body) and body.domain.batch == 1 and body.domain.pixels <= MOST_PIXELS


def packed(statements: Sequence[Statement], lanes: int) -> Packing | None:
    """What reads and adds in one loop in two parts; None where there is no such loop, or its panel is too large.

    A loop that writes a panel already is the first part.
    """
    for k, each in enumerate(statements):
        if isinstance(each, ForEach) and any(isinstance(part, StoreTo) and part.target == PANEL for part in each.body):
            return Packing((*_positions(statements[:k]), each), (*statements[:k], *statements[k + 1 :]))
    found = [k for k, each in enumerate(statements) if isinstance(each, ForEach) and _adds(each)]
    if len(found) != 1:
        return None
    loop = statements[found[0]]
    assert isinstance(loop, ForEach)
    reads = [each for each in loop.body if isinstance(each, Declare) and isinstance(each.value, LoadFrom | Tap)]
    in_pairs = _multiplies_pairs(loop, {each.name for each in reads})
    texel_floats = (2 if in_pairs else 4) * lanes
    turn_floats = len(reads) * texel_floats
    floats = turn_floats * (loop.over[0][1] if loop.over else 1)
    if len(loop.over) > 1 or any(map(blocks_in, loop.body)) or not 0 < floats * FLOAT_BYTES <= MOST_BYTES:
        return None
    turns = tuple((name, turn_floats) for name, _ in loop.over)
    places = {each.name: Sum((*turns, (LANE, 1)), k * texel_floats) for k, each in enumerate(reads)}
    stores = [part for each in reads for part in (each, StoreTo(PANEL, places[each.name], each.name))]
    uses = [
        Declare(each.name, LoadFrom(PANEL, places[each.name]))
        if isinstance(each, Declare) and each.name in places
        else each
        for each in loop.body
    ]
    before, behind = statements[: found[0]], statements[found[0] + 1 :]
    pack = (*_positions(before), ForEach(loop.over, tuple(stores)))
    return Packing(pack, (*before, ForEach(loop.over, tuple(uses)), *behind), floats, in_pairs)


def _positions(statements: Sequence[Statement]) -> Iterator[Statement]:
    return (each for each in statements if isinstance(each, Declare) and each.name.type in ("int", "bool"))


def _multiplies_pairs(loop: ForEach, names: Set[Name]) -> bool:
    """Whether slices are multiplied in pairs, all four channels of each, and used for nothing else."""
    for each in loop.body:
        value = each.value if isinstance(each, AddTo | Declare) else None
        is_product = isinstance(value, PairProducts) and value.value in names and value.channels == 4
        is_read = isinstance(each, Declare) and each.name in names
        if not is_product and not is_read and not names.isdisjoint(values_in(each)):
            return False
    return True


def _adds(loop: ForEach) -> bool:
    return any(isinstance(each, AddTo) for each in loop.body)
