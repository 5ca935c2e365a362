"""Sums whose terms several threads of a work-group share: an Emitter goes in, what they begin with and their join are
emitted.

Where a map has few pixels and few output slices, threads would be few, too, and each would run through all input
slices. Instead thread (x, y, part) of a group adds some of them, and each part finishes some output slices from what
the others have left in shared memory.
"""

from typing import TYPE_CHECKING

from ..code.indices import Validity
from ..code.vocabulary import (
    PART,
    PAST,
    PIXEL,
    THREAD,
    ZEROS,
    Assign,
    Name,
    Operation,
    Shared,
    StoreShared,
    Synchronize,
    Value,
    combined,
)
from ..model.graph import Node

if TYPE_CHECKING:
    from ..kernels.emit import Emitter

ARRAY = "part_sums"


def start_parts(emitter: "Emitter", node: Node) -> None:
    """The sums of a node begin with its bias in one part alone."""
    with emitter.when(Operation("less", (0, PART))):
        for register in registers_of(emitter, node):
            emitter.add(Assign(register, ZEROS))


def join(emitter: "Emitter", node: Node) -> None:
    """Leave the thread's sums to all parts, each of which finishes some of them; threads past the edges end."""
    x, y, parts = emitter.tile.local
    area, threads, registers = x * y, x * y * parts, registers_of(emitter, node)
    emitter.shared[ARRAY] = threads * len(registers)
    for k, register in enumerate(registers):
        emitter.add(StoreShared(ARRAY, THREAD + k * threads, register))
    emitter.add(Synchronize())
    emitter.leave(PAST)
    for k, register in enumerate(registers):
        with emitter.when(is_own(emitter, k % len(emitter.held_slices(node.outputs[0])))):
            each = [Shared(ARRAY, PIXEL + (k * threads + part * area)) for part in range(parts)]
            emitter.add(Assign(register, combined("add", each)))


def is_own(emitter: "Emitter", index: int) -> Value:
    """Whether this part finishes slice `index` of those whose terms the parts share."""
    return Operation("equal", (PART, index % emitter.tile.parts))


def and_own(emitter: "Emitter", condition: Validity, index: int) -> Validity:
    """A condition, and that this part finishes slice `index`."""
    own = is_own(emitter, index)
    return own if condition is True else combined("both", [condition, own])


def registers_of(emitter: "Emitter", node: Node) -> list[Name]:
    """The sums of a thread."""
    out = node.outputs[0]
    return [emitter.held(out, row, index) for row in emitter.rows for index in emitter.held_slices(out)]
