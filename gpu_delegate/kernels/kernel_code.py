"""One whole kernel, whatever its language: a planned body or vector nodes go in, all of its statements come out."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ..code.half_products import in_halves
from ..code.schedule import scheduled
from ..code.vocabulary import Leave, Statement
from ..device.tile import Tile
from ..model.graph import Node
from ..model.layout import Storages, shape_of
from ..model.packing import Blob
from ..plan.body import Body
from ..plan.epilogue_sums import EpilogueSum
from ..plan.static_model import grid_of
from ..plan.vector_work import VectorWork, input_names
from .emit import Emitter
from .epilogue_reduction import GroupSums
from .thread_places import threads_begin
from .vector_emitter import VectorEmitter
from .weights_recipe import Pieces


@dataclass(frozen=True)
class KernelCode:
    """What each thread does: `place` says where it begins, then come the statements."""

    nodes: tuple[Node, ...]
    inputs: Mapping[int, str]  # the names of tensors that are read
    outputs: tuple[int, ...]  # written as out0, out1, ...
    place: tuple[Statement, ...]
    statements: tuple[Statement, ...]
    shared: Mapping[str, int]  # arrays of vec4s in shared memory, and how many each has
    blob: Blob
    grid: tuple[int, int, int]  # in work-groups
    pieces: Pieces | None = None  # of the blob, if others with the same key of their body have the same code


def pixel_code(
    body: Body, prologue: VectorWork, tile: Tile, left: Sequence[EpilogueSum], storages: Storages, halves: bool = False
) -> KernelCode:
    """A body under a tile, with vector nodes computed first by every work-group, and sums left at the end.

    With `halves` products of weights are computed in half precision.
    """
    slices = shape_of(body.graph.tensors[body.outputs[0]]).slices
    inputs, blob = input_names(body.inputs, prologue), Blob()
    vectors = VectorEmitter(prologue, inputs, blob)
    vectors.emit()
    sums = GroupSums(body, tile, left, first_output=len(body.outputs))
    emitter = Emitter(body, tile, inputs, vectors.arrays, blob, storages, sums)
    emitter.emit()
    statements = scheduled((*emitter.preamble, *emitter.statements), tile)
    statements = in_halves(statements) if halves else statements
    place, past = threads_begin(tile, body.domain, slices)
    if left:
        statements = sums.around(statements, past)
    elif past is not None and tile.parts == 1:
        statements = (Leave(past), *statements)
    return KernelCode(
        nodes=(*prologue.nodes, *body.nodes),
        inputs=inputs,
        outputs=(*body.outputs, *(each.tensor for each in left)),
        place=tuple(place),
        statements=(*vectors.statements, *statements),
        shared={**vectors.shared, **emitter.shared, **sums.shared},
        blob=blob,
        grid=grid_of(body, tile),
        pieces=emitter.pieces if emitter.is_for_all and not prologue.nodes and not left else None,
    )


def vector_code(work: VectorWork, outputs: Sequence[int]) -> KernelCode:
    """Vector nodes alone: one work-group, whose results are stored."""
    inputs, blob = input_names((), work), Blob()
    vectors = VectorEmitter(work, inputs, blob)
    vectors.emit()
    vectors.store(outputs)
    statements = tuple(vectors.statements)
    return KernelCode(work.nodes, inputs, tuple(outputs), (), statements, vectors.shared, blob, grid=(1, 1, 1))
