"""Frames are taken from recordings of all kinds in any order; each is the one that decoding from the start gives."""

import contextlib
import random
import shutil
import struct
import threading
import time
from collections.abc import Callable, Sequence
from fractions import Fraction
from pathlib import Path

import av
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.helpers.clips import Recipe, moving, packets, set_display_matrix, write_clip
from tests.helpers.markers import exhaustive, exhaustive_if, one_in
from tests.helpers.waiting import PATIENCE_S, until
from texelflow import assets
from texelflow.app.media.seeking import DecodingCancelled, FrameCache, SeekableSource
from texelflow.app.media.sources import FileSource, Position, VideoFrame
from texelflow.app.picture.picture import rgba_picture
from texelflow.gpu_delegate.base.errors import MediaError, UsageError

FRAMES = 40
DECODED_S = 5 * PATIENCE_S  # a file is decoded at the lowest priority, beside whatever else the machine does
X264 = {"crf": "16", "preset": "veryfast", "g": "10", "bf": "3"}
USUAL = Recipe(codec_options=X264)


def x264(parameters: str) -> Recipe:
    return Recipe(codec_options={"crf": "16", "preset": "veryfast", "x264-params": parameters})


def plain(path: Path, recipe: Recipe = USUAL) -> Path:
    return write_clip(path, moving(FRAMES), recipe)


def varying(path: Path) -> Path:
    pts = np.cumsum(np.random.default_rng(5).integers(1, 5000, FRAMES)).tolist()
    return plain(path, Recipe(time_base=Fraction(1, 90000), pts=pts, codec_options=X264))


def turned(path: Path) -> Path:
    set_display_matrix(plain(path), 0, 1, -1, 0)
    return path


def trimmed(path: Path) -> Path:
    """An edit list cuts off the first 13 frames, which is not where a key frame is."""
    data = bytearray(plain(path).read_bytes())
    entry = data.index(b"elst") + 12
    duration, media_time = struct.unpack_from(">Ii", data, entry)
    struct.pack_into(">Ii", data, entry, duration * (FRAMES - 13) // FRAMES, media_time + 13 * 512)
    path.write_bytes(data)
    return path


def cut_off(path: Path) -> Path:
    data = plain(path).read_bytes()
    path.write_bytes(data[: len(data) * 7 // 10])
    return path


def damaged(path: Path, recipe: Recipe = USUAL) -> Path:
    """Some packets in the middle are noise; the container around them is whole."""
    data = bytearray(plain(path, recipe).read_bytes())
    for _, packet in packets(path, "video")[14:17]:
        start = data.index(packet)
        data[start : start + len(packet)] = np.random.default_rng(3).bytes(len(packet))
    path.write_bytes(data)
    return path


def joined(path: Path, recipe: Recipe = USUAL) -> Path:
    """Two recordings of different sizes, one after the other; where there are time stamps, they begin again."""
    parts = [write_clip(path.with_stem(f"{width}"), moving(20, width), recipe).read_bytes() for width in (64, 96)]
    path.write_bytes(b"".join(parts))
    return path


def demo(path: Path) -> Path:
    shutil.copy(Path(assets.__file__).parent / "people.mp4", path)
    return path


RECORDINGS: dict[str, tuple[str, Callable[[Path], Path]]] = {
    "demo": ("a.mp4", demo),
    "varying rate": ("a.mp4", varying),
    "closed groups": ("a.mp4", plain),
    "open groups": ("a.mp4", lambda path: plain(path, x264("open-gop=1:keyint=10:bframes=3"))),
    "open groups, mkv": ("a.mkv", lambda path: plain(path, x264("open-gop=1:keyint=10:bframes=3"))),
    "no B-frames": ("a.mov", lambda path: plain(path, x264("keyint=10:bframes=0"))),
    "hevc": ("a.mp4", lambda path: plain(path, Recipe("libx265", codec_options={
        "x265-params": "keyint=10:open-gop=1:log-level=none", "preset": "ultrafast"}))),
    "mkv": ("a.mkv", plain),
    "fragmented": ("a.mp4", lambda path: plain(path, Recipe(
        codec_options=X264, container_options={"movflags": "frag_keyframe+empty_moov"}))),
    "vp9": ("a.webm", lambda path: plain(path, Recipe("libvpx-vp9", codec_options={
        "g": "10", "cpu-used": "8", "auto-alt-ref": "1", "lag-in-frames": "8"}))),
    "mpegts": ("a.ts", plain),
    "open groups, mpegts": ("a.ts", lambda path: plain(path, x264("open-gop=1:keyint=10:bframes=3"))),
    "avi, mpeg4": ("a.avi", lambda path: plain(path, Recipe("mpeg4", codec_options={"g": "10", "bf": "2"}))),
    "avi, h264": ("a.avi", plain),
    "raw": ("a.h264", plain),
    "trimmed": ("a.mp4", trimmed),
    "mjpeg": ("a.mov", lambda path: plain(path, Recipe("mjpeg", "yuvj420p", codec_options={}))),
    "turned": ("a.mp4", turned),
    "cut off": ("a.mkv", cut_off),
    "damaged": ("a.mp4", damaged),
    "damaged, mkv": ("a.mkv", damaged),
    "damaged, no references": ("a.mov", lambda path: damaged(path, Recipe("png", "rgb24", codec_options={}))),
    "one frame": ("a.mp4", lambda path: write_clip(path, moving(1))),
    "gradual refresh": ("a.mkv", lambda path: plain(path, x264("intra-refresh=1:keyint=10"))),
    "gradual refresh, mpegts": ("a.ts", lambda path: plain(path, x264("intra-refresh=1:keyint=10"))),
    "changing size": ("a.h264", joined),
    "times that begin again": ("a.ts", joined),
    "two frames a millisecond": ("a.mkv", lambda path: plain(path, Recipe(
        "mjpeg", "yuvj420p", 2000, codec_options={}))),
    "two fields": ("a.ts", lambda path: plain(path, Recipe("mpeg2video", codec_options={
        "flags": "+ilme+ildct", "g": "10", "bf": "2"}))),
}  # fmt: skip


@pytest.fixture(scope="module", params=[exhaustive_if(name == "demo", name) for name in RECORDINGS])
def recording(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    name, make = RECORDINGS[request.param]
    return make(tmp_path_factory.mktemp("recording") / name)


@pytest.fixture(scope="module")
def expected(recording: Path) -> list[VideoFrame]:
    """Its frames, decoded from the start."""
    return in_order(recording)


@pytest.fixture(scope="module")
def clip(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return plain(tmp_path_factory.mktemp("clip") / "a.mp4")


def in_order(path: Path, first: Position = 0, last: Position | None = None) -> list[VideoFrame]:
    with FileSource(path, first, last) as source:
        return list(source)


def assert_same(frame: VideoFrame, expected: VideoFrame) -> None:
    assert (frame.index, frame.pts, frame.time_ms) == (expected.index, expected.pts, expected.time_ms)
    assert frame.picture.format == expected.picture.format
    for plane, wanted in zip(frame.picture.planes, expected.picture.planes, strict=True):
        assert np.array_equal(plane, wanted)


# Exactness


@one_in(5, "cache_bytes", [0, 1 << 24])
def test_any_frame_in_any_order_is_that_of_decoding_from_the_start(
    recording: Path, expected: list[VideoFrame], cache_bytes: int
) -> None:
    chance = random.Random(recording.name)
    with SeekableSource(recording, cache_bytes=cache_bytes) as source:
        for _ in range(20 if len(expected) <= FRAMES else 8):
            index = chance.randrange(len(expected))
            assert_same(source.frame(index), expected[index])
        with pytest.raises(IndexError):
            source.frame(len(expected))


def test_forwards_and_backwards_one_by_one(recording: Path, expected: list[VideoFrame]) -> None:
    expected = expected[:FRAMES]
    with SeekableSource(recording, cache_bytes=0) as source:
        for index in (*range(len(expected)), *reversed(range(len(expected)))):
            assert_same(source.frame(index), expected[index])


def test_what_is_told_of_a_file_is_what_its_frames_have(recording: Path, expected: list[VideoFrame]) -> None:
    with SeekableSource(recording) as source:
        source.frame(len(expected) - 1)
        assert source.wait_wholly_decoded(DECODED_S)
        assert source.wholly_decoded
        until(lambda: source.keyframe_before(0) is not None)  # the index is made on another thread
        assert source.count == len(expected)
        assert source.last_index == len(expected) - 1
        assert [source.index_at(frame.time_ms) for frame in expected] == list(range(len(expected)))
        assert [source.time_ms_of(frame.index) for frame in expected] == [frame.time_ms for frame in expected]
        assert source.time_ms_of(-1) is source.time_ms_of(len(expected)) is None
        assert source.index_at(-5) == 0
        assert source.index_at(1e9) == len(expected) - 1
        for frame in expected:
            key = source.keyframe_before(frame.index)
            assert key is not None
            assert 0 <= key <= frame.index


def repeated(path: Path, original: Path, count: int, broken: int | None = None) -> Path:
    """The packets of a recording, each time stamp one later than the one before, as often as it takes."""
    with av.open(str(original)) as source, av.open(str(path), "w") as target:
        stream = target.add_stream_from_template(source.streams.video[0])
        data = [(bytes(packet), packet.is_keyframe) for packet in source.demux(video=0) if packet.size]
        for index in range(count):
            content, is_key = data[index % len(data)]
            packet = av.Packet(bytes(len(content)) if index == broken else content)
            packet.pts = packet.dts = index
            packet.time_base, packet.stream, packet.is_keyframe = Fraction(1, 100), stream, is_key
            target.mux(packet)
    return path


def test_parts_of_a_long_file_are_there_before_it_was_surveyed(tmp_path: Path) -> None:
    original = plain(tmp_path / "a.mkv", x264("keyint=10:bframes=0:scenecut=0"))
    expected = in_order(original)
    with SeekableSource(repeated(tmp_path / "long.mkv", original, 20_000)) as source:
        for index in (19_999, 19_998, 12_345, 12_346, 19_000):
            frame = source.frame(index)
            assert (frame.index, frame.time_ms) == (index, index * 10)
            for plane, wanted in zip(frame.picture.planes, expected[index % FRAMES].picture.planes, strict=True):
                assert np.array_equal(plane, wanted)


@exhaustive
def test_claims_that_prove_wrong_are_forgotten(tmp_path: Path) -> None:
    original = plain(tmp_path / "a.mov", Recipe("png", "rgb24", codec_options={}))
    clip = repeated(tmp_path / "long.mov", original, 3000, broken=1000)
    expected = in_order(clip)
    with SeekableSource(clip) as source:
        source.frame(2990)  # by what packets claim, or not: this is where both are allowed
        assert source.wait_wholly_decoded(DECODED_S)
        assert source.count == len(expected) < 3000
        for index in (2990, 1000, len(expected) - 1, 999, 2991):
            assert_same(source.frame(index), expected[index])


# Ranges


@pytest.mark.parametrize(
    ("first", "last"), [(0, None), (7, 19), (Fraction(1, 10), Fraction(6, 10)), (Fraction(101, 1000), 30), (39, 500)]
)
def test_ranges_are_those_of_decoding_in_order(clip: Path, first: Position, last: Position | None) -> None:
    expected = in_order(clip, first, last)
    with SeekableSource(clip, first, last) as source:
        assert source.first_index() == expected[0].index
        assert source.wait_wholly_decoded(DECODED_S)
        assert source.last_index == expected[-1].index
        for frame in reversed(expected):
            assert_same(source.frame(frame.index), frame)
        for outside in (-1, expected[0].index - 1, expected[-1].index + 1):
            with pytest.raises(IndexError):
                source.frame(outside)


def test_ranges_beyond_the_end_or_turned_around_are_refused(clip: Path) -> None:
    for first in (FRAMES, Fraction(100)):
        with SeekableSource(clip, first) as source, pytest.raises(MediaError, match="no frame in the range"):
            source.first_index()
    with pytest.raises(UsageError, match="before"):
        SeekableSource(clip, 4, 3)
    with pytest.raises(MediaError, match="does not exist"):
        SeekableSource("missing.mp4")


# Ends


def test_closing_in_the_middle_ends_all_threads(clip: Path) -> None:
    threads = {*threading.enumerate()}
    for index in (None, 0, 20):
        source = SeekableSource(clip)
        if index is not None:
            source.frame(index)
        source.close()
        source.close()
        assert {*threading.enumerate()} <= threads


def test_nothing_is_decoded_after_closing(clip: Path) -> None:
    source = SeekableSource(clip, cache_bytes=0)
    source.frame(30)
    source.close()
    with pytest.raises(DecodingCancelled):
        source.frame(3)


def test_closing_while_another_thread_decodes_is_safe(clip: Path) -> None:
    for wait_s in (0, 0.001, 0.003, 0.01):
        source = SeekableSource(clip, cache_bytes=0)
        given_up = threading.Event()

        def play(source: SeekableSource = source, given_up: threading.Event = given_up) -> None:
            with contextlib.suppress(DecodingCancelled):
                while True:
                    source.frame(35)
                    source.frame(3)
            given_up.set()

        thread = threading.Thread(target=play)
        thread.start()
        time.sleep(wait_s)
        source.close()
        thread.join()
        assert given_up.is_set()


def test_what_nobody_wants_any_more_is_given_up(clip: Path) -> None:
    with SeekableSource(clip, cache_bytes=0) as source:
        expected = source.frame(30)
        with pytest.raises(DecodingCancelled):
            source.frame(10, lambda: True)
        assert_same(source.frame(30), expected)


def test_decoding_is_timed(clip: Path) -> None:
    with SeekableSource(clip) as source:
        frames = [source.frame(index) for index in (20, 21, 20)]
    assert all(frame.decode_start_ns > 0 and frame.decode_ms > 0 for frame in frames)
    assert frames[0].decode_start_ns < frames[1].decode_start_ns < frames[2].decode_start_ns


# Memory


@given(st.lists(st.tuples(st.integers(0, 30), st.integers(1, 400)), max_size=60), st.integers(0, 1000))
def test_the_cache_holds_what_was_used_last_within_its_bytes(puts: Sequence[tuple[int, int]], most_bytes: int) -> None:
    cache = FrameCache(most_bytes)
    used: list[int] = []
    for index, size in puts:
        frame = VideoFrame(index, index, 0.0, rgba_picture(np.zeros((1, size, 4), np.uint8)))
        cache.put(frame)
        used = [other for other in used if other != index] + [index]
        assert cache.get(index) is frame
        kept = [cache.get(other) for other in used[-len(cache) :]]
        assert all(frame is not None for frame in kept)
        held = sum(frame.rgba.nbytes for frame in kept if frame)
        assert held <= most_bytes or len(cache) == min(4, len(used))


def test_room_is_for_a_few_frames_at_least() -> None:
    assert FrameCache(1000).room(100) == 10
    assert FrameCache(1000).room(10_000) == 4
