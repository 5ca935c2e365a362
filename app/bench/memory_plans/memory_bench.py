"""`texelflow bench memory`: how much memory each strategy plans for networks' tensors, and how long planning takes.

Strategies are those of gpu_delegate/plan/memory/strategies.py. A plan is proven where it takes as much as the lower
bound, or as the exact planner has proven to be the least.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Any

from texelflow.gpu_delegate.base.errors import DeviceError
from texelflow.gpu_delegate.plan.memory.memory_options import ARENA
from texelflow.gpu_delegate.plan.memory.memory_plan import MemoryPlan
from texelflow.gpu_delegate.plan.memory.strategies import BOUNDS, STRATEGIES, Strategy

from ...console import Console
from ...files import Files, Write, settle
from ...plots import check_matplotlib
from ...signals import StopFlag, exit_code, stop_flag
from .memory_records import PLANNED, GraphRecords, fused, load_network, synthetic, unfused
from .paper_tables import PAPER_NETWORKS

MemoryRow = dict[str, Any]

# TensorFlow Lite takes the smaller of these (GREEDY_BEST in its memory_management.cc).
TFLITE_DEFAULT = ("greedy-by-size-improved", "greedy-by-breadth")
_GREEDY = "greedy"  # what such strategies are called: they are timed on many records
_RUNS, _RUNS_MS = 3, 50.0  # the most runs of a planner, and how long they may take together: the shortest counts


@dataclass(frozen=True)
class MemoryBench:
    """What `bench memory` is asked to do."""

    names: tuple[str, ...] = ()  # none: PLANNED, and synthetic records
    plot: Path | None = None
    force: bool = False
    paper: bool = False  # the networks of the memory paper and those named, before fusion alone


def bench_memory(options: MemoryBench, console: Console) -> tuple[list[MemoryRow], int]:
    """A row for each graph and strategy, and the exit code: a signal's, or 0. Raises TexelflowError."""
    if options.plot is not None:
        check_matplotlib()
        settle(Files((), (Write("--plot", options.plot, "drawing"),)), options.force)
    names = (*PAPER_NETWORKS, *options.names) if options.paper else options.names or PLANNED
    sources: list[tuple[str, Callable[[], Iterable[GraphRecords]]]] = [
        (name, partial(_graphs, name, console, not options.paper)) for name in dict.fromkeys(names)
    ]
    if not options.names and not options.paper:
        sources.append(("synthetic records", lambda: [synthetic()]))
    rows: list[MemoryRow] = []
    with stop_flag() as stop, console.steps("planning") as report:
        for number, (name, graphs) in enumerate(sources):
            report(number, len(sources), name)
            for found in graphs():
                rows += _rows(found, stop, console)
    return rows, exit_code(stop.number)


def _graphs(name: str, console: Console, compiled: bool) -> Iterator[GraphRecords]:
    with console.download() as progress:
        graph = load_network(name, progress)
    yield unfused(name, graph)
    if not compiled:
        return
    found = fused(name, graph)
    if found.note:
        console.note(found.note)
    yield found


def _rows(found: GraphRecords, stop: StopFlag, console: Console) -> list[MemoryRow]:
    """What each strategy makes of a graph, as long as nothing has ended it."""
    wanted = [one for one in STRATEGIES if found.graph != "synthetic" or _GREEDY in one.name or one == ARENA.strategy]
    bounds = {
        kind: sum(bound(records, found.alignment_bytes) for records in found.programs) for kind, bound in BOUNDS.items()
    }
    rows: list[MemoryRow] = []
    least = dict(bounds)  # what is proven
    for strategy in wanted:
        if stop:
            return []
        try:
            plans, ms = _timed(strategy, found)
        except DeviceError as error:  # what it needs is not installed, or there is too much
            console.note_once(str(error))
            continue
        least[strategy.kind] = max(least[strategy.kind], sum(plan.least_bytes for plan in plans))
        rows.append({
            "network": found.network,
            "graph": found.graph,
            "strategy": strategy.name,
            "kind": strategy.kind,
            "bytes": sum(plan.total_bytes for plan in plans),
            "objects": sum(len(plan.buffer_bytes) for plan in plans),
            "lower_bound_bytes": bounds[strategy.kind],
            "ms": round(ms, 3),
            "default": strategy == ARENA.strategy,
            "tensors": found.tensors,
            "programs": len(found.programs),
            "cpu_path_bytes": found.cpu_path_bytes,
        })  # fmt: skip
    tflite = min((row for row in rows if _is_tflites(row)), key=lambda row: int(row["bytes"]), default=None)
    return [{**row, "proven": row["bytes"] <= least[row["kind"]], "tflite_default": row is tflite} for row in rows]


def _is_tflites(row: MemoryRow) -> bool:
    return row["kind"] == "objects" and row["strategy"] in TFLITE_DEFAULT


def _timed(strategy: Strategy, found: GraphRecords) -> tuple[list[MemoryPlan], float]:
    """The plans of all programs, and the least milliseconds that they took together."""
    strategy.plan(found.programs[0][:1], found.alignment_bytes)  # what it imports is no part of planning
    least_ms, spent_ms = float("inf"), 0.0
    for _ in range(_RUNS):
        start = perf_counter()
        plans = [strategy.plan(records, found.alignment_bytes) for records in found.programs]
        taken_ms = (perf_counter() - start) * 1e3
        least_ms, spent_ms = min(least_ms, taken_ms), spent_ms + taken_ms
        if spent_ms > _RUNS_MS:
            break
    return plans, least_ms
