"""Pieces of recordings of all kinds are those frames that decoding from the start gives, or are told to be unfit."""

from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.app.media.test_seeking import FRAMES, RECORDINGS, X264, assert_same, in_order, plain, x264
from tests.helpers.clips import Recipe, moving, packets, write_clip
from tests.helpers.markers import one_in
from texelflow.app.media.decoded_index import checksum
from texelflow.app.media.key_packets import h264_begins_anew
from texelflow.app.media.packet_index import KeyPacket, arrange
from texelflow.app.media.piece_source import OVERLAP, PieceSource, UnfitPieceError, index_frames, keys_to_begin_at
from texelflow.app.media.sources import VideoFrame
from texelflow.gpu_delegate.base.errors import MediaError

COUNTED = {
    *("varying rate", "closed groups", "open groups", "open groups, mkv", "no B-frames", "hevc", "mkv", "vp9"),
    *("fragmented", "mpegts", "open groups, mpegts", "trimmed", "mjpeg", "turned", "cut off", "one frame"),
    *("gradual refresh", "gradual refresh, mpegts", "two fields"),
}
UNFIT = {"damaged", "damaged, mkv", "damaged, no references"}
LONG: dict[str, tuple[str, Recipe]] = {  # with no frame near that needs none before it
    "open groups": ("a.ts", x264("open-gop=1:keyint=10:bframes=3")),
    "gradual refresh": ("a.mkv", x264("intra-refresh=1:keyint=10")),
    "hevc": ("a.mp4", Recipe("libx265", codec_options={
        "x265-params": "keyint=10:open-gop=1:bframes=3:log-level=none", "preset": "ultrafast"})),
    "long groups": ("a.mp4", x264("keyint=90")),
}  # fmt: skip


def pieces_of(path: Path, starts: Sequence[int], frames: int) -> list[tuple[list[VideoFrame], PieceSource]]:
    """Those that begin at `starts`, each after the one before; closed."""
    index, found = index_frames(path), []
    for first, end in zip(starts, [*starts[1:], frames], strict=True):
        with PieceSource(path, first, end - 1, index) as source:
            found.append((list(source), source))
    return found


def assert_pieces(path: Path, expected: Sequence[VideoFrame], starts: Sequence[int]) -> None:
    found = pieces_of(path, starts, len(expected))
    joined = [frame for frames, _ in found for frame in frames]
    assert len(joined) == len(expected)
    for frame, wanted in zip(joined, expected, strict=True):
        assert_same(frame, wanted)
    checksums = [checksum(frame) for frame in expected]
    for start, end, (_, source) in zip(starts, [*starts[1:], len(expected)], found, strict=True):
        assert list(source.decoded_head) == checksums[max(0, start - OVERLAP) : start]
        assert list(source.decoded_tail) == checksums[max(start, end - OVERLAP) : end]


@one_in(4, "name", [name for name in RECORDINGS if name != "demo"])
def test_a_piece_is_as_decoded_from_the_start(name: str, tmp_path: Path) -> None:
    file, make = RECORDINGS[name]
    path = make(tmp_path / file)
    expected, index = in_order(path), index_frames(path)
    assert (index.obstacle is None) == (name in COUNTED | UNFIT)
    if name in COUNTED:
        assert index.frames == len(expected)
        assert_pieces(path, expected, range(0, len(expected), max(13, len(expected) // 4)))
    elif name in UNFIT:
        with pytest.raises(UnfitPieceError, match=r"frame 1[34] is not where its packet says"):
            pieces_of(path, [10], 30)
    else:
        with pytest.raises(UnfitPieceError, match="are not there"):
            pieces_of(path, [0], 1)


@pytest.mark.parametrize("name", LONG)
def test_decoding_begins_late_and_gives_the_same(name: str, tmp_path: Path) -> None:
    file, recipe = LONG[name]
    path = write_clip(tmp_path / file, moving(150), recipe)
    expected = in_order(path)
    assert_pieces(path, expected, [0, 61, 100, 131])


def test_frames_around_a_piece_are_marked(tmp_path: Path) -> None:
    path = plain(tmp_path / "a.mp4")
    expected = in_order(path)
    for lead, trail in ((0, 0), (3, 1), (30, 2)):
        with PieceSource(path, 25, 30) as source:
            source.lead, source.trail = lead, trail
            frames = list(source)
        assert [frame.index for frame in frames] == list(range(max(0, 25 - lead), 31 + trail))
        assert [frame.index for frame in frames if not frame.lead] == list(range(25, 31))
        for frame in frames:
            assert_same(frame, expected[frame.index])
        assert len(source.decoded_head) == max(OVERLAP, 0)
        assert len(source.decoded_tail) == 6


def test_the_last_piece_tells_what_is_missing(tmp_path: Path) -> None:
    path = RECORDINGS["cut off"][1](tmp_path / "a.mkv")
    count = len(in_order(path))
    (_, first), (_, last) = pieces_of(path, [0, 12], count)
    assert first.truncated is None
    assert last.truncated is not None
    assert f"{count} frames were there" in last.truncated


def test_damaged_frames_are_counted_in_their_own_piece(tmp_path: Path) -> None:
    """Pictures of which a part is noise are shown, and those that are decoded from them; all of one group."""

    path = plain(tmp_path / "a.mp4", Recipe(codec_options={**X264, "g": "20", "bf": "0", "preset": "medium"}))
    data, (_, packet) = bytearray(path.read_bytes()), packets(path, "video")[24]
    end = data.index(packet) + len(packet)
    data[end - len(packet) // 2 : end] = bytes(len(packet) // 2)
    path.write_bytes(data)
    with PieceSource(path, 0, FRAMES - 1) as whole:
        count = len(list(whole))
    assert count == FRAMES
    assert whole.damaged_frames
    found = pieces_of(path, [0, 22, 30], FRAMES)
    assert [source.damaged_frames for _, source in found] == [0, whole.damaged_frames, 0]
    assert found[1][1].decoded_tail[-8:] == found[2][1].decoded_head[-8:]


def test_other_pictures_at_the_same_times_show_in_the_checksums(tmp_path: Path) -> None:
    path, other = (write_clip(tmp_path / name, moving(FRAMES, width)) for name, width in (("a.mp4", 64), ("b.mp4", 66)))
    index = index_frames(path)
    with PieceSource(path, 0, 29, index) as first, PieceSource(other, 30, FRAMES - 1, index) as second:
        assert [len(list(first)), len(list(second))] == [30, FRAMES - 30]
    assert len(second.decoded_head) == len(first.decoded_tail) == OVERLAP
    assert not {*second.decoded_head} & {*first.decoded_tail}


def test_what_is_no_recording_is_told(tmp_path: Path) -> None:
    (tmp_path / "a.mp4").write_bytes(b"no")
    with pytest.raises(MediaError, match="not a video"):
        index_frames(tmp_path / "a.mp4")


@given(st.lists(st.booleans(), min_size=1, max_size=300), st.data())
def test_decoding_begins_at_the_nearest_frame_that_needs_none_before(exact: list[bool], data: st.DataObject) -> None:
    stamps = [7 * number for number in range(10 * len(exact))]
    times = arrange(stamps, [KeyPacket(70 * key, 0, is_exact) for key, is_exact in enumerate(exact)])
    begin = data.draw(st.integers(0, len(stamps) - 1))
    keys = keys_to_begin_at(begin, times)
    nearest = next((key for key in range(begin // 10, -1, -1) if exact[key]), None)
    assert all(0 <= key <= begin // 10 for key in keys)
    if nearest is not None and begin - 10 * nearest <= 900:
        assert keys[0] == nearest


def test_the_kind_of_a_picture_is_found_in_its_packet() -> None:
    header, other, idr = b"\x67\x11\x22", b"\x41\x9a", b"\x65\x88\x84"
    mark = b"\x00\x00\x00\x01"
    assert h264_begins_anew(mark + header + mark + idr, 0)
    assert not h264_begins_anew(mark + header + b"\x00\x00\x01" + other + mark + idr, 0)
    assert h264_begins_anew(b"".join(len(unit).to_bytes(4, "big") + unit for unit in (header, idr)), 4)
    assert not h264_begins_anew(b"".join(len(unit).to_bytes(2, "big") + unit for unit in (header, other)), 2)


@given(st.binary(max_size=60), st.integers(0, 4))
def test_any_bytes_of_a_packet_come_to_an_end(data: bytes, length_bytes: int) -> None:
    assert h264_begins_anew(data, length_bytes) in (True, False)
