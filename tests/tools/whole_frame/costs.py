"""Runs commands and measures what they take, of the CPU and by the clock, without what a start takes."""

import os
import signal
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter, sleep

from texelflow.gpu_delegate.base.errors import UnsupportedError

_ENDED = 128 + signal.SIGTERM


@dataclass(frozen=True)
class RunCost:
    """Of a process and those that it has waited for: frames, seconds of the CPU (user and system), and by the clock."""

    frames: int
    cpu_s: float
    wall_s: float


@dataclass(frozen=True)
class FrameCost:
    """What a frame takes once all is started: milliseconds of the CPU and by the clock."""

    cpu_ms: float
    wall_ms: float


def frame_cost(short: RunCost, long: RunCost) -> FrameCost:
    """The difference of two runs, which start alike. Raises UnsupportedError where there is none.

    30 frames in 3 s of the CPU and 2 by the clock, and 130 in 4 and 3: a frame takes 10 ms of both.
    """
    frames = long.frames - short.frames
    if frames <= 0:
        raise UnsupportedError(f"a run of {long.frames} frames is not longer than one of {short.frames}; take more")
    return FrameCost((long.cpu_s - short.cpu_s) / frames * 1e3, (long.wall_s - short.wall_s) / frames * 1e3)


def run_seconds(command: Sequence[str], folder: Path, end_after_s: float | None = None) -> tuple[float, float]:
    """Seconds of the CPU and by the clock that a command takes in a folder; with an end it gets SIGTERM then.

    Raises UnsupportedError, with the last line that it wrote, where it fails.
    """
    with tempfile.TemporaryFile() as said:
        start_s = perf_counter()
        process = subprocess.Popen(command, cwd=folder, stdin=subprocess.DEVNULL, stdout=said, stderr=said)
        try:
            if end_after_s is not None:
                sleep(end_after_s)
                os.kill(process.pid, signal.SIGTERM)
            _, status, usage = os.wait4(process.pid, 0)
        except BaseException:
            process.kill()
            process.wait()
            raise
        wall_s = perf_counter() - start_s
        process.returncode = code = os.waitstatus_to_exitcode(status)
        if code not in ((0,) if end_after_s is None else (_ENDED,)):
            said.seek(0)
            last = said.read().decode(errors="replace").strip().rpartition("\n")[2]
            raise UnsupportedError(f"{' '.join(command)} ended with exit code {code}: {last[:300]}")
    return usage.ru_utime + usage.ru_stime, wall_s
