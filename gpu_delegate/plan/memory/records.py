"""A tensor's size and the tasks that use it: what planners are given of a network."""

from dataclasses import dataclass
from typing import Protocol


class Lifetime(Protocol):
    """What of a record tells when its tensor is alive; both tasks are inclusive."""

    @property
    def tensor(self) -> int: ...
    @property
    def first_task(self) -> int: ...
    @property
    def last_task(self) -> int: ...


@dataclass(frozen=True)
class UsageRecord:
    """A tensor of some size, alive from the task that writes it to the last that reads it, both inclusive."""

    tensor: int
    size_bytes: int
    first_task: int
    last_task: int

    def overlaps(self, other: "UsageRecord") -> bool:
        return self.first_task <= other.last_task and other.first_task <= self.last_task
