"""Helpers for tests of clusters: jobs and a charge of small real workers, and the events of a cluster one by one."""

import pickle
from collections import deque
from importlib.metadata import version
from pathlib import Path
from typing import Protocol, TypeVar

from tests.helpers.waiting import PATIENCE_S
from texelflow.app.archive.cluster.cluster import (
    Cluster,
    ClusterEnded,
    ClusterEvent,
    JobFinished,
    WorkerJoined,
    WorkerLost,
)
from texelflow.app.archive.cluster.job_server import WorkerCharge
from texelflow.app.archive.jobs.jobs import ArchiveInput, OpenInput

RUNNER = ("tests.app.archive.cluster.address_runner", "AddressRunner")
WAIT_S = PATIENCE_S
EventType = TypeVar("EventType", WorkerJoined, JobFinished, WorkerLost, ClusterEnded)


class OpenedCluster(Cluster, Protocol):
    """One that can be closed."""

    def close(self) -> None: ...


def job(number: int, what: str) -> OpenInput:
    """What a worker is to do, in the words of AddressRunner."""
    return OpenInput(ArchiveInput(number, what, str(number)))


class Watched:
    """A cluster, and its events one by one."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster, self._events = cluster, deque[ClusterEvent]()

    def next(self, kind: type[EventType], wait_s: float = WAIT_S) -> EventType:
        """The next event, which has to be of that kind."""
        tries = 0
        while not self._events and tries < 60:  # it may wake up for less than an event
            self._events.extend(self.cluster.wait(min(1.0, wait_s)))
            tries += 1
        event = self._events.popleft()
        assert isinstance(event, kind), event
        return event


def charge_of(folder: Path) -> WorkerCharge:
    """What workers get, and a token in the folder that they look for."""
    token = folder / "token"
    token.write_text("seen", encoding="utf-8")
    return WorkerCharge(version("texelflow"), (str(token), "seen"), RUNNER, pickle.dumps("mark"))
