"""Decides which way a model runs on this machine, and says why: counted costs, then what is kept, then trials."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from types import MappingProxyType
from typing import Any

from ..base.errors import UnsupportedError
from ..base.wording import counted, sized
from ..model.graph import Graph
from .way_costs import (
    CountedMs,
    ModelWork,
    Renderer,
    RunChoice,
    WayName,
    computes_bytes,
    counted_ms,
    eligible_ways,
    model_work,
    quickest,
    thread_candidates,
    worth_measuring,
)
from .way_times import FAILURES, MeasuredWays, WayRuns, choice_key, keep_ways, kept_ways, measured_ms, why_failed

OpenWay = Callable[[tuple[int, ...]], WayRuns]  # for these numbers of threads, where the way has fixed ones
NO_WAYS_LEFT: Mapping[WayName, str] = MappingProxyType({})


@dataclass(frozen=True)
class WayFigures:
    """What is known of one way to run a model."""

    name: str
    counted_ms: CountedMs | None = None
    measured_ms: float | None = None
    reason: str = ""  # why it was not tried, or what stopped it


@dataclass(frozen=True)
class RunReport:
    """What runs a model, why, and what it takes; `parts` are lines that say what runs where. str() is all of it."""

    taken: RunChoice
    why: str
    work: ModelWork | None = None
    ways: tuple[WayFigures, ...] = ()
    parts: tuple[str, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """The same as plain data."""
        return asdict(self)

    def __str__(self) -> str:
        lines = [f"runs by {_NAMES[self.taken.way]}{_threads(self.taken)}: {self.why}"]
        if self.work:
            operators, moved = counted(self.work.operators, "operator"), sized(self.work.moved_bytes)
            lines.append(f"  {operators}, {self.work.macs / 1e6:.3g} MMAC, {moved} read and written")
        lines += [f"  {_line(each)}" for each in self.ways]
        return "\n".join([*lines, *(f"  {part}" for part in self.parts)])


_NAMES: Mapping[WayName, str] = MappingProxyType(
    {
        "tflite": "TensorFlow Lite",
        "native": "native code",
        "native parts": "native code and TensorFlow Lite",
        "gl": "OpenGL",
        "gl parts": "OpenGL and TensorFlow Lite",
    }
)


def _threads(taken: RunChoice) -> str:
    return f" ({taken.threads} thread{'s' * (taken.threads > 1)})" if taken.threads else ""


def _line(way: WayFigures) -> str:
    told = [f"{way.measured_ms:.3f} ms measured"] if way.measured_ms is not None else []
    if way.counted_ms:
        told.append(f"{way.counted_ms.least:.3f} to {way.counted_ms.most:.3g} ms counted")
    return f"{way.name}: " + "; ".join([*told, *([way.reason] if way.reason else [])])


def decide_way(
    graph: Graph,
    open_ways: Mapping[WayName, OpenWay],
    renderer: Renderer,
    threads: int | None,
    default_threads: int,
    exact: bool = True,
    facts: Mapping[str, object] = MappingProxyType({}),
    refused: Mapping[WayName, str] = NO_WAYS_LEFT,
) -> RunReport:
    """Which way of those that can be opened runs a graph the quickest.

    A way is opened where it has to be tried; one that fails then, with an exception of the library's or of TensorFlow
    Lite's, is left out. `threads` is the number that is asked for, `default_threads` the most that may pay without one.
    `facts` are what times depend on besides; `refused` are ways that were left out before, and why.
    Raises UnsupportedError where no way is left.
    """
    work = model_work(graph)
    eligible, reasons = eligible_ways(tuple(open_ways), renderer, computes_bytes(graph), exact)
    left: dict[WayName, str] = {**refused, **reasons}
    bounds = {way: counted_ms(way, work, threads or default_threads) for way in (*eligible, *left)}
    tried = worth_measuring({way: bounds[way] for way in eligible})
    left |= {way: "by counting it cannot be the quickest" for way in eligible if way not in tried}
    numbers = thread_candidates(work, threads, default_threads)
    candidates = [RunChoice(way, number) for way in tried for number in (numbers if way == "tflite" else (None,))]
    if len(candidates) == 1:
        return RunReport(candidates[0], "nothing else comes into question", work, _figures(bounds, {}, left))
    key = choice_key(graph, {**facts, "tried": tried, "threads": numbers, "exact": exact})
    found = kept_ways(key)
    if found is not None and found.taken in candidates:
        why = "the quickest, as an earlier start has measured"
        return RunReport(found.taken, why, work, _figures(bounds, found.times_ms, left))
    runs, failures = _opened(tried, open_ways, numbers)
    times, failed = measured_ms(runs)
    failures |= {each.way: why for each, why in failed.items()}
    left |= failures
    if times:
        taken = quickest(times)
        why = "the quickest, as measured now" if len(times) > 1 else "nothing else works"
        if not failures:
            keep_ways(key, MeasuredWays(taken, times))
        return RunReport(taken, why, work, _figures(bounds, times, left))
    untried = [way for way in eligible if way not in failures]
    if not untried:
        raise UnsupportedError(
            "nothing here runs this model: " + "; ".join(f"{way}: {why}" for way, why in left.items())
        )
    return RunReport(RunChoice(untried[0]), "nothing else works", work, _figures(bounds, times, left))


def _opened(
    ways: Sequence[WayName], open_ways: Mapping[WayName, OpenWay], numbers: tuple[int, ...]
) -> tuple[WayRuns, dict[WayName, str]]:
    """What runs each way, and why others do not."""
    found, failures = dict[RunChoice, Callable[[], object]](), dict[WayName, str]()
    for way in ways:
        try:
            found |= open_ways[way](numbers)
        except FAILURES as error:
            failures[way] = why_failed(error)
    return found, failures


def _figures(
    counted: Mapping[WayName, CountedMs], times: Mapping[RunChoice, float], left: Mapping[WayName, str]
) -> tuple[WayFigures, ...]:
    rows = [WayFigures(str(each), counted.get(each.way), ms) for each, ms in times.items()]
    measured = {each.way for each in times}
    rows += [WayFigures(way, counted.get(way), None, why) for way, why in left.items() if way not in measured]
    return tuple(rows)
