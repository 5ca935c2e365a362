"""What goes between the program and the process that speaks with Ray: what is asked of it, what it answers, as frames.

A frame is a length and a pickle; both ends are this program, of one version, on one machine.
"""

import pickle
import struct
from dataclasses import dataclass
from typing import Any, BinaryIO, Literal, TypeAlias

from .cluster import ClusterEnded, NodeRefused, NodeTold, WorkerJoined, WorkerLost
from .ray_worker import WorkerCharge

_LENGTH = struct.Struct("<Q")


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


def send_frame(stream: BinaryIO, message: Any) -> None:
    """Raises OSError where nobody reads."""
    content = pickle.dumps(message)
    stream.write(_LENGTH.pack(len(content)) + content)
    stream.flush()


def receive_frame(stream: BinaryIO) -> Any:
    """Raises EOFError at the end."""
    head = stream.read(_LENGTH.size)
    content = stream.read(_LENGTH.unpack(head)[0]) if len(head) == _LENGTH.size else b""
    if not content:
        raise EOFError
    return pickle.loads(content)
