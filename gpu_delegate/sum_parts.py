"""GLSL of sums whose terms several threads of a work-group share: an Emitter goes in, its loop and its join come out.

Where a map has few pixels and few output slices, threads would be few, too, and each would run through all input
slices. Instead thread (x, y, part) of a group adds every n-th of them, and the first part adds what the others have
left in shared memory.
"""

from typing import TYPE_CHECKING

from .graph import Node

if TYPE_CHECKING:
    from .emit import Emitter

ARRAY = "part_sums"


def start(emitter: "Emitter", node: Node) -> None:
    """The sums of a node begin with its bias in one part alone."""
    registers = " = ".join(registers_of(emitter, node))
    emitter.line(f"if (part > 0) {registers} = vec4(0.0);")


def join(emitter: "Emitter", node: Node) -> None:
    """Leave the thread's sums to the first part, which adds them; the others end, as do threads past the edges."""
    x, y, parts = emitter.tile.local
    area, threads, registers = x * y, x * y * parts, registers_of(emitter, node)
    emitter.shared.append(f"shared vec4 {ARRAY}[{threads * len(registers)}];")
    for k, register in enumerate(registers):
        emitter.line(f"{ARRAY}[{k * threads} + thread] = {register};")
    emitter.line("SYNC();")
    emitter.leave("part > 0 || past")
    for k, register in enumerate(registers):
        terms = " + ".join(f"{ARRAY}[{k * threads + part * area} + thread]" for part in range(1, parts))
        emitter.line(f"{register} += {terms};")


def registers_of(emitter: "Emitter", node: Node) -> list[str]:
    """The sums of a thread."""
    out = node.outputs[0]
    return [emitter.held(out, row, index) for row in emitter.rows for index in emitter.held_slices(out)]
