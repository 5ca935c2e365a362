"""Recordings are cut into pieces that cover them, where nothing forbids it; pieces are joined only if they fit."""

from collections.abc import Mapping
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.helpers.clips import DEMO_CLIP
from texelflow.app.archive.jobs.jobs import FrameRange, PieceDone
from texelflow.app.archive.rendering.piece_cutting import (
    check_piece_frames,
    cut_frames,
    follows_things,
    why_apart,
    why_frames_stay_whole,
    why_kind_stays_whole,
)
from texelflow.app.media.packet_index import arrange
from texelflow.app.media.piece_source import FrameIndex
from texelflow.app.media.video_encoder import SEGMENT_FRAMES
from texelflow.app.models.finding_loading import load_shown_model
from texelflow.app.picture.exposure import RENEWED
from texelflow.app.settings.settings import defaults
from texelflow.gpu_delegate.base.errors import UsageError

SETTINGS = defaults("replay")
TIMES = arrange([], [])


@given(st.integers(1, 2_000_000), st.integers(1, 40).map(lambda steps: steps * SEGMENT_FRAMES), st.integers(0, 64))
def test_pieces_cover_all_frames_once(frames: int, piece_frames: int, lead: int) -> None:
    ranges = cut_frames(frames, piece_frames, lead)
    assert [number for each in ranges for number in (each.first, each.last + 1)] == [
        0,
        *(end for each in ranges[1:] for end in (each.first, each.first)),
        frames,
    ]
    assert all(each.first % SEGMENT_FRAMES == 0 for each in ranges)
    assert all(each.frames == piece_frames for each in ranges[:-1])
    assert len(ranges) == 1 or piece_frames / 2 < ranges[-1].frames <= piece_frames * 3 / 2
    assert (len(ranges) > 1) == (frames > 1.5 * piece_frames)
    assert [each.lead for each in ranges] == [0, *[lead] * (len(ranges) - 1)]


def test_light_is_measured_anew_where_pieces_begin() -> None:
    assert SEGMENT_FRAMES % RENEWED == 0


@pytest.mark.parametrize("piece_frames", [-300, 0, 1, 299, 301, 1000])
def test_a_length_that_is_no_multiple_is_refused(piece_frames: int) -> None:
    with pytest.raises(UsageError, match="multiple of 300"):
        check_piece_frames(piece_frames)
    check_piece_frames(3000)


@pytest.mark.parametrize(
    ("values", "why"),
    [
        ({}, None),
        ({"effect": "replace"}, None),
        ({"effect": "replace", "background": "dusk"}, None),
        ({"effect": "replace", "background": "#123456"}, None),
        ({"effect": "replace", "background": str(DEMO_CLIP)}, "the background moves"),
        ({"effect": "blur", "background": str(DEMO_CLIP)}, None),
        ({"overlay": True}, "figures"),
        ({"smooth": 0.65}, None),
        ({"smooth": 0.8}, "depend on 1381 frames before them, by --smooth 0.8"),
        ({"smooth": 1.0}, "depend on all frames"),
        ({"smooth": 1.0, "refine": False}, None),
    ],
)
def test_what_goes_on_from_frame_to_frame_stays_whole(values: Mapping[str, str | bool], why: str | None) -> None:
    found = why_kind_stays_whole("recording", replace(SETTINGS, **values))  # type: ignore[arg-type]
    assert found is None if why is None else why in (found or "")


@pytest.mark.parametrize(
    ("values", "follows"),
    [
        ({}, False),
        ({"model": "face-detection-short"}, True),
        ({"effect": "blur-faces", "refine": False}, True),
        ({"keep_held": True}, True),
        ({"keep_held": True, "refine": False}, False),
        ({"frame": "person"}, True),
    ],
)
def test_recordings_stay_whole_where_things_are_followed(values: Mapping[str, str | bool], follows: bool) -> None:
    settings = replace(SETTINGS, **values)  # type: ignore[arg-type]
    assert follows_things(load_shown_model(settings.model), settings) == follows


def test_only_recordings_of_known_frames_are_cut() -> None:
    assert why_kind_stays_whole("recording", SETTINGS) is None
    for kind in ("picture", "sequence", "stream"):
        assert why_kind_stays_whole(kind, SETTINGS)
    assert why_frames_stay_whole(FrameIndex(4501, TIMES, None), 3000) is None
    assert "4500" in (why_frames_stay_whole(FrameIndex(4500, TIMES, None), 3000) or "")
    assert why_frames_stay_whole(FrameIndex(0, TIMES, "as it is"), 3000) == "as it is"


def done(number: int, head: tuple[int, ...], tail: tuple[int, ...]) -> PieceDone:
    where = FrameRange(300 * number, 300 * number + 299, 8 if number else 0)
    return PieceDone(number, where, 300, {}, 1.0, "here", head, tail)


FITTING = (done(0, (), (1, 2)), done(1, (1, 2), (3, 4)), done(2, (3, 4), (5, 6)))


@pytest.mark.parametrize(
    ("pieces", "why"),
    [
        (FITTING, None),
        (FITTING[:1], None),
        (FITTING[::2], "piece 2 does not begin where piece 0 ends"),
        (FITTING[1:], "the first piece is missing"),
        ((*FITTING[:2], done(2, (3, 5), (5, 6))), "begun for piece 2 gives other pictures"),
        ((*FITTING[:2], done(2, (4,), (5, 6))), "begun for piece 2 gives other pictures"),
        ((done(0, (), ()), done(1, (), ())), "begun for piece 1 gives other pictures"),
        ((FITTING[0], replace(FITTING[1], frames=299), FITTING[2]), "piece 1 has 299 frames, not 300"),
        ((FITTING[0], replace(FITTING[1], unfit="no"), FITTING[2]), "piece 1: no"),
    ],
)
def test_pieces_are_joined_only_if_they_fit(pieces: tuple[PieceDone, ...], why: str | None) -> None:
    found = why_apart(pieces)
    assert found is None if why is None else why in (found or "")
