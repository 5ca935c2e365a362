"""What DEBUG shows of a compiled program: lines on stderr and files.

The text is made by pure functions; ProgramLog only decides which of it is due. debug.py lists the levels.
"""

import contextlib
import io
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from time import perf_counter

import numpy as np

from ...base import debug
from ...model.packing import Float32Array
from ...plan import hazards
from ...plan.memory.memory_bounds import lower_bound_bytes
from ...plan.memory.memory_plan import BufferPlace
from ...plan.memory.offsets import naive
from ..glsl.compiled_graph import CompiledGraph, accesses_of
from ..glsl.glsl_kernel import Sides
from ..glsl.roofline import Cost, cost_of
from .context import Context
from .gpu_timer import GpuTimer
from .span_clock import SpanClock, mean_seconds

MOST_DUMPED_RUNS = 2
_SPAN_S = 0.0002  # of the repeats of one dispatch, where they are repeated
_NAME = 40  # characters of a name in tables
_WAYS = {hazards.UNIFORM: "uniform", hazards.TEXTURE_FETCH: "texture fetch", hazards.STORAGE: "storage"}


class ProgramLog:
    """What one program reports at a level from 1 to 5. Use it only on the context's thread."""

    def __init__(self, level: int, context: Context, compiled: CompiledGraph) -> None:
        """Write what is known before the first run."""
        self._level, self._context, self._compiled = level, context, compiled
        self._runs = 0
        self._clock = SpanClock(context) if level >= debug.DISPATCHES else None
        parts = [(debug.RUN, decision_lines), (debug.MEMORY, plan_lines), (debug.MEMORY, barrier_lines)]
        for needed, lines in parts:
            for line in lines(compiled) if level >= needed else ():
                debug.say(line)

    def run(
        self,
        dispatches: Sequence[Callable[[], None]],
        repeat: Callable[[int, int], None],
        read: Callable[[int], Float32Array],
    ) -> None:
        """Run one inference, each dispatch under its name.

        `repeat` issues a dispatch so many times, for its time alone; `read` returns a tensor of the graph.
        """
        if self._level >= debug.DISPATCHES:
            self._context.gl.glFinish()
            assert self._clock, "there is one from this level on"
            how = f"each dispatch is waited for; {self._clock.choice.line}"
            debug.say(f"debug: {self._compiled.source.name}, run {self._runs}; {how}")
            debug.say(DISPATCH_HEADER)
        self._dump("input", self._compiled.graph.inputs, read)
        for number, (kernel, dispatch) in enumerate(zip(self._compiled.kernels, dispatches, strict=True)):
            with self._context.scope(kernel.name):
                time_ms = self._timed(partial(repeat, number))
                dispatch()
            if self._level >= debug.DISPATCHES:
                cost = cost_of(self._compiled, kernel)
                debug.say(dispatch_line(str(number), kernel.name, kernel.grid, kernel.local, cost, time_ms))
            self._dump(f"{number:03}-{kernel.name[:_NAME]}", kernel.outputs, read)
        self._runs += 1

    def _timed(self, repeat: Callable[[int], None]) -> float | None:
        """Milliseconds of a dispatch, repeated where the GPU tells how long that takes; None where nobody does."""
        if self._clock is None:
            return None
        span_s = _SPAN_S if self._clock.choice.kind == "time stamps" else 0.0
        took_s = mean_seconds(self._clock, repeat, span_s)[1]
        return None if took_s is None else took_s * 1e3

    def _dump(self, label: str, tensors: Sequence[int], read: Callable[[int], Float32Array]) -> None:
        """Write tensors as they are now: later dispatches may reuse their memory."""
        if self._level < debug.TENSORS or self._runs >= MOST_DUMPED_RUNS:
            return
        for tensor in tensors:
            content = io.BytesIO()
            np.save(content, read(tensor))
            name = f"run{self._runs}-{label}-{self._compiled.graph.tensors[tensor].name}"
            self._context.debug_files.write(name, "npy", content.getvalue())


@contextlib.contextmanager
def logged_pass(context: Context, name: str, grid: Sides, group: Sides, cost: Cost) -> Iterator[None]:
    """The same for a dispatch that is issued inside the with-block, of a pass that is not part of a network."""
    level = debug.level()
    if level < debug.DISPATCHES:
        with context.scope(name) if level else contextlib.nullcontext():
            yield
        return
    timer = GpuTimer(context, stamps=2, depth=1)
    context.gl.glFinish()
    start = perf_counter()
    timer.begin()
    timer.mark()
    with context.scope(name):
        yield
    timer.mark()
    timer.end()
    context.gl.glFinish()
    wall_ms, stamps = (perf_counter() - start) * 1e3, timer.last()
    timer.release()
    stamped_ms = (stamps[1] - stamps[0]) / 1e6 if stamps else 0.0
    time_ms = wall_ms if context.is_software else stamped_ms or None
    debug.say(dispatch_line("", name, grid, group, cost, time_ms))


DISPATCH_HEADER = (
    f"{'':>4} {'dispatch':<{_NAME}} {'grid':>13} {'work-group':>11} {'bytes':>12} {'ms':>9} {'GMAC/s':>8} {'GB/s':>7}"
)


def dispatch_line(number: str, name: str, grid: Sides, group: Sides, cost: Cost, time_ms: float | None) -> str:
    """One row under DISPATCH_HEADER; bytes are the least that must be moved. Without a time there are no rates."""
    times: tuple[str, ...] = ("-", "-", "-")
    if time_ms is not None:
        seconds = max(time_ms, 1e-6) / 1e3
        rates = (cost.macs / seconds / 1e9, cost.moved_bytes / seconds / 1e9)
        times = (f"{time_ms:.3f}", *(f"{rate:.2f}" for rate in rates))
    return (
        f"{number:>4} {_cut(name):<{_NAME}} {_sides(grid):>13} {_sides(group):>11} "
        f"{cost.moved_bytes:>12,} {times[0]:>9} {times[1]:>8} {times[2]:>7}"
    )


def decision_lines(compiled: CompiledGraph) -> Iterator[str]:
    """The passes that were applied to the model, and the memory that it needs."""
    yield f"debug: {compiled.source.name}: {len(compiled.source.nodes)} ops, {len(compiled.kernels)} dispatches"
    for report in compiled.passes:
        declined = f", declined {len(report.declined)} times ({report.declined[0]})" if report.declined else ""
        yield f"debug: pass {report.name}: applied {report.applied} times{declined}"
    if compiled.declined:
        yield f"debug: fusion declined {len(compiled.declined)} times ({compiled.declined[0]})"
    weights_bytes = sum(kernel.weights_bytes for kernel in compiled.kernels)
    yield f"debug: {compiled.plan.total_bytes:,} bytes planned for tensors, {weights_bytes:,} for weights"


def plan_lines(compiled: CompiledGraph) -> Iterator[str]:
    """Each tensor's place in the arena, and the first and last dispatch of its lifetime."""
    apart, least = naive(compiled.records).total_bytes, lower_bound_bytes(compiled.records)
    yield (
        f"debug: memory plan: {len(compiled.records)} tensors in {compiled.plan.total_bytes:,} bytes, "
        f"{apart:,} apart, at least {least:,}"
    )
    yield f"{'from':>12} {'to byte':>12} {'alive':>9} {'stored as':>10}  {'tensor':<{_NAME}}  shape"
    for record in sorted(compiled.records, key=lambda r: (r.first_task, compiled.plan.offsets[r.tensor])):
        start, tensor = compiled.plan.offsets[record.tensor], compiled.graph.tensors[record.tensor]
        alive = f"{record.first_task}-{record.last_task}"
        shape = "x".join(map(str, tensor.shape))
        place = f"{start:>12,} {start + record.size_bytes:>12,} {alive:>9}"
        yield f"{place} {compiled.storages[record.tensor].kind:>10}  {_cut(tensor.name):<{_NAME}}  {shape}"


def barrier_lines(compiled: CompiledGraph) -> Iterator[str]:
    """Each barrier with what would be unordered without it."""
    found = hazards.reasons(accesses_of(compiled), compiled.barriers)
    yield f"debug: barriers: {sum(bool(bits) for bits in compiled.barriers)} before {len(found)} dispatches"
    for number, reasons in enumerate(found):
        if reasons:
            ways = " and ".join(name for bit, name in _WAYS.items() if compiled.barriers[number] & bit)
            why = "; ".join(dict.fromkeys(_reason(compiled, number, *reason) for reason in reasons))
            yield f"{number:>4} {_cut(compiled.kernels[number].name):<{_NAME}} {ways}: {why}"


def _reason(compiled: CompiledGraph, number: int, earlier: int, access: hazards.Access) -> str:
    kernel = compiled.kernels[number]
    tensors = kernel.outputs if access.writes else kernel.inputs
    places, names = compiled.plan.places, compiled.graph.tensors
    where = BufferPlace(access.buffer, access.start)
    name = next(_cut(names[t].name) for t in tensors if places.get(t) == where)
    run = "" if earlier < number else " of the run before"
    return (
        f"writes {name} over what {earlier}{run} used" if access.writes else f"reads {name}, written by {earlier}{run}"
    )


def _cut(name: str) -> str:
    return name if len(name) <= _NAME else name[: _NAME - 1] + "…"


def _sides(sides: Sides) -> str:
    return "x".join(map(str, sides))
