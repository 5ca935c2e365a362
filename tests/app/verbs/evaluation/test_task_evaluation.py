"""Tasks of small models on drawn pictures: what TensorFlow Lite's reference kernels say is taken for true."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest

from tests.helpers.commands import Command, Result
from tests.model_files.partial_models import with_detections
from tests.model_files.sketch import Sketch
from texelflow.app.verbs.evaluation import task_evaluation
from texelflow.app.verbs.evaluation.average_precision import TrueBoxes
from texelflow.app.verbs.evaluation.picture_inputs import picture_input, read_rgb
from texelflow.app.verbs.evaluation.task_evaluation import GPU, NATIVE, REFERENCE, XNNPACK
from texelflow.app.verbs.evaluation.task_outputs import Detection
from texelflow.gpu_delegate.base.errors import UsageError
from texelflow.gpu_delegate.cpu.reference import Reference
from texelflow.gpu_delegate.reading.reader import read_model

pytestmark = pytest.mark.gl

Check = Callable[..., Result]
WAYS = [REFERENCE, XNNPACK, GPU, NATIVE]


def classifier() -> Sketch:
    sketch = Sketch(1)
    x = sketch.conv(sketch.image(12, 10, 3), 8, (3, 3), stride=(2, 2))
    sketch.output(sketch.connected(sketch.mean(x, keep_dims=False), 9))
    return sketch


def segmenter() -> Sketch:
    sketch = Sketch(2)
    x = sketch.conv(sketch.image(12, 10, 3), 8, (3, 3), stride=(2, 2))
    sketch.output(sketch.resize(sketch.conv(x, 5), (12, 10)))
    return sketch


def detector() -> bytes:
    sketch = Sketch(3)
    x = sketch.conv(sketch.image(12, 12, 3), 8, (3, 3), stride=(2, 2))
    flat = [
        sketch.op("RESHAPE", [each, sketch.constant(shape, "int32")], shape)
        for each, shape in ((sketch.conv(x, 4), (1, 36, 4)), (sketch.unary("LOGISTIC", sketch.conv(x, 3)), (1, 36, 3)))
    ]
    sketch.output(*flat)
    return with_detections(read_model(sketch.build()))


@pytest.fixture
def check(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Check:
    """Runs `check m.tflite --data data --task TASK`, with three drawn pictures in that folder."""
    monkeypatch.chdir(tmp_path)
    Path("data").mkdir()
    rng = np.random.default_rng(4)
    for number in range(3):
        noise = rng.integers(0, 256, (6 + number, 8, 3), np.uint8)
        cv2.imwrite(f"data/{number}.bmp", cv2.resize(noise, (30, 21), interpolation=cv2.INTER_CUBIC))
    return lambda task, *more: Command(capsys)("check", "m.tflite", "--data", "data", "--task", task, *more)


def outputs_of(model: bytes, crop: float) -> dict[str, list[Any]]:
    """What the reference kernels give for each picture, by its name."""
    Path("m.tflite").write_bytes(model)
    graph = read_model(model)
    runner, way_in = Reference(graph, kernels="reference"), picture_input(graph, crop, None, False)
    return {p.name: list(runner.run(way_in.values(read_rgb(p)))) for p in sorted(Path("data").glob("*.bmp"))}


def rows_of(result: Result) -> dict[str, dict[str, Any]]:
    assert result.code == 0, result.err
    figures = json.loads(result.out)
    assert figures["passed"]
    rows = {row["way"]: row for row in figures["ways"]}
    assert [*rows] == WAYS
    assert not any(row["why"] for row in rows.values())
    return rows


def test_classes_of_the_reference_are_top_1_in_every_way(check: Check) -> None:
    found = outputs_of(classifier().build(), 0.875)
    order = {name: np.argsort(-outputs[0].ravel(), kind="stable") for name, outputs in found.items()}
    Path("data/labels.csv").write_text("".join(f"{name},{ranks[0]}\n" for name, ranks in order.items()))
    for row in rows_of(check("classification", "--json")).values():
        assert (row["top_1"], row["top_5"]) == (1.0, 1.0)
    places = (0, 4, 5)
    lines = [f"{name},{ranks[place]}\n" for (name, ranks), place in zip(order.items(), places, strict=True)]
    Path("data/labels.csv").write_text("".join(lines))
    assert rows_of(check("classification", "--json"))[REFERENCE] | {"ms": 0} == {
        "way": REFERENCE, "top_1": pytest.approx(1 / 3), "top_5": pytest.approx(2 / 3), "ms": 0, "where": "", "why": "",
    }  # fmt: skip
    shown = check("classification").out
    assert "66.67%" in shown
    assert "native code: 3 of 3 operators in the CPU's own code in 1 partition" in shown


def test_masks_of_the_reference_are_found_in_every_way(check: Check) -> None:
    for name, (scores,) in outputs_of(segmenter().build(), 0.0).items():
        cv2.imwrite(f"data/{Path(name).stem}_mask.png", scores[0].argmax(axis=2).astype(np.uint8))
    for row in rows_of(check("segmentation", "--json")).values():
        assert row["mean_iou"] > 0.99
    cv2.imwrite("data/0_mask.png", np.full((9, 9), 200, np.uint8))
    assert "a mask has the class 200: the network has 5" in check("segmentation").err


def test_boxes_of_the_reference_are_found_in_every_way(check: Check) -> None:
    images, annotations = [], list[dict[str, Any]]()
    for number, (name, (boxes, classes, _, count)) in enumerate(outputs_of(detector(), 0.0).items()):
        images.append({"id": number, "file_name": name})
        for (top, left, bottom, right), label in zip(boxes[0, : int(count[0])], classes[0], strict=False):
            box = [float(each) for each in (left * 30, top * 21, (right - left) * 30, (bottom - top) * 21)]
            annotations.append({"image_id": number, "category_id": int(label) + 1, "bbox": box})
    categories = [{"id": each + 1, "name": str(each)} for each in range(3)]
    said = {"images": images, "annotations": annotations, "categories": categories}
    Path("data/a.json").write_text(json.dumps(said))
    assert len(annotations) > 5
    for row in rows_of(check("detection", "--json")).values():
        assert row["map_50"] == 1.0
        assert row["map"] > 0.99


def test_detections_are_read_as_far_as_they_make_sense() -> None:
    true = TrueBoxes(np.array([[0.0, 0.0, 10.0, 5.0]]), np.array([3]), np.array([False]))
    boxes = np.array([[[np.nan] * 4, [0, 0, 1, 1], [0, 0, 1, 1], [0, 0, 1, 1]]], np.float32)
    for count, classes, expected in ((4, [2, 9, np.nan, 2], 1.0), (3, [2, 9, np.nan, 2], 0.0), (np.nan, [2] * 4, 0.0)):
        task = Detection((0, 1, 2, 3), {2: 3})
        outputs = boxes, np.array([classes]), np.array([[0.9, 0.8, 0.7, 0.6]]), np.array([count])
        task.add(outputs, true, (5, 10))
        assert task.figures() == {"map": expected, "map_50": expected}
    assert Detection((0, 1, 2, 3), {}).figures() == {"map": None, "map_50": None}


def test_a_lower_figure_of_ours_is_exit_code_1(check: Check, monkeypatch: pytest.MonkeyPatch) -> None:
    found = outputs_of(classifier().build(), 0.875)
    Path("data/labels.csv").write_text("".join(f"{name},{out[0].argmax()}\n" for name, out in found.items()))
    run = Reference.run

    def other(self: Reference, inputs: Any) -> Any:
        outputs = run(self, inputs)
        return tuple(-each for each in outputs) if self.delegation else outputs

    monkeypatch.setattr(Reference, "run", other)
    result = check("classification")
    assert result.code == 1
    assert "a figure of ours is more than 1.00% lower" in result.out
    assert check("classification", "--tolerance", 1).code == 0


def test_a_way_that_cannot_be_had_says_why(check: Check, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(_graph: object, _maker: object) -> None:
        raise UsageError("not here")

    found = outputs_of(classifier().build(), 0.875)
    Path("data/labels.csv").write_text("".join(f"{name},{out[0].argmax()}\n" for name, out in found.items()))
    monkeypatch.setattr(task_evaluation, "_delegated", refused)
    result = check("classification", "--json")
    rows = {row["way"]: row for row in json.loads(result.out)["ways"]}
    assert (rows[GPU]["why"], rows[GPU]["top_1"], rows[XNNPACK]["top_1"]) == ("not here", None, 1.0)


@pytest.mark.parametrize(
    ("task", "more", "complaint"),
    [
        ("clasification", (), "classification, detection or segmentation is needed; did you mean classification?"),
        ("classification", ("--runs", 3), "--runs is not for --data"),
        ("classification", (), "0.bmp: its class is not known"),
        ("detection", (), "are boxes, classes, scores and their number, and there are 1"),
        ("segmentation", (), "the output has the shape [1, 9]"),
    ],
)
def test_what_is_wrong_is_told_in_one_line(task: str, more: tuple[object, ...], complaint: str, check: Check) -> None:
    Path("m.tflite").write_bytes(classifier().build())
    if task == "detection":
        Path("data/a.json").write_text(
            '{"images": [{"id": 1, "file_name": "0.bmp"}], "annotations": [], "categories": []}'
        )
    assert complaint in check(task, *more).complaint
