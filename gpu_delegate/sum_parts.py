"""Sums whose terms several threads of a work-group share: an Emitter goes in, what they begin with and their join are
emitted.

Where a map has few pixels and few output slices, threads would be few, too, and each would run through all input
slices. Instead thread (x, y, part) of a group adds some of them, and the first part adds what the others have left in
shared memory.
"""

from typing import TYPE_CHECKING

from .code import (
    PART,
    PAST,
    THREAD,
    ZEROS,
    AddTo,
    Assign,
    Name,
    Operation,
    Shared,
    StoreShared,
    Synchronise,
    combined,
)
from .graph import Node

if TYPE_CHECKING:
    from .emit import Emitter

ARRAY = "part_sums"


def start_parts(emitter: "Emitter", node: Node) -> None:
    """The sums of a node begin with its bias in one part alone."""
    with emitter.when(Operation("less", (0, PART))):
        for register in registers_of(emitter, node):
            emitter.add(Assign(register, ZEROS))


def join(emitter: "Emitter", node: Node) -> None:
    """Leave the thread's sums to the first part, which adds them; the others end, as do threads past the edges."""
    x, y, parts = emitter.tile.local
    area, threads, registers = x * y, x * y * parts, registers_of(emitter, node)
    emitter.shared[ARRAY] = threads * len(registers)
    for k, register in enumerate(registers):
        emitter.add(StoreShared(ARRAY, THREAD + k * threads, register))
    emitter.add(Synchronise())
    emitter.leave(PAST)
    emitter.leave(Operation("less", (0, PART)))
    for k, register in enumerate(registers):
        others = [Shared(ARRAY, THREAD + (k * threads + part * area)) for part in range(1, parts)]
        emitter.add(AddTo(register, combined("add", others)))


def registers_of(emitter: "Emitter", node: Node) -> list[Name]:
    """The sums of a thread."""
    out = node.outputs[0]
    return [emitter.held(out, row, index) for row in emitter.rows for index in emitter.held_slices(out)]
