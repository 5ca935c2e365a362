"""FileSource on recordings of all kinds: pixels, times, ranges and refusals are compared with what was encoded."""

import contextlib
import os
import subprocess
import sys
from collections.abc import Callable
from fractions import Fraction
from itertools import pairwise
from pathlib import Path

import av
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.helpers.clips import Recipe, moving, number_of, numbered, packets, set_display_matrix, write_clip
from tests.helpers.markers import exhaustive
from texelflow.app.media.sources import FileSource, Position, VideoFrame, VideoInfo, parse_position
from texelflow.app.picture.convert import Rgba
from texelflow.app.picture.picture import Orientation
from texelflow.app.picture.preprocess import Preprocessor
from texelflow.gpu_delegate.base.errors import MediaError, UsageError

COLORS = [(255, 0, 0), (0, 255, 0), (0, 0, 255), (255, 255, 255), (0, 0, 0), (200, 120, 40), (30, 90, 160)]


def read(path: Path, first: Position = 0, last: Position | None = None) -> tuple[VideoInfo, list[VideoFrame]]:
    with FileSource(path, first, last) as source:
        frames = list(source)
        assert source.truncated is None
        assert source.damaged_frames == 0
        return source.info, frames


def refusal(path: Path | str) -> str:
    with pytest.raises(MediaError) as caught, FileSource(path) as source:
        list(source)
    message = str(caught.value)
    assert str(path) in message
    assert "\n" not in message
    return message


# Frames and times


def test_frames_arrive_in_order_with_the_files_time_stamps(tmp_path: Path) -> None:
    clip = write_clip(tmp_path / "a.mp4", numbered(30))
    info, frames = read(clip)
    assert [number_of(frame.rgba) for frame in frames] == [frame.index for frame in frames] == list(range(30))
    assert [frame.pts * info.time_base for frame in frames] == [Fraction(index, 30) for index in range(30)]
    assert (info.width, info.height, info.frame_count, info.average_rate) == (64, 48, 30, Fraction(30))
    assert info.duration_s == pytest.approx(1.0)
    assert frames[3].time_ms == 100.0
    assert frames[0].rgba.shape == (48, 64, 4)
    assert frames[0].rgba.dtype == np.uint8
    assert frames[0].rgba.flags.c_contiguous
    assert (frames[0].rgba[..., 3] == 255).all()


@pytest.mark.parametrize("name", ["a.mp4", "a.mkv", "a.avi", "a.ts", "a.mov"])
def test_every_frame_comes_out_of_every_container(tmp_path: Path, name: str) -> None:
    options = {"crf": "4", "preset": "medium"}  # with B-frames
    _, frames = read(write_clip(tmp_path / name, numbered(20), Recipe(codec_options=options)))
    assert [number_of(frame.rgba) for frame in frames] == list(range(20))
    assert [frame.time_ms for frame in frames] == pytest.approx([index * 1000 / 30 for index in range(20)], abs=1)
    assert all(a.pts < b.pts for a, b in pairwise(frames))


def test_varying_frame_rate_keeps_exact_stamps(tmp_path: Path) -> None:
    pts = [0, 1, 7, 8, 100, 101, 102, 5000, 90000]
    recipe = Recipe(time_base=Fraction(1, 90000), pts=pts)
    info, frames = read(write_clip(tmp_path / "vfr.mp4", numbered(len(pts)), recipe))
    assert [frame.pts * info.time_base for frame in frames] == [Fraction(stamp, 90000) for stamp in pts]
    assert [number_of(frame.rgba) for frame in frames] == list(range(len(pts)))


def test_raw_stream_without_time_stamps_gets_even_ones(tmp_path: Path) -> None:
    _, frames = read(write_clip(tmp_path / "raw.h264", numbered(10)))
    steps = {b.pts - a.pts for a, b in pairwise(frames)}
    assert len(frames) == 10
    assert len(steps) == 1
    assert steps.pop() > 0


@pytest.mark.parametrize(
    ("first", "last", "expected"),
    [
        (0, 0, [0]),
        (7, 9, [7, 8, 9]),
        (28, None, [28, 29]),
        (Fraction(1, 10), Fraction(2, 10), [3, 4, 5, 6]),
        (Fraction(101, 1000), 5, [4, 5]),
        (29, 1000, [29]),
    ],
)
def test_ranges_are_exact_and_include_both_ends(
    tmp_path: Path, first: Position, last: Position | None, expected: list[int]
) -> None:
    clip = write_clip(tmp_path / "a.mp4", numbered(30), Recipe(codec_options={"crf": "4", "g": "12"}))
    _, frames = read(clip, first, last)
    assert [frame.index for frame in frames] == [number_of(frame.rgba) for frame in frames] == expected
    _, everything = read(clip)
    assert [frame.pts for frame in frames] == [everything[index].pts for index in expected]


def test_range_beyond_the_end_or_turned_around_is_refused(tmp_path: Path) -> None:
    clip = write_clip(tmp_path / "a.mp4", numbered(5))
    with pytest.raises(MediaError, match="frames are 0 to 4"), FileSource(clip, 5) as source:
        list(source)
    with pytest.raises(UsageError, match="before"):
        FileSource(clip, 4, 3)


def test_positions_are_frame_numbers_or_times() -> None:
    assert parse_position("120") == 120
    assert isinstance(parse_position("120"), int)
    for text in ("3.5s", "3.5", "3500ms", "0:03.5", "00:00:03.500", " 3.5s "):
        assert parse_position(text) == Fraction(7, 2)
        assert isinstance(parse_position(text), Fraction)
    assert parse_position("1:00:01") == 3601


@given(st.text(max_size=30) | st.from_regex(r"[0-9:.sm-]{1,20}"))
def test_any_text_is_a_position_or_a_usage_error(text: str) -> None:
    with contextlib.suppress(UsageError):
        assert parse_position(text) >= 0


# Pixels


@pytest.mark.parametrize("pixel_format", ["yuv420p", "yuvj420p", "yuv444p", "yuv420p10le"])
@pytest.mark.parametrize("levels", [1, 2])
@pytest.mark.parametrize("matrix", [1, 6, 9])
def test_matrix_and_range_are_honoured(tmp_path: Path, pixel_format: str, levels: int, matrix: int) -> None:
    if pixel_format == "yuvj420p" and levels == 1:
        pytest.skip("yuvj420p is full range by definition")
    frames = [np.full((16, 16, 3), color, np.uint8) for color in COLORS]
    options = {"crf": "1", "preset": "ultrafast"}
    recipe = Recipe(pixel_format=pixel_format, color=(matrix, levels), codec_options=options)
    info, decoded = read(write_clip(tmp_path / "c.mp4", frames, recipe))
    assert (info.color_matrix, info.color_range) == (
        {1: "bt709", 6: "bt601", 9: "bt2020"}[matrix],
        {1: "limited", 2: "full"}[levels],
    )
    for frame, color in zip(decoded, COLORS, strict=True):
        assert np.abs(frame.rgba[..., :3].astype(int) - color).max() <= 4


def test_unstated_matrix_is_guessed_by_size(tmp_path: Path) -> None:
    small, _ = read(write_clip(tmp_path / "s.mp4", numbered(1)))
    large, _ = read(write_clip(tmp_path / "l.mp4", numbered(1, 1280, 720)))
    assert (small.color_matrix, small.color_range) == ("bt601", "limited")
    assert (large.color_matrix, large.color_range) == ("bt709", "limited")


@pytest.mark.parametrize(
    ("codec", "pixel_format", "tolerance"),
    [
        ("ffv1", "bgr0", 0),
        ("ffv1", "yuva420p", 3),
        ("ffv1", "yuv422p10le", 3),
        ("png", "rgba", 0),
        ("libx265", "yuv420p10le", 6),
        ("libvpx-vp9", "yuv444p", 6),
        ("mjpeg", "yuvj444p", 6),
    ],
)
def test_other_codecs_and_formats_decode(tmp_path: Path, codec: str, pixel_format: str, tolerance: int) -> None:
    options = {"libx265": {"x265-params": "crf=2:log-level=none"}, "libvpx-vp9": {"crf": "2", "cpu-used": "8"}}
    matrix = 5 if "yuv" in pixel_format else 0
    recipe = Recipe(
        codec, pixel_format, color=(matrix, 2 if "j" in pixel_format else 0), codec_options=options.get(codec, {})
    )
    plain = [np.full((48, 64, 3), color, np.uint8) for color in COLORS[4:]]
    _, frames = read(write_clip(tmp_path / ("f.mov" if codec == "png" else "f.mkv"), plain, recipe))
    for frame, source in zip(frames, plain, strict=True):
        assert np.abs(frame.rgba[..., :3].astype(int) - source).max() <= tolerance
        assert (frame.rgba[..., 3] == 255).all()


@pytest.mark.parametrize(("levels", "expected"), [(1, [0, 255, 128]), (2, [16, 235, 126])])
def test_gray_pictures_use_the_stated_range(tmp_path: Path, levels: int, expected: list[int]) -> None:
    path = tmp_path / "g.mkv"
    with av.open(str(path), "w") as container:
        stream = container.add_stream("ffv1", rate=30)
        assert isinstance(stream, av.VideoStream)
        stream.width, stream.height, stream.pix_fmt = 16, 16, "gray"
        stream.codec_context.color_range = levels
        for value in (16, 235, 126):
            container.mux(stream.encode(av.VideoFrame.from_ndarray(np.full((16, 16), value, np.uint8), "gray")))
        container.mux(stream.encode(None))
    _, frames = read(path)
    assert [int(frame.rgba[0, 0, 0]) for frame in frames] == expected


@pytest.mark.parametrize(("width", "height"), [(1, 1), (1, 7), (641, 479), (65, 3), (2, 2)])
def test_sizes_work_to_the_last_column(tmp_path: Path, width: int, height: int) -> None:
    ramp = np.linspace(30, 220, width).astype(np.uint8)
    rgb = np.broadcast_to(ramp[None, :, None], (height, width, 3)).copy()
    recipe = Recipe("ffv1", color=(6, 1), codec_options={"level": "1"})
    info, frames = read(write_clip(tmp_path / "s.mkv", [rgb], recipe))
    assert (info.width, info.height, len(frames)) == (width, height, 1)
    assert np.abs(frames[0].rgba[..., :3].astype(int) - rgb).max() <= 2


@exhaustive
def test_4k_works(tmp_path: Path) -> None:
    info, frames = read(write_clip(tmp_path / "4k.mp4", numbered(2, 3840, 2160)))
    assert (info.width, info.height) == (3840, 2160)
    assert [number_of(frame.rgba) for frame in frames] == [0, 1]


QUARTERS = [
    ((0, 1, -1, 0), 90, lambda image: np.rot90(image, -1)),
    ((-1, 0, 0, -1), 180, lambda image: np.rot90(image, 2)),
    ((0, -1, 1, 0), 270, lambda image: np.rot90(image, 1)),
    ((-1, 0, 0, 1), 0, lambda image: image[:, ::-1]),
    ((1, 0, 0, -1), 0, lambda image: image[::-1]),
    ((0, 1, 1, 0), 0, lambda image: image.transpose(1, 0, 2)),
]


@pytest.mark.parametrize(("matrix", "degrees", "turn"), QUARTERS)
def test_rotated_and_mirrored_recordings_come_out_upright(
    tmp_path: Path, matrix: tuple[int, int, int, int], degrees: int, turn: Callable[[Rgba], Rgba]
) -> None:
    clip = write_clip(tmp_path / "r.mp4", moving(2), Recipe(aspect=Fraction(4, 3)))
    _, stored = read(clip)
    set_display_matrix(clip, *matrix)
    info, frames = read(clip)
    expected = turn(stored[1].rgba)
    assert np.array_equal(frames[1].rgba, expected)
    assert frames[1].rgba.flags.c_contiguous
    assert (info.rotation, info.height, info.width) == (degrees, *expected.shape[:2])
    assert info.sample_aspect_ratio == (Fraction(3, 4) if expected.shape[0] == 64 else Fraction(4, 3))


def test_orientation_of_a_malformed_matrix_is_upright() -> None:
    assert Orientation.from_matrix(b"") == Orientation.from_matrix(bytes(36)) == Orientation()


def test_anamorphic_pixels_are_kept_and_their_aspect_told(tmp_path: Path) -> None:
    info, frames = read(write_clip(tmp_path / "a.mkv", numbered(2), Recipe(aspect=Fraction(16, 11))))
    assert info.sample_aspect_ratio == Fraction(16, 11)
    assert frames[0].rgba.shape == (48, 64, 4)


def test_size_changes_in_mid_stream_are_scaled_back(tmp_path: Path) -> None:
    small, large = (write_clip(tmp_path / f"{width}.h264", numbered(4, width)) for width in (64, 128))
    path = tmp_path / "both.h264"
    path.write_bytes(small.read_bytes() + large.read_bytes())
    with FileSource(path) as source:
        frames = list(source)
    assert source.rescaled_frames == 4
    assert [frame.rgba.shape for frame in frames] == [(48, 64, 4)] * 8
    assert [number_of(frame.rgba) for frame in frames] == [0, 1, 2, 3] * 2


def shown(frame: VideoFrame) -> Rgba:
    """The upright picture, as the CPU path reads its planes."""
    form = frame.picture.format
    return np.asarray(Preprocessor(form, form.upright_size).image_to_tensor(frame.picture)[0] * 255)


@pytest.mark.parametrize(
    ("name", "layout", "bits"),
    [
        ("yuv420p", "yuv", 8),
        ("yuv422p10le", "yuv", 10),
        ("nv12", "nv12", 8),
        ("yuyv422", "yuyv", 8),
        ("uyvy422", "uyvy", 8),
        ("gray", "gray", 8),
        ("bgr0", "rgba", 8),
    ],
)
def test_planes_show_what_rgba_shows(tmp_path: Path, name: str, layout: str, bits: int) -> None:
    codec = "rawvideo" if name in ("nv12", "yuyv422", "uyvy422") else "ffv1"
    clip = write_clip(tmp_path / "p.mkv", numbered(2), Recipe(codec, name, color=(6, 2), codec_options={}))
    _, frames = read(clip)
    for frame in frames:
        assert (frame.picture.format.layout, frame.picture.format.bits) == (layout, bits)
        assert np.abs(shown(frame) - frame.rgba[..., :3]).max() <= 1
        assert number_of(frame.rgba) == frame.index


@pytest.mark.parametrize(("matrix", "degrees", "turn"), QUARTERS)
def test_planes_of_turned_recordings_are_read_upright(
    tmp_path: Path, matrix: tuple[int, int, int, int], degrees: int, turn: Callable[[Rgba], Rgba]
) -> None:
    clip = write_clip(tmp_path / "r.mp4", moving(2))
    _, stored = read(clip)
    set_display_matrix(clip, *matrix)
    with FileSource(clip) as source:
        frame = list(source)[1]
    assert source.format == frame.picture.format
    assert source.format.upright_size == (source.info.width, source.info.height)
    np.testing.assert_allclose(shown(frame), turn(shown(stored[1])), rtol=0, atol=1e-3)


def test_planes_keep_the_first_ones_format_in_mid_stream(tmp_path: Path) -> None:
    recipes = [Recipe(color=(6, 1)), Recipe(pixel_format="yuv444p", color=(1, 2))]
    clips = [write_clip(tmp_path / f"{i}.h264", numbered(4, 64 + 64 * i), recipe) for i, recipe in enumerate(recipes)]
    path = tmp_path / "both.h264"
    path.write_bytes(b"".join(clip.read_bytes() for clip in clips))
    with FileSource(path) as source:
        for number, frame in enumerate(source):
            assert frame.picture.format == source.format
            assert [plane.shape for plane in frame.picture.planes] == [(48, 64), (24, 32), (24, 32)]
            assert np.abs(shown(frame) - (20 + 6 * (number % 4))).max() <= 3
    assert source.rescaled_frames == 4


# Damage


def cut(path: Path, share: float) -> Path:
    data = path.read_bytes()
    path.write_bytes(data[: int(len(data) * share)])
    return path


CUT_OFF = {
    "index-first.mp4": {"movflags": "faststart"},
    "fragmented.mp4": {"movflags": "frag_keyframe+empty_moov"},
    "plain.mkv": {},
    "live.mkv": {"live": "1", "cluster_time_limit": "100"},
    "plain.avi": {},
}


@pytest.mark.parametrize("name", CUT_OFF)
def test_cut_off_files_give_what_decodes_and_say_so(tmp_path: Path, name: str) -> None:
    options = {"crf": "1", "preset": "ultrafast", "g": "6"}
    clip = write_clip(tmp_path / name, moving(40), Recipe(codec_options=options, container_options=CUT_OFF[name]))
    _, whole = read(clip)
    with FileSource(cut(clip, 0.7)) as source:
        frames = list(source)
    assert 15 <= len(frames) < 40
    for frame, expected in zip(frames[:-2], whole, strict=False):
        assert np.array_equal(frame.rgba, expected.rgba)
    assert source.truncated is not None
    assert "\n" not in source.truncated


def test_range_that_ends_before_the_cut_is_not_called_truncated(tmp_path: Path) -> None:
    clip = cut(write_clip(tmp_path / "a.mkv", moving(30)), 0.8)
    read(clip, 2, 5)


def test_damaged_packets_are_skipped_and_counted(tmp_path: Path) -> None:
    clip = write_clip(tmp_path / "d.mov", moving(20), Recipe("png", "rgb24", codec_options={}))
    data = bytearray(clip.read_bytes())
    for _, packet in packets(clip, "video")[5:8]:
        start = data.index(packet)
        data[start : start + 8] = bytes(8)
    clip.write_bytes(data)
    with FileSource(clip) as source:
        frames = list(source)
    assert (len(frames), source.damaged_frames, source.truncated) == (17, 3, None)


def test_plain_mp4_without_its_index_is_refused_with_advice(tmp_path: Path) -> None:
    message = refusal(cut(write_clip(tmp_path / "a.mp4", moving(30)), 0.5))
    assert "index" in message
    assert "untrunc" in message


def test_what_is_no_video_is_refused(tmp_path: Path) -> None:
    assert "does not exist" in refusal(tmp_path / "missing.mp4")
    assert "folder" in refusal(tmp_path)
    contents = {
        "text.mp4": b"hello, world\n" * 500,
        "text.txt": b"hello, world\n" * 500,
        "playlist.mp4": b"#EXTM3U\n#EXTINF:1,\n/etc/passwd\n",
        "script.mp4": b"ffconcat version 1.0\nfile a.mp4\n",
        "noise.mp4": np.random.default_rng(1).bytes(100_000),
        "zeros.mp4": bytes(100_000),
        "one.mp4": b"\0",
    }
    for name, data in contents.items():
        (tmp_path / name).write_bytes(data)
        assert "not a video" in refusal(tmp_path / name)
    (tmp_path / "empty.mp4").touch()
    assert "empty" in refusal(tmp_path / "empty.mp4")
    os.mkfifo(tmp_path / "pipe.mp4")
    assert "regular file" in refusal(tmp_path / "pipe.mp4")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_unreadable_file_is_refused(tmp_path: Path) -> None:
    clip = write_clip(tmp_path / "a.mp4", numbered(2))
    clip.chmod(0)
    assert "permissions" in refusal(clip)


def test_sound_without_pictures_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "sound.mp4"
    with av.open(str(path), "w") as container:
        stream = container.add_stream("aac", rate=48000)
        assert isinstance(stream, av.AudioStream)
        frame = av.AudioFrame.from_ndarray(np.zeros((1, 1024), np.float32), "fltp", "mono")
        frame.sample_rate = 48000
        stream.codec_context.layout = "mono"
        container.mux(stream.encode(frame))
        container.mux(stream.encode(None))
    assert "no video stream" in refusal(path)


def test_unknown_codec_and_undecodable_pictures_are_refused(tmp_path: Path) -> None:
    clip = write_clip(tmp_path / "a.mp4", numbered(3))
    clip.write_bytes(clip.read_bytes().replace(b"avc1", b"zzzz"))
    assert "codec" in refusal(clip)
    clip = write_clip(tmp_path / "b.mov", numbered(3), Recipe("png", "rgb24", codec_options={}))
    clip.write_bytes(clip.read_bytes().replace(b"\x89PNG", bytes(4)))
    assert "no frame" in refusal(clip)


def test_absurd_sizes_are_refused(tmp_path: Path) -> None:
    clip = write_clip(tmp_path / "wide.mkv", numbered(1, 16386, 2), Recipe("ffv1", "gray", codec_options={}))
    assert "16386x2" in refusal(clip)
    clip = write_clip(tmp_path / "p.mov", numbered(1), Recipe("png", "rgb24", codec_options={}))
    data = bytearray(clip.read_bytes())
    header = data.index(b"IHDR")
    data[header + 4 : header + 12] = (16000).to_bytes(4, "big") * 2
    clip.write_bytes(data)
    refusal(clip)


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_flipped_bytes_never_cause_anything_but_a_media_error(tmp_path: Path, data: st.DataObject) -> None:
    suffix = data.draw(st.sampled_from(["mp4", "mkv", "avi"]))
    original = tmp_path / f"whole.{suffix}"
    if not original.exists():
        write_clip(original, moving(6, 32, 16))
    content = bytearray(original.read_bytes())
    for _ in range(data.draw(st.integers(1, 6))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    broken = tmp_path / f"broken.{suffix}"
    share = data.draw(st.sampled_from([1, 1, 1, 0.9, 0.5]))
    broken.write_bytes(content[: int(len(content) * share)])
    with contextlib.suppress(MediaError), FileSource(broken) as source:
        pts = [frame.pts for frame in source]
        assert pts == sorted(set(pts))


def test_ffmpeg_itself_prints_nothing(tmp_path: Path) -> None:
    clip = cut(write_clip(tmp_path / "a.mkv", moving(20)), 0.6)
    load = "from texelflow.app.media.sources import FileSource"
    code = f"{load}\nwith FileSource({str(clip)!r}) as source: print(len(list(source)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert int(done.stdout) > 5
    assert done.stderr == ""
