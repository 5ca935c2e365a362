"""Jobs go in, one after the other; each is done on this machine, and what came of it comes out. Raises nothing for what
inputs, this machine or the disk do: such jobs have failed, for a reason of one line.
"""

import os
import platform
from dataclasses import dataclass

from .jobs import Job, JobFailed, JobOutcome
from .worker_config import WorkerConfig


@dataclass(frozen=True)
class WorkerFacts:
    """What a worker tells of itself; backend and renderer are known once a recording has been opened."""

    name: str  # host and process
    host: str
    process: int
    backend: str = ""
    renderer: str = ""


class ArchiveWorker:
    """Does the jobs of one run, one at a time. Model, device and code are opened by the first job, and kept.

    Everything but `stop` is called on one thread, always the same.
    """

    def __init__(self, config: WorkerConfig) -> None:
        """Opens nothing, and never raises."""
        self._config = config

    @property
    def facts(self) -> WorkerFacts:
        """As of now."""
        host, process = platform.node(), os.getpid()
        return WorkerFacts(f"{host}:{process}", host, process)

    def run(self, job: Job) -> JobOutcome:
        """Do it. What an earlier attempt at the same job has left does no harm, and is done once more."""
        return JobFailed("machine", "this worker has been stopped")

    def stop(self) -> None:
        """From any thread: the job at hand ends at its next frame, without results; no other one is done."""

    def close(self) -> None:
        """Free what is on the device."""
