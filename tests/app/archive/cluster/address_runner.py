"""Small real workers for tests of clusters: what a job's address says is done, in the process of a worker."""

import ctypes
import os
import resource
import signal
import time

from texelflow.app.archive.jobs.jobs import InputDone, Job, JobFailed, JobOutcome


class AddressRunner:
    """Does what addresses say: ok, sleep SECONDS, die, crash, raise, hog, freeze; its argument is in every result."""

    def __init__(self, mark: str) -> None:
        self._mark, self._stopped = mark, False

    def run(self, job: Job) -> JobOutcome:
        """As JobRunner."""
        word, _, rest = job.input.address.partition(" ")
        if word == "die":
            os.kill(os.getpid(), signal.SIGKILL)
        if word == "crash":
            ctypes.string_at(0)
        if word == "raise":
            raise RuntimeError("a mistake\nof two lines")
        if word == "hog":  # as much memory as there may be, and more
            resource.setrlimit(resource.RLIMIT_AS, (1 << 32, 1 << 32))
            ctypes.CDLL(None).abort() if not ctypes.CDLL(None).malloc(ctypes.c_size_t(1 << 33)) else None
        if word == "freeze":
            os.kill(os.getpid(), signal.SIGSTOP)
        until = time.monotonic() + (float(rest) if word == "sleep" else 0.0)
        while time.monotonic() < until and not self._stopped:
            time.sleep(0.01)
        if self._stopped:
            return JobFailed("machine", "stopped")
        worker = f"{os.getpid()} nice {os.getpriority(os.PRIO_PROCESS, 0)}"
        return InputDone("", 0, 1, {}, {}, 0.0, worker, "", "", notes=(self._mark,))

    def stop(self) -> None:
        """As JobRunner."""
        self._stopped = True
