"""Runs the real `texelflow archive` in a process of its own, to be ended in any way."""

import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from time import monotonic, sleep
from typing import Any

from tests.archive_proof.manifest_records import ArchiveRecords, read_records
from tests.helpers.running import ROOT


class ArchiveProcess:
    """`texelflow archive` with --json; what it says goes to files in `log`. Leaving its with-block ends it for good."""

    def __init__(self, out: Path, log: Path, environment: Mapping[str, str], *arguments: object) -> None:
        self.out, self._log = out, log
        log.mkdir(parents=True, exist_ok=True)
        self.started_s = monotonic()
        command = [sys.executable, "-m", "texelflow.app", "archive", *map(str, arguments), "--out", str(out), "--json"]
        with (log / "out.jsonl").open("wb") as said, (log / "err.txt").open("wb") as complained:
            self.process = subprocess.Popen(
                command, cwd=ROOT, env=dict(environment), stdin=subprocess.DEVNULL, stdout=said, stderr=complained
            )

    def __enter__(self) -> "ArchiveProcess":
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.wait()

    @property
    def is_running(self) -> bool:
        """Whether it has not ended."""
        return self.process.poll() is None

    @property
    def complaints(self) -> str:
        """What is on stderr so far."""
        return (self._log / "err.txt").read_text(errors="replace")

    def records(self) -> ArchiveRecords:
        """What its manifest says now."""
        return read_records(self.out)

    def events(self) -> list[dict[str, Any]]:
        """The lines of JSON so far, whole ones."""
        data = (self._log / "out.jsonl").read_bytes()
        return [json.loads(line) for line in data.split(b"\n")[:-1] if line.strip()]

    def end(self, timeout_s: float) -> int:
        """Wait for it: the exit code. Raises RuntimeError where it does not end in time."""
        end = monotonic() + timeout_s
        while self.is_running:
            if monotonic() > end:
                raise RuntimeError(f"archive does not end: {self.complaints[-2000:]}")
            sleep(0.1)
        return self.process.returncode
