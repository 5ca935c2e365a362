"""The interface of a cluster: what the loop asks of workers on many machines, and the events that tell what happens.

PoolCluster (pool_cluster.py) has processes of this machine, RayCluster (ray_cluster.py) those of many; tests and the
simulation have others.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from ..jobs.jobs import Job, JobOutcome


@dataclass(frozen=True)
class ClusterNode:
    """A machine, or what stands for one. `name` is its host, with a part of `id` where several have the same."""

    id: str
    name: str


@dataclass(frozen=True)
class WorkerJoined:
    """A worker is ready for jobs."""

    worker: str  # no other one of this run has this name, not even one that comes in its place
    node: ClusterNode
    process: int
    gpu: str | None = None  # OpenGL's device, where GPUs are counted


@dataclass(frozen=True)
class JobFinished:
    """A worker is done with a job, whatever came of it."""

    worker: str
    job: Job
    outcome: JobOutcome
    memory_bytes: int  # of its process, resident


@dataclass(frozen=True)
class WorkerLost:
    """A worker is gone, with the jobs that it had. Another one comes in its place if its node lives."""

    worker: str
    reason: str  # one line
    node_lost: bool = False


@dataclass(frozen=True)
class NodeRefused:
    """A node gets no jobs from now on."""

    node: ClusterNode
    line: str  # why


@dataclass(frozen=True)
class NodeTold:
    """Something that a person should know of a node that works."""

    node: ClusterNode
    line: str


@dataclass(frozen=True)
class ClusterEnded:
    """Nothing more will happen: the head does not answer any more, or no worker can be made."""

    reason: str  # one line


ClusterEvent: TypeAlias = WorkerJoined | JobFinished | WorkerLost | NodeRefused | NodeTold | ClusterEnded


class Cluster(Protocol):
    """Workers that come and go. Each does one job at a time, in the order of submission."""

    def submit(self, worker: str, job: Job) -> None:
        """A job for a worker that has joined; one that was lost meanwhile is passed over."""

    def wait(self, seconds: float) -> Sequence[ClusterEvent]:
        """What has happened, all of it as soon as there is something; nothing after so many seconds, or after wake."""

    def wake(self) -> None:
        """From a signal's handler: let nobody wait."""

    def kill(self, worker: str) -> None:
        """End a worker that hangs, without an event. Another one comes in its place."""

    def stop(self) -> None:
        """Every worker ends its jobs at its next frame, and no new one is made."""
