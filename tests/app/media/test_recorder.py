"""Recorder: frames with time stamps are recorded, and the files are read back and compared."""

import os
from fractions import Fraction
from pathlib import Path

import av
import cv2
import numpy as np
import numpy.typing as npt
import pytest

from tests.helpers.clips import Recipe, moving, numbered, packets, set_display_matrix, write_clip
from texelflow.app.files import check_output
from texelflow.app.media.recorder import Recorder, write_png
from texelflow.app.media.sources import FileSource, Position
from texelflow.gpu_delegate.base.errors import MediaError

MS = Fraction(1, 1000)


def opaque(rgb: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint8]:
    return np.dstack([rgb, np.full(rgb.shape[:2], 255, np.uint8)])


def record(path: Path, frames: list[npt.NDArray[np.uint8]], pts: list[int] | None = None) -> list[str]:
    height, width, _ = frames[0].shape
    with Recorder(path, width, height, Fraction(1, 30), Fraction(30)) as recorder:
        for index, rgb in enumerate(frames):
            recorder.write(opaque(rgb), pts[index] if pts else index)
    return recorder.warnings


def copy(source_path: Path, path: Path, first: Position = 0, last: Position | None = None) -> list[str]:
    with FileSource(source_path, first, last) as source:
        info, cut = source.info, (first, last) != (0, None)
        size = (info.width, info.height)
        with Recorder(
            path, *size, info.time_base, info.average_rate, info.sample_aspect_ratio, source_path, cut
        ) as recorder:
            for frame in source:
                recorder.write(frame.rgba, frame.pts)
    return recorder.warnings


def times(path: Path) -> list[Fraction]:
    with FileSource(path) as source:
        return [frame.pts * source.info.time_base for frame in source]


# What is written


@pytest.mark.parametrize("suffix", ["mp4", "mov", "mkv", "m4v"])
def test_frames_come_back_in_order_and_color(tmp_path: Path, suffix: str) -> None:
    colors = [(255, 0, 0), (0, 255, 0), (0, 0, 255), (255, 255, 255), (0, 0, 0), (200, 120, 40)]
    frames: list[npt.NDArray[np.uint8]] = [np.full((48, 64, 3), color, np.uint8) for color in colors]
    path = tmp_path / f"out.{suffix}"
    assert record(path, frames) == []
    with FileSource(path) as source:
        assert (source.info.color_matrix, source.info.color_range) == ("bt709", "limited")
        decoded = list(source)
    assert source.truncated is None
    for frame, color in zip(decoded, colors, strict=True):
        assert np.abs(frame.rgba[..., :3].astype(int) - color).max() <= 4


@pytest.mark.parametrize("suffix", ["mp4", "mov", "mkv"])
def test_two_recordings_are_the_same_bytes(tmp_path: Path, suffix: str) -> None:
    one, two = tmp_path / f"one.{suffix}", tmp_path / f"two.{suffix}"
    frames = moving(40, 320, 240)
    record(one, frames)
    record(two, frames)
    assert one.read_bytes() == two.read_bytes()


@pytest.mark.parametrize("time_base", [Fraction(1, 90000), Fraction(1, 15360), MS, Fraction(1001, 30000)])
def test_varying_time_stamps_are_exact_and_start_at_zero(tmp_path: Path, time_base: Fraction) -> None:
    pts = [700, 701, 702, 710, 711, *range(712, 740), 900, 7000]
    path = tmp_path / "vfr.mp4"
    with Recorder(path, 64, 48, time_base, Fraction(30)) as recorder:
        for rgb, stamp in zip(numbered(len(pts)), pts, strict=True):
            recorder.write(opaque(rgb), stamp)
    assert times(path) == [(stamp - 700) * time_base for stamp in pts]


@pytest.mark.parametrize(("width", "height"), [(641, 479), (1, 1), (64, 3), (5, 64)])
def test_odd_sizes_are_padded_by_the_edge_and_said_so(tmp_path: Path, width: int, height: int) -> None:
    rgb = np.full((height, width, 3), 60, np.uint8)
    rgb[:, -1] = 200
    warnings = record(tmp_path / "odd.mp4", [rgb])
    assert len(warnings) == 1
    assert f"{width}x{height} is padded" in warnings[0]
    with FileSource(tmp_path / "odd.mp4") as source:
        (frame,) = source
    assert frame.rgba.shape == (height + height % 2, width + width % 2, 4)
    assert np.abs(frame.rgba[:height, -1, 0].astype(int) - 200).max() <= 40
    assert np.abs(frame.rgba[-1].astype(int) - frame.rgba[height - 1]).max() <= 8


def test_planes_are_written_as_they_are(tmp_path: Path) -> None:
    luma, cb, cr = (np.full(shape, code, np.uint8) for shape, code in (((48, 66), 90), ((24, 33), 180), ((24, 33), 70)))
    luma[:, 33:] = 160
    planes = np.concatenate([plane.ravel() for plane in (luma, cb, cr)])
    with Recorder(tmp_path / "planes.mp4", 65, 48, MS, Fraction(30)) as recorder:  # 65 is padded
        for pts in (0, 33, 90):
            recorder.write_i420(planes, pts)
        with pytest.raises(MediaError, match="another size than 9 bytes"):
            recorder.write_i420(planes[:9], 100)
    assert times(tmp_path / "planes.mp4") == [0, 33 * MS, 90 * MS]
    with av.open(str(tmp_path / "planes.mp4")) as container:
        frame = next(container.decode(video=0))
    assert (frame.colorspace, frame.color_range) == (1, 1)
    assert getattr(frame, "chroma_location", 2) == 2  # in the middle; older PyAV does not tell
    decoded = frame.to_ndarray()
    assert np.abs(decoded.ravel().astype(int) - planes).max() <= 4


def test_4k_and_single_frames_work(tmp_path: Path) -> None:
    record(tmp_path / "4k.mp4", numbered(1, 3840, 2160))
    with FileSource(tmp_path / "4k.mp4") as source:
        (frame,) = source
    assert frame.rgba.shape == (2160, 3840, 4)


@pytest.mark.parametrize("suffix", ["mp4", "mov", "mkv"])
def test_aspect_of_anamorphic_and_turned_recordings_is_kept(tmp_path: Path, suffix: str) -> None:
    clip = write_clip(tmp_path / "in.mp4", moving(3), Recipe(aspect=Fraction(4, 3)))
    set_display_matrix(clip, 0, 1, -1, 0)
    out = tmp_path / f"out.{suffix}"
    copy(clip, out)
    with FileSource(out) as source:
        info = source.info
    assert (info.width, info.height, info.rotation, info.sample_aspect_ratio) == (48, 64, 0, Fraction(3, 4))


# Sound

SOUNDS = [("aac", "mp4"), ("libmp3lame", "mp4"), ("libopus", "mkv"), ("flac", "mkv"), ("ac3", "mkv")]


@pytest.mark.parametrize(("codec", "suffix"), SOUNDS)
def test_sound_is_copied_unchanged_and_in_step(tmp_path: Path, codec: str, suffix: str) -> None:
    clip = write_clip(tmp_path / f"in.{suffix}", moving(30), Recipe(sound=codec))
    out = tmp_path / "out.mp4"
    assert copy(clip, out) == []
    before, after = packets(clip, "audio"), packets(out, "audio")
    assert [data for _, data in before] == [data for _, data in after]
    lead = before[0][0] - times(clip)[0]
    assert float(after[0][0] - times(out)[0]) == pytest.approx(float(lead), abs=0.001)
    assert times(out)[0] == 0


def test_broadcast_sound_is_repacked_and_in_step(tmp_path: Path) -> None:
    clip = write_clip(tmp_path / "in.ts", moving(30), Recipe(sound="aac"))
    assert copy(clip, tmp_path / "out.mp4") == []
    before, after = packets(clip, "audio"), packets(tmp_path / "out.mp4", "audio")
    assert len(before) == len(after)
    assert after[5][1] in before[5][1]  # less the header
    lead = before[0][0] - times(clip)[0]
    assert float(after[0][0] - times(tmp_path / "out.mp4")[0]) == pytest.approx(float(lead), abs=0.001)


@pytest.mark.parametrize("suffix", ["mp4", "mkv"])
def test_sound_of_a_cut_is_limited_to_it(tmp_path: Path, suffix: str) -> None:
    clip = write_clip(tmp_path / "in.mp4", moving(60), Recipe(sound="aac"))
    out = tmp_path / f"out.{suffix}"
    copy(clip, out, 15, 44)
    original = packets(clip, "audio")
    inside = [(time - Fraction(1, 2), data) for time, data in original if Fraction(1, 2) <= time < Fraction(3, 2)]
    copied = packets(out, "audio")
    assert [data for _, data in copied] == [data for _, data in inside]
    assert [float(time) for time, _ in copied] == pytest.approx([float(time) for time, _ in inside], abs=0.001)
    assert len(times(out)) == 30
    assert times(out)[0] == 0


def test_sound_that_the_container_does_not_take_is_dropped_with_a_warning(tmp_path: Path) -> None:
    clip = write_clip(tmp_path / "in.mkv", moving(10), Recipe(sound="flac"))
    (warning,) = copy(clip, tmp_path / "out.mov")
    assert "flac" in warning
    assert len(times(tmp_path / "out.mov")) == 10
    assert copy(clip, tmp_path / "out.mkv") == []


def test_sound_with_a_damaged_header_is_dropped_and_the_pictures_are_kept(tmp_path: Path) -> None:
    clip = write_clip(tmp_path / "in.mkv", moving(10), Recipe(sound="libopus"))
    data = bytearray(clip.read_bytes())
    data[data.rindex(b"\x63\xa2", 0, data.index(b"OpusHead")) + 1] ^= 1  # the codec's header becomes an unknown element
    clip.write_bytes(data)
    (warning,) = copy(clip, tmp_path / "out.mp4")
    assert "opus" in warning
    assert len(times(tmp_path / "out.mp4")) == 10


def test_sound_ends_where_a_stopped_recording_ends(tmp_path: Path) -> None:
    clip = write_clip(tmp_path / "in.mp4", moving(60), Recipe(sound="aac"))

    def stop_after_20() -> None:
        with FileSource(clip) as source:
            rate = source.info.average_rate
            with Recorder(tmp_path / "out.mp4", 64, 48, source.info.time_base, rate, audio_from=clip) as recorder:
                for frame in source:
                    recorder.write(frame.rgba, frame.pts)
                    if frame.index == 19:
                        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        stop_after_20()
    assert len(times(tmp_path / "out.mp4")) == 20
    assert 0.6 < packets(tmp_path / "out.mp4", "audio")[-1][0] < 0.7


# Refusals


def test_recording_without_frames_makes_and_replaces_no_file(tmp_path: Path) -> None:
    (tmp_path / "old.mp4").write_bytes(b"precious")
    for name in ("none.mp4", "old.mp4"):
        with Recorder(tmp_path / name, 64, 48, MS, Fraction(30)):
            pass
    assert not (tmp_path / "none.mp4").exists()
    assert (tmp_path / "old.mp4").read_bytes() == b"precious"


def refusal(path: Path, *inputs: Path) -> str:
    with pytest.raises(MediaError) as caught:
        check_output(path, *inputs)
    with pytest.raises(MediaError):
        Recorder(path, 64, 48, MS, Fraction(30), audio_from=inputs[0] if inputs else None)
    message = str(caught.value)
    assert str(path) in message
    assert "\n" not in message
    return message


def test_outputs_that_cannot_be_written_are_refused(tmp_path: Path) -> None:
    (tmp_path / "folder.mp4").mkdir()
    (tmp_path / "file").touch()
    os.mkfifo(tmp_path / "pipe.mp4")
    assert "no folder" in refusal(tmp_path / "missing" / "out.mp4")
    assert "no folder" in refusal(tmp_path / "file" / "out.mp4")
    assert "is a folder" in refusal(tmp_path / "folder.mp4")
    assert "regular file" in refusal(tmp_path / "pipe.mp4")
    assert ".mp4, .m4v, .mov, .mkv" in refusal(tmp_path / "out.xyz")
    assert ".mkv" in refusal(tmp_path / "out")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_read_only_outputs_are_refused(tmp_path: Path) -> None:
    (tmp_path / "old.mp4").write_bytes(b"old")
    (tmp_path / "old.mp4").chmod(0o400)
    assert "permissions" in refusal(tmp_path / "old.mp4")
    tmp_path.chmod(0o500)
    assert "permissions" in refusal(tmp_path / "new.mp4")
    tmp_path.chmod(0o700)


def test_the_input_is_never_overwritten(tmp_path: Path) -> None:
    clip = write_clip(tmp_path / "in.mp4", numbered(3))
    content = clip.read_bytes()
    (tmp_path / "link.mp4").symlink_to(clip)
    os.link(clip, tmp_path / "hard.mp4")
    for name in ("in.mp4", "link.mp4", "hard.mp4"):
        assert "input" in refusal(tmp_path / name, clip)
    assert clip.read_bytes() == content


def test_overlong_names_and_frames_of_another_size_are_refused(tmp_path: Path) -> None:
    name = "x" * 300 + ".mp4"
    with Recorder(tmp_path / name, 64, 48, MS, Fraction(30)) as recorder, pytest.raises(MediaError, match="too long"):
        recorder.write(np.zeros((48, 64, 4), np.uint8), 0)
    with Recorder(tmp_path / "a.mp4", 64, 48, MS, Fraction(30)) as recorder, pytest.raises(MediaError, match="size"):
        recorder.write(np.zeros((48, 66, 4), np.uint8), 0)


# Stills


@pytest.mark.parametrize("shape", [(7, 5), (7, 5, 3), (7, 5, 4), (1, 1)])
def test_png_holds_the_same_pixels(tmp_path: Path, shape: tuple[int, ...]) -> None:
    image = np.random.default_rng(0).integers(0, 255, shape, np.uint8)
    path = tmp_path / "ä still.png"
    write_png(path, image)
    write_png(path, image)
    stored = np.asarray(cv2.imdecode(np.frombuffer(path.read_bytes(), np.uint8), cv2.IMREAD_UNCHANGED))
    order = [2, 1, 0, 3][: shape[2]] if len(shape) == 3 else ...
    assert np.array_equal(stored[..., order] if len(shape) == 3 else stored, image)
    assert [entry.name for entry in tmp_path.iterdir()] == [path.name]


def test_png_that_cannot_be_written_is_one_line(tmp_path: Path) -> None:
    image = np.zeros((4, 4), np.uint8)
    for path in (tmp_path / "missing" / "a.png", tmp_path, tmp_path / ("x" * 300 + ".png")):
        with pytest.raises(MediaError) as caught:
            write_png(path, image)
        assert "\n" not in str(caught.value)
    assert list(tmp_path.iterdir()) == []
