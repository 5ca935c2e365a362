"""Runs the real program in a process of its own, which a test may end in any way."""

import contextlib
import csv
import json
import os
import resource
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from fractions import Fraction
from pathlib import Path
from time import monotonic, sleep
from typing import Any

import cv2

from tests.helpers.waiting import PATIENCE_S
from texelflow.app.media.sources import FileSource

ROOT = Path(__file__).parents[2]


class Running:
    """`python -m texelflow.app` with these arguments. Leaving its with-block ends it for good."""

    def __init__(
        self, *arguments: object, environment: Mapping[str, str] | None = None, stdin: int | None = None
    ) -> None:
        command = [sys.executable, "-m", "texelflow.app", *map(str, arguments)]
        self.process = subprocess.Popen(
            command, cwd=ROOT, stdin=stdin, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
            env={**os.environ, **(environment or {})},
        )  # fmt: skip

    def until(self, true: Callable[[], bool]) -> None:
        """Wait until something is true; fails if the program ends before that, or patience does.

        While it is asked the program stands still: what it writes at that moment would be read in part. In between it
        runs for twice as long as that took, so that it comes on where a busy machine is slow to halt it.
        """
        end = monotonic() + PATIENCE_S
        began = monotonic()
        while not self._asked(true):
            assert self.process.poll() is None, f"ended early: {self.process.communicate()[1]}"
            assert monotonic() < end, "it did not happen"
            sleep(max(0.01, 2 * (monotonic() - began)))
            began = monotonic()

    def _asked(self, true: Callable[[], bool]) -> bool:
        self.process.send_signal(signal.SIGSTOP)
        with contextlib.suppress(ChildProcessError):  # it has ended before
            os.waitid(os.P_PID, self.process.pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)
        try:
            return true()
        finally:
            self.process.send_signal(signal.SIGCONT)

    def send(self, number: int) -> None:
        """Send a signal."""
        self.process.send_signal(number)

    def end(self) -> tuple[int, str]:
        """Wait for its end: the exit code, and the last line on stderr. Fails if anything there is a traceback."""
        _, complaint = self.process.communicate(timeout=PATIENCE_S)
        for line in complaint.splitlines():
            assert line.startswith("texelflow: "), complaint
        return self.process.returncode, complaint.splitlines()[-1] if complaint else ""

    def __enter__(self) -> "Running":
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.wait()
        if self.process.stderr:
            self.process.stderr.close()


def rows_of(log: Path) -> list[dict[str, Any]]:
    """The rows of a log, which must be whole; of one that is not there yet, or was made just now, none."""
    text = log.read_text() if log.exists() else ""
    if not text:
        return []
    if log.suffix == ".json":
        rows: list[dict[str, Any]] = json.loads(text)["frames"]
        return rows
    assert text.endswith("\n")
    table = list(csv.DictReader(text.splitlines()))
    assert all(None not in row.values() for row in table)
    return table


def times_of(out: Path) -> list[Fraction]:
    """Each frame's time in seconds, of a recording that may be cut off."""
    with FileSource(out) as source:
        return [frame.pts * source.info.time_base for frame in source]


def pictures_of(folder: Path) -> list[str]:
    """Names of the PNG files in a folder, which must all be whole, with nothing else beside them."""
    names = sorted(os.listdir(folder)) if folder.exists() else []
    for name in names:
        assert name.endswith(".png"), name
        assert cv2.imread(str(folder / name)) is not None, name
    return names


def events_of(trace: Path) -> list[dict[str, Any]]:
    """The events of a trace, which must be whole."""
    events: list[dict[str, Any]] = json.loads(trace.read_text())["traceEvents"]
    return events


@contextlib.contextmanager
def small_disk(folder: Path, size_bytes: int) -> Iterator[tuple[Path, bool]]:
    """A folder on a disk of its own that is soon full, and True; where none can be mounted no file grows further."""
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={size_bytes}", "none", str(folder)]
    if (
        os.geteuid() == 0
        and shutil.which("mount")
        and subprocess.run(mount, capture_output=True, check=False).returncode == 0
    ):
        try:
            yield folder, True
        finally:
            subprocess.run(["umount", "-l", str(folder)], check=True)
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size_bytes, hard))
    try:
        yield folder, False
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
