"""Measures the ways of running a model in turn, within a bound, and keeps what was found on disk."""

import json
import math
import os
import platform
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from hashlib import sha256
from pathlib import Path
from statistics import median
from time import perf_counter, sleep
from typing import get_args

from ..base.disk_cache import DiskCache
from ..base.errors import TexelflowError
from ..model.graph import Graph
from ..plan.signature import graph_signature
from ..targets.llvm.loading import compiling_files
from ..targets.llvm.machine import usable_cores
from .way_costs import RunChoice, WayName, is_clear, still_close, turn_calls

KIND = "backends"  # of entries in the cache
TRIALS_S = 0.3  # of all runs together; one of each way, and another of those that are close, are made in any case
_MOST_STARTS = 3  # that measure, where it is close: other work may have disturbed one of them
_TURN_S, _MOST_CALLS, _TURNS = 12e-3, 200, 3
_PAUSE_S = 20e-3  # for which idle threads of XNNPACK still wait busily, and would have the cores of the next way
_LONG_S, _LONG_GAIN = 30e-3, 1.6  # of a run that is not repeated where the first ones differ so much

WayRuns = Mapping[RunChoice, Callable[[], object]]
FAILURES = (TexelflowError, RuntimeError, ValueError, TypeError)  # of ours, and of TensorFlow Lite's interpreter
_GPU_SIGNS = ("/dev/dri/renderD*", "/dev/nvidia[0-9]*", "/dev/dxg", "/dev/kgsl*", "/dev/mali*")
_DRIVERS = ("/proc/driver/nvidia/version", "/sys/module/*drm*/version")
_IDS = "/sys/class/drm/renderD*/device"


@dataclass(frozen=True)
class MeasuredWays:
    """Which way was taken, and the least milliseconds of a run by each that was tried, in so many starts."""

    taken: RunChoice
    times_ms: Mapping[RunChoice, float]
    starts: int = 1

    @property
    def is_settled(self) -> bool:
        """Whether it need not be measured again."""
        return self.starts >= _MOST_STARTS or is_clear(self.times_ms)


def measured_ms(runs: WayRuns, seconds: float = TRIALS_S) -> tuple[dict[RunChoice, float], dict[RunChoice, str]]:
    """Milliseconds of a run of each, the least of the medians of some turns; and of those that fail, why.

    The first run of each, in which memory is touched for the first time, does not count; the second one decides
    whether more are worth their time.
    """
    first_s, failures = dict[RunChoice, float](), dict[RunChoice, str]()
    for each, run in runs.items():
        try:
            run()
            first_s[each] = _seconds(run)
        except FAILURES as error:
            failures[each] = why_failed(error)
    end_s = perf_counter() + seconds - 2 * sum(first_s.values())
    found = {each: 1e3 * spent for each, spent in first_s.items()}
    close = still_close(first_s, _LONG_S, _LONG_GAIN)
    if len(close) < 2:
        return found, failures
    turns: dict[RunChoice, list[float]] = {each: [] for each in close}
    for number in range(_TURNS):
        if number and perf_counter() >= end_s:
            break
        for each in close:
            if first_s[each] < _LONG_S:
                sleep(_PAUSE_S * (each.threads != 1 and number > 0))
                first_s[each] = _seconds(runs[each])  # brings back what the others have driven out of caches
            count = turn_calls(first_s[each], _TURN_S, _MOST_CALLS)
            turns[each].append(median(_seconds(runs[each]) for _ in range(count)))
    return found | {each: 1e3 * min(medians) for each, medians in turns.items()}, failures


def why_failed(error: BaseException) -> str:
    """What went wrong, as a report has it."""
    return " ".join(str(error).split())[:300] or type(error).__name__


def _seconds(run: Callable[[], object]) -> float:
    start = perf_counter()
    run()
    return perf_counter() - start


# What is kept ---------------------------------------------------------------------------------------------------------


def choice_key(graph: Graph, facts: Mapping[str, object]) -> str:
    """What a choice depends on: the model but for its weights' values, this machine, and versions.

    `facts` are the caller's: threads, the runtime's version, what is allowed.
    """
    machine = (platform.machine(), _cpu_name(), usable_cores(), gpu_signs(), sys.platform)
    parts = (sorted(facts.items()), machine, _code_version(), graph_signature(graph, "fp32"))
    return f"way {graph.name[:100]} {sha256(repr(parts).encode()).hexdigest()}"


def kept_ways(key: str) -> MeasuredWays | None:
    """What an earlier process has found; None where there is nothing."""
    return parse_ways(DiskCache().get(KIND, key) or b"")


def keep_ways(key: str, found: MeasuredWays) -> None:
    """For later processes."""
    times = [[each.way, each.threads, ms] for each, ms in found.times_ms.items()]
    said = {"taken": [found.taken.way, found.taken.threads], "ms": times, "starts": found.starts}
    DiskCache().put(KIND, key, json.dumps(said).encode())


def parse_ways(data: bytes) -> MeasuredWays | None:
    """What was kept; None for anything else."""
    try:
        found: object = json.loads(data)
    except (ValueError, RecursionError):
        return None
    if not isinstance(found, dict) or found.keys() != {"taken", "ms", "starts"} or type(found["starts"]) is not int:
        return None
    if not isinstance(found["ms"], list):
        return None
    times = dict[RunChoice, float]()
    for row in found["ms"]:
        each = _candidate(row[:2]) if isinstance(row, list) and len(row) == 3 else None
        if each is None or type(row[2]) is not float or not 0 <= row[2] < math.inf:
            return None
        times[each] = row[2]
    taken = _candidate(found["taken"])
    return None if taken is None else MeasuredWays(taken, times, found["starts"])


def _candidate(said: object) -> RunChoice | None:
    if not isinstance(said, list) or len(said) != 2 or said[0] not in get_args(WayName):
        return None
    way, threads = said
    return RunChoice(way, threads) if threads is None or (type(threads) is int and threads > 0) else None


# The machine ----------------------------------------------------------------------------------------------------------


@lru_cache(maxsize=1)
def gpu_signs() -> str:
    """What tells, without OpenGL, that a GPU may be here, and of its driver: "" on a Linux that has none."""
    if sys.platform != "linux":
        return platform.platform()
    if not any(_matching(pattern) for pattern in _GPU_SIGNS):
        return ""
    places = [path for pattern in _DRIVERS for path in _matching(pattern)]
    places += [folder / name for folder in _matching(_IDS) for name in ("vendor", "device")]
    chosen = sorted(item for item in os.environ.items() if item[0].startswith(("TEXELFLOW_GPU", "MESA_", "LIBGL_")))
    return repr(([_text(path) for path in places], chosen, os.uname().release))


def _matching(pattern: str) -> list[Path]:
    return sorted(Path("/").glob(pattern[1:]))


def _text(path: Path) -> str:
    try:
        return path.read_text(errors="replace")[:300]
    except OSError:
        return ""


@lru_cache(maxsize=1)
def _cpu_name() -> str:
    """A CPU's model and features, as Linux lists those of the first; elsewhere what Python tells."""
    try:
        first, *_ = Path("/proc/cpuinfo").read_text(errors="replace").partition("\n\n")
    except OSError:
        return platform.processor()
    told = ("model name", "flags", "Features", "CPU part", "CPU implementer")
    return "\n".join(line for line in first.splitlines() if line.startswith(told))


@lru_cache(maxsize=1)
def _code_version() -> str:
    """Other digits when a file of the engine changes."""
    return sha256(repr(compiling_files()).encode()).hexdigest()[:12]
