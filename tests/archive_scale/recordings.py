"""The recordings of a simulated archive of some kind, one after the other, the same every time."""

import math
import random
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from texelflow.app.archive.jobs.jobs import ArchiveInput

FRAMES_PER_S = 25
BYTES_PER_FRAME = 20_000  # 4 Mb/s
_MEDIAN_S = {"clips": 60.0, "lectures": 2700.0}
_SPREAD = {"clips": 1.0, "lectures": 0.7}  # of the logarithm
_LONGEST_S = 12 * 3600.0


@dataclass(frozen=True)
class ArchiveKind:
    """How many recordings, and how long: clips of a minute or lectures of 45 minutes, in the median."""

    name: str
    count: int

    def frames(self, number: int) -> int:
        """How many a recording has."""
        return _frames(self.name, number)

    def inputs(self, sized: bool = True) -> Iterator[ArchiveInput]:
        """All of them; without sizes they come in the order of their numbers."""
        for number in range(self.count):
            size = self.frames(number) * BYTES_PER_FRAME if sized else None
            yield ArchiveInput(number, f"/archive/recordings/{number:07}.mp4", f"recordings/{number:07}", size, number)


@lru_cache(maxsize=20_000)
def _frames(kind: str, number: int) -> int:
    chance = random.Random(number * 7919 + len(kind))
    seconds = math.exp(chance.gauss(math.log(_MEDIAN_S[kind]), _SPREAD[kind]))
    return max(1, int(min(seconds, _LONGEST_S) * FRAMES_PER_S))
