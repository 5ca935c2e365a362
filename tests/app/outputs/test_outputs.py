"""Outputs of which every frame counts, masks without OpenGL, and pictures that are not drawn as I420."""

import json
import shutil
import threading
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path

import av
import cv2
import numpy as np
import numpy.typing as npt
import pytest

from tests.helpers.clips import Recipe, moving, number_of, numbered, packets, write_clip
from tests.helpers.commands import Command
from tests.helpers.markers import one_in
from tests.helpers.on_device import Easel
from tests.helpers.pictures import Segmented, disc, noise
from tests.helpers.stalled_disk import stalled_disk
from tests.helpers.waiting import until
from texelflow.app.frame.looks.looks import Look
from texelflow.app.frame.textures.yuv import i420
from texelflow.app.media.recorder import Recorder
from texelflow.app.media.sources import FileSource
from texelflow.app.outputs.file_sinks import Timing, VideoSink
from texelflow.app.outputs.frame_outputs import Outputs
from texelflow.app.outputs.picture_readers import DeviceReaders, FrameStamp, RamMasks, look_at_mask
from texelflow.app.picture.picture import rgba_picture
from texelflow.app.picture.video_frame import VideoFrame
from texelflow.gpu_delegate.base.errors import DeviceError, MediaError, UsageError
from texelflow.gpu_delegate.targets.gl.context import Context
from texelflow.gpu_delegate.targets.llvm import compiler

CLOCK = Timing(Fraction(1, 90_000), Fraction(30))
NOTHING = rgba_picture(np.zeros((1, 1, 4), np.uint8))
SIZE = (64, 48)


@pytest.fixture
def easel(context: Context) -> Iterator[Easel]:
    easel = Easel(context, SIZE)
    yield easel
    easel.release()


@pytest.fixture
def texelflow(capsys: pytest.CaptureFixture[str]) -> Command:
    return Command(capsys)


def pass_by(outputs: Outputs, index: int) -> None:
    outputs.stage.run(VideoFrame(index, index * 3000, 0.0, NOTHING))


def pass_many(outputs: Outputs) -> None:
    for index in range(3, 1000):
        pass_by(outputs, index)


def opaque(rgb: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint8]:
    return np.dstack([rgb, np.full(rgb.shape[:2], 255, np.uint8)])


def pictures_in(folder: Path) -> dict[str, npt.NDArray[np.uint8]]:
    return {path.name: np.asarray(cv2.imread(str(path), cv2.IMREAD_UNCHANGED)) for path in sorted(folder.iterdir())}


# Every frame counts


def test_a_disk_that_stalls_is_waited_for(
    context: Context, easel: Easel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    outputs, free = Outputs(context, easel, CLOCK, keeps_all=True), stalled_disk(monkeypatch)
    outputs.begin_cutouts(tmp_path / "cutouts")
    timer = threading.Timer(0.3, free.set)
    timer.start()
    for index in range(40):
        pass_by(outputs, index)
    counts = outputs.counts["cutouts"]
    timer.join()
    outputs.finish()
    assert counts.dropped == 0
    assert outputs.lines() == [f"cutouts to {tmp_path}/cutouts", f"written: {tmp_path}/cutouts (40 PNG files)"]
    assert len(pictures_in(tmp_path / "cutouts")) == 40
    outputs.release()


def test_what_goes_wrong_is_raised_and_the_others_stay_whole(context: Context, easel: Easel, tmp_path: Path) -> None:
    outputs = Outputs(context, easel, CLOCK, keeps_all=True)
    outputs.begin_recording(tmp_path / "out.mkv")
    outputs.begin_cutouts(tmp_path / "cutouts")
    for index in range(3):
        pass_by(outputs, index)
    until((tmp_path / "out.mkv").exists)
    while (tmp_path / "cutouts").exists():  # a picture may be written into it meanwhile
        shutil.rmtree(tmp_path / "cutouts", ignore_errors=True)
    with pytest.raises(MediaError, match="cutouts"):
        pass_many(outputs)
    assert outputs.active == ("recording",)
    outputs.release()
    assert not any("cutouts ended" in line for line in outputs.lines()), "it was raised"
    with FileSource(tmp_path / "out.mkv") as source:
        assert (len(list(source)) > 0, source.truncated) == (True, None)


def test_a_file_that_cannot_be_finished_is_raised_at_the_end(
    context: Context, easel: Easel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    outputs = Outputs(context, easel, CLOCK, keeps_all=True)
    outputs.begin_recording(tmp_path / "out.mp4")
    pass_by(outputs, 0)

    close = Recorder.close

    def fail(recorder: Recorder, complete: bool = True) -> None:
        close(recorder, complete)
        raise MediaError("the disk is full")

    monkeypatch.setattr(Recorder, "close", fail)
    with pytest.raises(MediaError, match="the disk is full"):
        outputs.finish()
    outputs.release()


def test_a_name_is_written_over_where_that_is_allowed(context: Context, easel: Easel, tmp_path: Path) -> None:
    (tmp_path / "out.mp4").write_bytes(b"of before")
    outputs = Outputs(context, easel, CLOCK, keeps_all=True)
    outputs.begin_recording(tmp_path / "out.mp4", replaces=True)
    pass_by(outputs, 0)
    outputs.finish()
    outputs.release()
    with FileSource(tmp_path / "out.mp4") as source:
        assert len(list(source)) == 1


# Formats


def test_a_recording_into_a_folder_is_png_files(context: Context, easel: Easel, tmp_path: Path) -> None:
    rgba = np.random.default_rng(2).integers(0, 256, (48, 64, 4), np.uint8)
    easel.paint(rgba)
    for alpha, channels in ((False, [2, 1, 0]), (True, [2, 1, 0, 3])):
        outputs = Outputs(context, easel, CLOCK, keeps_all=True)
        outputs.begin_recording(tmp_path / str(alpha), alpha=alpha)
        pass_by(outputs, 7)
        outputs.finish()
        outputs.release()
        (stored,) = pictures_in(tmp_path / str(alpha)).items()
        assert stored[0] == "000007.png"
        assert np.array_equal(stored[1], rgba[..., channels])


def test_a_video_that_has_no_transparency_is_refused(context: Context, easel: Easel, tmp_path: Path) -> None:
    outputs = Outputs(context, easel, CLOCK)
    with pytest.raises(UsageError, match="no transparency"):
        outputs.begin_recording(tmp_path / "out.mp4", alpha=True)
    outputs.release()


def test_pictures_too_high_for_their_planes_are_read_as_rgba(context: Context, tmp_path: Path) -> None:
    height = context.limits.texture_size // 4 * 3
    easel = Easel(context, (2, height))
    assert not DeviceReaders(context, easel).takes(i420((2, height)))
    easel.paint(opaque(np.full((height, 2, 3), 140, np.uint8)))
    outputs = Outputs(context, easel, CLOCK)
    outputs.begin_recording(tmp_path / "high.mkv")
    before = context.readback.bytes
    pass_by(outputs, 0)
    outputs.finish()
    outputs.release()
    easel.release()
    assert context.readback.bytes - before == 2 * height * 4
    with FileSource(tmp_path / "high.mkv") as source:
        (frame,) = source
    assert frame.rgba.shape == (height, 2, 4)
    assert np.abs(frame.rgba[..., :3].astype(int) - 140).max() <= 2


def test_a_recording_has_the_colors_that_the_cpu_gives_it(context: Context, tmp_path: Path) -> None:
    size, (rgb,) = (160, 120), moving(1, 160, 120)
    rgb = np.asarray(cv2.GaussianBlur(rgb, (9, 9), 0), np.uint8)  # at sharp edges the filters for chroma differ
    easel = Easel(context, size)
    easel.paint(opaque(rgb))
    outputs = Outputs(context, easel, CLOCK)
    outputs.begin_recording(tmp_path / "gpu.mkv")
    before = context.readback.bytes
    pass_by(outputs, 0)
    outputs.finish()
    outputs.release()
    easel.release()
    assert context.readback.bytes - before == 160 * 120 * 3 // 2
    with Recorder(tmp_path / "cpu.mkv", *size, CLOCK.time_base, CLOCK.rate) as recorder:
        recorder.write(opaque(rgb), 0)
    planes = []
    for name in ("gpu", "cpu"):
        with av.open(str(tmp_path / f"{name}.mkv")) as container:
            (frame,) = container.decode(video=0)
            planes.append(frame.to_ndarray().astype(int))
    apart = np.abs(planes[0] - planes[1])
    assert apart.mean() < 0.5
    assert apart.max() <= 6, "both went through an encoder that loses a little"


def test_times_that_do_not_grow_are_put_right_and_others_kept(tmp_path: Path) -> None:
    """Frames may be closer than a millisecond where the file keeps that."""
    codes = np.full(SIZE[0] * SIZE[1] * 3 // 2, 128, np.uint8)
    given = [9000, 9030, 9060, 9060, 9000, 11_700]
    kept = {".mp4": [0, 30, 60, 150, 240, 2700], ".mkv": [0, 90, 180, 270, 360, 2700]}
    for suffix, wanted in kept.items():
        sink = VideoSink(tmp_path / f"out{suffix}", SIZE, CLOCK, codes=True)
        for index, pts in enumerate(given):
            sink.write(FrameStamp(index, pts), codes)
        line = sink.close(complete=True)
        assert line == f"written: {tmp_path}/out{suffix} (0.1 s, 6 frames)"
        with FileSource(tmp_path / f"out{suffix}") as source:
            times = [frame.pts * source.info.time_base * 90_000 for frame in source]
        assert [time - times[0] for time in times] == wanted


# Masks


def test_masks_without_opengl_are_those_that_are_drawn(context: Context, tmp_path: Path) -> None:
    mask = np.asarray(cv2.GaussianBlur(disc((65, 47), 15), (0, 0), 4), np.float32)
    bent = Look("mask", threshold=0.4, grow=2.5, feather=7, gamma=1.7, mirror=True)
    for name, look in (("plain", Look("tint")), ("bent", bent)):
        bench = Segmented(context, noise((65, 47)), mask, look)
        bench.show()
        ram = RamMasks((65, 47), lambda look=look: look_at_mask(mask, look))  # type: ignore[misc]
        for where, outputs in (
            ("gpu", Outputs(context, bench.canvas, CLOCK, keeps_all=True)),
            ("ram", Outputs(None, ram, CLOCK, keeps_all=True)),
        ):
            outputs.begin_masks(tmp_path / name / where)
            pass_by(outputs, 3)
            outputs.finish()
            outputs.release()
        bench.release()
        drawn, kept = (pictures_in(tmp_path / name / where)["000003.png"].astype(int) for where in ("gpu", "ram"))
        assert drawn.shape == kept.shape == (47, 65)
        assert np.abs(drawn - kept).max() <= 1
        assert np.ptp(kept) > 200
    with pytest.raises(DeviceError, match="masks alone"):
        Outputs(None, ram, CLOCK).begin_recording(tmp_path / "out.mp4")


def test_masks_without_opengl_can_be_a_gray_video(tmp_path: Path) -> None:
    masks = [np.full((47, 65), rgb[0, 0, 0] / 255, np.float32) for rgb in numbered(5)]
    masks[1][0, 0] = np.nan  # as networks may have it
    shown = iter(masks)
    outputs = Outputs(None, RamMasks((65, 47), lambda: next(shown)), CLOCK, keeps_all=True)
    outputs.begin_masks(tmp_path / "masks.mp4")
    for index in range(5):
        pass_by(outputs, index)
    outputs.finish()
    outputs.release()
    assert any("padded" in line for line in outputs.warnings)
    with FileSource(tmp_path / "masks.mp4") as source:
        assert [number_of(frame.rgba) for frame in source] == list(range(5))


# Replay


@one_in(2, "backend", ["gl", "cpu"])
def test_a_replay_says_what_it_wrote(backend: str, tmp_path: Path, texelflow: Command, context: Context) -> None:
    recipe = Recipe(sound="aac", aspect=Fraction(4, 3))
    clip, out, masks = write_clip(tmp_path / "clip.mp4", moving(12), recipe), tmp_path / "out.mov", tmp_path / "m.mkv"
    log, trace = tmp_path / "x.csv", tmp_path / "t.json"
    command = "replay", clip, "--out", out, "--masks", masks, "--log", log, "--trace", trace, "--backend", backend
    result = texelflow(*command)
    wanted = [
        f"written: {out} (0.4 s, 12 frames)", f"written: {masks} (0.4 s, 12 frames)",
        f"written: {log} (12 frames)", f"written: {trace} (12 frames)",
    ]  # fmt: skip
    assert result.out.splitlines()[:4] == wanted
    summary = json.loads(texelflow(*command, "--force", "--json").out)
    assert summary["written"] == wanted
    in_ram = backend == "cpu" and not compiler.available()
    assert summary["readback_bytes"] == (0 if in_ram else 12 * 2 * 64 * 48 * (8 if context.is_software else 3) // 2)
    assert summary["stage_readback_bytes"]["record"] == summary["readback_bytes"]
    for path, packed in ((out, packets(clip, "audio")), (masks, [])):
        with FileSource(path) as source:
            assert source.info.sample_aspect_ratio == Fraction(4, 3)
            assert source.info.has_audio == bool(packed)
    assert [data for _, data in packets(out, "audio")] == [data for _, data in packets(clip, "audio")]
    events = json.loads(trace.read_text())["traceEvents"]
    tracks = {event["args"]["name"]: event["tid"] for event in events if event["name"] == "thread_name"}
    for track in ("encode recording", "encode masks"):
        assert sum(event.get("tid") == tracks[track] and event["ph"] == "X" for event in events) == 12


def test_masks_of_a_replay_without_opengl_can_be_a_video(tmp_path: Path, texelflow: Command) -> None:
    clip = write_clip(tmp_path / "clip.mp4", moving(3))
    result = texelflow("replay", clip, "--masks", tmp_path / "m.mp4", "--backend", "cpu", "--no-refine")
    assert result.code == 0, result.err
    assert f"written: {tmp_path}/m.mp4 (0.1 s, 3 frames)" in result.out
