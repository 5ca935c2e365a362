"""Schedules steps strip by strip, so that the values between them stay in the cache.

Steps that need but the same pixels of each other, as a pointwise convolution does behind a depthwise one, take turns
strip by strip, so that what is between them stays in the cache; all strips of a task have their values there in the
same place. Nothing is computed twice but a last strip's beginning, and every value is what it is without strips.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from math import lcm

from ...model.layout import ceil_div
from ...plan.memory.records import UsageRecord
from .cutting import StepSize, cut_step, joined_rounds, task_count
from .work import StepRange, WorkRound, WorkTask

_CACHE_SHARE = 4  # a strip of all maps takes this part of the cache


@dataclass(frozen=True)
class PixelSource:
    """An earlier step whose map a step reads: the pixel that it computes alone, or others."""

    step: int
    same_pixel: bool


@dataclass(frozen=True)
class StepPixels:
    """What a step computes: pixels in the order of memory, so many in each group of rows, and what it reads."""

    size: StepSize
    pixels: int
    group_pixels: int
    sources: tuple[PixelSource, ...]
    pixel_bytes: int  # that it writes for each
    weights_bytes: int = 0

    @property
    def last_start(self) -> int:
        """The first pixel of the last group, which may begin among those of the one before."""
        return max(0, self.pixels - self.group_pixels)


def sections(steps: Sequence[StepPixels], cache_bytes: int) -> list[range]:
    """Runs of steps that are worth strips, and single steps, in order."""
    found = list[range]()
    for number in range(len(steps)):
        together = range(found[-1].start, number + 1) if found else range(number, number + 1)
        if len(together) > 1 and _is_run(steps, together):
            found[-1] = together
        else:
            found.append(range(number, number + 1))
    return [part for run in found for part in _worth_strips(steps, run, cache_bytes)]


def _is_run(steps: Sequence[StepPixels], run: range) -> bool:
    """Whether the last step of a run needs the same pixels alone of those before it, of one at least."""
    step = steps[run[-1]]
    inside = [source for source in step.sources if source.step in run]
    return bool(inside) and all(s.same_pixel and steps[s.step].pixels == step.pixels for s in inside)


def _worth_strips(steps: Sequence[StepPixels], run: range, cache_bytes: int) -> list[range]:
    """The run, or its steps one by one where maps are small, or strips would read weights over and over."""
    parts = [steps[number] for number in run]
    maps_bytes = sum(step.pixel_bytes * step.pixels for step in parts[:-1])
    strip = _strip_pixels(parts, cache_bytes)
    weights_bytes = sum(step.weights_bytes for step in parts) * (parts[0].pixels // strip)
    if maps_bytes * 2 < cache_bytes or strip * 2 > parts[0].pixels or weights_bytes > maps_bytes:
        return [range(number, number + 1) for number in run]
    return [run]


def _strip_pixels(parts: Sequence[StepPixels], cache_bytes: int) -> int:
    """Pixels of a strip: whole groups of all steps."""
    unit = lcm(*(step.group_pixels for step in parts))
    wanted = cache_bytes // _CACHE_SHARE // max(1, sum(step.pixel_bytes for step in parts))
    return max(1, wanted // unit) * unit


def _latest(parts: Sequence[StepPixels], strip: int) -> int:
    """The latest pixel at which a strip may begin that goes up to the end."""
    return min(step.last_start for step in parts) // strip * strip


def strip_rounds(steps: Sequence[StepPixels], threads: int, cache_bytes: int) -> tuple[WorkRound, ...]:
    """All work of all steps: rounds of tasks for so many threads with a cache each."""
    rounds = list[WorkRound]()
    for section in sections(steps, cache_bytes):
        if len(section) > 1:
            rounds.append(_strips(steps, section, threads, cache_bytes))
        else:
            rounds.append(cut_step(section.start, steps[section.start].size, threads))
    return joined_rounds(rounds)


def kept_together(records: Sequence[UsageRecord], found: Sequence[range]) -> list[UsageRecord]:
    """Lifetimes where tensors of steps that take turns do not take each other's place."""
    section_of = {number: section for section in found for number in section}
    return [
        replace(
            record,
            first_task=section_of[record.first_task].start if record.first_task in section_of else record.first_task,
            last_task=section_of[record.last_task][-1] if record.last_task in section_of else record.last_task,
        )
        for record in records
    ]


def _strips(steps: Sequence[StepPixels], section: range, threads: int, cache_bytes: int) -> WorkRound:
    """Tasks of about equal parts of the map, each of strips one after the other."""
    parts = [steps[number] for number in section]
    strip, pixels = _strip_pixels(parts, cache_bytes), parts[0].pixels
    count = min(max(1, task_count(sum(step.size.work for step in parts), threads)), ceil_div(pixels, strip))
    edges = sorted({min(ceil_div(pixels, strip) * k // count * strip, _latest(parts, strip)) for k in range(count)})
    return tuple(
        _task(steps, section, start, stop, strip) for start, stop in zip(edges, [*edges[1:], pixels], strict=True)
    )


def _task(steps: Sequence[StepPixels], section: range, first: int, behind: int, strip: int) -> WorkTask:
    """Pixels first ... behind - 1 of all steps; what lies between steps is where the task's first strip has it."""
    ranges = list[StepRange]()
    for start, stop in _strip_edges(steps, section, first, behind, strip):
        for number in section:
            step = steps[number]
            groups = start // step.group_pixels, ceil_div(stop, step.group_pixels)
            ranges.append(StepRange(number, *groups, 0, step.size.slice_blocks, start - first))
    return tuple(ranges)


def _strip_edges(
    steps: Sequence[StepPixels], section: range, first: int, behind: int, strip: int
) -> Iterator[tuple[int, int]]:
    """Where strips begin and end; the last one of a map so early that it has the last groups of all steps whole."""
    pixels = steps[section.start].pixels
    latest = _latest([steps[number] for number in section], strip)
    for start in range(first, behind, strip):
        stop = min(start + strip, behind)
        yield (max(first, min(start, latest)), stop) if stop == pixels else (start, stop)
