"""Decoders of networks that users bring, as files that TensorFlow Lite runs."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from tests.helpers.engine import on_cpu
from tests.model_files.finding_models import network_of
from tests.model_files.frame_models import picture_network
from tests.model_files.matte_models import recurrent_matte, single_matte
from tests.model_files.model_builder import ModelBuilder
from texelflow.app.models.decoders.anchors import ssd_anchors
from texelflow.app.models.decoders.found import Finding
from texelflow.app.models.decoders.region import FrameRegion
from texelflow.app.models.finding_loading import load_finding_model, load_shown_model
from texelflow.app.models.finding_model import FindingModel
from texelflow.app.models.spec import SpecOptions, parse_task
from texelflow.gpu_delegate.base.errors import TexelflowError

Floats = npt.NDArray[np.float32]
REGION = FrameRegion(100, 50, 200, 100)  # all of a frame of 200x100
HUGE = (np.nan, np.inf, -np.inf, 3e38)


@dataclass(frozen=True)
class Case:
    """A network's outputs, and what is found there: kind, label, score, box in pixels, how many points."""

    outputs: Sequence[Floats]
    found: tuple[tuple[str, str, float, tuple[float, float, float, float] | None, int], ...]
    decoder: str
    size: tuple[int, int] = (64, 64)
    names: tuple[str, ...] = ()
    last: str = ""


def yolo(values: int, boxes: int, rows: Sequence[tuple[int, Sequence[float]]]) -> Floats:
    """Outputs (1, boxes, values): 0.01 but for the given boxes."""
    found = np.full((boxes, values), 0.01, np.float32)
    for number, row in rows:
        found[number, : len(row)] = row
    return found[None]


def body(x: float, y: float) -> list[float]:
    """17 points, x, y and certainty each, from a place to the lower right."""
    return [value for number in range(17) for value in (x + number / 100, y + number / 50, 0.9)]


V8 = [(3, (0.5, 0.5, 0.2, 0.4, 0.1, 0.9)), (4, (0.51, 0.5, 0.2, 0.4, 0.1, 0.8)), (9, (0.2, 0.2, 0.1, 0.1, 0.7, 0.1))]
V8_FOUND = (
    ("object", "1", 0.9, (80, 30, 120, 70), 0), ("object", "0", 0.7, (30, 15, 50, 25), 0),
)  # fmt: skip
IN_PIXELS = [(number, (*(64 * value for value in row[:4]), *row[4:])) for number, row in V8]
V5 = [(3, (0.5, 0.5, 0.2, 0.4, 0.9, 0.1, 1.0)), (9, (0.2, 0.2, 0.1, 0.1, 0.7, 1.0, 0.1))]
PERSON = [(7, (0.5, 0.5, 0.2, 0.4, 0.8, *body(0.4, 0.3)))]
SSD_BOXES = np.zeros((1, 1917, 4), np.float32)
SSD_SCORES = np.full((1, 1917, 4), -9, np.float32)
SSD_SCORES[0, 1100, 2] = 2
POSE_AT = (200 * 12 / 65, 100 * 40 / 65) * 2
AT = ssd_anchors((300, 300))[1100]
SSD_BOX = (
    float(200 * (AT[0] - AT[2] / 2)), float(100 * (AT[1] - AT[3] / 2)),
    float(200 * (AT[0] + AT[2] / 2)), float(100 * (AT[1] + AT[3] / 2)),
)  # fmt: skip
HEAT, OFFSETS = np.full((1, 5, 5, 17), -6, np.float32), np.zeros((1, 5, 5, 34), np.float32)
HEAT[0, 2, 1] = 3
OFFSETS[..., :17], OFFSETS[..., 17:] = 8, -4
MAPS = np.zeros((1, 16, 16, 14), np.float32)
MAPS[0, 8, 4], MAPS[0, 8, 5] = 0.8, 0.2
FOUR = (
    np.array([[[0.2, 0.1, 0.6, 0.5], [0, 0, 1, 1], [0, 0, 1, 1]]], np.float32),
    np.array([[1, 0, 5]], np.float32),
    np.array([[0.9, 0.4, 0.8]], np.float32),
    np.array([2], np.float32),
)
SCORES = np.array([[0.1, 0.2, 0.7]], np.float32)
CASES = {
    "yolo v8": Case([yolo(6, 84, V8).transpose(0, 2, 1)], V8_FOUND, "yolo-boxes"),
    "yolo v8 turned": Case([yolo(6, 84, V8)], V8_FOUND, "yolo-boxes"),
    "yolo v8 in pixels": Case([yolo(6, 84, IN_PIXELS).transpose(0, 2, 1)], V8_FOUND, "yolo-boxes"),
    "yolo v5": Case([yolo(7, 252, V5)], V8_FOUND, "yolo-boxes"),
    "yolo pose": Case(
        [yolo(56, 84, PERSON).transpose(0, 2, 1)], (("person", "", 0.8, (80, 30, 120, 70), 17),), "yolo-points"
    ),
    "yolo masks": Case(
        [yolo(38, 84, V8).transpose(0, 2, 1), np.zeros((1, 16, 16, 32), np.float32)], V8_FOUND, "yolo-boxes"
    ),
    "yolo v10": Case(
        [yolo(6, 300, [(0, (0.4, 0.3, 0.6, 0.7, 0.9, 1))])],
        (("object", "1", 0.9, (80, 30, 120, 70), 0),), "yolo-chosen"
    ),
    "movenet": Case(
        [np.array([(y, x, c) for x, y, c in np.reshape(body(0.4, 0.3), (17, 3))], np.float32).reshape(1, 1, 17, 3)],
        (("person", "", 0.9, (80, 30, 112, 62), 17),),
        "movenet",
    ),
    "movenet multipose": Case(
        [yolo(56, 6, [(2, (*body(0.3, 0.4), 0.2, 0.1, 0.9, 0.8, 0.7))])],
        (("person", "", 0.7, (20, 20, 160, 90), 17),),
        "movenet-multipose",
    ),
    "posenet": Case(
        [HEAT, OFFSETS, np.zeros((1, 5, 5, 32), np.float32), np.zeros((1, 5, 5, 32), np.float32)],
        (("person", "", 0.9525741, POSE_AT, 17),),
        "posenet",
        (65, 65),
    ),
    "poses": Case(
        [
            np.array([(64 * y, 64 * x) for x, y, _ in np.reshape(body(0.4, 0.3), (17, 3))], np.float32)[None, None],
            np.full((1, 1, 17), 0.9, np.float32), np.array([[0.8]], np.float32), np.array([1], np.float32),
        ],
        (("person", "", 0.9, (80, 30, 112, 62), 17),), "poses",
    ),
    "heat maps": Case(
        [MAPS], (("person", "", 0.8, (200 * 4.75 / 16, 100 * 8.5 / 16, 200 * 4.75 / 16, 100 * 8.5 / 16), 14),),
        "heat-maps", names=("hourglass_out",),
    ),
    "raw ssd": Case(
        [SSD_BOXES, SSD_SCORES], (("object", "1", 0.8807971, SSD_BOX, 0),), "raw-ssd", (300, 300)
    ),
    "efficientdet": Case(
        [yolo(7, 100, [(0, (0, 19.2, 25.6, 44.8, 38.4, 0.9, 4))])],
        (("object", "4", 0.9, (80, 30, 120, 70), 0),), "efficientdet-rows",
    ),
    "four outputs": Case(FOUR, (("object", "1", 0.9, (20, 20, 100, 60), 0),), "detection-outputs"),
    "four outputs, tensorflow 2": Case(
        [FOUR[2], FOUR[0], FOUR[3], FOUR[1]], (("object", "1", 0.9, (20, 20, 100, 60), 0),), "detection-outputs"
    ),
    "four outputs by names": Case(
        [FOUR[2], FOUR[1], FOUR[3], FOUR[0]], (("object", "1", 0.9, (20, 20, 100, 60), 0),), "detection-outputs",
        names=("scores", "classes", "num_detections", "boxes"),
    ),
    "classes": Case(
        [SCORES],
        tuple(("class", str(n), float(v), None, 0) for n, v in zip((2, 1, 0), (0.4640, 0.2814, 0.2546), strict=True)),
        "class-scores",
        last="SOFTMAX",
    ),
}  # fmt: skip


def loaded_case(case: Case, folder: Path, options: SpecOptions | None = None) -> tuple[FindingModel, bytes]:
    data = network_of(case.outputs, case.size, case.names, last=case.last)
    (folder / "net.tflite").write_bytes(data)
    model = load_shown_model(str(folder / "net.tflite"), options or SpecOptions(input_range=(0, 1)))
    assert isinstance(model, FindingModel)
    return model, data


@pytest.mark.parametrize("name", CASES)
def test_what_they_find(name: str, tmp_path: Path) -> None:
    case = CASES[name]
    model, data = loaded_case(case, tmp_path)
    assert model.decoder == case.decoder
    outputs = on_cpu(data, [np.zeros((1, *case.size[::-1], 3), np.float32)])
    found = model.decoding.decode([outputs[place] for place in model.decoding.reads], REGION)
    assert len(found) == len(case.found)
    for each, (kind, label, score, box, points) in zip(found, case.found, strict=True):
        assert (each.kind, each.label, len(each.points)) == (kind, label, points)
        assert each.score == pytest.approx(score, abs=1e-3)
        if box:
            assert each.box == pytest.approx(box, abs=1e-2)
        else:
            assert each.region is None


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("wrong", HUGE)
def test_what_is_no_number_is_not_found(name: str, wrong: float, tmp_path: Path) -> None:
    case = CASES[name]
    model, _ = loaded_case(case, tmp_path)
    read = [case.outputs[place] for place in model.decoding.reads]
    for place in range(len(read)):
        for part in (slice(None), slice(0, None, 3)):
            damaged = [values.copy() for values in read]
            damaged[place].reshape(-1)[part] = wrong
            for each in model.decoding.decode(damaged, REGION):
                assert_sound(each)


def assert_sound(found: Finding) -> None:
    assert 0 <= found.score <= 1
    assert np.isfinite(found.points).all()
    if found.kind != "class":
        assert np.isfinite(found.box).all()


def test_a_network_of_two_meanings_takes_the_task_that_is_said(tmp_path: Path) -> None:
    case = CASES["yolo pose"]
    assert "--task detection" in loaded_case(case, tmp_path)[0].decoding.why
    asked = SpecOptions(input_range=(0, 1), task="detection")
    assert loaded_case(case, tmp_path, asked)[0].decoder == "yolo-boxes"
    with pytest.raises(TexelflowError, match=r"as --task classification has them"):
        loaded_case(case, tmp_path, SpecOptions(task="classification"))
    for shape, task in (((1, 40, 6), "detection"), ((1, 40, 7), "detection"), ((1, 4, 56), "points")):
        rows = Case([np.zeros(shape, np.float32)], (), "")
        with pytest.raises(TexelflowError, match="no decoder knows"):
            loaded_case(rows, tmp_path)
        loaded_case(rows, tmp_path, SpecOptions((0, 1), task=parse_task(task)))
    maps = Case([MAPS], (), "heat-maps")
    assert loaded_case(maps, tmp_path, SpecOptions((0, 1), task="points"))[0].decoder == "heat-maps"
    vector = Case([SCORES], (), "class-scores")
    with pytest.raises(TexelflowError, match=r"may be scores of classes, points, or .*--task classification"):
        loaded_case(vector, tmp_path)
    model, _ = loaded_case(vector, tmp_path, SpecOptions((0, 1), task="classification"))
    assert [each.label for each in model.decoding.decode([SCORES], REGION)] == ["2", "1", "0"]


@pytest.mark.parametrize("shapes", [((1, 5, 9),), ((1, 4), (1, 4)), ((1, 4, 4, 2), (1, 7))])
def test_what_is_not_known_is_refused(shapes: Sequence[tuple[int, ...]], tmp_path: Path) -> None:
    outputs = [np.zeros(shape, np.float32) for shape in shapes]
    listed = ", ".join(f"tensor[0-9]+ {re.escape(str([*shape]))}" for shape in shapes)
    said = rf"^net.tflite: no decoder knows what its outputs mean \({listed}\); --task segmentation\|picture\|"
    with pytest.raises(TexelflowError, match=said):
        loaded_case(Case(outputs, (), ""), tmp_path)


@pytest.mark.parametrize(
    ("boxes", "scores", "said"),
    [
        (
            (1, 900, 16),
            (1, 900, 1),
            r"face boxes and 6 points .*, but 900 of them, for .* 128x128 has no anchors: tensor",
        ),
        ((1, 896, 18), (1, 895, 1), r"palm boxes and 7 points .*, but 896 boxes with 895 scores: tensor"),
    ],
)
def test_what_is_nearly_a_detector_of_mediapipes_says_what_is_not(
    boxes: tuple[int, ...], scores: tuple[int, ...], said: str, tmp_path: Path
) -> None:
    case = Case([np.zeros(boxes, np.float32), np.zeros(scores, np.float32)], (), "", (128, 128))
    with pytest.raises(TexelflowError, match=said):
        loaded_case(case, tmp_path)


@pytest.mark.parametrize(
    ("shape", "dtype", "said"),
    [
        ((1, 256), "int32", r"its input is int32 \[1, 256\]: words of a text, not a picture"),
        ((15600,), "float32", "sound, its features or other numbers, not a picture"),
        ((1, 49, 10, 1), "float32", "a gray picture, or features of sound"),
        ((1, 3, 32, 32), "float32", "with channels first; convert it with channels last"),
        ((1, 1, 1, 3), "float32", "its size is not fixed"),
        ((1, 32, 32, 4), "float32", r"a picture is \[1, H, W, 3\]"),
    ],
)
def test_what_sees_no_picture_is_refused(shape: tuple[int, ...], dtype: str, said: str, tmp_path: Path) -> None:
    model = ModelBuilder()
    model.output(model.op("RESHAPE", [model.input(shape, dtype)], (1, int(np.prod(shape))), dtype))
    (tmp_path / "net.tflite").write_bytes(model.build())
    for load in (load_shown_model, load_finding_model):
        with pytest.raises(TexelflowError, match=said):
            load(str(tmp_path / "net.tflite"))


@pytest.mark.parametrize("data", [recurrent_matte(), single_matte(), single_matte(foreground=True), picture_network()])
def test_what_makes_masks_or_pictures_is_for_those(data: bytes, tmp_path: Path) -> None:
    (tmp_path / "net.tflite").write_bytes(data)
    assert not isinstance(load_shown_model(str(tmp_path / "net.tflite"), SpecOptions((0, 1))), FindingModel)
    with pytest.raises(TexelflowError):
        load_finding_model(str(tmp_path / "net.tflite"), SpecOptions((0, 1)))
