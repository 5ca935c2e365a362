"""The cluster of worker processes on this machine, which speak through pipes and open no ports.

A worker that ends, is ended or says nothing for long is replaced. All of them end with the driver, however that ends.
"""

import contextlib
import itertools
import os
import pickle
import platform
import queue
import time
from collections.abc import Iterator, Sequence
from typing import Any

from texelflow.gpu_delegate.base.errors import DeviceError
from texelflow.gpu_delegate.targets.gl.egl import Egl
from texelflow.gpu_delegate.targets.llvm.machine import usable_cores

from ..jobs.jobs import Job
from .cluster import ClusterEnded, ClusterEvent, ClusterNode, JobFinished, WorkerJoined, WorkerLost
from .job_server import GPU_CHOICE, WorkerCharge, WorkerStart
from .pool_process import PoolProcess
from .pool_worker import BEAT, STOP
from .worker_places import NodeRecord

_SILENT_S = 120.0  # without a beat, a worker does not run any more: it was stopped, or its interpreter hangs
_START_S = 300.0
_ASLEEP_S = 15.0


@contextlib.contextmanager
def open_pool(charge: WorkerCharge, workers: int | None = None) -> Iterator["PoolCluster"]:
    """A cluster of this machine alone, until it is left; `workers` None: one for each GPU, or for half of the cores."""
    is_chosen = GPU_CHOICE in dict(charge.environment) or GPU_CHOICE in os.environ
    gpus = [] if is_chosen else nvidia_gpus()
    cluster = PoolCluster(charge, worker_places(gpus, workers))
    try:
        yield cluster
    finally:
        cluster.close()


def nvidia_gpus() -> list[str]:
    """Numbers, among EGL's devices, of those GPUs that CUDA counts too: each can keep a worker of its own busy."""
    try:
        return [str(device.index) for device in Egl().devices() if device.cuda is not None and not device.is_software]
    except DeviceError:
        return []


def worker_places(gpus: Sequence[str], workers: int | None) -> list[str | None]:
    """The GPU of each worker, in turn; None for one of the CPU."""
    count = workers or len(gpus) or max(1, usable_cores() // 2)
    return list(itertools.islice(itertools.cycle(gpus or [None]), count))


class PoolCluster:
    """See Cluster. Everything is called on one thread, but for `wake`."""

    def __init__(
        self, charge: WorkerCharge, places: Sequence[str | None], silent_s: float = _SILENT_S, start_s: float = _START_S
    ) -> None:
        """One worker for each of the places, from the first `wait` on."""
        self._charge, self._free = charge, list(places)
        self._silent_s, self._start_s = silent_s, start_s
        self._node = ClusterNode("local", platform.node() or "this machine")
        self._record = NodeRecord()
        self._inbox = queue.SimpleQueue[tuple[PoolProcess, Any] | None]()
        self._workers: dict[str, PoolProcess] = {}
        self._heard: dict[str, float] = {}
        self._looked = time.monotonic()
        self._numbers = itertools.count(1)
        self._stopping = False

    @property
    def process_ids(self) -> tuple[int, ...]:
        """Of all workers."""
        return tuple(worker.id for worker in self._workers.values())

    def submit(self, worker: str, job: Job) -> None:
        """See Cluster."""
        if process := self._workers.get(worker):
            process.jobs.append(job)
            process.send(pickle.dumps(job))

    def wait(self, seconds: float) -> Sequence[ClusterEvent]:
        """See Cluster."""
        events = self._replaced(time.monotonic())
        with contextlib.suppress(queue.Empty):
            message = self._inbox.get(timeout=0.0 if events else max(0.0, seconds))
            while True:
                events += self._taken(*message) if message else ()
                message = self._inbox.get_nowait()
        return events

    def wake(self) -> None:
        """See Cluster."""
        self._inbox.put(None)

    def kill(self, worker: str) -> None:
        """See Cluster."""
        if process := self._workers.get(worker):
            self._forget(process)

    def stop(self) -> None:
        """See Cluster."""
        self._stopping = True
        for process in self._workers.values():
            process.send(STOP)

    def close(self) -> None:
        """End all workers. What they do is lost. Harmless when repeated."""
        self._stopping = True
        for process in list(self._workers.values()):
            self._forget(process)

    def _taken(self, process: PoolProcess, answer: Any) -> list[ClusterEvent]:
        """What an answer means; that of a worker which was given up means nothing."""
        if self._workers.get(process.name) is not process:
            return []
        self._heard[process.name] = time.monotonic()
        if answer is None:
            return self._lost(process, process.ended_by())
        if answer == BEAT:
            return []
        if not process.is_ready:
            return self._started(process, WorkerStart(*answer))
        outcome, memory_bytes = answer
        self._record.finished()
        return [JobFinished(process.name, process.jobs.popleft(), pickle.loads(outcome), memory_bytes)]

    def _started(self, process: PoolProcess, start: WorkerStart) -> list[ClusterEvent]:
        if start.refusal:
            self.close()
            return [ClusterEnded(f"no worker can start: {start.refusal}")]
        process.is_ready = True
        self._record.started()
        return [WorkerJoined(process.name, self._node, start.process, start.gpu)]

    def _lost(self, process: PoolProcess, reason: str) -> list[ClusterEvent]:
        self._forget(process)
        if self._record.unfit(others_work=False):
            self.close()
            return [ClusterEnded(f"workers do not start: {reason}")]
        return [WorkerLost(process.name, reason)] if process.is_ready else []

    def _forget(self, process: PoolProcess) -> None:
        """Its place is free from now on."""
        del self._workers[process.name]
        del self._heard[process.name]
        process.close()
        self._free.append(process.place)
        self._record.lost(process.is_ready, time.monotonic())

    def _replaced(self, now: float) -> list[ClusterEvent]:
        """End those that say nothing any more, and start one for each place that is free."""
        events = list[ClusterEvent]()
        if now - self._looked > _ASLEEP_S:  # it was the driver that did not run: Ctrl-Z
            self._heard = dict.fromkeys(self._heard, now)
        self._looked = now
        for process in list(self._workers.values()):
            silent = now - self._heard[process.name]
            if silent > (self._silent_s if process.is_ready else self._start_s):
                events += self._lost(process, f"nothing was heard of it for {silent:.0f} s")
        while self._free and not self._stopping and now >= self._record.not_before:
            name = f"worker {next(self._numbers)}"
            try:
                process = PoolProcess(name, self._free[-1], self._charge, self._inbox.put)
            except OSError as error:
                self.close()
                return [*events, ClusterEnded(f"no process can be started: {error.strerror}")]
            self._free.pop()
            self._workers[name], self._heard[name] = process, now
        return events
