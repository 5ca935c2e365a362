"""Strips: every pixel of every step is computed, and values are where the next step looks for them."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from texelflow.gpu_delegate.plan.memory.records import UsageRecord
from texelflow.gpu_delegate.targets.llvm.cutting import StepSize
from texelflow.gpu_delegate.targets.llvm.strips import PixelSource, StepPixels, kept_together, sections, strip_rounds


def step_of(pixels: int, group_pixels: int, *sources: PixelSource, pixel_bytes: int = 64) -> StepPixels:
    size = StepSize(-(-pixels // group_pixels), 2, 40 * pixels)
    return StepPixels(size, pixels, group_pixels, sources, pixel_bytes)


@st.composite
def networks(draw: st.DrawFn) -> list[StepPixels]:
    steps = list[StepPixels]()
    for number in range(draw(st.integers(1, 8))):
        same = number > 0 and draw(st.integers(0, 3)) > 0
        pixels = steps[-1].pixels if same else draw(st.integers(1, 200))
        before = [number - 1] if number else []
        before += [k for k in range(number - 1) if steps[k].pixels == pixels and draw(st.booleans())]
        sources = (PixelSource(k, (same or k != number - 1) and draw(st.integers(0, 9)) > 0) for k in before)
        group = draw(st.sampled_from((4, 6, 16, 40)))
        steps.append(step_of(pixels, min(group, pixels), *sources))
    return steps


def groups_of(step: StepPixels, start: int, stop: int) -> range:
    """The pixels that groups compute: the last group begins so that it is whole."""
    return range(min(start * step.group_pixels, step.last_start), min(stop * step.group_pixels, step.pixels))


@given(networks(), st.integers(1, 3), st.integers(256, 1 << 14))
def test_values_are_where_they_are_looked_for(steps: list[StepPixels], threads: int, cache_bytes: int) -> None:
    found = sections(steps, cache_bytes)
    assert [number for section in found for number in section] == list(range(len(steps)))
    section_of = {number: section for section in found for number in section}
    local = {k for k, section in section_of.items() if k != section[-1]} - {
        source.step
        for n, step in enumerate(steps)
        for source in step.sources
        if section_of[source.step] != section_of[n]
    }
    memory, done = [dict[int, int]() for _ in steps], [set[int]() for _ in steps]
    for tasks in strip_rounds(steps, threads, cache_bytes):
        before = [dict(cells) for cells in memory]
        for task in tasks:  # knows what was there before the round, and what it does itself
            there, taken = [dict(cells) for cells in before], dict[tuple[int, int], int]()
            for part in task:
                for pixel in groups_of(steps[part.step], part.y0, part.y1):
                    for source in steps[part.step].sources:
                        shift = part.shift if source.step in local else 0
                        if source.same_pixel:
                            assert there[source.step][pixel - shift] == pixel
                        else:
                            assert done[source.step] == set(range(steps[source.step].pixels))
                    place = pixel - (part.shift if part.step in local else 0)
                    assert 0 <= place < steps[part.step].pixels
                    there[part.step][place] = memory[part.step][place] = pixel
                    taken[part.step, place] = pixel
                    done[part.step].add(pixel)
    assert done == [set(range(step.pixels)) for step in steps]


def test_tasks_do_not_share_places() -> None:
    steps = [step_of(1 << 14, 512), step_of(1 << 14, 16, PixelSource(0, True)), step_of(1 << 14, 16)]
    assert sections(steps, 1 << 18) == [range(2), range(2, 3)]
    first, _ = strip_rounds(steps, 2, 1 << 18)
    assert len(first) > 1
    places = [{(p.y0 * 512 - p.shift, p.y1 * 512 - p.shift) for p in task if p.step == 0} for task in first]
    assert all(len(each) == 1 and len(task) > 4 for each, task in zip(places, first, strict=True))
    (ends,) = zip(*(sorted(each) for each in places), strict=True)
    assert all(end <= start for (_, end), (start, _) in pairwise(ends))


def test_small_maps_and_many_weights_have_no_strips_and_lifetimes_are_those_of_sections() -> None:
    pair = [step_of(4096, 256), step_of(4096, 16, PixelSource(0, True))]
    assert sections(pair, 1 << 18) == [range(2)]
    assert sections(pair, 1 << 20) == [range(1), range(1, 2)]
    heavy = [pair[0], StepPixels(pair[1].size, 4096, 16, pair[1].sources, 64, weights_bytes=1 << 20)]
    assert sections(heavy, 1 << 18) == [range(1), range(1, 2)]
    others = [pair[0], step_of(4096, 16, PixelSource(0, False))]
    assert sections(others, 1 << 18) == [range(1), range(1, 2)]
    records = [UsageRecord(0, 64, 0, 0), UsageRecord(1, 64, 1, 2), UsageRecord(2, 64, 2, 3)]
    lives = [(record.first_task, record.last_task) for record in kept_together(records, sections(pair, 1 << 18))]
    assert lives == [(0, 1), (0, 2), (2, 3)]
