"""Checks that a model's fused kernels cost no more than a kernel for each op.

Counted work on every family of GPUs, the longest source there, and on this machine the least CPU time of runs in turn.
"""

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from time import process_time
from typing import Any

from tests.helpers.counted_work import counted
from tests.models.measure import Target
from texelflow.gpu_delegate.device.families import TUNINGS, device_like
from texelflow.gpu_delegate.model.graph import Graph
from texelflow.gpu_delegate.model.partition import subgraph
from texelflow.gpu_delegate.plan.compile_options import CompileOptions
from texelflow.gpu_delegate.reading.reader import load_model
from texelflow.gpu_delegate.targets.gl.context import Context, open_context
from texelflow.gpu_delegate.targets.gl.runtime import Program, device_of
from texelflow.gpu_delegate.targets.glsl.compiled_partitions import CompiledPartitions, compile_partitions

UNFUSED_COLUMNS = (
    *("model", "dispatches", "unfused", "compile CPU s", "CPU ms", "unfused CPU ms", "ratio"),
    *("counted, at most", "family", "longest KiB"),
)
RUNS = 20  # of each in turn; the least counts
MOST_TIMES = 1.1
MOST_COUNTED = 1.001
MOST_CHARACTERS = 1 << 16  # of a source
CLOCK_MS = 0.1  # by which least CPU times of the same differ


def measure_unfused(target: Target, _: float = 0.0) -> dict[str, Any]:
    """All figures of one model."""
    graph = load_model(target.path)
    counts: dict[str, float] = {}
    longest = 0
    for family in TUNINGS:
        found = compile_partitions(graph, device_like(family))
        counts[family] = _counted_ratio(found, family)
        longest = max([longest, *(len(kernel.source) for part in found.compiled for kernel in part.kernels)])
    with open_context() as context:
        figures = _timed(context, graph)
    return {"name": target.name, "reason": "", "counted": counts, "characters": longest, **figures}


def _counted_ratio(found: CompiledPartitions, family: str) -> float:
    """The counted work of all partitions, in parts of what they cost unfused."""
    costs = dict.fromkeys((True, False), 0.0)
    for partition in found.partitions:
        part = subgraph(found.graph, partition)
        for fuse in costs:
            costs[fuse] += sum(kernel.cost for kernel in counted(part, device_like(family), fuse))
    return costs[True] / costs[False] if costs[False] else 1.0


def _timed(context: Context, graph: Graph) -> dict[str, Any]:
    with ExitStack() as stack:
        programs, compile_s = dict[bool, list[Program]](), dict[bool, float]()
        for fuse in (True, False):
            start_s = process_time()
            parts = compile_partitions(graph, device_of(context), CompileOptions(fuse=fuse)).compiled
            programs[fuse] = [stack.enter_context(Program(context, part)) for part in parts]
            compile_s[fuse] = process_time() - start_s
        least = _least_ms(context, [programs[True], programs[False]])
    return {
        "dispatches": {str(fuse): sum(len(p.compiled.kernels) for p in each) for fuse, each in programs.items()},
        "compile_s": round(compile_s[True], 2), "cpu_ms": round(least[0], 3), "unfused_cpu_ms": round(least[1], 3),
    }  # fmt: skip


def _least_ms(context: Context, ways: Sequence[Sequence[Program]]) -> list[float]:
    """The least CPU milliseconds of running all programs of each way, one way after the other."""
    least = [float("inf")] * len(ways)
    for _ in range(RUNS):
        for number, programs in enumerate(ways):
            start_s = process_time()
            for program in programs:
                program.run()
            context.gl.glFinish()
            least[number] = min(least[number], (process_time() - start_s) * 1e3)
    return least


def is_without_cliff(_: Target, figures: Mapping[str, Any]) -> bool:
    """Whether fusing costs nothing, by counts and by the clock, and no source is too long."""
    if figures["reason"]:
        return False
    in_time = figures["cpu_ms"] <= MOST_TIMES * figures["unfused_cpu_ms"] + CLOCK_MS
    counted_right = max(figures["counted"].values()) <= MOST_COUNTED
    return bool(in_time and counted_right and figures["characters"] <= MOST_CHARACTERS)


def unfused_rows(figures: Mapping[str, Any]) -> list[tuple[object, ...]]:
    """Of the table: one."""
    if figures["reason"]:
        return [(figures["name"], *("-",) * (len(UNFUSED_COLUMNS) - 2), figures["reason"])]
    family, most = max(figures["counted"].items(), key=lambda item: item[1])
    ratio = figures["cpu_ms"] / figures["unfused_cpu_ms"] if figures["unfused_cpu_ms"] else 1.0
    return [
        (
            figures["name"], figures["dispatches"]["True"], figures["dispatches"]["False"], figures["compile_s"],
            figures["cpu_ms"], figures["unfused_cpu_ms"], f"{ratio:.2f}", f"{most:.2f}", family,
            round(figures["characters"] / 1024, 1),
        )
    ]  # fmt: skip
