"""The process of a pool's worker: reads jobs on stdin, and writes outcomes and signs of life on stdout.

The process ends with its parent: at the end of stdin, in the middle of whatever it does.
"""

import contextlib
import faulthandler
import os
import queue
import sys
import threading
from pathlib import Path
from typing import Any, BinaryIO

from .job_server import JobServer
from .pipe_frames import receive_frame, send_frame

BEAT = "beat"  # an answer that only says that this process can run
STOP = "stop"  # a command: the job at hand ends at its next frame
BEAT_EVERY_S = 5.0
_FIRST_TO_GO = "1000"  # where memory is short, Linux ends a worker, not the driver or what else the user does


def serve_jobs() -> None:
    """One run, from the charge to the end of stdin, and of this process."""
    commands, answers = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what libraries print is no answer
    faulthandler.enable()
    with contextlib.suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text(_FIRST_TO_GO, encoding="ascii")
    _PoolWorker(commands, answers).run()


class _PoolWorker:
    """Jobs are done on the main thread; another one listens, and a third says every now and then that all is well."""

    def __init__(self, commands: BinaryIO, answers: BinaryIO) -> None:
        self._commands, self._answers, self._lock = commands, answers, threading.Lock()
        self._jobs = queue.SimpleQueue[bytes]()
        self._server = JobServer()

    def run(self) -> None:
        """Until there is no parent any more."""
        self._answer(self._server.start(receive_frame(self._commands)))
        for watch in (self._listen, self._beat):
            threading.Thread(target=watch, daemon=True).start()
        while True:
            self._answer(self._server.run(self._jobs.get()))

    def _listen(self) -> None:
        with contextlib.suppress(EOFError, OSError):
            while True:
                command: Any = receive_frame(self._commands)
                if command == STOP:
                    self._server.stop()
                else:
                    self._jobs.put(command)
        os._exit(0)

    def _beat(self) -> None:
        ended = threading.Event()
        while not ended.wait(BEAT_EVERY_S):
            self._answer(BEAT)

    def _answer(self, answer: Any) -> None:
        try:
            with self._lock:
                send_frame(self._answers, answer)
        except OSError:  # nobody reads any more
            os._exit(0)
