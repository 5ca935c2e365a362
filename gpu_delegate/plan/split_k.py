"""Split-K: which kernels' loops several threads of a work-group share, and the shared memory that this takes.

On a small map one thread for each pixel, or for each pixel and some output slices, is too few to keep a GPU busy, and
each would run through all input slices. So thread (x, y, part) of a group goes through some of them, and the parts of a
pixel add what the others have left in shared memory (kernels/split_k_sums.py writes that). There are three kinds:
sums of bodies whose output slices are distributed over threads (no question here: tiling.py decides), bodies of whole
pixels, and reductions over pixels.
"""

from dataclasses import replace

from ..device.device import Tuning
from ..device.limits import Limits
from ..device.tile import Tile
from ..model.graph import Node, Reduce
from ..model.layout import TEXEL_BYTES, shape_of
from ..model.operators import attributes_of
from ..ops.nodes import (
    is_channel_reduction,
    is_contraction,
    is_elementwise,
    is_fold,
    is_pixelwise_contraction,
    reads_window,
)
from ..ops.reduce import CHANNELS, MOST_FOLD_PARTS, shared_dimension
from .body import Accumulate, Body, Hold, Phase

LEAST_TURNS = 4  # of the shared loop, for each thread

# Bodies of whole pixels ---------------------------------------------------------------------------------------------


def can_share_pixels(body: Body) -> bool:
    """Whether threads may share the loops of a body: what each of them would repeat are no convolutions or windows."""
    if body.split or not any(sums_of_phase(phase) for phase in body.phases):
        return False
    if any(is_channel_reduction(body.graph, node) for node in body.nodes):
        return False
    held = {value for phase in body.phases if _is_held(phase) for value in phase.evaluates}
    repeated = (body.producers[value] for value in held if value in body.producers)
    return not any(is_contraction(node) or reads_window(body.graph, node) for node in repeated)


def most_shared_slices(body: Body) -> int:
    """Slices of the longest of the loops that threads may share: of a sum's input, or of its output."""
    sums = [(phase, node) for phase in body.phases for node in sums_of_phase(phase)]
    outputs = (shape_of(body.graph.tensors[node.outputs[0]]).slices for _, node in sums)
    return max(*(phase.slices for phase, _ in sums), *outputs)


def sums_of_phase(phase: Phase) -> list[Node]:
    """The nodes that a loop adds up."""
    return [root.node for root in phase.roots if isinstance(root, Accumulate)]


def _is_held(phase: Phase) -> bool:
    return any(isinstance(root, Hold) for root in phase.roots)


def is_shared_by_outputs(body: Body, node: Node) -> bool:
    """Whether each part shall compute some slices of a convolution: where its input costs little to compute for all.

    Else each part adds up some slices of the input, and windows in front of it are computed once.
    """
    phase = next(phase for phase in body.phases if node in sums_of_phase(phase))
    if len(sums_of_phase(phase)) > 1 or not is_pixelwise_contraction(body.graph, node):
        return False
    return all(is_elementwise(body.producers[value]) for value in phase.evaluates if value in body.producers)


def sums_of_body(body: Body) -> list[Node]:
    return [node for phase in body.phases for node in sums_of_phase(phase)]


def shared_texels_of(body: Body, tile: Tile) -> int:
    """Shared memory that the parts of a kernel's threads need."""
    if tile.parts == 1:
        return 0
    if not tile.shares_pixels:
        return tile.threads * tile.rows * tile.z_slices
    return tile.local[0] * tile.local[1] * tile.rows * texels_of_pixel(body, tile.parts)


def texels_of_pixel(body: Body, parts: int) -> int:
    """The same for one pixel that so many threads share."""

    def texels(node: Node) -> int:
        slices = shape_of(body.graph.tensors[node.outputs[0]]).slices
        return slices * (1 if is_shared_by_outputs(body, node) else parts)

    return max(map(texels, sums_of_body(body)))


def within_limits(body: Body, tile: Tile, limits: Limits) -> Tile:
    """The tile, without parts if the device has too little shared memory for them, or too small work-groups."""
    needed_bytes = TEXEL_BYTES * shared_texels_of(body, tile)
    if tile.threads <= limits.work_group_invocations and needed_bytes <= limits.shared_memory_bytes:
        return tile
    return replace(tile, local=(*tile.local[:2], 1))


# Reductions over pixels -----------------------------------------------------------------------------------------------


def folds_of(body: Body) -> list[Node]:
    """The reductions over pixels of a body whose threads may share them, else none."""
    folds = [node for node in body.nodes if is_fold(node)]
    values = [node for node in body.nodes if not is_elementwise(node)]
    if not body.split or len(body.phases) > 1 or folds != values:
        return []
    return folds if all(CHANNELS not in attributes_of(node, Reduce).axes for node in folds) else []


def possible_fold_parts(body: Body, tuning: Tuning) -> list[int]:
    """How many threads may share the loops of a body's reductions."""
    lengths = [shared_dimension(body.graph, node)[1] for node in folds_of(body)]
    most = min(MOST_FOLD_PARTS, tuning.sum_group_threads, tuning.sum_texels, min(lengths, default=1) // LEAST_TURNS)
    return [1 << k for k in range(max(1, most.bit_length()))]


def shares_folds(body: Body, tile: Tile) -> bool:
    """Whether threads share the loops of a body's reductions under a tile."""
    return tile.parts > 1 and bool(folds_of(body))
