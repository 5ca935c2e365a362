"""`texelflow replay` on recordings of many kinds: videos, masks, logs and exit codes are what was asked for."""

import contextlib
import csv
import json
import os
import resource
import subprocess
import sys
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

import av
import cv2
import numpy as np
import numpy.typing as npt
import pytest

from tests.helpers.clips import Recipe, beginning_of, moving, time_of, write_clip
from tests.helpers.commands import Command
from tests.helpers.markers import exhaustive, exhaustive_if, one_in
from texelflow import assets
from texelflow.app.console import Console
from texelflow.app.frame.drawing.canvas import Canvas
from texelflow.app.frame.inference.cpu_path import CpuPath
from texelflow.app.frame.inference.gl_path import GlPath
from texelflow.app.frame.inference.network_options import NetworkOptions
from texelflow.app.frame.looks.looks import ChosenLook, Look
from texelflow.app.frame.stages.frame_pipeline import FramePipeline, Stage
from texelflow.app.frame.textures.gl_pictures import GlPictures
from texelflow.app.frame.textures.offscreen_target import OffscreenTarget
from texelflow.app.media.sources import FileSource, VideoFrame
from texelflow.app.models.model_loading import load_segmentation
from texelflow.app.picture.picture import PictureFormat, rgba_format, rgba_picture
from texelflow.app.replay.replay import replay
from texelflow.app.replay.replay_options import ReplayOptions
from texelflow.app.verbs import demo
from texelflow.gpu_delegate.reading.reader import load_model
from texelflow.gpu_delegate.targets.gl.context import Context
from texelflow.gpu_delegate.targets.gl.gl_buffers import read_buffer
from texelflow.gpu_delegate.targets.gl.runtime import device_of
from texelflow.gpu_delegate.targets.glsl.compiled_graph import compile_graph

pytestmark = pytest.mark.gl

CLIP = Path(assets.__file__).parent / "people.mp4"
YUV_BYTES = 640 * 480 * 3 // 2  # of one frame, as it is decoded
SIZE = (640, 480)


@pytest.fixture
def texelflow(capsys: pytest.CaptureFixture[str]) -> Command:
    return Command(capsys)


def frames_of(path: Path) -> list[npt.NDArray[np.uint8]]:
    """Each frame as RGB (H, W, 3)."""
    with av.open(str(path)) as container:
        return [np.asarray(frame.to_ndarray(format="rgb24"), np.uint8) for frame in container.decode(video=0)]


def times_of(path: Path) -> list[Fraction]:
    """Each frame's time in seconds."""
    with av.open(str(path)) as container:
        return [time_of(frame) for frame in container.decode(video=0)]


def rows_of(log: Path) -> list[dict[str, str]]:
    """The rows of a CSV log."""
    return list(csv.DictReader(log.read_text().splitlines()))


def frame_60() -> VideoFrame:
    with FileSource(CLIP, 60, 60) as source:
        return next(iter(source))


def clip_format() -> PictureFormat:
    with FileSource(CLIP) as source:
        return source.format


# Nothing is read back


def gl_pipeline(context: Context, extra: tuple[Stage, ...] = ()) -> FramePipeline:
    """The pipeline of `replay --backend gl` as far as the picture, and then what a test adds."""
    path = GlPath(context, load_segmentation("selfie"), clip_format(), NetworkOptions(preprocessing="auto"))
    target = OffscreenTarget(context, SIZE)
    canvas = Canvas(GlPictures(context), path, target, "stretch", ChosenLook(Look()))
    return FramePipeline((*path.stages, canvas.stage, *extra), context, lambda: path.uploaded_bytes)


def test_reads_nothing_back_between_upload_and_picture(context: Context) -> None:
    pipeline = gl_pipeline(context)
    frame = frame_60()
    before = context.readback.bytes, context.readback.calls
    for _ in range(3):
        pipeline.submit(frame)
    records = list(pipeline.drain())
    assert (context.readback.bytes, context.readback.calls) == before
    assert [record.readback_bytes for record in records] == [0, 0, 0]
    assert [record.uploaded_bytes for record in records] == [YUV_BYTES] * 3
    assert pipeline.names == ("upload", "image_to_tensor", "network", "composite")


@one_in(2, "way", ["ctypes", "moderngl"])
def test_notices_a_stage_that_reads_back(way: str, context: Context) -> None:
    path = GlPath(context, load_segmentation("selfie"), clip_format())
    buffer = context.mgl.buffer(reserve=64)

    def peek(frame: VideoFrame) -> None:
        if way == "ctypes":
            read_buffer(context, path.mask)
        else:
            buffer.read()

    pipeline = gl_pipeline(context, (Stage("peek", peek),))
    pipeline.submit(frame_60())
    (record,) = pipeline.drain()
    assert [stage.readback_bytes for stage in record.stages[:-1]] == [0, 0, 0, 0, 0]
    assert record.readback_bytes == (path.mask.size_bytes if way == "ctypes" else 64)


def test_replay_without_a_recording_reads_nothing_back() -> None:
    summary, code = replay(ReplayOptions(CLIP, {"backend": "gl"}, last=4), Console(quiet=True))
    assert (code, summary["frames"], summary["readback_bytes"]) == (0, 5, 0)
    assert summary["dispatches"] <= 50


def test_replay_with_a_recording_reads_each_picture_back_once(tmp_path: Path, context: Context) -> None:
    flags = {"out": str(tmp_path / "x.mp4"), "backend": "gl"}
    options = ReplayOptions(CLIP, flags, last=4, log=tmp_path / "x.json")
    summary, _ = replay(options, Console(quiet=True))
    assert summary["readback_bytes"] == 5 * (640 * 480 * 4 if context.is_software else YUV_BYTES)
    assert summary["stage_readback_bytes"]["record"] == summary["readback_bytes"]
    rows = json.loads((tmp_path / "x.json").read_text())["frames"]
    assert rows[0]["readback_bytes"] == 0, "a picture is mapped one frame later at the earliest"


# Pictures


def test_the_picture_shows_the_mask_of_the_same_frame(tmp_path: Path) -> None:
    frame = frame_60()
    path = CpuPath(load_segmentation("selfie"), rgba_format(SIZE), preprocessing="auto")
    expected = path.run(rgba_picture(frame.rgba))
    for backend in ("gl", "cpu"):
        out = tmp_path / f"{backend}.mp4"
        flags = {"out": str(out), "effect": "mask", "backend": backend, "refine": False}
        options = ReplayOptions(CLIP, flags, first=60, last=62)
        assert replay(options, Console(quiet=True))[1] == 0
        shown = frames_of(out)[0][..., 1] / 255
        assert np.abs(shown - expected).mean() < 0.01
        assert ((shown > 0.5) == (expected > 0.5)).mean() > 0.995


@exhaustive
def test_a_background_covers_what_is_no_person(tmp_path: Path, texelflow: Command) -> None:
    output = tmp_path / "x.mp4"
    texelflow("replay", CLIP, "--from", 60, "--to", 60, "--out", output, "--background", "#ff0000")
    rgba = frame_60().rgba
    picture = frames_of(output)[0].astype(int)
    path = CpuPath(load_segmentation("selfie"), rgba_format(SIZE), preprocessing="auto")
    mask = path.run(rgba_picture(rgba))
    assert np.abs(picture[mask < 0.001] - (255, 0, 0)).mean() < 6
    assert np.abs(picture[mask > 0.999] - rgba[mask > 0.999][:, :3]).mean() < 6


def test_masks_are_gray_pictures_of_the_frames_size(tmp_path: Path, texelflow: Command) -> None:
    path = CpuPath(load_segmentation("selfie"), clip_format(), preprocessing="auto")
    expected = path.run(frame_60().picture)
    for backend in ("gl", "cpu"):
        folder = tmp_path / backend
        wanted = "--from", 60, "--to", 61, "--masks", folder, "--backend", backend, "--no-refine"
        assert texelflow("replay", CLIP, *wanted).code == 0
        assert sorted(os.listdir(folder)) == ["000060.png", "000061.png"]
        mask = np.asarray(cv2.imread(str(folder / "000060.png"), cv2.IMREAD_UNCHANGED))
        assert mask.shape == (480, 640)
        assert np.abs(mask - expected * 255).max() <= 1


# Kinds of recordings


@dataclass(frozen=True)
class Playable:
    """A recording, how many frames it has, and the first of them."""

    path: Path
    count: int
    first: npt.NDArray[np.uint8]


KINDS = {
    "1x1": (1, 1, 3, Recipe("ffv1", "bgr0")),
    "641x479": (641, 479, 2, Recipe("ffv1", "bgr0")),
    "4K": (3840, 2160, 1, Recipe()),
    "one frame": (64, 48, 1, Recipe()),
    "10 bits": (64, 48, 3, Recipe(pixel_format="yuv420p10le")),
}


@pytest.fixture(scope="module", params=[exhaustive_if(kind == "4K", kind) for kind in KINDS])
def playable(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Playable:
    width, height, count, recipe = KINDS[request.param]
    path = write_clip(tmp_path_factory.mktemp("kind") / "clip.mkv", moving(count, width, height), recipe)
    with FileSource(path) as source:
        return Playable(path, count, next(iter(source)).rgba[..., :3])


@pytest.mark.parametrize("backend", ["gl", "cpu"])
def test_plays(playable: Playable, backend: str, tmp_path: Path, texelflow: Command) -> None:
    height, width, _ = playable.first.shape
    output = tmp_path / "out.mp4"
    result = texelflow("replay", playable.path, "--out", output, "--masks", tmp_path / "masks", "--backend", backend)
    assert result.code == 0, result.err
    shown = frames_of(output)
    assert len(shown) == playable.count == len(os.listdir(tmp_path / "masks"))
    assert shown[0].shape == (height + height % 2, width + width % 2, 3)
    assert ("padded" in result.err) == bool(width % 2)
    untouched = np.asarray(cv2.imread(str(tmp_path / "masks" / "000000.png"), cv2.IMREAD_UNCHANGED)) == 0
    if untouched.any():
        assert cv2.absdiff(shown[0][:height, :width][untouched], playable.first[untouched]).mean() < 8


def test_keeps_varying_time_stamps(tmp_path: Path, texelflow: Command) -> None:
    recipe = Recipe(time_base=Fraction(1, 1000), pts=[0, 33, 40, 200, 1000])
    clip = write_clip(tmp_path / "clip.mkv", moving(5), recipe)
    texelflow("replay", clip, "--out", tmp_path / "out.mp4", "--backend", "cpu")
    assert times_of(tmp_path / "out.mp4") == times_of(clip) == [Fraction(t, 1000) for t in (0, 33, 40, 200, 1000)]


def test_from_and_to_are_exact(tmp_path: Path, texelflow: Command) -> None:
    texelflow("replay", CLIP, "--from", "2s", "--to", 63, "--log", tmp_path / "x.csv", "--backend", "cpu")
    rows = rows_of(tmp_path / "x.csv")
    assert [int(row["index"]) for row in rows] == [60, 61, 62, 63]
    assert [float(row["time_ms"]) for row in rows] == pytest.approx([2000, 2033.333, 2066.667, 2100], abs=0.001)


@exhaustive
def test_two_runs_write_the_same_bytes(tmp_path: Path, texelflow: Command) -> None:
    for name in ("a.mp4", "b.mp4"):  # the frames before the first are segmented as well, for what is smoothed over time
        texelflow("replay", CLIP, "--from", 4, "--to", 14, "--out", tmp_path / name, "--backend", "gl")
    assert (tmp_path / "a.mp4").read_bytes() == (tmp_path / "b.mp4").read_bytes()


# Recordings cut off


@exhaustive
@one_in(
    3,
    ("name", "options"),
    [
        ("faststart.mp4", {"movflags": "faststart"}),
        ("fragments.mp4", {"movflags": "frag_keyframe+empty_moov"}),
        ("matroska.mkv", {}),
    ],
)
def test_finishes_what_a_cut_off_recording_holds(
    name: str, options: dict[str, str], tmp_path: Path, texelflow: Command
) -> None:
    recipe = Recipe(container_options=options, codec_options={"crf": "4", "g": "5", "bf": "0"})
    clip = write_clip(tmp_path / name, moving(60, 320, 240), recipe)
    clip.write_bytes(clip.read_bytes()[: clip.stat().st_size * 6 // 10])
    result = texelflow("replay", clip, "--out", tmp_path / "out.mp4", "--log", tmp_path / "x.csv", "--backend", "cpu")
    assert result.code == 3
    assert "cut off" in result.err
    assert "Traceback" not in result.err
    rows = rows_of(tmp_path / "x.csv")
    assert 10 < len(rows) < 60
    assert len(frames_of(tmp_path / "out.mp4")) == len(rows)


# Full disks


def test_a_full_disk_keeps_what_was_recorded(tmp_path: Path) -> None:
    def allow_little() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, 200_000))

    output = tmp_path / "out.mp4"
    command = [sys.executable, "-m", "texelflow.app.cli", "replay", str(CLIP), "--out", str(output), "--backend", "cpu"]
    done = subprocess.run(command, preexec_fn=allow_little, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 2
    assert "frames were kept" in done.stderr.splitlines()[-1]
    assert "Traceback" not in done.stderr
    with FileSource(output) as source:
        assert len(list(source)) > 10


# Logs and summaries


def test_the_log_has_a_row_for_each_frame(
    tmp_path: Path, texelflow: Command, selfie_model: Path, context: Context
) -> None:
    log = tmp_path / "x.json"
    result = texelflow("replay", CLIP, "--to", 3, "--log", log, "--backend", "gl", "--json")
    written, summary = json.loads(log.read_text()), json.loads(result.out)
    dispatches = len(compile_graph(load_model(selfie_model), device_of(context)).kernels)  # the network's alone
    assert written["summary"] == summary
    assert [row["index"] for row in written["frames"]] == [0, 1, 2, 3]
    uploaded = [row["uploaded_bytes"] // YUV_BYTES for row in written["frames"]]
    assert uploaded == [2, 1, 1, 1], "one frame ahead, also of the last"
    for row in written["frames"]:
        assert row["readback_bytes"] == 0
        assert row["dispatches"] == summary["dispatches"] == dispatches
        for stage in ("decode", "upload", "image_to_tensor", "network", "refine", "composite"):
            assert row[f"{stage}_ms"] > 0


@exhaustive
def test_halves_are_said_to_be_so_only_where_they_are(texelflow: Command, context: Context) -> None:
    summaries = [
        json.loads(texelflow("replay", CLIP, "--to", 0, "--json", "--precision", "fp16", *where).out)
        for where in (["--backend", "gl"], [])
    ]
    assert summaries[0]["precision"] == "fp16"
    assert (summaries[1]["precision"] == "fp32") == context.is_software
    assert any("for the GPU" in line for line in summaries[1]["warnings"]) == context.is_software


def test_auto_says_where_the_network_runs(texelflow: Command, context: Context) -> None:
    result = texelflow("replay", CLIP, "--to", 0, "--json")
    expected = "cpu" if context.is_software else "gl"
    assert json.loads(result.out)["backend"] == expected
    assert ("--backend gl overrides" in result.err) == context.is_software


def test_a_still_has_one_time_for_each_stage(texelflow: Command, tmp_path: Path) -> None:
    still = tmp_path / "still.bmp"
    assert cv2.imwrite(str(still), moving(1)[0])
    table = texelflow("replay", still, "--backend", "cpu").out
    assert "stage" in table
    assert "p95" not in table
    assert "p95" in texelflow("replay", CLIP, "--to", 1, "--backend", "cpu").out


def test_quiet_says_nothing_but_what_is_wrong(texelflow: Command, tmp_path: Path) -> None:
    done = texelflow("replay", CLIP, "--to", 1, "--out", tmp_path / "out.mp4", "--quiet")
    assert (done.code, done.out, done.err) == (0, "", "")
    again = texelflow("replay", CLIP, "--to", 1, "--out", tmp_path / "out.mp4", "-q")
    assert (again.code, again.out, again.err.count("\n")) == (2, "", 1)


@one_in(2, "frames", [12, 240])
def test_the_demo_leaves_a_recording_a_still_and_a_log_in_place_of_those_before(
    frames: int, tmp_path: Path, texelflow: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    if frames < 240:
        clip = beginning_of(CLIP, tmp_path / "clip.mp4", frames)
        monkeypatch.setattr(demo, "demo_clip", lambda: contextlib.nullcontext(clip))
        monkeypatch.setattr(demo, "STILL", 10)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "out").mkdir()
    for name in ("demo.mp4", "demo.png", "demo.json", "mine.mp4"):
        (tmp_path / "out" / name).write_text("of before")
    result = texelflow("demo", "--no-window")
    assert result.code == 0, result.err
    for part in ("network", "p99", "bytes read back", "dispatches", "largest mask error"):
        assert part in result.out
    assert (tmp_path / "out" / "mine.mp4").read_text() == "of before"
    assert len(frames_of(tmp_path / "out" / "demo.mp4")) == frames
    assert len(json.loads((tmp_path / "out" / "demo.json").read_text())["frames"]) == frames
    still = np.asarray(cv2.imread(str(tmp_path / "out" / "demo.png")))
    assert still.shape == (480, 3 * 640 + 2 * 8, 3)
