"""What is found against the numbers that MediaPipe's solutions gave for the same pictures and clips."""

import functools

import pytest

from tests.helpers.markers import exhaustive, exhaustive_if
from tests.helpers.oracle_networks import oracle_finder
from tests.tools.mediapipe_beside.held_beside import Apart, Job, Theirs, apart, found_by_us
from tests.tools.mediapipe_beside.kept_numbers import kept_jobs, read_kept

_NAMES = [f"{job.solution}, {'pictures' if job.still else 'tracked'}" for job in kept_jobs()]
# Where a frame says that the next one looks, rounding grows; heat maps move points of bodies likewise.
_MOST_APART = {"pose-landmark, pictures": 0.006, "hand-landmark-full, tracked": 0.008}

# Our own code for the network with attention takes seconds to make.
_each = pytest.mark.parametrize(
    "place", [exhaustive_if("attention" in name, place) for place, name in enumerate(_NAMES)], ids=_NAMES
)


@functools.lru_cache
def _kept() -> list[tuple[Job, list[list[tuple[Theirs, ...]]]]]:
    return list(zip(kept_jobs(), read_kept(), strict=True))


def _held(place: int, in_bytes: bool) -> Apart:
    job, theirs = _kept()[place]
    ours = found_by_us(job, functools.partial(oracle_finder, in_bytes=in_bytes))
    figures = Apart()
    for their_clip, our_clip in zip(theirs, ours, strict=True):
        for their_frame, our_frame in zip(their_clip, our_clip, strict=True):
            apart(figures, their_frame, our_frame)
    return figures


@_each
def test_of_the_same_bytes_it_is_the_same(place: int) -> None:
    figures = _held(place, in_bytes=True)
    assert figures.paired == figures.theirs == figures.ours > 0
    assert figures.same_label == figures.paired
    assert min(figures.overlaps) > 0.98
    assert max(figures.means) < _MOST_APART.get(_NAMES[place], 0.001)


@exhaustive
@_each
def test_of_pixels_that_are_not_rounded_it_is_near(place: int) -> None:
    figures = _held(place, in_bytes=False)
    assert figures.paired == figures.theirs == figures.ours > 0
    assert min(figures.overlaps) > 0.95
    assert max(figures.means) < 0.01
