"""Recordings are played by a feed: frames come in the order that was asked for, and nothing waits or stays behind."""

import gc
import random
import threading
import time
import weakref
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.helpers.clips import Recipe, moving, number_of, numbered, write_clip
from tests.helpers.waiting import PATIENCE_S, until
from texelflow.app.media.feed import Feed, following
from texelflow.app.media.seeking import SeekableSource
from texelflow.app.media.sources import FileSource, Position, VideoFrame
from texelflow.gpu_delegate.base.errors import MediaError

FRAMES = 30


@pytest.fixture(scope="module")
def clip(tmp_path_factory: pytest.TempPathFactory) -> Path:
    options = {"crf": "4", "preset": "veryfast", "g": "8", "bf": "2"}
    return write_clip(tmp_path_factory.mktemp("feed") / "a.mp4", numbered(FRAMES), Recipe(codec_options=options))


@pytest.fixture
def source(clip: Path) -> Iterator[SeekableSource]:
    with SeekableSource(clip) as source:
        yield source


def take(feed: Feed) -> VideoFrame | None:
    """The next frame, or None at the end."""
    feed.wait(PATIENCE_S)
    return feed.pop()


def numbers(feed: Feed, count: int) -> list[int]:
    """Those of the next frames, of which the pictures are what the numbers say."""
    found = []
    for _ in range(count):
        frame = take(feed)
        if frame is None:
            assert feed.ended
            break
        assert number_of(frame.rgba) == frame.index
        found.append(frame.index)
    return found


@given(st.integers(0, 50), st.integers(0, 50), st.integers(0, 50))
def test_what_follows_a_frame(index: int, a: int, b: int) -> None:
    assert following(index, None) == following(index, (a, None)) == index + 1
    assert following(index, (a, b)) == (a if index >= b else index + 1)


def test_a_feed_plays_all_frames_and_ends(source: SeekableSource) -> None:
    with Feed(source) as feed:
        assert numbers(feed, 100) == list(range(FRAMES))
        assert feed.ended
        assert feed.peek() is feed.pop() is None


@pytest.mark.parametrize(("first", "last"), [(5, 9), (0, 0), (25, None)])
def test_a_feed_keeps_to_the_range(clip: Path, first: Position, last: Position | None) -> None:
    with FileSource(clip, first, last) as frames:
        expected = [frame.index for frame in frames]
    with SeekableSource(clip, first, last) as source, Feed(source) as feed:
        assert numbers(feed, 100) == expected
        feed.loop = (expected[0], None)
        assert numbers(feed, 2 * len(expected) + 1) == [*expected, *expected, expected[0]]


def test_peek_shows_what_pop_takes(source: SeekableSource) -> None:
    with Feed(source) as feed:
        for _ in range(5):
            feed.wait(PATIENCE_S)
            shown = feed.peek()
            assert shown is not None
            assert shown is feed.peek() is feed.pop()


def test_seeking_drops_what_was_decoded_ahead(source: SeekableSource) -> None:
    with Feed(source) as feed:
        for index in (20, 3, 29, 0, 19, 18, 17):
            feed.seek(index)
            assert numbers(feed, 2) == [index, index + 1][: FRAMES - index]


def test_only_the_last_of_many_seeks_counts(source: SeekableSource) -> None:
    chance = random.Random(7)
    with Feed(source) as feed:
        for _ in range(20):
            targets = [chance.randrange(FRAMES) for _ in range(chance.randrange(1, 30))]
            for target in targets:
                feed.seek(target)
            assert numbers(feed, 1) == [targets[-1]]


def test_a_loop_goes_on_at_its_first_frame(source: SeekableSource) -> None:
    with Feed(source) as feed:
        feed.loop = (4, 7)
        assert numbers(feed, 13) == [0, 1, 2, 3, 4, 5, 6, 7, 4, 5, 6, 7, 4]
        feed.loop = (2, 2)
        assert numbers(feed, 3) == [2, 2, 2]
        feed.loop = None
        assert numbers(feed, 3) == [3, 4, 5]


def test_a_loop_that_is_set_late_drops_what_lies_behind_it(source: SeekableSource) -> None:
    with Feed(source) as feed:
        assert numbers(feed, 8) == list(range(8))
        time.sleep(0.1)  # 8, 9 and 10 wait
        feed.loop = (3, 7)
        assert numbers(feed, 3) == [3, 4, 5]


def test_the_whole_file_may_be_repeated_before_its_length_is_known(source: SeekableSource) -> None:
    with Feed(source) as feed:
        feed.loop = (0, None)
        assert numbers(feed, FRAMES + 3) == [*range(FRAMES), 0, 1, 2]


def test_after_the_end_one_may_go_back(source: SeekableSource) -> None:
    with Feed(source) as feed:
        feed.seek(FRAMES)
        assert take(feed) is None
        assert feed.ended
        feed.seek(FRAMES - 1)
        assert not feed.ended
        assert numbers(feed, 5) == [FRAMES - 1]
        feed.loop = (1, None)
        assert numbers(feed, 2) == [1, 2]


def test_no_more_is_decoded_than_there_is_room_for(source: SeekableSource) -> None:
    with Feed(source, depth=2) as feed:
        until(lambda: len(feed) == 2)
        time.sleep(0.2)
        assert len(feed) == 2
        assert numbers(feed, 3) == [0, 1, 2]


def test_what_decoding_raises_is_raised_where_frames_are_taken(clip: Path) -> None:
    with SeekableSource(clip, FRAMES + 5) as source, Feed(source) as feed:
        feed.wait(PATIENCE_S)
        for take_out in (feed.peek, feed.pop, feed.peek):
            with pytest.raises(MediaError, match="no frame in the range"):
                take_out()


@pytest.mark.parametrize("wait_s", [0.0, 0.001, 0.01, 0.3])
def test_closing_at_any_moment_ends_all_threads(clip: Path, wait_s: float) -> None:
    threads = {*threading.enumerate()}
    for seek in (None, 28, 5):
        with SeekableSource(clip) as source, Feed(source) as feed:
            if seek is not None:
                feed.seek(seek)
            time.sleep(wait_s)
        feed.close()
        assert {*threading.enumerate()} <= threads


def test_closing_does_not_wait_for_a_far_frame(tmp_path: Path) -> None:
    """A raw stream has no time stamps to jump to; the frame at its end takes decoding all of it."""
    part = write_clip(tmp_path / "part.h264", moving(25, 320, 240)).read_bytes()
    path = tmp_path / "long.h264"
    path.write_bytes(part * 100)
    decoded: list[int] = []
    with SeekableSource(path) as source:
        with Feed(source) as feed:
            feed.wait(PATIENCE_S)
            feed.seek(2499)
            time.sleep(0.05)
        decoded.append(source.position)
    assert decoded[0] < 2499


def test_frames_that_were_taken_are_not_kept_by_the_feed(clip: Path) -> None:
    with SeekableSource(clip, cache_bytes=0) as source, Feed(source) as feed:
        first = take(feed)
        assert first is not None
        seen = weakref.ref(first.picture)
        del first
        assert numbers(feed, 20)
        gc.collect()
        assert seen() is None
