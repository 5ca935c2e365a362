"""Strips: all rows of all maps are computed, and none before what it reads, whatever the windows, sizes and threads."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from texelflow.gpu_delegate.llvm.cutting import StepSize
from texelflow.gpu_delegate.llvm.strips import RowsRead, RowsSource, StepRows, kept_together, sections, strip_rounds
from texelflow.gpu_delegate.memory import UsageRecord

WIDTH = 8
WINDOWS = st.builds(RowsRead, st.integers(1, 3), st.just(1), st.integers(-2, 0), st.integers(0, 3)) | st.builds(
    RowsRead, st.just(1), st.integers(1, 2), st.integers(-2, 0), st.integers(0, 2)
)


def step_of(rows: int, group: int, sources: tuple[RowsSource, ...], flat: bool = False) -> StepRows:
    pixels, group_pixels = rows * WIDTH, 12 if flat else min(group, rows) * WIDTH
    groups = -(-pixels // group_pixels)
    return StepRows(StepSize(groups, 1, 10**6), group_pixels, pixels, WIDTH, sources, written_bytes=pixels * 4)


@st.composite
def networks(draw: st.DrawFn) -> list[StepRows]:
    heights, steps = list[int](), list[StepRows]()
    for number in range(draw(st.integers(1, 7))):
        wanted = RowsRead() if number == 0 else draw(WINDOWS)
        before = heights[-1] if heights else draw(st.integers(1, 40))
        rows = max(1, before * wanted.spread // wanted.step)
        sources = [RowsSource(number - 1, wanted, before, WIDTH)] if number else []
        if number > 1 and draw(st.booleans()):  # another one of as many rows, or any rows
            other = draw(st.integers(0, number - 2))
            read = RowsRead() if heights[other] == rows else None
            sources.append(RowsSource(other, read, heights[other], WIDTH))
        steps.append(step_of(rows, draw(st.integers(1, 4)), tuple(sources), draw(st.booleans())))
        heights.append(rows)
    return steps


def pixels_of(step: StepRows, start: int, stop: int) -> set[int]:
    """The pixels that groups compute: the last group begins so that it is whole."""
    first = min(start * step.group_pixels, max(0, step.pixels - step.group_pixels))
    return set(range(first, min(stop * step.group_pixels, step.pixels)))


@given(networks(), st.integers(1, 3), st.integers(1, 3000))
def test_rows_come_after_those_that_they_are_made_of(steps: list[StepRows], threads: int, cache_bytes: int) -> None:
    done = [set[int]() for _ in steps]
    for tasks in strip_rounds(steps, threads, cache_bytes):
        before = [set(pixels) for pixels in done]
        for task in tasks:  # each knows what was there before the round, and what it does itself
            there = [set(pixels) for pixels in before]
            for part in task:
                step = steps[part.step]
                new = pixels_of(step, part.y0, part.y1)
                for source in step.sources:
                    for pixel in new:
                        y = pixel // step.width
                        low, high = source.rows.of(y, y + 1, source.height) if source.rows else (0, source.height)
                        assert there[source.step].issuperset(range(low * WIDTH, high * WIDTH))
                there[part.step] |= new
                done[part.step] |= new
    assert done == [set(range(step.pixels)) for step in steps]


def chain(count: int, rows: int = 64) -> list[StepRows]:
    window = RowsRead(1, 1, -1, 1)
    first = step_of(rows, 1, ())
    return [first, *(step_of(rows, 1, (RowsSource(n, window, rows, WIDTH),)) for n in range(count - 1))]


def test_strips_are_as_many_as_the_cache_wants_and_threads_compute_few_rows_twice() -> None:
    steps = chain(3)  # 6 KiB
    assert [len(tasks) for tasks in strip_rounds(steps, 1, 1 << 20)] == [1]
    (alone,) = strip_rounds(steps, 1, 4096)
    numbers = [part.step for part in alone[0]]
    assert numbers[:6] == [0, 1, 2, 0, 1, 2]
    assert len(numbers) == 9
    (both,) = strip_rounds(steps, 2, 4096)
    assert len(both) == 2
    rows = sum(part.y1 - part.y0 for task in both for part in task)
    assert 3 * 64 < rows <= 3 * 64 + 6
    assert len(strip_rounds(chain(40, rows=32), 2, 4096)) == 40  # too many rows would be computed twice


def test_what_needs_all_rows_waits_for_them_and_memory_is_not_given_away_in_strips() -> None:
    steps = chain(4)
    (source,) = steps[2].sources
    steps[2] = replace(steps[2], sources=(replace(source, rows=None),))
    assert sections(steps) == [range(2), range(2, 4)]
    records = [UsageRecord(0, 64, 0, 1), UsageRecord(1, 64, 1, 2), UsageRecord(2, 64, 3, 4)]
    assert kept_together(records, steps, 1 << 20) == records
    lives = [(record.first_task, record.last_task) for record in kept_together(records, steps, 1024)]
    assert lives == [(0, 1), (0, 3), (2, 4)]
