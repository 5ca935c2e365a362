"""Kernels of whole pixels whose loops several threads share: a body goes in, whether it can be; an Emitter, its GLSL.

A convolution behind a convolution needs all slices of a pixel, and on a small map one thread for each pixel is too few
to keep a GPU busy. So the threads of a work-group share a pixel: each of its parts goes through some slices of every
loop. Behind a loop that adds up, the parts add what the others have in shared memory, and all of them have the sums.
"""

from typing import TYPE_CHECKING

from .body import Accumulate, Body, Hold, Phase
from .expressions import Slice
from .graph import Node
from .layout import ceil_div, shape_of
from .nodes import is_channel_reduction, is_contraction, reads_window
from .sum_parts import ARRAY, registers_of

if TYPE_CHECKING:
    from .emit import Emitter


def can_share_pixels(body: Body) -> bool:
    """Whether threads may share the loops of a body: what each of them would repeat are no convolutions or windows."""
    if body.split or not any(sums_of_phase(phase) for phase in body.phases):
        return False
    if any(is_channel_reduction(body.graph, node) for node in body.nodes):
        return False
    held = {value for phase in body.phases if _is_held(phase) for value in phase.evaluates}
    repeated = (body.producers[value] for value in held if value in body.producers)
    return not any(is_contraction(node) or reads_window(body.graph, node) for node in repeated)


def sums_of_phase(phase: Phase) -> list[Node]:
    """The nodes that a loop adds up."""
    return [root.node for root in phase.roots if isinstance(root, Accumulate)]


def _is_held(phase: Phase) -> bool:
    return any(isinstance(root, Hold) for root in phase.roots)


def summed_slices(body: Body) -> int:
    """The most slices that one loop adds up."""
    sums = (node.outputs[0] for phase in body.phases for node in sums_of_phase(phase))
    return max(shape_of(body.graph.tensors[tensor]).slices for tensor in sums)


def emit_loop(emitter: "Emitter", phase: Phase) -> None:
    """A loop of which each part takes some turns: as many as all others, so that compilers know how many."""
    turns = ceil_div(phase.slices, emitter.tile.parts)
    with emitter.block(f"for (int k = 0; k < {turns}; ++k)"):
        emitter.line(f"int s = part * {turns} + k;")
        if turns * emitter.tile.parts > phase.slices:
            emitter.line(f"if (s >= {phase.slices}) break;")
        for root in phase.roots:
            emitter.root(root, Slice("s"))


def emit_slice(emitter: "Emitter", phase: Phase, number: int) -> None:
    """One turn of an unrolled loop: all parts hold values, one adds and stores."""
    at = Slice(str(number), number)
    own = [root for root in phase.roots if not isinstance(root, Hold)]
    with emitter.block():
        for root in phase.roots:
            if isinstance(root, Hold):
                emitter.root(root, at)
        if own:
            with emitter.block(f"if (part == {number % emitter.tile.parts})"):
                for root in own:
                    emitter.root(root, at)


def emit_join(emitter: "Emitter", node: Node) -> None:
    """Add the sums of all parts, so that each part has them all; behind the last ones threads past the edges leave."""
    x, y, parts = emitter.tile.local
    area, threads, registers = x * y, x * y * parts, registers_of(emitter, node)
    nodes = [each for phase in emitter.body.phases for each in sums_of_phase(phase)]
    if node is nodes[0]:
        emitter.shared.append(f"shared vec4 {ARRAY}[{threads * emitter.tile.sums}];")
    else:
        emitter.line("SYNC();")
    for k, register in enumerate(registers):
        emitter.line(f"{ARRAY}[{k * threads} + thread] = {register};")
    emitter.line("SYNC();")
    with emitter.block(f"for (int k = part; k < {len(registers)}; k += {parts})"):
        emitter.line(f"int at = k * {threads} + pixel;")
        terms = " + ".join(f"{ARRAY}[at + {part * area}]" for part in range(parts))
        emitter.line(f"{ARRAY}[at] = {terms};")
    emitter.line("SYNC();")
    for k, register in enumerate(registers):
        emitter.line(f"{register} = {ARRAY}[{k * threads} + pixel];")
    if node is nodes[-1]:
        emitter.leave("past")
