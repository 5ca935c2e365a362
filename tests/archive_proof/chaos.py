"""Kills workers at random while a cluster works, and a whole node in the middle; reports what was killed."""

import contextlib
import math
import os
import signal
import threading
from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from time import monotonic

from tests.archive_proof.manifest_records import ArchiveRecords
from tests.archive_proof.ray_nodes import RayNodes

TIMES_MEDIAN = 4.0  # from one kill to the next, in medians of a piece's time
_LEAST_S = 2.0
_LOOK_S = 0.25


@dataclass(frozen=True)
class Killed:
    """What was killed: a worker, by its title, or a node with so many processes."""

    at_s: float
    node: str
    what: str
    pid: int | None = None


class Chaos:
    """Kills while its with-block runs. `progress` is from 0 to 1: at half of it a node dies, and another joins."""

    def __init__(
        self,
        nodes: RayNodes,
        records: Callable[[], ArchiveRecords],
        progress: Callable[[ArchiveRecords], float],
        seed: int,
        victim: str = "",
        heir: str = "",
        cpus: int = 2,
    ) -> None:
        self._nodes, self._records, self._progress = nodes, records, progress
        self._choose, self._victim, self._heir, self._cpus = Random(seed), victim, heir, cpus
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._start = monotonic()
        self.killed: list[Killed] = []
        self.intervals_s: list[float] = []
        self.error: BaseException | None = None

    def __enter__(self) -> "Chaos":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()
        if self.error:
            raise self.error

    def _run(self) -> None:
        try:
            self._kill_until_the_end()
        except BaseException as error:
            self.error = error

    def _kill_until_the_end(self) -> None:
        last_s = monotonic()
        while not self._ended.wait(_LOOK_S):
            records = self._records()
            if self._victim and self._progress(records) >= 0.5:
                self._replace_node()
                last_s = monotonic()
            seconds = records.job_seconds()
            if math.isnan(seconds) or monotonic() - last_s < max(_LEAST_S, TIMES_MEDIAN * seconds):
                continue
            if self._kill_worker():
                self.intervals_s.append(round(monotonic() - last_s, 2))
                last_s = monotonic()

    def _replace_node(self) -> None:
        victim, self._victim = self._victim, ""
        count = self._nodes.kill(victim)
        self.killed.append(Killed(self._now_s(), victim, f"the node, {count} processes"))
        if self._heir:
            self._nodes.add(self._heir, self._cpus)

    def _kill_worker(self) -> bool:
        """One of all workers by chance; False where there is none at this moment."""
        workers = [
            (name, each) for name in list(self._nodes.names) for each in self._nodes.processes(name) if each.is_actor
        ]
        if not workers:
            return False
        name, worker = self._choose.choice(sorted(workers, key=lambda pair: pair[1].pid))
        with contextlib.suppress(ProcessLookupError):
            os.kill(worker.pid, signal.SIGKILL)
            self.killed.append(Killed(self._now_s(), name, worker.title, worker.pid))
        return True

    def _now_s(self) -> float:
        return round(monotonic() - self._start, 1)
