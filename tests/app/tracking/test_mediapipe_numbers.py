"""What is found against the numbers that MediaPipe's solutions gave for the same pictures and clips."""

import functools

import pytest

from tests.helpers.markers import exhaustive, exhaustive_if
from tests.helpers.oracle_networks import oracle_finder
from tests.tools.mediapipe_beside.held_beside import Apart, FinderMaker, Job, Theirs, apart, found_by_us
from tests.tools.mediapipe_beside.kept_numbers import kept_jobs, kept_names, read_kept
from tests.tools.mediapipe_beside.native_finder import native_finder

_NAMES = kept_names()
# Of a thing's size. Where a frame says that the next one looks, what rounding there is grows.
_MOST_APART = {"hand-landmark-full, tracked": 0.008, "face-landmark, tracked": 0.001}
_LEAST_OVERLAP = {"hand-landmark-full, tracked": 0.98, "face-landmark, tracked": 0.995}

# Our own code for the network with attention takes seconds to make.
_each = pytest.mark.parametrize(
    "place", [exhaustive_if("attention" in name, place) for place, name in enumerate(_NAMES)], ids=_NAMES
)


@functools.lru_cache
def _kept() -> list[tuple[Job, list[list[tuple[Theirs, ...]]]]]:
    return list(zip(kept_jobs(), read_kept(), strict=True))


def _hold(place: int, made: FinderMaker) -> None:
    """Try that what a finder finds is what MediaPipe found."""
    (job, theirs), name = _kept()[place], _NAMES[place]
    figures = Apart()
    for their_clip, our_clip in zip(theirs, found_by_us(job, made), strict=True):
        for their_frame, our_frame in zip(their_clip, our_clip, strict=True):
            apart(figures, their_frame, our_frame)
    assert figures.paired == figures.theirs == figures.ours > 0
    assert figures.same_label == figures.paired
    assert min(figures.overlaps) > _LEAST_OVERLAP.get(name, 0.999)
    assert max(figures.means) < _MOST_APART.get(name, 0.0003)


@_each
def test_of_opencvs_bytes_it_is_the_same(place: int) -> None:
    _hold(place, functools.partial(oracle_finder, in_bytes=True))


@exhaustive
@_each
def test_by_own_code_it_is_the_same(place: int) -> None:
    _hold(place, native_finder)
