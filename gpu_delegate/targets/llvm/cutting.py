"""Cuts the steps of a program into tasks that threads share."""

from collections.abc import Iterable
from dataclasses import dataclass

from .work import StepRange, WorkRound

_LEAST_WORK = 75_000  # of a task, in multiply-adds: some 1.5 us, five times what taking it costs
_MOST_WORK = 1_000_000  # some 20 us, so that a thread that is late, or slower, leaves some to others
_TASKS_OF_A_THREAD = 2  # of one step, at most: with four, Inception and hand landmarks take 4 to 6 % longer


@dataclass(frozen=True)
class StepSize:
    """How far a step can be cut, into groups of rows and blocks of slices, and what it takes in multiply-adds."""

    row_groups: int
    slice_blocks: int
    work: int


def joined_rounds(rounds: Iterable[WorkRound]) -> tuple[WorkRound, ...]:
    """The same with one task where rounds of one task follow each other."""
    found: list[WorkRound] = []
    for tasks in rounds:
        if found and len(tasks) == len(found[-1]) == 1:
            found[-1] = ((*found[-1][0], *tasks[0]),)
        else:
            found.append(tasks)
    return tuple(found)


def cut_step(number: int, step: StepSize, threads: int) -> WorkRound:
    """A step in tasks of its own, about equal: by rows, which leave weights in their cache, else by slices."""
    wanted = task_count(step.work, threads)
    if wanted < 2:
        return ((StepRange(number, 0, step.row_groups, 0, step.slice_blocks),),)
    if step.row_groups >= min(wanted, step.slice_blocks):
        edges = _edges(step.row_groups, wanted)
        return tuple((StepRange(number, y0, y1, 0, step.slice_blocks),) for y0, y1 in edges)
    return tuple((StepRange(number, 0, step.row_groups, z0, z1),) for z0, z1 in _edges(step.slice_blocks, wanted))


def task_count(work: int, threads: int) -> int:
    """In how many tasks so much work is shared: one for each thread, or several where they would be long."""
    if threads == 1:
        return 1
    several = min(threads * _TASKS_OF_A_THREAD, work // _MOST_WORK)
    return max(min(threads, work // _LEAST_WORK), several - several % threads)


def _edges(length: int, parts: int) -> list[tuple[int, int]]:
    """The ends of about equal parts of a length, none of them empty."""
    parts = max(1, min(parts, length))
    return [(length * part // parts, length * (part + 1) // parts) for part in range(parts)]
