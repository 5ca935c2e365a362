"""Packets' claims are put in order, and read from files; time stamps and key frames are those of decoded frames."""

import threading
from bisect import bisect_right
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.helpers.clips import Recipe, moving, write_clip
from tests.helpers.waiting import PATIENCE_S
from texelflow.app.media.packet_index import KeyPacket, PacketIndex, arrange
from texelflow.app.media.sources import FileSource

STAMPS = st.lists(st.tuples(st.integers(-1000, 1000), st.booleans()), max_size=40)


@given(STAMPS, st.integers(-1100, 1100))
def test_claims_are_in_the_order_of_display(packets: list[tuple[int, bool]], pts: int) -> None:
    keys = [stamp for stamp, is_key in packets if is_key]
    packet_times = arrange([stamp for stamp, _ in packets], [KeyPacket(stamp, stamp - 7) for stamp in keys])
    ordered = sorted({stamp for stamp, _ in packets})
    assert list(packet_times.pts) == ordered
    assert list(packet_times.key_pts) == sorted(keys)
    assert [seek + 7 for seek in packet_times.key_seeks] == sorted(keys)
    assert packet_times.sound == (len(ordered) == len(packets) > 0)
    assert packet_times.index_at(pts) == max(0, bisect_right(ordered, pts) - 1)


@given(STAMPS, st.integers(-5, 50))
def test_the_key_frame_before_a_frame_is_not_after_it(packets: list[tuple[int, bool]], index: int) -> None:
    keys = [stamp for stamp, is_key in packets if is_key]
    packet_times = arrange([stamp for stamp, _ in packets], [KeyPacket(stamp, stamp) for stamp in keys])
    found = packet_times.keyframe_before(index)
    ordered = list(packet_times.pts)
    at = min(max(index, 0), len(ordered) - 1)
    earlier = [number for number in range(at + 1) if ordered and ordered[number] in keys]
    assert found == (earlier[-1] if earlier else 0)


@pytest.mark.parametrize("name", ["a.mp4", "a.mkv", "a.ts", "a.mov"])
def test_packets_tell_the_stamps_of_all_frames(tmp_path: Path, name: str) -> None:
    options = {"crf": "20", "preset": "veryfast", "g": "10", "bf": "3"}
    clip = write_clip(tmp_path / name, moving(35), Recipe(codec_options=options))
    index = PacketIndex(str(clip))
    index.wait(PATIENCE_S)
    index.close()
    with FileSource(clip) as source:
        pts = [frame.pts for frame in source]
    assert index.packet_times is not None
    assert list(index.packet_times.pts) == pts
    assert index.packet_times.sound
    assert index.count == 35
    assert [index.index_at(stamp) for stamp in pts] == list(range(35))
    assert [index.keyframe_before(number) for number in (0, 9, 10, 19, 34)] == [0, 0, 10, 10, 30]


def test_varying_frame_rate_is_told_as_it_is(tmp_path: Path) -> None:
    pts = [0, 1, 7, 8, 100, 101, 102, 5000, 90000]
    clip = write_clip(tmp_path / "vfr.mp4", moving(len(pts)), Recipe(time_base=Fraction(1, 90000), pts=pts))
    index = PacketIndex(str(clip))
    index.wait(PATIENCE_S)
    index.close()
    assert index.packet_times is not None
    assert list(index.packet_times.pts) == pts
    assert index.index_at(99) == 3


def test_packets_without_stamps_are_not_sound(tmp_path: Path) -> None:
    index = PacketIndex(str(write_clip(tmp_path / "raw.h264", moving(5))))
    index.wait(PATIENCE_S)
    index.close()
    assert index.packet_times is not None
    assert not index.packet_times.sound


def test_closing_while_packets_are_read_ends_the_thread(tmp_path: Path) -> None:
    clip = write_clip(tmp_path / "a.mkv", moving(60))
    threads = {*threading.enumerate()}
    for _ in range(20):
        PacketIndex(str(clip)).close()
    assert {*threading.enumerate()} <= threads


def test_a_file_that_vanished_promises_nothing(tmp_path: Path) -> None:
    index = PacketIndex(str(tmp_path / "gone.mp4"))
    index.wait(PATIENCE_S)
    index.close()
    assert index.count == 0
    assert index.index_at(5) == index.keyframe_before(3) == 0
