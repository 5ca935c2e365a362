"""Finds the order of tasks that has the fewest bytes alive at a time.

Only tasks change places that access different bytes, or only read the same ones. A dynamic program over sets of tasks
that are done: which bytes are alive then does not depend on the order in which they were done. It is exact as long as
none of these sets is dropped, as for graphs with few branches side by side; else those with the lowest peaks are kept.
"""

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from ..hazards import Access

MOST_SETS = 100  # of equally many tasks that are done


@dataclass(frozen=True)
class TaskOrder:
    """Numbers of tasks in their new order, the most bytes alive at a time, and whether it is proven to be the least."""

    tasks: tuple[int, ...]
    peak_bytes: int
    is_least: bool


def least_peak(
    tasks: Sequence[Sequence[Access]],
    sizes: Mapping[int, int],
    first: Collection[int] = (),
    kept: Collection[int] = (),
    most_sets: int = MOST_SETS,
) -> TaskOrder:
    """The order with the lowest peak that is found; the given one where none is lower.

    `sizes` are the bytes of the buffers that tasks access, none of which share memory. A buffer is alive from the first
    task that accesses it to the last; those of `first` from the start on, those of `kept` to the end.
    """
    graph = _TaskGraph(tasks, sizes, first, kept)
    best = graph.start()
    for task in range(len(tasks)):
        best = graph.after(best, task)
    dropped = True
    for sets in (1, most_sets):  # the first finds a peak that the second need not look above
        found, dropped = _lower(graph, best.peak_bytes, len(tasks), sets)
        best = found or best
        if not dropped:
            break
    return TaskOrder(tuple(best.order()), best.peak_bytes, not dropped)


def _lower(graph: "_TaskGraph", peak_bytes: int, count: int, most_sets: int) -> "tuple[_State | None, bool]":
    """All tasks done with a peak below that, None if that is not found, and whether sets were dropped on the way."""
    levels: dict[int, dict[int, _State]] = defaultdict(dict)
    _enter(levels, graph.with_free_tasks(graph.start()))
    dropped = False
    for done in range(count):
        states = sorted(levels.pop(done, {}).values(), key=lambda state: (state.peak_bytes, state.alive_bytes))
        dropped |= len(states) > most_sets
        for state in states[:most_sets]:
            for task in state.ready:
                if state.alive_bytes + graph.changes(state.done, task)[0] < peak_bytes:
                    _enter(levels, graph.with_free_tasks(graph.after(state, task)))
    found = min(levels[count].values(), key=lambda state: state.peak_bytes, default=None)
    return (found if found and found.peak_bytes < peak_bytes else None), dropped


@dataclass(frozen=True)
class _State:
    """Tasks that are done, as bits, those that may be next, what is alive, and the most that has been."""

    done: int
    ready: tuple[int, ...]
    alive_bytes: int
    peak_bytes: int
    task: int = -1  # the last one
    before: "_State | None" = None

    def order(self) -> Iterator[int]:
        """All tasks, the first one first."""
        tasks, state = list[int](), self
        while state.before is not None:
            tasks.append(state.task)
            state = state.before
        return reversed(tasks)


def _enter(levels: Mapping[int, dict[int, _State]], state: _State) -> None:
    """Keep a state unless one that has done the same has had a lower peak."""
    level = levels[state.done.bit_count()]
    other = level.get(state.done)
    if other is None or state.peak_bytes < other.peak_bytes:
        level[state.done] = state


class _TaskGraph:
    """Which tasks wait for which, and which buffers they make alive and free."""

    def __init__(
        self,
        tasks: Sequence[Sequence[Access]],
        sizes: Mapping[int, int],
        first: Collection[int],
        kept: Collection[int],
    ) -> None:
        self.sizes = sizes
        self.buffers = [sorted({access.buffer for access in task}) for task in tasks]
        self.users: dict[int, int] = defaultdict(int)  # as bits
        self.awaited = [0] * len(tasks)
        self.followers: list[list[int]] = [[] for _ in tasks]
        accesses: dict[int, list[tuple[int, Access]]] = defaultdict(list)
        for number, task in enumerate(tasks):
            for access in task:
                for earlier, other in accesses[access.buffer]:
                    if earlier != number and access.conflicts(other) and not self.awaited[number] >> earlier & 1:
                        self.awaited[number] |= 1 << earlier
                        self.followers[earlier].append(number)
            for access in task:
                accesses[access.buffer].append((number, access))
                self.users[access.buffer] |= 1 << number
        self.first, self.kept = frozenset(first), frozenset(kept)

    def start(self) -> _State:
        """Nothing is done."""
        alive_bytes = sum(self.sizes[buffer] for buffer in self.first)
        ready = tuple(task for task, awaited in enumerate(self.awaited) if not awaited)
        return _State(0, ready, alive_bytes, alive_bytes)

    def after(self, state: _State, task: int) -> _State:
        """A state, and one of the tasks that may be next done, too."""
        done = state.done | 1 << task
        opened, freed = self.changes(state.done, task)
        alive_bytes = state.alive_bytes + opened
        followers = [other for other in self.followers[task] if self.awaited[other] & done == self.awaited[other]]
        ready = (*(other for other in state.ready if other != task), *followers)
        return _State(done, ready, alive_bytes - freed, max(state.peak_bytes, alive_bytes), task, state)

    def with_free_tasks(self, state: _State) -> _State:
        """A state, and all tasks done that neither raise the peak nor leave more alive: they do not better later."""
        while True:
            for task in state.ready:
                opened, freed = self.changes(state.done, task)
                if opened <= freed and state.alive_bytes + opened <= state.peak_bytes:
                    state = self.after(state, task)
                    break
            else:
                return state

    def changes(self, done: int, task: int) -> tuple[int, int]:
        """Bytes that a task makes alive, and that it frees."""
        opened = freed = 0
        for buffer in self.buffers[task]:
            users = self.users[buffer]
            if not users & done and buffer not in self.first:
                opened += self.sizes[buffer]
            if users & (done | 1 << task) == users and buffer not in self.kept:
                freed += self.sizes[buffer]
        return opened, freed
