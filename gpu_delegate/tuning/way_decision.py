"""Decides which way a model runs on this machine, and says why: counted costs, then what is kept, then trials."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from ..base.errors import UnsupportedError
from ..base.wording import sized
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
class WayDecision:
    """Which way was taken, why, and what is known of all."""

    taken: RunChoice
    why: str
    work: ModelWork | None = None
    ways: tuple[WayFigures, ...] = ()

    @property
    def reasons(self) -> tuple[str, ...]:
        """Lines for people."""
        lines = [f"{self.taken} is taken: {self.why}"]
        if self.work:
            moved = sized(self.work.moved_bytes)
            lines.append(f"counted: {self.work.macs / 1e6:.3g} MMAC, {moved} read and written by operators")
        return (*lines, *filter(None, map(_line, self.ways)))

    @property
    def times_ms(self) -> Mapping[str, float]:
        """Of what was measured, of a run from arrays to arrays."""
        return {each.name: each.measured_ms for each in self.ways if each.measured_ms is not None}


def _line(way: WayFigures) -> str:
    bounds = way.counted_ms
    if not bounds and not way.reason:
        return ""
    told = [f"{bounds.least:.3f} to {bounds.most:.3g} ms by counting"] if bounds else []
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
) -> WayDecision:
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
        return WayDecision(candidates[0], "nothing else comes into question", work, _figures(bounds, {}, left))
    key = choice_key(graph, {**facts, "tried": tried, "threads": numbers, "exact": exact})
    found = kept_ways(key)
    if found is not None and found.is_settled and found.taken.way.removesuffix(" parts") in tried:
        why = "the quickest, as an earlier start has measured"
        return WayDecision(found.taken, why, work, _figures(bounds, found.times_ms, left))
    runs, failures = _opened(tried, open_ways, numbers)
    times, failed = measured_ms(runs)
    failures |= {each.way: why for each, why in failed.items()}
    left |= failures
    starts = 1
    if found is not None and found.times_ms.keys() == times.keys():
        times, starts = {each: min(ms, found.times_ms[each]) for each, ms in times.items()}, found.starts + 1
    if times:
        taken = quickest(times)
        why = "the quickest, as measured now" if len(times) > 1 else "nothing else works"
        if "gl" not in failures:  # what the others refuse, they refuse next time, too
            keep_ways(key, MeasuredWays(taken, times, starts))
        return WayDecision(taken, why, work, _figures(bounds, times, left))
    untried = [way for way in eligible if way not in failures]
    if not untried:
        raise UnsupportedError(
            "nothing here runs this model: " + "; ".join(f"{way}: {why}" for way, why in left.items())
        )
    return WayDecision(RunChoice(untried[0]), "nothing else works", work, _figures(bounds, times, left))


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
    rows, measured = list[WayFigures](), set[WayName]()
    for each, ms in times.items():
        rows.append(WayFigures(str(each), None if each.way in measured else counted.get(each.way), ms))
        measured.add(each.way)
    rows += [WayFigures(way, counted.get(way), None, why) for way, why in left.items() if way not in measured]
    return tuple(rows)
