"""TFLite_Detection_PostProcess, beside TensorFlow Lite's own kernel: the same bytes, whatever boxes and scores are."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from flatbuffers import flexbuffers

from tests.model_files.model_builder import ModelBuilder
from texelflow.gpu_delegate.base.errors import InferenceError
from texelflow.gpu_delegate.cpu.interpreter_module import load_interpreter_module
from texelflow.gpu_delegate.custom.custom_op import CustomOperator, computed_outputs, shapes_of_outputs
from texelflow.gpu_delegate.custom.detection import DETECTION_POSTPROCESS
from texelflow.gpu_delegate.model.graph import Quantization, Tensor

Arrays = Sequence[npt.NDArray[Any]]
SCALES = {"y_scale": 10.0, "x_scale": 10.0, "h_scale": 5.0, "w_scale": 5.0}
NAMES = ("boxes", "classes", "scores", "count")


def options_of(classes: int, **changes: float) -> dict[str, Any]:
    usual = {"max_detections": 10, "max_classes_per_detection": 1, "num_classes": classes, "nms_iou_threshold": 0.6}
    return {**usual, "nms_score_threshold": 1e-8, **SCALES, **changes}


def random_inputs(seed: int, boxes: int, classes: int, levels: int = 0, coords: int = 4) -> list[npt.NDArray[Any]]:
    """With so many `levels`, scores are one of these, and many are equal."""
    rng = np.random.default_rng(seed)
    encodings = rng.normal(0, 4, (1, boxes, coords))
    scores = rng.uniform(0, 1, (1, boxes, classes))
    if levels:
        scores = np.floor(scores * levels) / levels
    anchors = np.concatenate([rng.uniform(0, 1, (boxes, 2)), rng.uniform(0.05, 0.5, (boxes, 2))], axis=1)
    return [each.astype(np.float32) for each in (encodings, scores, anchors)]


def in_tflite(options: Mapping[str, Any], inputs: Arrays, scales: Sequence[float] = ()) -> list[npt.NDArray[Any]]:
    """The outputs of TensorFlow Lite's kernel; `scales` of inputs that are bytes, whose zero point is 128."""
    model = ModelBuilder()
    given = [model.input(each.shape, each.dtype.name) for each in inputs]
    if scales:
        given = [
            model.tensor(each.shape, "uint8", scales=(scale,), zero_points=(128,))
            for each, scale in zip(inputs, scales, strict=True)
        ]
        model.inputs[:] = given
    outputs = model.split(
        "TFLite_Detection_PostProcess", given, ((), (), (), ()), custom=bytes(flexbuffers.Dumps(dict(options)))
    )
    model.output(*outputs)
    interpreter = load_interpreter_module(newer=True).Interpreter(model_content=model.build())
    interpreter.allocate_tensors()
    for detail, values in zip(interpreter.get_input_details(), inputs, strict=True):
        interpreter.set_tensor(detail["index"], values)
    interpreter.invoke()
    return [interpreter.get_tensor(detail["index"]) for detail in interpreter.get_output_details()]


def here(options: Mapping[str, Any], inputs: Arrays, scales: Sequence[float] = ()) -> tuple[npt.NDArray[Any], ...]:
    op, data = DETECTION_POSTPROCESS, bytes(flexbuffers.Dumps(dict(options)))
    meanings: list[Quantization | None] = [Quantization((scale,), (128,)) for scale in scales]
    tensors = [
        Tensor(k, f"input {k}", each.shape, each.dtype.name, quantization=meaning)
        for k, (each, meaning) in enumerate(zip(inputs, meanings or [None] * 3, strict=True))
    ]
    outputs = tuple(Tensor(9 + k, name, ()) for k, name in enumerate(NAMES))
    operator = CustomOperator(op.name, 0, tuple(tensors), outputs, data)
    shapes = shapes_of_outputs(op, operator)
    shaped = [Tensor(9 + k, name, shape) for k, (name, shape) in enumerate(zip(NAMES, shapes, strict=True))]
    return computed_outputs(op, operator, inputs, shaped)


def assert_same(options: Mapping[str, Any], inputs: Arrays, scales: Sequence[float] = ()) -> int:
    """Returns how many detections there are: what lies behind them is not TensorFlow Lite's to say."""
    expected, found = in_tflite(options, inputs, scales), here(options, inputs, scales)
    np.testing.assert_array_equal(expected[3], found[3])
    categories = 1 if options.get("use_regular_nms") else options["max_classes_per_detection"]
    count = int(found[3][0]) * categories
    for name, theirs, ours in zip(NAMES[:3], expected, found, strict=False):
        assert theirs.shape == ours.shape
        assert theirs[0, :count].tobytes() == ours[0, :count].tobytes(), name
        assert not ours[0, count:].any()
    return count


@pytest.mark.parametrize("regular", [False, True])
@pytest.mark.parametrize("levels", [0, 7])
@pytest.mark.parametrize(
    ("boxes", "columns", "classes", "changes"),
    [
        (57, 4, 3, {}),
        (57, 3, 3, {"max_detections": 30, "nms_score_threshold": 0.5}),
        (200, 12, 11, {"max_detections": 25, "nms_iou_threshold": 0.3}),
        (31, 5, 5, {"max_detections": 100, "nms_iou_threshold": 1.0}),
        (1, 2, 1, {"max_detections": 1}),
        (64, 7, 7, {"max_detections": 5, "detections_per_class": 3}),
        (40, 3, 2, {"nms_score_threshold": 2.0}),
    ],
)
def test_random_boxes(
    boxes: int, columns: int, classes: int, changes: dict[str, float], levels: int, regular: bool
) -> None:
    for seed in range(3):
        options = options_of(classes, use_regular_nms=regular, **changes)
        assert_same(options, random_inputs(seed, boxes, columns, levels))


def test_no_detections_are_asked_for() -> None:
    assert not assert_same(options_of(2, max_detections=0), random_inputs(0, 40, 2))


@pytest.mark.parametrize("levels", [0, 3])
@pytest.mark.parametrize("categories", [2, 3, 6])
def test_several_classes_of_each_detection(categories: int, levels: int) -> None:
    inputs = random_inputs(categories, 60, 7, levels, coords=6)
    assert assert_same(options_of(6, max_classes_per_detection=categories), inputs) > 10


@pytest.mark.parametrize("regular", [False, True])
def test_bytes(regular: bool) -> None:
    rng, scales = np.random.default_rng(5), (0.06, 1 / 256, 0.004)
    inputs = [rng.integers(0, 256, shape, np.uint8) for shape in ((1, 90, 4), (1, 90, 8))]
    inputs.append(rng.integers(140, 256, (90, 4), np.uint8))
    assert assert_same(options_of(7, use_regular_nms=regular), inputs, scales)


@pytest.mark.parametrize("regular", [False, True])
def test_scores_that_are_no_numbers(regular: bool) -> None:
    inputs = random_inputs(3, 80, 5)
    inputs[1][0, ::3, 1] = np.nan
    inputs[1][0, ::7, 2] = np.inf
    inputs[0][0, ::11, 0] = np.nan
    assert_same(options_of(4, use_regular_nms=regular), inputs)


@pytest.mark.parametrize(
    ("classes", "changes", "said"),
    [
        (3, {"nms_iou_threshold": 0.0}, "nms_iou_threshold is 0, not above 0"),
        (3, {"max_detections": -1}, "max_detections is -1, not a number from 0"),
        (3, {"max_detections": 1 << 30}, "max_detections is 1.07374e"),
        (3, {"max_classes_per_detection": 0}, "max_classes_per_detection is 0"),
        (3, {"use_regular_nms": 1, "detections_per_class": 0}, "detections_per_class are not numbers"),
        (5, {}, r"scores of shape \[1, 20, 4\] for 20 boxes and 5 classes"),
        (3, {"num_classes": "many"}, "num_classes is no number"),
    ],
)
def test_options_that_do_not_fit(classes: int, changes: dict[str, Any], said: str) -> None:
    with pytest.raises(InferenceError, match=rf"^operator 0 \(TFLite_Detection_PostProcess\): .*{said}"):
        here(options_of(classes, **changes), random_inputs(0, 20, 4))


def test_boxes_that_end_before_they_start_are_refused_as_tflite_refuses_them() -> None:
    inputs = random_inputs(0, 20, 4)
    inputs[2][7, 2] = -0.1
    with pytest.raises(RuntimeError):
        in_tflite(options_of(3), inputs)
    with pytest.raises(InferenceError, match="an end is before its start"):
        here(options_of(3), inputs)
