"""Recordings are written in one run and in pieces that are joined: both are the same bytes. Damaged pieces are told."""

import contextlib
import itertools
import json
import os
import struct
import tracemalloc
import zlib
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any

import av
import cv2
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.helpers.clips import Recipe, moving, write_clip
from texelflow.app.media import video_encoder
from texelflow.app.media.codecs import Codec, choose_encoding
from texelflow.app.media.finished import finished_by
from texelflow.app.media.join import Joined, PieceError, join_folders, join_video
from texelflow.app.media.piece_file import PieceReader
from texelflow.app.outputs.file_sinks import PngSink, Timing, VideoSink, Writing
from texelflow.app.outputs.picture_readers import FrameStamp
from texelflow.app.picture.convert import Rgba
from texelflow.gpu_delegate.base.errors import MediaError, UsageError

SIZE, ODD = (64, 48), (65, 47)
BY = "texelflow 0 test"
TIMING = Timing(Fraction(1, 15360), Fraction(30))
FORMATS: list[tuple[str, Codec, bool]] = [
    (".mp4", "h264", False),
    (".mov", "h264", False),
    (".mov", "prores", False),
    (".mov", "prores", True),
    (".mkv", "h264", False),
    (".mkv", "vp9", False),
    (".mkv", "ffv1", False),
    (".webm", "vp9", False),
    (".webm", "vp9", True),
]


@cache
def pictures(size: tuple[int, int]) -> Sequence[Rgba]:
    """21 of them, after which they begin again; alpha differs from place to place."""
    width, height = size
    alpha = np.add.outer(np.arange(height), np.arange(width)).astype(np.uint8) * 2
    return [np.dstack([rgb, alpha]) for rgb in moving(21, width, height)]


def steady(frames: int) -> list[int]:
    return [512 * number for number in range(frames)]


def write(
    path: Path,
    numbers: range,
    times: Sequence[int],
    writing: Writing,
    timing: Timing = TIMING,
    size: tuple[int, int] = SIZE,
    alpha: bool = False,
    codes: bool = False,
) -> Sequence[str]:
    """Have some frames of a recording recorded: all of them, or a piece. What the sink warns of.

    `codes`: as I420, whose planes are some of the pictures' bytes.
    """
    sink = VideoSink(path, size, timing, codes, writing, alpha)
    i420_bytes = (size[0] + size[0] % 2) * (size[1] + size[1] % 2) * 3 // 2
    for number in numbers:
        data = pictures(size)[number % 21].ravel()
        sink.write(FrameStamp(number, times[number]), data[:i420_bytes] if codes else data)
    sink.close(complete=True)
    return sink.warnings


def in_pieces(
    folder: Path, ending: str, times: Sequence[int], cuts: Sequence[int], codec: Codec = "auto", **given: Any
) -> list[Path]:
    """Pieces that begin at the cuts."""
    pieces = [folder / f"{first}{ending}" for first in cuts]
    for piece, first, end in zip(pieces, cuts, [*cuts[1:], len(times)], strict=True):
        write(piece, range(first, end), times, Writing(codec, piece_first=first), **given)
    return pieces


def check_joined(
    folder: Path,
    ending: str,
    times: Sequence[int],
    cuts: Sequence[int],
    codec: Codec = "auto",
    timing: Timing = TIMING,
    **given: Any,
) -> Joined:
    """Pieces that begin at the cuts become what one run writes."""
    whole, target = folder / f"whole{ending}", folder / f"joined{ending}"
    warnings = write(whole, range(len(times)), times, Writing(codec, made_by=BY), timing, **given)
    pieces = in_pieces(folder, ending, times, cuts, codec, timing=timing, **given)
    joined = join_video(pieces, target, timing.sound, timing.sound_cut, BY)
    assert target.read_bytes() == whole.read_bytes()
    assert (joined.frames, list(joined.warnings)) == (len(times), list(warnings))
    assert finished_by(target) == BY
    return joined


@pytest.fixture(scope="module")
def heard(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """3 s with sound, which go on after 41 frames."""
    recipe = Recipe(sound="aac", rate=10, codec_options={"preset": "ultrafast"})
    return write_clip(tmp_path_factory.mktemp("sound") / "heard.mp4", moving(1) * 30, recipe)


@pytest.fixture
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Encoders begin anew every 20 frames, so that less has to be encoded."""
    monkeypatch.setattr(video_encoder, "SEGMENT_FRAMES", 20)


# One run and pieces


@pytest.mark.usefixtures("soon")
@pytest.mark.parametrize(("ending", "codec", "alpha"), FORMATS)
def test_joined_pieces_are_the_bytes_of_one_run(ending: str, codec: Codec, alpha: bool, tmp_path: Path) -> None:
    check_joined(tmp_path, ending, steady(81), [0, 20, 80], codec, alpha=alpha)


@pytest.mark.usefixtures("soon")
@pytest.mark.parametrize(
    ("ending", "codec"), [(".mp4", "h264"), (".webm", "vp9"), (".mov", "prores"), (".mkv", "ffv1")]
)
def test_so_are_those_of_i420(ending: str, codec: Codec, tmp_path: Path) -> None:
    check_joined(tmp_path, ending, steady(45), [0, 20, 40], codec, codes=True, size=ODD)


@pytest.mark.usefixtures("soon")
@pytest.mark.parametrize("ending", [".mp4", ".mkv", ".webm"])
def test_sound_is_that_of_one_run(ending: str, heard: Path, tmp_path: Path) -> None:
    timing = Timing(Fraction(1, 15360), Fraction(30), sound=heard)
    joined = check_joined(tmp_path, ending, steady(41), [0, 20, 40], timing=timing)
    assert joined.seconds == pytest.approx(41 / 30)
    assert len(joined.warnings) == (ending == ".webm")  # converted to Opus
    with av.open(str(tmp_path / f"joined{ending}")) as container:
        assert [stream.type for stream in container.streams] == ["video", "audio"]
        assert float(list(container.demux(audio=0))[-2].pts * container.streams[1].time_base) > 2.5


@pytest.mark.usefixtures("soon")
def test_a_cut_that_begins_late_has_its_own_sound(heard: Path, tmp_path: Path) -> None:
    times = [512 * (7 + number) for number in range(45)]
    timing = Timing(Fraction(1, 15360), Fraction(30), Fraction(4, 3), heard, sound_cut=True)
    check_joined(tmp_path, ".mov", times, [0, 40], timing=timing)


@pytest.mark.usefixtures("soon")
@pytest.mark.parametrize("ending", [".mp4", ".mkv"])
def test_times_that_do_not_grow_at_a_border_go_on_from_the_piece_before(ending: str, tmp_path: Path) -> None:
    times = [90 * 40 * number + number % 7 * 90 for number in range(50)]  # steps differ
    times[17:26] = [times[17] + each for each in (0, 0, 5, 5, 3, 9, 90, 100, 4000)]
    timing = Timing(Fraction(1, 90_000), Fraction(25))
    check_joined(tmp_path, ending, times, [0, 20, 40], timing=timing, size=ODD)


@pytest.mark.parametrize(("frames", "cuts"), [(1, [0]), (300, [0]), (301, [0, 300])])
def test_any_number_of_frames_is_joined(frames: int, cuts: list[int], tmp_path: Path) -> None:
    check_joined(tmp_path, ".mp4", steady(frames), cuts)


@pytest.mark.parametrize(("ending", "codec", "alpha"), [(".mp4", "h264", False), (".webm", "vp9", True)])
def test_a_fresh_encoder_begins_every_300_frames(ending: str, codec: Codec, alpha: bool, tmp_path: Path) -> None:
    whole, late = tmp_path / f"whole{ending}", tmp_path / f"late{ending}"
    write(whole, range(310), steady(310), Writing(codec), alpha=alpha)
    write(late, range(300, 310), steady(310), Writing(codec), alpha=alpha)
    with av.open(str(whole)) as container, av.open(str(late)) as other:
        packets = [packet for packet in container.demux(video=0) if packet.size]
        assert [bytes(packet) for packet in packets[300:]] == [
            bytes(each) for each in other.demux(video=0) if each.size
        ]
        assert packets[300].is_keyframe
        assert (b"x264 - core" in bytes(packets[300])) == (codec == "h264")  # which begins with what its encoder is
        everything = list(decoded(container, packets))
        assert list(decoded(container, packets[300:])) == everything[300:]
    assert len(everything) == 310


def decoded(container: "av.container.InputContainer", packets: Sequence["av.Packet[Any]"]) -> Iterator[bytes]:
    """Pictures of these packets alone."""
    described = container.streams.video[0].codec_context
    decoder = av.CodecContext.create(described.codec.name, "r")
    decoder.extradata = described.extradata
    assert isinstance(decoder, av.VideoCodecContext)
    for packet in [*packets, None]:
        yield from (frame.to_ndarray().tobytes() for frame in decoder.decode(packet))


@pytest.mark.usefixtures("soon")
@settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.sampled_from([".mp4", ".mkv"]),
    st.lists(st.integers(-700, 3000) | st.integers(0, 1 << 30), min_size=1, max_size=50),
    st.integers(-(1 << 40), 1 << 40),
)
def test_any_times_are_joined(tmp_path: Path, ending: str, steps: Sequence[int], first: int) -> None:
    times = [first + time for time in itertools.accumulate(steps)]
    check_joined(tmp_path, ending, times, range(0, len(times), 20), timing=Timing(Fraction(1, 90_000), Fraction(25)))


# One machine and another


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="cores cannot be taken away here")
@pytest.mark.parametrize(("ending", "codec", "alpha"), FORMATS)
def test_bytes_do_not_depend_on_the_number_of_cores(ending: str, codec: Codec, alpha: bool, tmp_path: Path) -> None:
    size, cores = (96, 160), os.sched_getaffinity(0)
    files = [tmp_path / f"{name}{ending}" for name in ("all", "one")]
    for file, usable in zip(files, (cores, {min(cores)}), strict=True):
        os.sched_setaffinity(0, usable)
        try:
            write(file, range(4), steady(4), Writing(codec), size=size, alpha=alpha)
        finally:
            os.sched_setaffinity(0, cores)
    assert files[0].read_bytes() == files[1].read_bytes()


def test_bytes_of_h264_do_not_depend_on_what_the_processor_can_do() -> None:
    options = choose_encoding(".mp4").options
    usual, plain = (
        list(h264_packets({**options, "x264-params": options["x264-params"] + more})) for more in ("", ":asm=0")
    )
    assert len(usual) == 12
    assert usual[1:] == plain[1:]  # the first tells of the options


def h264_packets(options: Mapping[str, str]) -> Iterator[bytes]:
    noise = np.random.default_rng(0)
    encoder = av.CodecContext.create("libx264", "w")
    assert isinstance(encoder, av.VideoCodecContext)
    encoder.width, encoder.height, encoder.pix_fmt, encoder.time_base = 320, 240, "yuv420p", Fraction(1, 30)
    encoder.thread_count, encoder.options = 4, dict(options)
    ground = np.asarray(cv2.GaussianBlur(noise.integers(0, 255, (360, 320), np.uint8), (0, 0), 2)).astype(np.uint8)
    for number in range(12):
        frame = av.VideoFrame.from_ndarray(np.roll(ground, (number, 2 * number), (0, 1)), "yuv420p")
        frame.pts = number
        yield from (bytes(packet) for packet in encoder.encode(frame))


def test_one_packet_is_in_memory_at_a_time(tmp_path: Path) -> None:
    noise = np.random.default_rng(0)
    piece = tmp_path / "0.mkv"
    sink = VideoSink(piece, (128, 96), TIMING, False, Writing("ffv1", piece_first=0))
    for number in range(60):
        sink.write(FrameStamp(number, 512 * number), noise.integers(0, 255, 128 * 96 * 4, np.uint8))
    sink.close(complete=True)
    tracemalloc.start()
    try:
        join_video([piece], tmp_path / "joined.mkv")
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < piece.stat().st_size / 4


# Pieces that are not as they should be


@pytest.mark.usefixtures("soon")
def test_pieces_of_another_order_or_video_are_refused(tmp_path: Path) -> None:
    for name in ("odd", "short"):
        (tmp_path / name).mkdir()
    first, second = in_pieces(tmp_path, ".mp4", steady(25), [0, 20])
    odd = in_pieces(tmp_path / "odd", ".mp4", steady(25), [0, 20], size=ODD)[1]
    (short,) = in_pieces(tmp_path / "short", ".mp4", steady(10), [0])
    for pieces, line in [
        ([second, first], "begins with frame 20; those before end at 0"),
        ([first, first], "begins with frame 0; those before end at 20"),
        ([first, odd], "is of another video"),
        ([short, second], "begins with frame 20; those before end at 10"),
        ([first, tmp_path / "none.mp4"], "cannot be read: No such file"),
        ([], "there is no piece"),
    ]:
        with pytest.raises(PieceError, match=line):
            join_video(pieces, tmp_path / "joined.mp4")
    with pytest.raises(MediaError, match=r"pieces of \.mp4 do not become"):
        join_video([first, second], tmp_path / "joined.mkv")
    with pytest.raises(UsageError, match="no piece begins with frame 19"):
        in_pieces(tmp_path, ".mp4", steady(25), [19])
    assert not (tmp_path / "joined.mp4").exists()


def test_a_piece_that_was_not_finished_is_refused(tmp_path: Path) -> None:
    sink = VideoSink(tmp_path / "0.mp4", SIZE, TIMING, False, Writing(piece_first=0))
    sink.write(FrameStamp(0, 0), pictures(SIZE)[0].ravel())
    sink.close(complete=False)
    with pytest.raises(PieceError, match="was never finished"):
        PieceReader(tmp_path / "0.mp4")


@pytest.fixture(scope="module")
def piece(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """Of 5 pictures with alpha."""
    folder = tmp_path_factory.mktemp("piece")
    return in_pieces(folder, ".webm", steady(5), [0], alpha=True)[0].read_bytes()


def read(path: Path, data: bytes) -> int:
    """How many pictures there are."""
    path.write_bytes(data)
    with PieceReader(path) as reader:
        return sum(1 for _ in reader)


@settings(max_examples=100, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_a_damaged_piece_is_told(piece: bytes, tmp_path: Path, data: st.DataObject) -> None:
    assert read(tmp_path / "whole", piece) == 5
    begin, end = sorted(data.draw(st.integers(0, len(piece))) for _ in range(2))
    part = data.draw(st.sampled_from([b"", piece[end : end + 20], piece[begin:end] * 2]) | st.binary(max_size=40))
    damaged = piece[:begin] + part + piece[end:]
    if damaged != piece:
        with pytest.raises(PieceError, match="is damaged, or was never finished"):
            read(tmp_path / "damaged", damaged)


PLAIN = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8)
VALUES = PLAIN | st.lists(PLAIN, max_size=3) | st.dictionaries(st.text(max_size=4), PLAIN, max_size=3)
FIELDS = ["first", "extradata", "versions", "is_i420", "form", "ending", "width", "rate", "codec", "quality", "alpha"]


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.sampled_from(FIELDS), VALUES)
def test_what_a_piece_says_of_itself_is_not_believed(piece: bytes, tmp_path: Path, field: str, value: object) -> None:
    """Its checksum can be right."""
    head, ends = told(piece)
    place = head if field in head else head["form"]
    place[field] = value
    with contextlib.suppress(PieceError):
        assert read(tmp_path / "altered", with_head(piece, head, ends)) == 5


def test_a_head_of_a_thousand_brackets_is_told(piece: bytes, tmp_path: Path) -> None:
    _, ends = told(piece)
    for text in (b"[" * 60_000, b'{"first": ' + b"9" * 60_000 + b"}", b"\xff\xfe"):
        with pytest.raises(PieceError):
            read(tmp_path / "altered", sealed(piece, text, ends))


def told(piece: bytes) -> tuple[dict[str, Any], int]:
    """What a piece's head says, and where it ends."""
    begins = piece.index(b"\n") + 5
    ends = begins + struct.unpack_from("<I", piece, begins - 4)[0]
    return json.loads(piece[begins:ends]), ends


def with_head(piece: bytes, head: Mapping[str, Any], ends: int) -> bytes:
    return sealed(piece, json.dumps(head).encode(), ends)


def sealed(piece: bytes, text: bytes, ends: int) -> bytes:
    """The same pictures after another head, with checksums that are right."""
    magic = piece[: piece.index(b"\n") + 1]
    parts = [magic + struct.pack("<I", len(text)) + text]
    at = ends + 4
    while at < len(piece):
        _, _, *sizes = struct.unpack_from("<BqII", piece, at)
        parts.append(piece[at : at + 17 + sum(sizes)])
        at += 17 + sum(sizes) + 4
    result, total = b"", 0
    for part in parts:
        total = zlib.crc32(part, total)
        result += part + struct.pack("<I", total)
    return result


# Folders


def png_folder(folder: Path, numbers: range, made_by: str | None = None) -> Path:
    sink = PngSink(folder, SIZE, 4, made_by)
    for number in numbers:
        sink.write(FrameStamp(number, 0), pictures(SIZE)[number % 21].ravel())
    sink.close(complete=True)
    return folder


def test_folders_become_what_one_run_writes(tmp_path: Path) -> None:
    whole = png_folder(tmp_path / "whole", range(12), BY)
    pieces = [png_folder(tmp_path / "a", range(7)), png_folder(tmp_path / "b", range(7, 12))]
    target = tmp_path / "deep" / "joined"
    for _ in range(2):  # the second time over what the first has left
        assert join_folders(pieces, target, BY) == Joined(12, 0.0)
        assert {path.name: path.read_bytes() for path in target.iterdir()} == {
            path.name: path.read_bytes() for path in whole.iterdir()
        }
    assert finished_by(target) == BY
    assert finished_by(pieces[1]) is None


def test_folders_with_the_same_picture_or_none_are_refused(tmp_path: Path) -> None:
    pieces = [png_folder(tmp_path / "a", range(7)), png_folder(tmp_path / "b", range(6, 9))]
    with pytest.raises(PieceError, match="is in another piece, too"):
        join_folders(pieces, tmp_path / "joined")
    (tmp_path / "empty").mkdir()
    with pytest.raises(PieceError, match="holds no picture"):
        join_folders([pieces[0], tmp_path / "empty"], tmp_path / "joined")
    with pytest.raises(PieceError, match="cannot be read"):
        join_folders([pieces[0], tmp_path / "none"], tmp_path / "joined")
