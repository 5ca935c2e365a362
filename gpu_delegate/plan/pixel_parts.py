"""Kernels of whole pixels whose loops several threads share: a body goes in, whether it can be; an Emitter, its GLSL.

A convolution behind a convolution needs all slices of a pixel, and on a small map one thread for each pixel is too few
to keep a GPU busy. So the threads of a work-group share a pixel: each of its parts goes through some slices of every
loop. Behind a loop that adds up, the parts add what the others have in shared memory, and all of them have the sums.
"""

from dataclasses import replace
from typing import TYPE_CHECKING

from ..code.expressions import Slice
from ..code.vocabulary import (
    PART,
    PAST,
    PIXEL,
    THREAD,
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
from ..device.limits import Limits
from ..device.tile import Tile
from ..model.graph import Node
from ..model.layout import TEXEL_BYTES, ceil_div, shape_of
from ..ops.nodes import is_channel_reduction, is_contraction, is_elementwise, is_pixelwise_contraction, reads_window
from .body import Accumulate, Body, Hold, Phase
from .sum_parts import ARRAY, registers_of

if TYPE_CHECKING:
    from ..kernels.emit import Emitter


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


def own_slice(emitter: "Emitter", tensor: int, index: int) -> Slice:
    """Slice `index` of those that a part computes; past the last one it is that again."""
    slices, each, at = _own_slices(emitter, tensor, index)
    is_sure = each * emitter.tile.parts <= slices
    return Slice(at if is_sure else Operation("minimum", (at, slices - 1)), place=index)


def _own_slices(emitter: "Emitter", tensor: int, index: int) -> tuple[int, int, Value]:
    """All slices of a value, how many a part computes, and number `index` of these, which may be past the last one."""
    slices = emitter.shape(tensor).slices
    each = ceil_div(slices, emitter.tile.parts)
    return slices, each, PART if each == 1 else PART * each + index


def emit_phase(emitter: "Emitter", phase: Phase, variable: Name) -> None:
    """A loop over slices, of which each part takes some: as many as all others, so that compilers know how many."""
    parts, turns = emitter.tile.parts, ceil_div(phase.slices, emitter.tile.parts)
    if phase.unrolled or phase.slices == 1:
        for number in range(phase.slices):
            with emitter.loop():
                _emit_roots(emitter, phase, Slice(number), Operation("equal", (PART, number % parts)))
        return
    if _goes_through_all(emitter.body, phase):
        with emitter.loop((variable, phase.slices)):
            _emit_roots(emitter, phase, Slice(variable), Operation("equal", (variable % parts, PART)))
        return
    at = PART * turns + variable
    is_there = turns * parts <= phase.slices or Operation("less", (at, phase.slices))
    with emitter.loop((variable, turns)), emitter.when(is_there):
        for root in phase.roots:
            emitter.root(root, Slice(at))


def _goes_through_all(body: Body, phase: Phase) -> bool:
    """Whether each part needs all slices of a loop."""
    return any(is_shared_by_outputs(body, node) for node in sums_of_phase(phase))


def _emit_roots(emitter: "Emitter", phase: Phase, at: Slice, own: Value) -> None:
    """What all parts do for a slice, then what one part does, under a condition."""
    goes_through_all = _goes_through_all(emitter.body, phase)
    by_all = (Hold, Accumulate) if goes_through_all else (Hold,)
    for root in phase.roots:
        if isinstance(root, by_all):
            emitter.root(root, at)
    others = [root for root in phase.roots if not isinstance(root, by_all)]
    if others:
        with emitter.when(own):
            for root in others:
                emitter.root(root, at)


def finish(emitter: "Emitter", node: Node) -> None:
    """Give each part the sums of all parts, or the slices that the others have computed."""
    registers = registers_of(emitter, node)
    if emitter.own is None:
        _join(emitter, node, registers)
    else:
        emitter.own = None
        _gather(emitter, node, registers)


def _join(emitter: "Emitter", node: Node, registers: list[Name]) -> None:
    """Add the sums of all parts."""
    x, y, parts = emitter.tile.local
    area, threads = x * y, x * y * parts
    _begin(emitter, node)
    for k, register in enumerate(registers):
        emitter.add(StoreShared(ARRAY, THREAD + k * threads, register))
    emitter.add(Synchronize())
    number = Name("n", "int")
    turns = ceil_div(len(registers), parts)
    at = number * parts + PART
    with (
        emitter.loop((number, turns)),
        emitter.when(turns * parts <= len(registers) or Operation("less", (at, len(registers)))),
    ):
        first = at * threads + PIXEL
        terms = [Shared(ARRAY, first + part * area) for part in range(parts)]
        emitter.add(StoreShared(ARRAY, first, combined("add", terms)))
    emitter.add(Synchronize())
    for k, register in enumerate(registers):
        emitter.add(Assign(register, Shared(ARRAY, PIXEL + k * threads)))
    _end(emitter, node)


def _gather(emitter: "Emitter", node: Node, own: list[Name]) -> None:
    """Leave a part's own registers, row by row, to all others."""
    x, y, parts = emitter.tile.local
    out, rows = node.outputs[0], len(emitter.rows)
    each = len(own) // rows
    _begin(emitter, node)
    for number, register in enumerate(own):
        row, index = divmod(number, each)
        slices, _, at = _own_slices(emitter, out, index)
        with emitter.when(each * parts <= slices or Operation("less", (at, slices))):
            emitter.add(StoreShared(ARRAY, (at * rows + row) * (x * y) + PIXEL, register))
    emitter.add(Synchronize())
    registers = registers_of(emitter, node)
    emitter.add(Reserve(tuple(registers)))
    for number, register in enumerate(registers):
        row, index = divmod(number, len(registers) // rows)
        emitter.add(Assign(register, Shared(ARRAY, PIXEL + (index * rows + row) * (x * y))))
    _end(emitter, node)


def _begin(emitter: "Emitter", node: Node) -> None:
    """Wait until all have read what was shared before."""
    emitter.shared[ARRAY] = shared_texels_of(emitter.body, emitter.tile)
    if node is not _sums_of(emitter.body)[0]:
        emitter.add(Synchronize())


def _end(emitter: "Emitter", node: Node) -> None:
    """Behind the last sums threads past the edges leave."""
    if node is _sums_of(emitter.body)[-1]:
        emitter.leave(PAST)


def _sums_of(body: Body) -> list[Node]:
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

    return max(map(texels, _sums_of(body)))


def within_limits(body: Body, tile: Tile, limits: Limits) -> Tile:
    """The tile, without parts if the device has too little shared memory for them, or too small work-groups."""
    needed_bytes = TEXEL_BYTES * shared_texels_of(body, tile)
    if tile.threads <= limits.work_group_invocations and needed_bytes <= limits.shared_memory_bytes:
        return tile
    return replace(tile, local=(*tile.local[:2], 1))
