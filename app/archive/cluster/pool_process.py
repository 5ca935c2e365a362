"""Starts one worker process of the pool, sends it commands, and receives its answers."""

import contextlib
import os
import queue
import signal
import subprocess
import sys
import tempfile
import threading
from collections import deque
from collections.abc import Callable
from dataclasses import astuple
from typing import IO, Any

from texelflow.gpu_delegate.base.isolated_python import OURS, python_command

from ...console import one_line
from ..jobs.jobs import Job
from .job_server import GPU_CHOICE, WorkerCharge
from .pipe_frames import receive_frame, send_frame

_PROGRAM = f"from {__package__}.pool_worker import serve_jobs; serve_jobs()"
_END_S = 5.0
_MOST_LOG = 1 << 16
_OF_CRASHES = ("Fatal Python error", "*** SIG", "terminate called")


class PoolProcess:
    """One worker. What it answers goes to `inbox` with this object, None when it has ended.

    Two threads read and write, so that nobody waits for a process that does not.
    """

    def __init__(self, name: str, place: str | None, charge: WorkerCharge, inbox: Callable[[Any], None]) -> None:
        """`place` is the number of the GPU that it has to itself. Raises OSError."""
        self.name, self.place = name, place
        self.jobs = deque[Job]()  # handed over, and not answered
        self.is_ready = False
        self._inbox = inbox
        self._log: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115
        environment = {**os.environ, GPU_CHOICE: place} if place is not None else None
        pipe = subprocess.PIPE
        self._process: subprocess.Popen[bytes] = subprocess.Popen(
            python_command(_PROGRAM, trusted=OURS),
            stdin=pipe, stdout=pipe, stderr=self._log, env=environment, cwd=os.sep,
            start_new_session=True,  # so that Ctrl-C comes to the driver alone
        )  # fmt: skip
        self.id = self._process.pid
        self._commands = queue.SimpleQueue[Any]()
        for run in (self._write, self._read):
            threading.Thread(target=run, daemon=True).start()
        self.send(astuple(charge))

    def send(self, command: Any) -> None:
        """What a process that has ended does not get, its end tells."""
        self._commands.put(command)

    def end(self) -> None:
        """Kill it, with what it has started, and wait for that. Harmless when repeated."""
        with contextlib.suppress(OSError):
            if sys.platform == "win32":
                self._process.kill()
            else:
                os.killpg(self.id, signal.SIGKILL)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(_END_S)
        self._commands.put(None)

    def close(self) -> None:
        """End it, and let go of its log."""
        self.end()
        self._log.close()

    def ended_by(self) -> str:
        """Why it has ended, in one line; it is killed if it has not."""
        try:
            code = self._process.wait(_END_S)
        except subprocess.TimeoutExpired:
            return "it does not answer any more"
        if code >= 0:
            return f"its process ended with exit code {code}{self._last_words()}"
        name = signal.Signals(-code).name if -code in set(signal.Signals) else f"signal {-code}"
        why = ", by somebody, or by the system for want of memory" if name == "SIGKILL" else ""
        return f"its process was ended by {name}{why}{self._last_words()}"

    def _last_words(self) -> str:
        """What it wrote of its crash, or else its last line."""
        with contextlib.suppress(OSError, ValueError):
            self._log.seek(max(0, self._log.seek(0, os.SEEK_END) - _MOST_LOG))
            lines = [one_line(line) for line in self._log.read().decode(errors="replace").splitlines() if line.strip()]
            crashes = [line for line in lines if line.startswith(_OF_CRASHES)]
            if said := (crashes or lines[-1:]):
                return f": {said[0][:200]}"
        return ""

    def _write(self) -> None:
        stream = self._process.stdin
        with contextlib.suppress(OSError, ValueError):
            while stream and (command := self._commands.get()) is not None:
                send_frame(stream, command)  # type: ignore[arg-type]
        with contextlib.suppress(OSError):
            if stream:
                stream.close()

    def _read(self) -> None:
        stream = self._process.stdout
        with contextlib.suppress(Exception):  # what is no answer ends it, too
            while stream:
                self._inbox((self, receive_frame(stream)))  # type: ignore[arg-type]
        self._inbox((self, None))
        with contextlib.suppress(OSError):
            if stream:
                stream.close()
