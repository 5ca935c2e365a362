"""Finds outputs of a kernel that may overwrite one of its inputs in memory.

OpenGL orders what one invocation reads and writes through storage blocks that are not `restrict`; of what others do
meanwhile nothing is known (OpenGL 4.6, 7.13.1; GLSL 4.60, 4.10). Texture fetches from memory that the same dispatch
stores to have no such order. So what is overwritten is read as storage, each texel of it by the one thread that writes
there, and before it does:

- no thread repeats another one's pixels or slices, and none computes a part of another one's sum;
- the tensor is read at the thread's own pixel only: by no window, no movement, no prologue;
- a thread that has but some of the slices reads but these.
"""

from collections.abc import Mapping
from types import MappingProxyType

from ..device.tile import Tile
from ..model.graph import Node
from ..model.layout import Storages, shape_of
from ..ops.nodes import is_channel_reduction, is_elementwise, is_pixelwise_contraction, is_scatter, memory_inputs
from .body import Accumulate, Body, Hold, Root, Store

NOTHING_IN_PLACE: Mapping[int, int] = MappingProxyType({})
InPlacePair = tuple[int, int]  # an output, and the input where it may lie


def in_place_pairs(body: Body, tile: Tile, of_prologue: frozenset[int], storages: Storages) -> tuple[InPlacePair, ...]:
    """Pairs of a kernel, each tensor in one at most; `of_prologue` is what every work-group reads first."""
    found = dict[int, int]()
    for output in body.outputs if _owns_texels(body, tile) else ():
        free = (tensor for tensor in body.inputs if tensor not in of_prologue and tensor not in found.values())
        fitting = (tensor for tensor in free if _may_replace(body, tile, output, tensor, storages))
        if (tensor := next(fitting, None)) is not None:
            found[output] = tensor
    return tuple(found.items())


def _owns_texels(body: Body, tile: Tile) -> bool:
    """Whether each slice of each pixel is the work of one thread; at edges threads may repeat what others do."""
    width, height = tile.area(body.domain)
    (columns, rows), parts = tile.sides, tile.parts
    slices = shape_of(body.graph.tensors[body.outputs[0]]).slices
    if parts > 1 or height % tile.down or width * height != body.domain.pixels:
        return False
    if tile.z_slices and slices % tile.z_slices:
        return False
    if tile.deep:
        return tile.leaves or tile.blocks(slices) % tile.local[0] == 0
    return tile.leaves or not (width % columns or height % (rows * tile.down))


def _may_replace(body: Body, tile: Tile, output: int, tensor: int, storages: Storages) -> bool:
    """Whether both have the same texels, of the threads' pixels, and all is read before it is overwritten."""
    source, domain = body.graph.tensors[tensor], body.domain
    texels = [(s.batch, s.height, s.width, s.slices) for s in map(shape_of, (source, body.graph.tensors[output]))]
    kinds = [(each.lanes, each.value_bytes) for each in (storages[tensor], storages[output])]
    if source.is_constant or kinds[0] != kinds[1] or is_scatter(body.producers[output]):
        return False
    if set(texels) != {(domain.batch, domain.height, domain.width, texels[0][3])}:
        return False
    moved = any(tensor in memory_inputs(node) for node in body.through.values())
    aligned = all(_reads_own_pixel(body, node, tensor) for node in body.nodes if tensor in node.inputs)
    return aligned and not moved and _is_read_first(body, tile, output, tensor)


def _reads_own_pixel(body: Body, node: Node, tensor: int) -> bool:
    """Whether a node reads nothing of a tensor but the pixel that it writes."""
    if is_pixelwise_contraction(body.graph, node) or is_channel_reduction(body.graph, node):
        return tensor not in node.inputs[1:]
    return is_elementwise(node)


def _is_read_first(body: Body, tile: Tile, output: int, tensor: int) -> bool:
    """Whether all that a thread reads of a texel it has read before it stores the output there.

    A loop that stores slice by slice reads a slice of an elementwise op's input once for all that it does in a turn:
    ahead of the store, or for it.
    """
    phases = enumerate(body.phases)
    roots = [((number, turn), root) for number, phase in phases for turn, root in enumerate(phase.roots)]
    readers = [(at, root) for at, root in roots if tensor in _streamed(body, root)]
    stored = next(at for at, root in roots if root == Store(output))
    last = max((at for at, _ in readers), default=(len(body.phases), 0))
    if tile.z_slices and any(isinstance(root, Accumulate) for _, root in readers):
        return False  # a sum is of all slices
    if last[0] == stored[0] and not all(is_elementwise(node) for node in body.nodes if tensor in node.inputs):
        return False
    return last < stored or (last[0] == stored[0] and tensor in _streamed(body, Store(output)))


def _streamed(body: Body, root: Root) -> set[int]:
    """All values behind a root that its loop computes or reads, held ones apart."""
    found, waiting = set[int](), [root.node.inputs[0] if isinstance(root, Accumulate) else root.tensor]
    if isinstance(root, Hold) and (node := body.producers.get(root.tensor)) is not None:
        waiting = [*node.inputs]
    while waiting:
        value = waiting.pop()
        if value in found or (value in body.held and not (isinstance(root, Hold) and value == root.tensor)):
            continue
        found.add(value)
        if (node := body.producers.get(value)) is not None:
            waiting += node.inputs
    return found
