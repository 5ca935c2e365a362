"""Shared objects and the times at which they are in use: finds the best free one for a tensor."""

import numpy as np

from .memory_plan import MemoryPlan, in_objects
from .profiles import Numbers
from .records import UsageRecord

FAR = 1 << 40  # more tasks than there are
_LARGE = 1 << 62  # more than twice as many bytes as there are


class ObjectTimes:
    """Shared objects, and the gaps between the tasks that use them, as columns: a search takes a few array operations.

    A gap lies between the last task that uses an object and the next one that does. There are at most two a tensor.
    """

    def __init__(self, room: int) -> None:
        self._gaps = np.zeros((3, 2 * room), np.int64)  # the task before, the task behind, the object
        self._gap_count = 0
        self._sizes = np.zeros(room, np.int64)
        self._count = 0
        self._objects: dict[int, int] = {}

    def plan(self) -> MemoryPlan:
        """Of the tensors put so far."""
        return in_objects(self._objects, self._sizes[: self._count].tolist())

    def best_by_size(self, record: UsageRecord) -> int | None:
        """The smallest object that is free and large enough, else the largest that is free; of equal ones the first."""
        objects = np.sort(self._gaps[2, self._free(record)])
        if not objects.size:
            return None
        sizes = self._sizes[objects]
        return int(objects[np.argmin(np.where(sizes >= record.size_bytes, sizes, _LARGE - sizes))])

    def nearest(self, record: UsageRecord) -> tuple[int, int]:
        """How many tasks the nearest use of a free object is away, and the object, of equally near ones the first.

        FAR and -1 where none is free.
        """
        gaps = self._free(record)
        if not gaps.size:
            return FAR, -1
        before, behind, objects = self._gaps[:, gaps]
        distances = np.minimum(record.first_task - before, behind - record.last_task)
        least = int(distances.min())
        return least, int(objects[distances == least].min())

    def put(self, record: UsageRecord, number: int | None) -> tuple[int, tuple[int, int]]:
        """Into an object that is free, which grows to the tensor, or into a new one.

        Returns its number, and the tasks that had used it last before and were to use it next.
        """
        if number is None:
            number = self._open()
        gaps = self._free(record)
        at = int(gaps[np.argmax(self._gaps[2, gaps] == number)])
        before, behind = (int(task) for task in self._gaps[:2, at])
        self._close_gap(at)
        self._open_gap(before, record.first_task, number)
        self._open_gap(record.last_task, behind, number)
        self._sizes[number] = max(int(self._sizes[number]), record.size_bytes)
        self._objects[record.tensor] = number
        return number, (before, behind)

    def _open(self) -> int:
        self._open_gap(-FAR, FAR, self._count)
        self._count += 1
        return self._count - 1

    def _open_gap(self, before: int, behind: int, number: int) -> None:
        if behind - before > 1:  # there is a task between
            self._gaps[:, self._gap_count] = before, behind, number
            self._gap_count += 1

    def _close_gap(self, at: int) -> None:
        self._gap_count -= 1
        self._gaps[:, at] = self._gaps[:, self._gap_count]

    def _free(self, record: UsageRecord) -> Numbers:
        """Gaps that a record fits into, at most one of each object."""
        before, behind, _ = self._gaps[:, : self._gap_count]
        gaps: Numbers = ((before < record.first_task) & (record.last_task < behind)).nonzero()[0]
        return gaps
