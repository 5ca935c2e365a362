"""Networks that put out pictures: drawn as defined, as TensorFlow Lite computes them, and with nothing read back."""

import json
from dataclasses import replace
from pathlib import Path

import cv2
import numpy as np
import numpy.typing as npt
import pytest

from tests.helpers.commands import Command
from tests.helpers.markers import exhaustive, on_both_apis, one_in
from tests.helpers.pictures import BACKGROUND, Doubles, Floats, Image, noise, sampled
from tests.model_files.frame_models import class_network, picture_network
from tests.model_files.partial_models import cast_and_back
from texelflow import assets
from texelflow.app.frame.backend_choice.frame_job import CpuFrameJob, frame_job
from texelflow.app.frame.drawing.backdrop import Backdrop
from texelflow.app.frame.drawing.network_picture import PictureCompositor
from texelflow.app.frame.inference.cpu_path import CpuPath
from texelflow.app.frame.inference.network_options import NetworkOptions
from texelflow.app.frame.inference.network_output import PictureLayout
from texelflow.app.frame.looks.background import cover
from texelflow.app.frame.looks.effects import Effect
from texelflow.app.frame.looks.looks import Look
from texelflow.app.frame.textures.gl_pictures import GlPictures
from texelflow.app.frame.textures.offscreen_target import OffscreenTarget
from texelflow.app.frame.textures.readback import ReadbackRing
from texelflow.app.frame.textures.upload import FrameTextures
from texelflow.app.models.model_loading import PictureModel, load_frame_model
from texelflow.app.picture.picture import rgba_format, rgba_picture
from texelflow.app.picture.preprocess import Fit, ImageSize, sampling
from texelflow.gpu_delegate.reading.reader import read_model
from texelflow.gpu_delegate.targets.gl.context import Context
from texelflow.gpu_delegate.targets.gl.opengl import BufferRange

pytestmark = pytest.mark.gl

CLIP = Path(assets.__file__).parent / "people.mp4"
SIZE = (65, 47)
LAYOUT = PictureLayout((13, 10), 3, (-1.0, 1.0))
EFFECTS: tuple[Effect, ...] = ("replace", "color", "cutout", "mask", "checker", "none")


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Command:
    return Command(capsys)


def defined(look: Look, rgba: Image, output: Floats, layout: PictureLayout, fit: Fit = "stretch") -> Doubles:
    """The docstring of app/frame/drawing/network_picture.py, for an output (H, W, 4): (h, w, 4) from 0 to 255."""
    low, high = layout.output_range
    made = np.clip((output.astype(np.float64) - low) / (high - low), 0, 1)
    if layout.channels == 3:
        made[..., 3] = 1
    size = (rgba.shape[1], rgba.shape[0])
    made = sampled(made.astype(np.float32), sampling(size, layout.size, fit).inverse())
    frame, alpha, turn = rgba[..., :3] / 255.0, made[..., 3:], slice(None, None, -1 if look.mirror else 1)
    person = frame + look.strength * (made[..., :3] - frame)
    squares = np.add.outer(np.arange(size[1]) // 16, np.arange(size[0]) // 16) % 2
    behind = {
        "replace": cover(BACKGROUND, size)[:, turn, :3] / 255.0,
        "color": np.broadcast_to(np.array(look.color), frame.shape),
        "checker": np.where(squares, 0.6, 0.8)[:, turn, None],
    }
    colors = {
        "picture": frame + look.strength * alpha * (made[..., :3] - frame),
        "cutout": person,
        "mask": np.repeat(alpha, 3, -1),
        "none": frame,
    }
    shown = colors[look.effect] if look.effect in colors else person * alpha + behind[look.effect] * (1 - alpha)
    clear = alpha if look.effect == "cutout" else np.ones_like(alpha)
    return np.asarray(255 * np.concatenate([shown, clear], -1)[:, turn])


class Easel:
    """A frame, and a network's output on the device, to be drawn by any look."""

    def __init__(self, context: Context, layout: PictureLayout) -> None:
        self.context, self.layout, self.rgba = context, layout, noise(SIZE)
        self.output = np.random.default_rng(5).normal(0, 0.8, (layout.size[1], layout.size[0], 4)).astype(np.float32)
        self.frame = FrameTextures(context, rgba_format(SIZE))
        self.frame.upload(rgba_picture(self.rgba))
        self.target, self.backdrop = OffscreenTarget(context, SIZE), Backdrop(GlPictures(context), SIZE)
        self.backdrop.show(rgba_picture(cover(BACKGROUND, SIZE)))
        self.buffer = context.mgl.buffer(self.output.tobytes())

    def drawn(self, look: Look, fit: Fit = "stretch") -> Image:
        compositor = PictureCompositor(GlPictures(self.context), self.frame, self.layout, fit, look, self.backdrop)
        compositor.draw(BufferRange(self.buffer.glo, 0, self.output.nbytes), self.target)
        ring = ReadbackRing[int](self.context, SIZE[0] * SIZE[1] * 4)
        ring.request_picture(0, self.target.framebuffer, SIZE)
        ((_, data),) = ring.drain()
        for part in (ring, compositor):
            part.release()
        return data.reshape(SIZE[1], SIZE[0], 4)

    def error(self, look: Look, fit: Fit = "stretch") -> float:
        return float(np.abs(self.drawn(look, fit) - defined(look, self.rgba, self.output, self.layout, fit)).max())

    def release(self) -> None:
        for part in (self.frame, self.target, self.backdrop, self.buffer):
            part.release()


def test_a_cutout_that_clears_has_no_colors_where_nothing_is_seen(context: Context) -> None:
    easel = Easel(context, replace(LAYOUT, channels=4))
    easel.output[:, : LAYOUT.size[0] // 2, 3] = easel.layout.output_range[0]
    easel.buffer.write(easel.output.tobytes())
    kept, cleared = (easel.drawn(Look("cutout", clears=clears)).astype(int) for clears in (False, True))
    unseen = kept[..., 3] == 0
    assert kept[unseen].any()
    assert not cleared[unseen].any()
    assert np.abs((kept - cleared)[kept[..., 3] > 250]).max() <= 2
    easel.release()


@one_in(4, "channels", [3, 4])
@on_both_apis
def test_every_look_equals_its_definition(context: Context, channels: int) -> None:
    easel = Easel(context, replace(LAYOUT, channels=4 if channels == 4 else 3))
    fits: tuple[Fit, ...] = ("stretch", "crop", "letterbox")
    for fit in fits:
        assert easel.error(Look("picture", strength=0.7, mirror=True), fit) <= 1, fit
    for effect in EFFECTS if channels == 4 else ():
        assert easel.error(Look(effect, color=(0.2, 0.4, 0.9), strength=0.6)) <= 1, effect
    assert np.array_equal(easel.drawn(Look("picture", strength=0.0)), easel.rgba)
    easel.release()


def written(folder: Path, data: bytes, name: str = "style.tflite") -> Path:
    path = folder / name
    path.write_bytes(data)
    return path


def picture_model(path: Path) -> PictureModel:
    model = load_frame_model(str(path))
    assert isinstance(model, PictureModel)
    return model


@one_in(
    2, ("size", "output", "channels", "fit"), [((130, 97), (129, 97), 3, "crop"), ((31, 44), (32, 43), 4, "stretch")]
)
def test_is_what_tensorflow_lite_makes_of_the_frame(
    context: Context, tmp_path: Path, frame_rgba: Image, size: ImageSize, output: ImageSize, channels: int, fit: Fit
) -> None:
    model = picture_model(written(tmp_path, picture_network(size, output, channels)))
    assert (model.output_size, model.has_alpha) == (output, channels == 4)
    assert model.spec.output_range == pytest.approx((-1, 1))
    frame = np.ascontiguousarray(frame_rgba[100:301, 150:420])
    expected = CpuPath(model, rgba_format((270, 201)), fit).run(rgba_picture(frame))
    job = frame_job(context, model, rgba_format((270, 201)), NetworkOptions(fit=fit, preprocessing="auto"))
    assert job.backend == "gl"
    found = job.run(rgba_picture(frame))
    assert found.shape == (201, 270, 4)
    assert np.abs(found - expected).max() < 1e-3, "and its frames stay as they are"
    assert np.ptp(expected[..., :3]) > 0.5, "the network puts out something"
    other = rgba_format((64, 48))
    job.take(other)
    small = np.ascontiguousarray(frame_rgba[:48, :64])
    assert np.abs(job.run(rgba_picture(small)) - CpuPath(model, other, fit).run(rgba_picture(small))).max() < 1e-3
    job.release()


@exhaustive
def test_a_model_that_runs_in_parts(context: Context, tmp_path: Path, frame_rgba: Image) -> None:
    whole = picture_model(written(tmp_path, picture_network()))
    parts = replace(whole, graph=read_model(cast_and_back(whole.graph, 0.4)))
    frame = rgba_format((640, 480))
    job = frame_job(context, parts, frame)
    assert isinstance(job, CpuFrameJob)
    assert job.dispatches > 0
    found, expected = job.run(rgba_picture(frame_rgba)), CpuPath(whole, frame).run(rgba_picture(frame_rgba))
    assert np.abs(found - expected).max() < 1e-3
    job.release()


def pictures_of(folder: Path) -> npt.NDArray[np.int64]:
    return np.array([cv2.imread(str(path), cv2.IMREAD_UNCHANGED) for path in sorted(folder.glob("*.png"))], np.int64)


@exhaustive
def test_replay_and_check(tmp_path: Path, run: Command) -> None:
    model = written(tmp_path, picture_network(channels=4))
    common = "--model", model, "--to", 0, "--json"
    figures = json.loads(run("replay", CLIP, *common, "--backend", "gl").out)
    assert (figures["frames"], figures["readback_bytes"]) == (1, 0)
    for backend in ("gl", "cpu"):
        outs = "--out", tmp_path / backend, "--cutouts", tmp_path / f"{backend} cutouts"
        masks = "--masks", tmp_path / f"{backend}.mp4"
        result = run("replay", CLIP, *common, *outs, *masks, "--backend", backend, "--strength", 0.8)
        assert (result.code, result.err) == (0, "")
    for name, channels in (("", 3), (" cutouts", 4)):
        found, expected = (pictures_of(tmp_path / f"{backend}{name}") for backend in ("gl", "cpu"))
        assert found.shape == expected.shape == (1, 480, 640, channels)
        assert np.abs(found - expected).max() <= 1
    plain = tmp_path / "plain.toml"
    plain.write_text("[mask]\nrefine = false\ngrow = 3.0\n")
    for backend in ("gl", "cpu"):  # where nothing is drawn, the transparency comes from RAM
        seen = "--masks", tmp_path / f"{backend} masks", "--fit", "crop", "--mirror", "--config", plain
        result = run("replay", CLIP, *common, *seen, "--backend", backend)
        assert (result.code, result.err) == (0, "")
    found, expected = (pictures_of(tmp_path / f"{backend} masks") for backend in ("gl", "cpu"))
    assert found.shape == expected.shape == (1, 480, 640)
    assert np.abs(found - expected).max() <= 1
    report = tmp_path / "report.png"
    figures = json.loads(run("check", CLIP, *common, "--report", report).out)
    assert figures["max_error"] < 1e-3
    assert "iou" not in figures
    assert figures["verdict"] == "all 1 frames agree: error at most 0.001"
    assert report.exists()
    assert run("check", CLIP, *common, "--tolerance", 0, "--report", report, "--force").code == 1


@pytest.mark.parametrize(
    ("options", "line"),
    [
        (("--masks", "m"), "--masks: style.tflite puts out a picture and has no mask; leave it out or choose another"),
        (("--smooth", "0.2"), "--smooth: style.tflite puts out a picture and has no mask"),
        (("--background", "#ff0000"), "--background: style.tflite puts out a picture and has no mask"),
        (
            ("--effect", "tint"),
            "--effect tint: style.tflite puts out a picture without transparency; with it there are",
        ),
        (("--channel", "2"), "style.tflite: --channel is for models whose output is a segmentation"),
        (("--output-range", "1,0"), "--output-range 1,0: two numbers with a comma, the lower one first, such as"),
        (("--task", "segmentation"), "style.tflite: the model's file does not say what its output still needs"),
    ],
)
def test_what_it_cannot_do_is_refused_in_one_line(
    tmp_path: Path, run: Command, options: tuple[str, str], line: str
) -> None:
    model = written(tmp_path, picture_network())
    task = ("--task", "picture") if options[0] == "--channel" else ()
    assert f"texelflow: {line}" in run("replay", CLIP, "--model", model, *task, *options).complaint


def test_those_who_need_masks_or_classes_say_so(tmp_path: Path, run: Command) -> None:
    style, silent = (written(tmp_path, picture_network(says=says), f"{says}.tflite") for says in (True, False))
    classes = written(tmp_path, class_network())
    assert "its output is a picture, not a mask" in run("bench", "quality", "--model", style, "--to", 0).complaint
    either = run("replay", CLIP, "--model", silent).complaint
    assert "[1, 97, 129, 3] may be a picture or the scores of 3 classes: give --input-range LO,HI and" in either
    meaning = "--input-range", "0,1", "--output-range", "-1,1"
    assert run("replay", CLIP, "--model", silent, *meaning, "--to", 0, "--backend", "gl").code == 0
    assert "puts out masks, not a picture" in run("replay", CLIP, "--model", classes, "--strength", 0.5).complaint
    assert (
        "--effect picture: selfie puts out masks; with it there are tint"
        in run("replay", CLIP, "--effect", "picture").complaint
    )
    assert "a picture is [1, H, W, 3] or" in run("replay", CLIP, "--task", "picture").complaint
