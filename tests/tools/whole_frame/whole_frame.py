"""Measures all cases in turn, size by size: what a frame takes in each, in the median of several rounds."""

import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from texelflow.app.bench.measuring.cpu_peak import cpu_facts
from texelflow.app.console import Console
from texelflow.app.media.frames import parse_frame_size
from texelflow.app.models.catalogue import resolve
from texelflow.gpu_delegate.base.errors import UnsupportedError, UsageError

from .cases import CASES, ROOT, SCRIPT_PYTHON, Case
from .clips import RATE, count_frames, write_clip
from .costs import FrameCost, RunCost, frame_cost, run_seconds

SHORT_FRAMES = 30  # of the short run
SHORT_LIVE_S = 6.0  # of the short run of a live case, its start included

_MOST_FRAMES, _MOST_ROUNDS, _MOST_SECONDS = 2000, 100, 600.0
_Figures = dict[str, Any]


@dataclass(frozen=True)
class WholeFrameBench:
    """What the tool is asked to do; frames and seconds are what a long run has more than a short one."""

    sizes: Sequence[str] = ("640x480",)
    rounds: int = 5
    frames: int = 300
    seconds: float = 10.0
    cores: int | None = None  # all
    only: Sequence[str] = ()  # cases in whose names one of these stands; all


def bench_whole_frame(options: WholeFrameBench, console: Console, cases: Sequence[Case] = CASES) -> _Figures:
    """The figures of each size. Raises TexelflowError where an option is wrong, or a command fails."""
    sizes = {name: parse_frame_size(name) for name in dict.fromkeys(options.sizes)}
    _check(options)
    chosen, prefix = choose_cases(cases, options.only), _on_cores(options.cores)
    here = [case for case in chosen if shutil.which(case.command[0])]
    for line in lacking_lines([case for case in chosen if case not in here]):
        console.note(line)
    model = resolve("selfie").path.absolute()
    figures: _Figures = {
        "cpu": cpu_facts()["name"],
        "cores": options.cores or len(os.sched_getaffinity(0)),
        "rounds": options.rounds,
        "frames": options.frames,
        "sizes": {},
    }
    for name, size in sizes.items():
        with tempfile.TemporaryDirectory(prefix="whole-frame-") as folder, console.steps(name) as report:
            runner = _Runner(Path(folder), options, prefix, model)
            for path, frames in runner.clips.items():
                write_clip(path, size, frames)
            found: dict[str, list[FrameCost]] = {case.name: [] for case in here}
            steps = (1 + options.rounds) * len(here)
            for number in range(steps):
                case = here[number % len(here)]
                report(number, steps, f"{name}: {case.name}")
                if number < len(here):
                    runner.run(case, is_long=False)  # fills caches
                else:
                    found[case.name].append(runner.cost(case))
            figures["sizes"][name] = [
                {"name": case.name, "command": " ".join((*prefix, *case.command)), **cost_figures(found[case.name])}
                for case in here
            ]
    return figures


def choose_cases(cases: Sequence[Case], only: Sequence[str]) -> Sequence[Case]:
    """Those in whose names one of the texts stands, in their order; all where there is none. Raises UsageError."""
    for text in only:
        if not any(text in case.name for case in cases):
            raise UsageError(f"--case {text}: there are {'; '.join(case.name for case in cases)}")
    return [case for case in cases if not only or any(text in case.name for text in only)]


def lacking_lines(cases: Sequence[Case]) -> Iterator[str]:
    """A line for each program that is missing, with the cases that are skipped."""
    for program in dict.fromkeys(case.command[0] for case in cases):
        names = "; ".join(case.name for case in cases if case.command[0] == program)
        how = "make script-env makes it" if program == str(SCRIPT_PYTHON) else "install it"
        yield f"skipped: {names}: {program} is missing; {how}"


def cost_figures(costs: Sequence[FrameCost]) -> Mapping[str, float]:
    """Medians of all rounds, and the least and the most that a frame took of the CPU."""
    cpu_ms, wall_ms = (median(cost.cpu_ms for cost in costs), median(cost.wall_ms for cost in costs))
    return {
        "cpu_ms": round(cpu_ms, 3),
        "cpu_ms_least": round(min(cost.cpu_ms for cost in costs), 3),
        "cpu_ms_most": round(max(cost.cpu_ms for cost in costs), 3),
        "frames_per_s": round(1e3 / wall_ms, 2),
        "percent_of_a_core": round(100 * cpu_ms / wall_ms, 1),
        "cpu_s_a_minute": round(cpu_ms * RATE * 60 / 1e3, 2),
    }


def show_whole_frame(figures: _Figures, console: Console) -> None:
    """A table for each size."""
    columns = "case", "CPU, ms a frame", "least", "most", "frames/s", "CPU, % of a core", "CPU, s a minute of video"
    for size, rows in figures["sizes"].items():
        cells = [[row["name"], *(value for value in row.values() if isinstance(value, float))] for row in rows]
        counts = ", ".join(f"{name}: {figures[name]}" for name in ("frames", "rounds", "cores"))
        console.table(f"{size}; {counts}; {figures['cpu']}", columns, cells)


def _check(options: WholeFrameBench) -> None:
    for name, number, most in (
        ("--rounds", options.rounds, _MOST_ROUNDS),
        ("--frames", options.frames, _MOST_FRAMES),
        ("--seconds", options.seconds, _MOST_SECONDS),
    ):
        if not 1 <= number <= most:
            raise UsageError(f"{name} {number:g}: it goes from 1 to {most:g}")


def _on_cores(cores: int | None) -> tuple[str, ...]:
    """What has a command run on so many cores. Raises UsageError."""
    if cores is None:
        return ()
    here = sorted(os.sched_getaffinity(0))
    if not 1 <= cores <= len(here):
        raise UsageError(f"--cores {cores}: this process has {len(here)}")
    if shutil.which("taskset") is None:
        raise UsageError("--cores needs taskset, of util-linux")
    return "taskset", "-c", ",".join(map(str, here[:cores]))


class _Runner:
    """Runs cases on a short and a long clip, which lie in its folder."""

    def __init__(self, folder: Path, options: WholeFrameBench, prefix: Sequence[str], model: Path) -> None:
        self.clips = {folder / "short.mp4": SHORT_FRAMES, folder / "long.mp4": SHORT_FRAMES + options.frames}
        self._folder, self._seconds, self._prefix, self._model = folder, options.seconds, prefix, model

    def cost(self, case: Case) -> FrameCost:
        """Of a frame. Raises UnsupportedError."""
        return frame_cost(self.run(case, is_long=False), self.run(case, is_long=True))

    def run(self, case: Case, is_long: bool) -> RunCost:
        """One run; frames are those that it has written, else the clip's. Raises UnsupportedError."""
        clip = list(self.clips)[is_long or case.is_live]
        end_after_s = SHORT_LIVE_S + self._seconds * is_long if case.is_live else None
        with tempfile.TemporaryDirectory(dir=self._folder) as outputs:
            command = (*self._prefix, *case.filled(clip, Path(outputs) / "out", self._model))
            cpu_s, wall_s = run_seconds(command, ROOT, end_after_s)
            written = sum(map(count_frames, Path(outputs).rglob("*.mp4")))
        given = self.clips[clip]
        if case.is_live and not written:
            raise UnsupportedError(f"{case.name} has written nothing in {end_after_s:g} s")
        if written and written != given and not case.is_live:
            raise UnsupportedError(f"{case.name} has written {written} of {given} frames")
        return RunCost(written or given, cpu_s, wall_s)
