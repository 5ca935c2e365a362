"""Split-K: the statements by which threads of a work-group share the terms of sums, and join what each has added up.

Which kernels do so, and why, is plan/split_k.py's. Each part of a pixel goes through some slices of a loop; behind it
the parts add what the others have in shared memory. Of a kernel of whole pixels all parts have the sums then, of others
each part finishes some output slices.
"""

from ..code.expressions import Slice
from ..code.indices import Validity
from ..code.vocabulary import (
    PART,
    PART_SUMS,
    PAST,
    PIXEL,
    THREAD,
    ZEROS,
    Assign,
    Name,
    Operation,
    Reserve,
    Shared,
    StoreShared,
    Synchronize,
    Value,
    combined,
)
from ..model.graph import Node
from ..model.layout import ceil_div
from ..plan.body import Accumulate, Body, Hold, Phase
from ..plan.split_k import folds_of, is_shared_by_outputs, shared_texels_of, sums_of_body, sums_of_phase
from .part_writer import PartWriter

# Sums of some output slices -------------------------------------------------------------------------------------------


def start_parts(writer: PartWriter, node: Node) -> None:
    """The sums of a node begin with its bias in one part alone."""
    with writer.when(Operation("less", (0, PART))):
        for register in registers_of(writer, node):
            writer.add(Assign(register, ZEROS))


def join(writer: PartWriter, node: Node) -> None:
    """Leave the thread's sums to all parts, each of which finishes some of them; threads past the edges end."""
    x, y, parts = writer.tile.local
    area, threads, registers = x * y, x * y * parts, registers_of(writer, node)
    writer.share_array(PART_SUMS, threads * len(registers))
    for k, register in enumerate(registers):
        writer.add(StoreShared(PART_SUMS, THREAD + k * threads, register))
    writer.add(Synchronize())
    writer.leave(PAST)
    for k, register in enumerate(registers):
        with writer.when(is_own(writer, k % len(writer.held_slices(node.outputs[0])))):
            each = [Shared(PART_SUMS, PIXEL + (k * threads + part * area)) for part in range(parts)]
            writer.add(Assign(register, combined("add", each)))


def is_own(writer: PartWriter, index: int) -> Value:
    """Whether this part finishes slice `index` of those whose terms the parts share."""
    return Operation("equal", (PART, index % writer.tile.parts))


def and_own(writer: PartWriter, condition: Validity, index: int) -> Validity:
    """A condition, and that this part finishes slice `index`."""
    own = is_own(writer, index)
    return own if condition is True else combined("both", [condition, own])


def registers_of(writer: PartWriter, node: Node) -> list[Name]:
    """The sums of a thread."""
    out = node.outputs[0]
    return [writer.held(out, row, index) for row in writer.rows for index in writer.held_slices(out)]


# Kernels of whole pixels ----------------------------------------------------------------------------------------------


def own_slice(writer: PartWriter, tensor: int, index: int) -> Slice:
    """Slice `index` of those that a part computes; past the last one it is that again."""
    slices, each, at = _own_slices(writer, tensor, index)
    is_sure = each * writer.tile.parts <= slices
    return Slice(at if is_sure else Operation("minimum", (at, slices - 1)), place=index)


def _own_slices(writer: PartWriter, tensor: int, index: int) -> tuple[int, int, Value]:
    """All slices of a value, how many a part computes, and number `index` of these, which may be past the last one."""
    slices = writer.shape(tensor).slices
    each = ceil_div(slices, writer.tile.parts)
    return slices, each, PART if each == 1 else PART * each + index


def emit_phase(writer: PartWriter, phase: Phase, variable: Name) -> None:
    """A loop over slices, of which each part takes some: as many as all others, so that compilers know how many."""
    parts, turns = writer.tile.parts, ceil_div(phase.slices, writer.tile.parts)
    if phase.unrolled or phase.slices == 1:
        for number in range(phase.slices):
            with writer.loop():
                _emit_roots(writer, phase, Slice(number), Operation("equal", (PART, number % parts)))
        return
    if _goes_through_all(writer.body, phase):
        with writer.loop((variable, phase.slices)):
            _emit_roots(writer, phase, Slice(variable), Operation("equal", (variable % parts, PART)))
        return
    at = PART * turns + variable
    is_there = turns * parts <= phase.slices or Operation("less", (at, phase.slices))
    with writer.loop((variable, turns)), writer.when(is_there):
        for root in phase.roots:
            writer.root(root, Slice(at))


def _goes_through_all(body: Body, phase: Phase) -> bool:
    """Whether each part needs all slices of a loop."""
    return any(is_shared_by_outputs(body, node) for node in sums_of_phase(phase))


def _emit_roots(writer: PartWriter, phase: Phase, at: Slice, own: Value) -> None:
    """What all parts do for a slice, then what one part does, under a condition."""
    goes_through_all = _goes_through_all(writer.body, phase)
    by_all = (Hold, Accumulate) if goes_through_all else (Hold,)
    for root in phase.roots:
        if isinstance(root, by_all):
            writer.root(root, at)
    others = [root for root in phase.roots if not isinstance(root, by_all)]
    if others:
        with writer.when(own):
            for root in others:
                writer.root(root, at)


def finish(writer: PartWriter, node: Node) -> None:
    """Give each part the sums of all parts, or the slices that the others have computed."""
    registers = registers_of(writer, node)
    if writer.own is None:
        _join(writer, node, registers)
    else:
        writer.own = None
        _gather(writer, node, registers)


def _join(writer: PartWriter, node: Node, registers: list[Name]) -> None:
    """Add the sums of all parts."""
    x, y, parts = writer.tile.local
    area, threads = x * y, x * y * parts
    _begin(writer, node)
    for k, register in enumerate(registers):
        writer.add(StoreShared(PART_SUMS, THREAD + k * threads, register))
    writer.add(Synchronize())
    number = Name("n", "int")
    turns = ceil_div(len(registers), parts)
    at = number * parts + PART
    with (
        writer.loop((number, turns)),
        writer.when(turns * parts <= len(registers) or Operation("less", (at, len(registers)))),
    ):
        first = at * threads + PIXEL
        terms = [Shared(PART_SUMS, first + part * area) for part in range(parts)]
        writer.add(StoreShared(PART_SUMS, first, combined("add", terms)))
    writer.add(Synchronize())
    for k, register in enumerate(registers):
        writer.add(Assign(register, Shared(PART_SUMS, PIXEL + k * threads)))
    _end(writer, node)


def _gather(writer: PartWriter, node: Node, own: list[Name]) -> None:
    """Leave a part's own registers, row by row, to all others."""
    x, y, parts = writer.tile.local
    out, rows = node.outputs[0], len(writer.rows)
    each = len(own) // rows
    _begin(writer, node)
    for number, register in enumerate(own):
        row, index = divmod(number, each)
        slices, _, at = _own_slices(writer, out, index)
        with writer.when(each * parts <= slices or Operation("less", (at, slices))):
            writer.add(StoreShared(PART_SUMS, (at * rows + row) * (x * y) + PIXEL, register))
    writer.add(Synchronize())
    registers = registers_of(writer, node)
    writer.add(Reserve(tuple(registers)))
    for number, register in enumerate(registers):
        row, index = divmod(number, len(registers) // rows)
        writer.add(Assign(register, Shared(PART_SUMS, PIXEL + (index * rows + row) * (x * y))))
    _end(writer, node)


def _begin(writer: PartWriter, node: Node) -> None:
    """Wait until all have read what was shared before."""
    writer.share_array(PART_SUMS, shared_texels_of(writer.body, writer.tile))


def _end(writer: PartWriter, node: Node) -> None:
    """Behind the last sums threads past the edges leave."""
    if node is sums_of_body(writer.body)[-1]:
        writer.leave(PAST)


# Reductions over pixels -----------------------------------------------------------------------------------------------


def share_folds(writer: PartWriter, index: int) -> None:
    """Compute slice `index` of all reductions, with all threads; those past the edges end."""
    writer.shares_folds = True
    for node in folds_of(writer.body):
        writer.value(node.outputs[0], writer.output_slice(index))
    writer.shares_folds = False
    writer.leave(PAST)
