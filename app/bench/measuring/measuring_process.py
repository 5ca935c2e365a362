"""Runs a verb or a command in a process of its own, and returns the figures that it prints, or why there are none.

What fails, crashes or hangs there is a line for the caller, who goes on.
"""

import json
import os
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from texelflow.gpu_delegate.base.isolated_python import OURS, python_command

from ...console import one_line
from ...signals import StopFlag

VERB = "import sys; from texelflow.app.cli import main; sys.exit(main(sys.argv[1:]))"
_OURS = "texelflow: "  # in front of what the program complains of
_GRACE_S = 5.0  # for a process that was asked to end


@dataclass(frozen=True)
class ProcessFigures:
    """What a process left: the object in its last line, and in one line why there is none or why it is not good."""

    figures: dict[str, Any] | None
    why: str = ""


@dataclass
class MeasuringProcess:
    """Runs one process at a time; a signal's handler may end it."""

    environment: Mapping[str, str] = field(default_factory=dict)  # in addition to that of this process
    process: "subprocess.Popen[str] | None" = None
    stop: StopFlag = field(default_factory=StopFlag)

    def end(self) -> None:
        """Ask the process to end."""
        if self.process is not None:
            self.process.terminate()

    def verb(self, arguments: Sequence[str], patience_s: float) -> ProcessFigures:
        """A verb of the command line, with --json among the arguments."""
        return self.run(python_command(VERB, *arguments, trusted=OURS), patience_s)

    def run(self, command: Sequence[str], patience_s: float) -> ProcessFigures:
        """Any command that prints one JSON object in its last line."""
        pipe = subprocess.PIPE
        environment = {**os.environ, **self.environment}
        with subprocess.Popen(
            command, stdout=pipe, stderr=pipe, text=True, errors="replace", env=environment
        ) as self.process:
            try:
                out, complaints = self.process.communicate(timeout=patience_s)
            except subprocess.TimeoutExpired:
                self._give_up()
                return ProcessFigures(None, f"took longer than {patience_s:.3g} s")
            code = self.process.returncode
        figures = _last_object(out)
        return ProcessFigures(figures, "" if code == 0 and figures is not None else _reason(code, complaints))

    def _give_up(self) -> None:
        assert self.process is not None
        self.process.terminate()
        try:
            self.process.communicate(timeout=_GRACE_S)
        except subprocess.TimeoutExpired:
            self.process.kill()


def _last_object(out: str) -> dict[str, Any] | None:
    """A process may crash while it writes."""
    try:
        found = json.loads(out.splitlines()[-1])
    except (ValueError, IndexError):
        return None
    return found if isinstance(found, dict) else None


def _reason(code: int, complaints: str) -> str:
    said = [line for line in complaints.splitlines() if line.startswith(_OURS)]
    ended = f"ended by signal {-code}" if code < 0 else f"ended with exit code {code}"
    return one_line(said[-1].removeprefix(_OURS)) if said else ended
