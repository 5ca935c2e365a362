"""Samples the memory of a cluster's nodes over time, and computes by how much each grew a minute."""

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from time import monotonic

import numpy as np

from tests.archive_proof.ray_nodes import DRIVER, RayNodes

EVERY_S = 2.0
_WARM_S = 30.0  # of a worker's life, or a node's: what it opens first stays
_LEAST_S = 30.0  # for which a slope says something
_MIB = 1 << 20


@dataclass(frozen=True)
class MemorySample:
    """One process at one moment; pages that it shares with others are counted for each."""

    at_s: float
    node: str
    pid: int
    is_actor: bool
    resident_bytes: int


class MemorySampler:
    """Samples all nodes of a cluster, and what has joined it, from its with-block's begin to its end."""

    def __init__(self, nodes: RayNodes) -> None:
        self._nodes = nodes
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._sample)
        self._start = monotonic()
        self.samples: list[MemorySample] = []

    def __enter__(self) -> "MemorySampler":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()

    def _sample(self) -> None:
        while not self._ended.wait(EVERY_S):
            for name in (*self._nodes.names, DRIVER):
                at_s = round(monotonic() - self._start, 1)
                self.samples += [
                    MemorySample(at_s, name, each.pid, each.is_actor, each.resident_bytes)
                    for each in self._nodes.processes(name)
                ]


@dataclass(frozen=True)
class NodeMemory:
    """What one node took; the slopes are None where it did not last long enough.

    `worker_slope` is that of the worker that lasted longest. `points` are (seconds, MiB of all its processes).
    """

    most_mib: int
    least_mib: int
    most_of_worker_mib: int
    ray_slope_mib_a_minute: float | None
    worker_slope_mib_a_minute: float | None
    points: tuple[tuple[float, int], ...]


def memory_of_nodes(samples: Sequence[MemorySample]) -> Mapping[str, NodeMemory]:
    """Each node's."""
    return {
        name: _memory([each for each in samples if each.node == name]) for name in sorted({s.node for s in samples})
    }


def _memory(samples: Sequence[MemorySample]) -> NodeMemory:
    total, own, workers = dict[float, int](), dict[float, int](), dict[int, dict[float, int]]()
    for each in samples:
        total[each.at_s] = total.get(each.at_s, 0) + each.resident_bytes
        if each.is_actor:
            workers.setdefault(each.pid, {})[each.at_s] = each.resident_bytes
        else:
            own[each.at_s] = own.get(each.at_s, 0) + each.resident_bytes
    longest = max(workers.values(), key=len, default={})
    return NodeMemory(
        max(total.values()) // _MIB,
        min(total.values()) // _MIB,
        max((value for each in workers.values() for value in each.values()), default=0) // _MIB,
        slope_a_minute(_warmed(own)),
        slope_a_minute(_warmed(longest)),
        tuple((at_s, value // _MIB) for at_s, value in sorted(total.items())),
    )


def _warmed(points: Mapping[float, int]) -> list[tuple[float, float]]:
    """MiB, without those of the beginning."""
    start = min(points, default=0.0) + _WARM_S
    return [(at_s, value / _MIB) for at_s, value in sorted(points.items()) if at_s >= start]


def slope_a_minute(points: Sequence[tuple[float, float]]) -> float | None:
    """Of the straight line through points (seconds, value) with the least squares."""
    if len(points) < 3 or points[-1][0] - points[0][0] < _LEAST_S:
        return None
    seconds, values = np.array(points).T
    return round(60 * float(np.polyfit(seconds, values, 1)[0]), 2)
