"""Reductions over pixels whose loops several threads share: a body goes in, whether it can be; an Emitter, their code.

Where few pixels are left of many, as of a batch of maps, threads would be few, and each would run through all that its
pixel stands for. Instead thread (x, y, part) of a group takes every n-th row or column, and all of its parts then fold
what each has left in shared memory.
"""

from typing import TYPE_CHECKING

from ..code.vocabulary import PAST
from ..device.device import Tuning
from ..device.tile import Tile
from ..model.graph import Node, Reduce
from ..model.operators import attributes_of
from ..ops.nodes import is_elementwise
from ..ops.reduce import CHANNELS, MOST_FOLD_PARTS, is_fold, shared_dimension

if TYPE_CHECKING:
    from ..kernels.emit import Emitter
    from .body import Body

LEAST_TURNS = 4  # of the shared loop, for each thread


def folds_of(body: "Body") -> list[Node]:
    """The reductions over pixels of a body whose threads may share them, else none."""
    folds = [node for node in body.nodes if is_fold(node)]
    values = [node for node in body.nodes if not is_elementwise(node)]
    if not body.split or len(body.phases) > 1 or folds != values:
        return []
    return folds if all(CHANNELS not in attributes_of(node, Reduce).axes for node in folds) else []


def possible_fold_parts(body: "Body", tuning: Tuning) -> list[int]:
    """How many threads may share the loops of a body's reductions."""
    lengths = [shared_dimension(body.graph, node)[1] for node in folds_of(body)]
    most = min(MOST_FOLD_PARTS, tuning.sum_group_threads, tuning.sum_texels, min(lengths, default=1) // LEAST_TURNS)
    return [1 << k for k in range(max(1, most.bit_length()))]


def shares_folds(body: "Body", tile: Tile) -> bool:
    """Whether threads share the loops of a body's reductions under a tile."""
    return tile.parts > 1 and bool(folds_of(body))


def share(emitter: "Emitter", index: int) -> None:
    """Compute slice `index` of all reductions, with all threads; those past the edges end."""
    emitter.shares_folds = True
    for node in folds_of(emitter.body):
        emitter.value(node.outputs[0], emitter.output_slice(index))
    emitter.shares_folds = False
    emitter.leave(PAST)
