"""The messages between the program and the process that speaks with Ray."""

from dataclasses import dataclass
from typing import Literal, TypeAlias

from .cluster import ClusterEnded, NodeRefused, NodeTold, WorkerJoined, WorkerLost
from .job_server import WorkerCharge


@dataclass(frozen=True)
class RayRequest:
    """The first frame: which Ray, and what its workers get. `address` None: one of our own, in the folder `temp`."""

    address: str | None
    charge: WorkerCharge
    workers: int | None
    cpus: int  # of a Ray of our own
    temp: str
    dashboard: bool = True


@dataclass(frozen=True)
class JobSent:
    """A job for a worker; `number` says which of all."""

    worker: str
    number: int
    job: bytes


@dataclass(frozen=True)
class JobReturned:
    """What came of it."""

    worker: str
    number: int
    outcome: bytes
    memory_bytes: int


@dataclass(frozen=True)
class WorkerEnding:
    """One worker is to be killed."""

    worker: str


RayCommand: TypeAlias = JobSent | WorkerEnding | Literal["stop", "close"]


@dataclass(frozen=True)
class RayOpened:
    """Ray answers."""

    version: str
    dashboard: str | None
    token: str | None  # that its dashboard asks for, where this program chose it


@dataclass(frozen=True)
class RayRefused:
    """Ray does not start, or does not let us in."""

    line: str


RayAnswer: TypeAlias = (
    RayOpened | RayRefused | JobReturned | WorkerJoined | WorkerLost | NodeRefused | NodeTold | ClusterEnded
)
