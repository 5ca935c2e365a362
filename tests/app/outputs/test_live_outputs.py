"""Live outputs: files are read back, disks stall and fill, no name is reused."""

import os
import resource
import threading
from collections.abc import Callable, Iterator
from fractions import Fraction
from pathlib import Path

import cv2
import numpy as np
import numpy.typing as npt
import pytest

from tests.helpers.clips import moving, number_of, numbered
from tests.helpers.living import living
from tests.helpers.on_device import Easel
from tests.helpers.stalled_disk import stalled_disk
from tests.helpers.waiting import until
from texelflow.app.capture.capture import TIME_BASE
from texelflow.app.media.sources import FileSource
from texelflow.app.names import free_name, next_name
from texelflow.app.outputs.file_sinks import Timing, nominal_rate
from texelflow.app.outputs.frame_outputs import Outputs
from texelflow.app.outputs.output_worker import most_waiting
from texelflow.app.outputs.picture_readers import DeviceReader
from texelflow.app.picture.picture import rgba_picture
from texelflow.app.picture.video_frame import VideoFrame
from texelflow.gpu_delegate.base.errors import DeviceError, MediaError
from texelflow.gpu_delegate.targets.gl.context import Context

Bytes = npt.NDArray[np.uint8]
Open = Callable[[tuple[int, int]], tuple[Outputs, Easel]]

CAMERA = Timing(TIME_BASE, Fraction(30))
MOST = most_waiting(1)  # frames that no output drops, however slow the machine
NOTHING = rgba_picture(np.zeros((1, 1, 4), np.uint8))


@pytest.fixture
def opened(context: Context, tmp_path: Path) -> Iterator[Open]:
    """Makes outputs for pictures of a size; all is released at the end."""
    made: list[tuple[Outputs, Easel]] = []

    def make(size: tuple[int, int]) -> tuple[Outputs, Easel]:
        easel = Easel(context, size)
        made.append((Outputs(context, easel, CAMERA, folder=tmp_path), easel))
        return made[-1]

    yield make
    for outputs, easel in made:
        outputs.release()
        easel.release()


def opaque(rgb: npt.NDArray[np.uint8]) -> Bytes:
    return np.dstack([rgb, np.full(rgb.shape[:2], 255, np.uint8)])


def pass_by(outputs: Outputs, index: int, pts: int | None = None) -> None:
    """A frame on its way; sources count in microseconds."""
    outputs.stage.run(VideoFrame(index, index * 33_333 if pts is None else pts, 0.0, NOTHING))


def finished(outputs: Outputs) -> list[str]:
    outputs.finish()
    return outputs.lines()


def images(folder: Path) -> dict[str, Bytes]:
    """As stored, with OpenCV's order of channels."""
    return {path.name: np.asarray(cv2.imread(str(path), cv2.IMREAD_UNCHANGED)) for path in sorted(folder.iterdir())}


# What is written


def test_nothing_is_read_back_while_nothing_is_wanted(context: Context, opened: Open, tmp_path: Path) -> None:
    outputs, _ = opened((64, 48))
    before = (context.readback.calls, context.readback.bytes)
    for index in range(50):
        pass_by(outputs, index)
    outputs.begin_recording()
    pass_by(outputs, 50)
    outputs.end("recording")
    recorded = (context.readback.calls, context.readback.bytes)
    for index in range(51, 100):
        pass_by(outputs, index)
    assert (context.readback.calls, context.readback.bytes) == recorded
    assert recorded[1] - before[1] == 64 * 48 * 3 // 2
    assert (outputs.active, dict(outputs.counts)) == ((), {})


@pytest.mark.parametrize("suffix", ["mp4", "mkv"])
def test_a_recording_has_its_frames_at_the_times_of_the_camera(
    context: Context, opened: Open, tmp_path: Path, suffix: str
) -> None:
    outputs, easel = opened((64, 48))
    outputs.begin_recording(tmp_path / f"take.{suffix}")
    pts = [5_000_000, 5_033_000, 5_100_000, 5_100_000, 5_090_000, 5_400_000, 9_000_000]
    before = context.readback.bytes
    for index, rgb in enumerate(numbered(len(pts))):
        easel.paint(opaque(rgb))
        pass_by(outputs, index, pts[index])
    assert outputs.active == ("recording",)
    assert finished(outputs) == [
        f"recording to {tmp_path}/take.{suffix}",
        f"written: {tmp_path}/take.{suffix} (4.0 s, 7 frames)",
    ]
    assert context.readback.bytes - before == len(pts) * 64 * 48 * 3 // 2
    with FileSource(tmp_path / f"take.{suffix}") as source:
        frames = list(source)
        assert (source.info.color_matrix, source.info.color_range) == ("bt709", "limited")
    assert [number_of(frame.rgba) for frame in frames] == list(range(len(pts)))
    # What stands still or runs backwards moves on by the least that a file keeps.
    wanted = [0, 33_000, 100_000, 101_000, 102_000, 400_000, 4_000_000]
    assert [round(frame.pts * source.info.time_base / TIME_BASE) for frame in frames] == wanted
    assert {frame.picture.format.siting for frame in frames} <= {"center", "left"}  # older PyAV does not tell


def test_a_recording_looks_as_its_pictures(opened: Open, tmp_path: Path) -> None:
    outputs, easel = opened((160, 120))
    (rgb,) = moving(1, 160, 120)
    outputs.begin_recording()
    easel.paint(opaque(rgb))
    pass_by(outputs, 0)
    outputs.finish()
    with FileSource(tmp_path / "texelflow-1.mp4") as source:
        (frame,) = source
    error = np.abs(frame.rgba[..., :3].astype(int) - rgb)
    assert error.mean() < 3
    assert np.percentile(error, 99) <= 20  # at the bar's edge, where chroma is shared by four pixels


def test_odd_sizes_are_recorded_with_their_edge_repeated(opened: Open, tmp_path: Path) -> None:
    outputs, easel = opened((65, 47))
    rgba = opaque(np.full((47, 65, 3), 60, np.uint8))
    rgba[-8:, :, :3] = rgba[:, -8:, :3] = 200
    outputs.begin_recording(tmp_path / "odd.mp4")
    easel.paint(rgba)
    pass_by(outputs, 0)
    outputs.finish()
    with FileSource(tmp_path / "odd.mp4") as source:
        (frame,) = source
    wanted = np.pad(rgba, ((0, 1), (0, 1), (0, 0)), "edge")
    assert frame.rgba.shape == wanted.shape
    assert np.abs(frame.rgba.astype(int) - wanted).mean() < 4


def test_masks_and_cutouts_are_the_same_bytes(context: Context, opened: Open, tmp_path: Path) -> None:
    outputs, easel = opened((37, 21))
    cutout = np.random.default_rng(1).integers(0, 256, (21, 37, 4), np.uint8)
    matte = cutout[..., [3, 3, 3, 3]].copy()
    matte[..., 3] = 255
    outputs.begin_masks(tmp_path / "masks")
    outputs.begin_cutouts(tmp_path / "cutouts")
    easel.paint(matte, "mask")
    easel.paint(cutout, "cutout")
    before = context.readback.bytes
    for index in (0, 1, 7):
        pass_by(outputs, index)
    lines = finished(outputs)
    assert f"written: {tmp_path}/masks (3 PNG files)" in lines
    assert context.readback.bytes - before == 3 * 37 * 21 * (1 + 4)
    for folder, wanted in (("masks", cutout[..., 3]), ("cutouts", cutout[..., [2, 1, 0, 3]])):
        stored = images(tmp_path / folder)
        assert list(stored) == ["000000.png", "000001.png", "000007.png"]
        assert all(np.array_equal(image, wanted) for image in stored.values())


def test_masks_can_be_a_gray_video(opened: Open, tmp_path: Path) -> None:
    outputs, easel = opened((64, 48))
    outputs.begin_masks(tmp_path / "masks.mkv")
    for index, rgb in enumerate(numbered(MOST)):
        easel.paint(opaque(rgb), "mask")
        pass_by(outputs, index)
    outputs.finish()
    with FileSource(tmp_path / "masks.mkv") as source:
        frames = [frame.rgba[..., :3].astype(int) for frame in source]
    assert [round((float(frame.mean()) - 20) / 6) for frame in frames] == list(range(MOST))
    assert max(int(np.ptp(frame, axis=2).max()) for frame in frames) <= 2


def test_outputs_begin_and_end_at_any_time(opened: Open, tmp_path: Path) -> None:
    outputs, easel = opened((64, 48))
    spans = {"texelflow-1.mp4": range(2, 5), "texelflow-2.mp4": range(5, 9)}
    for index, rgb in enumerate(numbered(12)):
        if index in (2, 5):
            outputs.begin_recording()  # ends the one before
        if index == 9:
            outputs.end("recording")
            outputs.end("recording")
        easel.paint(opaque(rgb))
        pass_by(outputs, index)
    outputs.finish()
    for name, span in spans.items():
        with FileSource(tmp_path / name) as source:
            assert [number_of(frame.rgba) for frame in source] == list(span)
    assert sorted(path.name for path in tmp_path.iterdir()) == list(spans)


def test_pictures_of_another_size_end_the_outputs(opened: Open, tmp_path: Path) -> None:
    outputs, easel = opened((64, 48))
    _, larger = opened((66, 48))
    outputs.begin_recording(tmp_path / "a.mp4")
    pass_by(outputs, 0)
    pass_by(outputs, 1)
    easel.target, larger.target = larger.target, easel.target
    pass_by(outputs, 2)
    lines = finished(outputs)
    assert f"{tmp_path}/a.mp4 ends here: pictures have another size from now on" in lines
    assert lines[-1].endswith("a.mp4 (0.1 s, 2 frames)")


def test_a_recording_without_frames_leaves_no_file(opened: Open, tmp_path: Path) -> None:
    outputs, _ = opened((64, 48))
    outputs.begin_recording()
    assert finished(outputs)[-1].startswith("nothing was recorded")
    assert list(tmp_path.iterdir()) == []


def test_many_beginnings_and_ends_leave_no_objects_and_no_threads(context: Context, tmp_path: Path) -> None:
    before, threads = living(context), {*threading.enumerate()}
    easel = Easel(context, (33, 21))
    outputs = Outputs(context, easel, CAMERA, folder=tmp_path)
    for index in range(12):
        outputs.begin_recording()
        outputs.begin_masks(tmp_path / "masks")
        outputs.begin_cutouts(tmp_path / "cutouts")
        pass_by(outputs, index)
        if index == 6:
            during = {kind: len(names) for kind, names in living(context).items()}
    assert {kind: len(names) for kind, names in living(context).items()} == during
    outputs.release()
    easel.release()
    assert living(context) == before
    assert {*threading.enumerate()} <= threads
    assert len(list(tmp_path.iterdir())) == 36


# Too slow, too full


def test_what_the_disk_does_not_take_is_dropped_before_it_is_read_back(
    context: Context, opened: Open, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    outputs, _ = opened((32, 16))
    free = stalled_disk(monkeypatch)
    outputs.begin_cutouts(tmp_path / "cutouts")
    for index in range(3):
        pass_by(outputs, index)
    before = context.readback.bytes
    for index in range(3, 60):
        pass_by(outputs, index)
    counts = outputs.counts["cutouts"]
    lines = outputs.lines()
    read = context.readback.bytes - before
    free.set()
    assert counts.dropped >= 60 - most_waiting(32 * 16 * 4) - 4
    assert read <= (60 - counts.dropped) * 32 * 16 * 4
    assert lines[-1] == (
        f"{counts.dropped} frames dropped from {tmp_path}/cutouts: the disk or the encoder does not keep up"
    )
    saved = finished(outputs)[-1]
    written = 60 - counts.dropped
    assert saved == f"written: {tmp_path}/cutouts ({written} PNG files), {counts.dropped} frames dropped"
    assert len(images(tmp_path / "cutouts")) == written


def test_a_full_disk_ends_one_output_alone(opened: Open, tmp_path: Path) -> None:
    outputs, easel = opened((64, 48))
    outputs.begin_recording(tmp_path / "full.mp4")
    outputs.begin_masks(tmp_path / "masks")
    noise = np.random.default_rng(0)
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (150_000, before[1]))
    try:
        for index in range(20_000):  # on a busy machine most are dropped
            picture = noise.integers(0, 256, (48, 64, 4), np.uint8)
            picture[..., 3] = 255
            easel.paint(picture)
            pass_by(outputs, index)
            if "recording" not in outputs.active:
                break
        lines: list[str] = []

        def is_said() -> bool:
            lines.extend(outputs.lines())
            return any("disk is full" in line for line in lines)

        until(is_said)  # while the rest goes on
        assert outputs.active == ("masks",)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    (failure,) = (line for line in lines if "disk is full" in line)
    assert failure.startswith(f"recording ended: '{tmp_path}/full.mp4' cannot be written")
    with FileSource(tmp_path / "full.mp4") as source:
        kept = sum(1 for _ in source)
    assert kept >= 10
    assert f"; {kept} of " in failure
    lines = finished(outputs)
    assert any(line.startswith("written: ") and "masks" in line for line in lines)


def test_a_device_that_fails_leaves_whole_files(context: Context, opened: Open, tmp_path: Path) -> None:
    outputs, easel = opened((64, 48))
    outputs.begin_recording(tmp_path / "take.mkv")
    outputs.begin_masks(tmp_path / "masks.mkv")
    for index, rgb in enumerate(numbered(2)):
        easel.paint(opaque(rgb))
        context.gl.glFinish()
        pass_by(outputs, index)
    for worker in outputs._active.values():
        assert isinstance(worker._reader, DeviceReader)
        context.gl.glDeleteSync(worker._reader._ring._waiting[-1].fence)
    outputs.finish()
    with pytest.raises(DeviceError, match=r"glDeleteSync|GL_INVALID_VALUE"):
        context.check_errors("deleting fences twice")
    for name in ("take", "masks"):
        with FileSource(tmp_path / f"{name}.mkv") as source:
            assert (len(list(source)), source.truncated) == (1, None)


def test_few_frames_wait_however_large_they_are() -> None:
    assert [most_waiting(size) for size in (1, 460_800, 12_441_600, 33_177_600, 1 << 30)] == [8, 8, 5, 2, 2]


# Names


def test_no_name_is_used_twice(tmp_path: Path) -> None:
    assert next_name(tmp_path, "live", ".mp4") == tmp_path / "live-1.mp4"
    (tmp_path / "live-1.mp4").touch()
    (tmp_path / "live-3.mp4").touch()
    assert next_name(tmp_path, "live", ".mp4") == tmp_path / "live-2.mp4"
    assert free_name(tmp_path / "live.mp4") == tmp_path / "live.mp4"
    assert free_name(tmp_path / "live-3.mp4") == tmp_path / "live-3-1.mp4"
    assert free_name(tmp_path / "new.mp4", {tmp_path / "new.mp4"}) == tmp_path / "new-1.mp4"
    (tmp_path / "empty").mkdir()
    assert free_name(tmp_path / "empty") == tmp_path / "empty"
    (tmp_path / "empty" / "000000.png").touch()
    assert free_name(tmp_path / "empty") == tmp_path / "empty-1"
    (tmp_path / "nowhere.mp4").symlink_to(tmp_path / "missing")
    assert free_name(tmp_path / "nowhere.mp4") == tmp_path / "nowhere-1.mp4"


def test_names_that_no_file_system_takes_are_one_line(opened: Open, tmp_path: Path) -> None:
    outputs, _ = opened((64, 48))
    outputs.begin_recording(tmp_path / ("x" * 300 + ".mp4"))
    pass_by(outputs, 0)
    assert "too long" in finished(outputs)[-1]
    with pytest.raises(MediaError, match="too long"):
        outputs.begin_masks(tmp_path / ("x" * 300))


def test_files_of_before_are_kept(opened: Open, tmp_path: Path) -> None:
    (tmp_path / "take.mp4").write_bytes(b"precious")
    outputs, _ = opened((64, 48))
    outputs.begin_recording(tmp_path / "take.mp4")
    pass_by(outputs, 0)
    assert finished(outputs)[0] == f"recording to {tmp_path}/take-1.mp4"
    assert (tmp_path / "take.mp4").read_bytes() == b"precious"


@pytest.mark.parametrize(("name", "why"), [("missing/a.mp4", "no folder"), ("a.xyz", "must end in")])
def test_names_that_cannot_be_written_are_refused_at_once(opened: Open, tmp_path: Path, name: str, why: str) -> None:
    outputs, _ = opened((64, 48))
    with pytest.raises(MediaError, match=why):
        outputs.begin_recording(tmp_path / name)
    assert outputs.active == ()


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_folders_that_cannot_be_written_are_refused_at_once(opened: Open, tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    outputs, _ = opened((64, 48))
    with pytest.raises(MediaError):
        outputs.begin_cutouts(tmp_path / "cutouts")
    tmp_path.chmod(0o700)


def test_encoders_get_a_rate_that_makes_sense() -> None:
    rates = [nominal_rate(fps) for fps in (30.0, 29.97002997, 0.0, float("nan"), float("inf"), -5.0, 1e-9)]
    assert [float(rate) for rate in rates[:3]] == pytest.approx([30, 29.97002997, 30])
    assert rates[3:6] == [30, 30, 30]
    assert 0 < rates[6] < 1
