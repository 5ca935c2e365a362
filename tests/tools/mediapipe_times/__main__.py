"""Time faces and hands of two people in turn with MediaPipe's own solutions: a table, medians of passes over a clip.

    pip install mediapipe==0.10.21                 # in an environment of its own, with Python 3.9 to 3.12
    python -m tests.tools.mediapipe_times --python ENVIRONMENT/bin/python

The clip is drawn of photographs in tests/data, 640x480: two faces and four hands, which are followed. Ours is native
code on frames as recordings have them; MediaPipe's frames are RGB. Both find, and draw nothing. CPU ms are those of all
cores, which what else runs on the machine lengthens less than it does the clock's; --frames writes the clip for
`texelflow bench frame --stages --frames FILE`.
"""

import json as json_text
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import median
from time import perf_counter, perf_counter_ns, process_time
from typing import Annotated

import av
import numpy as np
import typer

from tests.tools.command import run_tool
from tests.tools.mediapipe_beside.drawn_people import Rgb
from tests.tools.mediapipe_times.two_people import two_people
from texelflow.app.console import Console
from texelflow.app.frame.finding.region_networks import finished, regions_in_steps
from texelflow.app.frame.inference.backends import ComputeBackend, CpuChoice
from texelflow.app.models.finding_loading import load_finding_model
from texelflow.app.picture.video_frame import FrameMaker, VideoFrame
from texelflow.app.tracking.solutions import solution_of
from texelflow.app.tracking.tracking_finder import make_finder
from texelflow.app.verb_options import JsonOption
from texelflow.gpu_delegate.base.errors import UsageError

_SCRIPT = Path(__file__).parent / "mediapipe_timer.py"
_CASES = (("face-landmark", "face", 2), ("hand-landmark-full", "hand", 2), ("hand-landmark-full", "hand", 4))
_FRAME_MS = 1000 / 30
Pass = Callable[[], "PassTimes"]


@dataclass(frozen=True)
class PassTimes:
    """Of one pass over the clip."""

    times_ms: Sequence[float] = field(repr=False)  # of each frame, by the clock
    cpu_ms: float  # a frame, of all cores
    found: int


def mediapipe_times_tool(
    python: Annotated[Path | None, typer.Option(metavar="FILE", help="Of an environment with mediapipe.")] = None,
    rounds: Annotated[int, typer.Option(min=1, help="Passes of each over the clip.")] = 7,
    frames: Annotated[Path | None, typer.Option(metavar="FILE", help="Write the clip as .npy, and do no more.")] = None,
    json: JsonOption = False,
) -> int:
    """Time faces and hands of two people in turn with MediaPipe's own solutions."""
    console, clip = Console(quiet=json), two_people()
    if frames:
        opaque = np.full((*clip.shape[:3], 1), 255, np.uint8)
        np.save(frames, np.concatenate([clip, opaque], axis=-1))
        return 0
    rows = [row for case in _CASES for row in _case_rows(*case, clip, python, rounds)]
    console.table(
        f"Two people, {clip.shape[2]}x{clip.shape[1]}: medians of {rounds} passes, in turn",
        ["what", "by", "found", "CPU ms", "ms: median", "least"],
        [[*map(str, row[:3]), *(f"{each:.2f}" for each in row[3:])] for row in rows],
    )
    if json:
        names = ("solution", "by", "found", "cpu_ms", "median_ms", "min_ms")
        console.json([dict(zip(names, row, strict=True)) for row in rows])
    return 0


def _case_rows(
    name: str, kind: str, most: int, clip: Rgb, python: Path | None, rounds: int
) -> list[tuple[str, str, int, float, float, float]]:
    """What each takes to find and follow so many things."""
    with tempfile.TemporaryDirectory() as folder:
        passes = {f"ours, {threads} threads" if threads > 1 else "ours, 1 thread": _ours(name, most, threads, clip)
                  for threads in (1, 2)}  # fmt: skip
        with _theirs(python, kind, most, clip, Path(folder)) as run_theirs:
            if run_theirs:
                passes["MediaPipe"] = run_theirs
            for each in passes.values():
                each()  # in which tracks begin
            found = {way: list[PassTimes]() for way in passes}
            for _ in range(rounds):
                for way, each in passes.items():
                    found[way].append(each())
    return [
        (
            f"{name}, {most}", way, times[-1].found, median(each.cpu_ms for each in times),
            median(ms for each in times for ms in each.times_ms), min(ms for each in times for ms in each.times_ms),
        )
        for way, times in found.items()
    ]  # fmt: skip


def _ours(name: str, most: int, threads: int, clip: Rgb) -> Pass:
    """One pass after the other, whose frames follow one another at 30 a second."""
    solution, frames = solution_of(name), _as_recorded(clip)
    if solution is None:
        raise UsageError(f"no solution is called {name}")
    machine = ComputeBackend("cpu", None, CpuChoice("native", threads))
    models = [load_finding_model(each) for each in solution.models]
    finder = make_finder(solution, finished(regions_in_steps(machine, models, frames[0].picture.format)), most)
    numbers = iter(range(1 << 30))

    def run() -> PassTimes:
        times_ms, worked, found = list[float](), process_time(), 0
        for frame in frames:
            timed, start = replace(frame, time_ms=next(numbers) * _FRAME_MS), perf_counter()
            found = len(finder.find(timed))
            times_ms.append((perf_counter() - start) * 1e3)
        return PassTimes(times_ms, (process_time() - worked) * 1e3 / len(frames), found)

    return run


def _as_recorded(clip: Rgb) -> list[VideoFrame]:
    decoded = [av.VideoFrame.from_ndarray(each, "rgb24").reformat(format="yuv420p") for each in clip]
    maker = FrameMaker("two people", decoded[0])
    return [maker.make(n, n, 0.0, each, perf_counter_ns()) for n, each in enumerate(decoded)]


@contextmanager
def _theirs(python: Path | None, kind: str, most: int, clip: Rgb, folder: Path) -> Iterator[Pass | None]:
    """MediaPipe's passes, in a process of its own; None without one."""
    if python is None:
        yield None
        return
    np.save(folder / "clip.npy", clip)
    command = [str(python), str(_SCRIPT), str(folder / "clip.npy"), kind, str(most)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as process:
        assert process.stdin
        assert process.stdout
        asking, answers = process.stdin, process.stdout

        def run() -> PassTimes:
            asking.write("\n")
            asking.flush()
            if not (line := answers.readline()):
                raise UsageError(f"{python}: MediaPipe's script ended; is mediapipe 0.10.21 installed there?")
            return PassTimes(**json_text.loads(line))

        try:
            yield run
        finally:
            asking.close()


def main(arguments: Sequence[str] | None = None) -> int:
    return run_tool("mediapipe_times", mediapipe_times_tool, arguments)


if __name__ == "__main__":
    sys.exit(main())
