"""Which frames of a recording come, and with which frame ahead, where one of them cannot be read."""

from collections.abc import Iterator

import pytest

from tests.helpers.clips import moving, write_clip
from texelflow.app.media.sources import FileSource
from texelflow.app.picture.video_frame import VideoFrame
from texelflow.app.session.clock import EveryFrame
from texelflow.gpu_delegate.base.errors import MediaError


@pytest.fixture(scope="module")
def frames(tmp_path_factory: pytest.TempPathFactory) -> list[VideoFrame]:
    with FileSource(write_clip(tmp_path_factory.mktemp("clip") / "clip.mp4", moving(3, 64, 48))) as source:
        return list(source)


def damaged(frames: list[VideoFrame]) -> Iterator[VideoFrame]:
    yield from frames
    raise MediaError("damaged")


@pytest.mark.parametrize("looks_ahead", [False, True])
def test_all_frames_before_one_that_cannot_be_read_come(frames: list[VideoFrame], looks_ahead: bool) -> None:
    clock = EveryFrame(damaged(frames), 40.0, "clip")
    clock.looks_ahead = looks_ahead
    for index in range(3):
        due = clock.due(0)
        assert due
        assert due.frame.index == index
        assert (due.ahead is not None) == (looks_ahead and index < 2)
    with pytest.raises(MediaError, match="damaged"):
        clock.due(0)
    assert not clock.complete


def test_a_range_without_frames() -> None:
    with pytest.raises(MediaError, match="'clip' has no frame in the range"):
        EveryFrame(iter(()), 40.0, "clip").due(0)
    with pytest.raises(MediaError, match="damaged"):
        EveryFrame(damaged([]), 40.0, "clip").due(0)
