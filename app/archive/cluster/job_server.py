"""Does the jobs of a run in the process of a worker, however jobs and outcomes, both pickled, get there.

Nothing of the run is unpickled before the program's version is known to be the driver's.
"""

import contextlib
import importlib
import os
import pickle
import platform
import sys
import time
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any, Protocol

from ...console import one_line
from ...freed_memory import JobMemory
from ...process_usage import process_usage
from ..jobs.jobs import Job, JobFailed, JobOutcome

GPU_CHOICE = "TEXELFLOW_GPU"
_NICENESS = 10
_UNTIL_S = 0.5


class JobRunner(Protocol):
    """What does the jobs: ArchiveWorker, or what a test has."""

    def run(self, job: Job) -> JobOutcome:
        """Do one, always on the same thread."""

    def stop(self) -> None:
        """From another thread: the job at hand ends soon, and no other is done."""


@dataclass(frozen=True)
class WorkerCharge:
    """What every worker gets when it starts, plain data that any version can read."""

    version: str  # of the driver's texelflow
    token: tuple[str, str]  # a file in the output folder, and what the driver wrote to it
    made_by: tuple[str, str]  # module and class of the JobRunner
    config: bytes  # its only argument, pickled
    environment: tuple[tuple[str, str], ...] = ()  # names and values: which OpenGL; else the cluster decides
    token_s: float = 10.0  # for a network's file system to show what was just written


@dataclass(frozen=True)
class WorkerStart:
    """How a start went."""

    host: str
    process: int
    gpu: str | None = None  # that OpenGL is opened on; None: nobody chooses one, or there is no OpenGL on it
    refusal: str | None = None  # why this node can do nothing for this run
    note: str | None = None  # what its user should know of this node


class JobServer:
    """`run` is called on one thread, always the same; `stop` on another one."""

    def __init__(self) -> None:
        self._runner: Any = None
        self._memory = JobMemory()

    def start(self, charge: tuple[Any, ...]) -> tuple[Any, ...]:
        """Get ready by the fields of a charge; returns those of a start."""
        own = version("texelflow")
        host = platform.node()
        if charge[0] != own:
            return host, os.getpid(), None, f"it has texelflow {own}, this run is by {charge[0]}"
        told = WorkerCharge(*charge)
        if not _sees(*told.token, told.token_s):
            return host, os.getpid(), None, f"it does not see {Path(told.token[0]).parent}: all nodes have to share it"
        _be_nice()
        os.environ.setdefault("LP_NUM_THREADS", "1")  # of OpenGL in software: a worker has one core
        os.environ.update(told.environment)
        gpu = dict(told.environment).get(GPU_CHOICE) or self.chosen_gpu()
        module, name = told.made_by
        self._runner = getattr(importlib.import_module(module), name)(pickle.loads(told.config))
        return host, os.getpid(), gpu, None

    def chosen_gpu(self) -> str | None:
        """Have OpenGL opened on the GPU that the cluster gives this worker: its name; None where it gives none."""
        return os.environ.get(GPU_CHOICE)

    def run(self, job: bytes) -> tuple[bytes, int]:
        """Do a pickled job; returns its pickled outcome and this process's memory."""
        outcome = self._run(pickle.loads(job))
        self._memory.free(opened=not isinstance(outcome, JobFailed))
        return pickle.dumps(outcome), process_usage().resident_bytes or 0

    def _run(self, job: Job) -> JobOutcome:
        try:
            outcome: JobOutcome = self._runner.run(job)
        except Exception as error:  # its own mistake, not the input's
            return JobFailed("machine", one_line(f"{type(error).__name__}: {error}")[:500])
        return outcome

    def stop(self) -> None:
        """See JobRunner."""
        if self._runner:
            self._runner.stop()


def _sees(path: str, text: str, seconds: float) -> bool:
    until = time.monotonic() + seconds
    while True:
        with contextlib.suppress(OSError):
            if Path(path).read_text(encoding="utf-8") == text:
                return True
        if time.monotonic() > until:
            return False
        time.sleep(_UNTIL_S)


def _be_nice() -> None:
    if sys.platform != "win32":
        os.nice(max(0, _NICENESS - os.getpriority(os.PRIO_PROCESS, 0)))
