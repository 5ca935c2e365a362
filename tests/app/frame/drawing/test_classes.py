"""Networks of several classes, shown whole: colors as defined, a legend that fits, numbers and names of classes."""

from pathlib import Path

import cv2
import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.helpers.commands import Command
from tests.helpers.markers import exhaustive, on_both_apis
from tests.helpers.pictures import Bench, Doubles, Floats, Image, noise, sampled
from tests.model_files.frame_models import CLASS_NAMES, class_network
from texelflow import assets
from texelflow.app.frame.drawing.classes import ClassesCompositor
from texelflow.app.frame.inference.network_output import ClassScores, shows_classes
from texelflow.app.frame.inference.scores import ScoresUpload
from texelflow.app.frame.looks.effects import LegendSide
from texelflow.app.frame.looks.legend import class_color, legend_picture, legend_place
from texelflow.app.frame.looks.looks import Look
from texelflow.app.frame.textures.gl_pictures import GlPictures
from texelflow.app.frame.textures.offscreen_target import OffscreenTarget
from texelflow.app.models.class_names import find_class
from texelflow.app.picture.preprocess import Fit, sampling
from texelflow.gpu_delegate.base.errors import UsageError
from texelflow.gpu_delegate.targets.gl.context import Context

CLIP = Path(assets.__file__).parent / "people.mp4"
GRID, SIZE = (21, 16), (165, 123)
SHORT_NAMES = ("sky", "é", "", "me")


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Command:
    return Command(capsys)


def test_colors_are_those_of_pascal_voc() -> None:
    known = {0: (0, 0, 0), 1: (128, 0, 0), 2: (0, 128, 0), 15: (192, 128, 128), 20: (0, 64, 128), 255: (224, 224, 192)}
    assert {number: class_color(number) for number in known} == known
    assert len({class_color(number) for number in range(256)}) == 256


def classes_of(scores: Floats, fit: Fit) -> tuple[Doubles, npt.NDArray[np.int64], npt.NDArray[np.bool_]]:
    """The docstring of drawing/classes.py: the lead of the best score, the class, and whether it is seen: (h, w)."""
    back = sampling(SIZE, GRID, fit).inverse()
    values = sampled(scores, back)
    best = np.sort(values, -1)
    lead: Doubles = best[..., -1] - best[..., -2]
    return lead, values.argmax(-1), back.y.inside()[:, None] & back.x.inside()


class Easel(Bench):
    """A frame, and the scores of classes on the device."""

    def __init__(self, context: Context, scores: Floats) -> None:
        super().__init__(context, noise(SIZE), np.zeros((2, 2), np.float32))
        self.upload, self.rgba = ScoresUpload(GlPictures(context), GRID), noise(SIZE)
        self.scores = ClassScores(GRID, scores.shape[2], SHORT_NAMES, lambda: self.upload.shown(scores[None]))
        self.target = OffscreenTarget(context, SIZE)

    def drawn(self, look: Look, fit: Fit = "stretch") -> Image:
        compositor = ClassesCompositor(GlPictures(self.context), self.frame, self.scores, fit)
        compositor.draw(self.target, look)
        picture = self.read(self.target)
        compositor.release()
        return picture

    def release(self) -> None:
        self.upload.release()
        self.target.release()
        super().release()


@pytest.mark.parametrize(
    ("classes", "fit", "mirror"), [(2, "stretch", False), (5, "crop", True), (130, "letterbox", False)]
)
@on_both_apis
def test_every_pixel_has_the_color_of_its_class(context: Context, classes: int, fit: Fit, mirror: bool) -> None:
    scores = np.random.default_rng(1).normal(0, 5, (GRID[1], GRID[0], classes)).astype(np.float32)
    easel = Easel(context, scores)
    palette = np.array([class_color(number) for number in range(classes)])
    lead, number, seen = classes_of(scores, fit)
    frame = easel.rgba[..., :3].astype(np.float64)
    expected = np.where(seen[..., None], frame + 0.6 * (palette[number] - frame), frame)
    found = easel.drawn(Look("classes", legend="none", mirror=mirror), fit)[:, :: -1 if mirror else 1, :3]
    assert np.abs(found - expected)[lead > 1e-4].max() <= 1
    easel.release()


@pytest.mark.parametrize("side", ["left", "right"])
@on_both_apis
def test_the_legend_covers_its_own_place_alone(context: Context, side: LegendSide) -> None:
    easel = Easel(context, np.ones((GRID[1], GRID[0], 5), np.float32))
    without, with_legend = (
        easel.drawn(look) for look in (Look("classes", legend="none"), Look("classes", legend=side))
    )
    legend = legend_picture(SHORT_NAMES, 5, SIZE)
    assert legend is not None
    (x, y), (high, wide) = legend_place((legend.shape[1], legend.shape[0]), SIZE, side), legend.shape[:2]
    assert (x < SIZE[0] // 2) == (side == "left")
    rows, columns = slice(y, y + high), slice(x, x + wide)
    over = legend.astype(np.float64)
    expected = without.astype(np.float64)
    expected[rows, columns, :3] = over[..., :3] + (1 - over[..., 3:] / 255) * expected[rows, columns, :3]
    assert np.abs(with_legend - expected).max() <= 1
    easel.release()


@given(st.lists(st.text(max_size=60), max_size=300), st.integers(2, 256), st.integers(1, 1500), st.integers(1, 900))
@settings(max_examples=25)
@example(["\x1b[31m", "ж" * 50, "a" * 300], 3, 640, 480)
@example([], 256, 640, 480)
def test_a_legend_fits_into_any_frame(labels: list[str], classes: int, width: int, height: int) -> None:
    legend = legend_picture(labels, classes, (width, height))
    if legend is None:
        return
    high, wide = legend.shape[:2]
    x, y = legend_place((wide, high), (width, height))
    assert x >= 0
    assert x + wide <= width
    assert 0 < y + high <= height


def test_what_has_no_room_in_a_legend_is_counted_in_full() -> None:
    legend = legend_picture([], 256, (640, 480))
    assert legend is not None
    rightmost = np.flatnonzero((legend[..., 0] > 150).any(0)).max()
    assert rightmost < legend.shape[1] - 5, "no letter is cut off"
    assert (legend[..., :3].max(-1) <= legend[..., 3]).all(), "premultiplied"


def test_what_is_shown_is_bounded() -> None:
    assert not shows_classes((256, 256), 1)
    assert shows_classes((257, 257), 21)
    assert not shows_classes((256, 256), 257)
    assert not shows_classes((4096, 4096), 21)


@pytest.mark.parametrize(
    ("wanted", "found"), [(3, 3), ("4", 4), (" Person ", 2), ("dining table", 3), ("0", 0), ("background", 0)]
)
def test_a_class_by_its_number_or_name(wanted: int | str, found: int) -> None:
    assert find_class(wanted, CLASS_NAMES, 5) == found


@pytest.mark.parametrize(
    ("wanted", "labels", "line"),
    [
        ("persn", CLASS_NAMES, "--channel persn: no such class; did you mean person?"),
        ("zebra", CLASS_NAMES, "--channel zebra: no such class; there are background, cat, person, dining table, tv"),
        ("-1", CLASS_NAMES, "--channel -1: no such class; there are background"),
        ("9" * 5000, CLASS_NAMES, "--channel 9999999999: the model's output has the classes 0 to 4"),
        (5, CLASS_NAMES, "--channel 5: the model's output has the classes 0 to 4"),
        ("person", (), "--channel person: the model names no classes; a number from 0 to 4 is needed"),
        ("\x1b[2J", ("",), "--channel ?[2J: the model names no classes"),
        ("x", ("y" * 999,) * 999, f"--channel x: no such class; there are {'y' * 24}, y"),
    ],
)
def test_a_class_that_there_is_not(wanted: int | str, labels: tuple[str, ...], line: str) -> None:
    with pytest.raises(UsageError) as caught:
        find_class(wanted, labels, 5)
    assert str(caught.value).startswith(line)
    assert len(str(caught.value)) < 300


@exhaustive
@pytest.mark.gl
def test_replay_shows_the_same_classes_from_gpu_and_cpu(tmp_path: Path, run: Command) -> None:
    model = tmp_path / "classes.tflite"
    model.write_bytes(class_network())
    pictures = []
    for backend in ("gl", "cpu"):
        out = tmp_path / backend
        options = "--model", model, "--to", 0, "--out", out, "--backend", backend, "--effect", "classes"
        assert (
            run("replay", CLIP, *options, "--channel", "CAT", "--no-refine", "--masks", tmp_path / f"{backend}m").code
            == 0
        )
        pictures.append(cv2.imread(str(out / "000000.png")).astype(int))
    masks = [cv2.imread(str(tmp_path / f"{backend}m" / "000000.png"), 0).astype(int) for backend in ("gl", "cpu")]
    assert (np.abs(pictures[0] - pictures[1]).max(-1) <= 1).mean() > 0.999
    assert np.abs(masks[0] - masks[1]).max() <= 1
    assert np.ptp(masks[0]) > 20
    assert (
        "--effect classes: selfie does not have the 2 to 256 classes"
        in run("replay", CLIP, "--effect", "classes").complaint
    )
    assert "did you mean tv?" in run("replay", CLIP, "--model", model, "--channel", "tvs").complaint
