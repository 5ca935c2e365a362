"""Segmenter.classes, scores() and output=: what a model with several classes or outputs says of a frame."""

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import texelflow
from tests.model_files.frame_models import CLASS_NAMES, class_network
from tests.model_files.model_builder import ModelBuilder

Frame = npt.NDArray[np.uint8]

GL = pytest.param("gl", marks=pytest.mark.gl)
SIZE = 27, 33


@pytest.fixture
def with_classes(tmp_path: Path) -> Path:
    path = tmp_path / "classes.tflite"
    path.write_bytes(class_network())
    return path


@pytest.fixture
def with_two_outputs(tmp_path: Path) -> Path:
    """Pixels as they are, and 1 less each of them."""
    m, shape = ModelBuilder(), (1, 8, 8, 3)
    x = m.input(shape)
    m.output(m.op("MUL", [x, m.constant(np.ones(3))], shape))
    m.output(m.op("SUB", [m.constant(np.ones(3)), x], shape))
    path = tmp_path / "two.tflite"
    path.write_bytes(m.build())
    return path


@pytest.mark.parametrize("backend", [GL, "cpu"])
def test_scores_are_the_masks_of_all_classes(backend: Any, with_classes: Path, frame_rgba: Frame) -> None:
    frame = np.ascontiguousarray(frame_rgba[100:220, 200:330])
    with texelflow.Segmenter(with_classes, backend) as segment:
        assert segment.classes == CLASS_NAMES
        scores, on_grid = segment.scores(frame), segment.scores(frame, size="network")
        assert segment.scores(frame).tobytes() == scores.tobytes()
        person = segment(frame)
    assert (scores.shape, scores.dtype.name) == ((120, 130, 5), "float32")
    assert on_grid.shape == (*SIZE, 5)
    np.testing.assert_allclose(on_grid.sum(-1), 1, atol=1e-5)
    np.testing.assert_allclose(scores[..., CLASS_NAMES.index("person")], person, atol=2e-3)
    with texelflow.Segmenter(with_classes, backend, channel=CLASS_NAMES[3]) as segment:
        np.testing.assert_allclose(scores[..., 3], segment(frame), atol=2e-3)
    assert scores[..., 3].std() > 0.01


def test_classes_without_names_of_their_own_have_numbers(tmp_path: Path) -> None:
    path = tmp_path / "classes.tflite"
    path.write_bytes(class_network(labels=("tv", "cat", "TV", "", "7")))
    with texelflow.Segmenter(path, "cpu", channel=1) as segment:
        assert segment.classes == ("0", "cat", "2", "3", "4")
    for name in segment.classes:  # all of them are taken
        texelflow.Segmenter(path, "cpu", channel=name).close()


def test_a_map_of_classes_has_the_one_that_is_asked_for(tmp_path: Path) -> None:
    m = ModelBuilder()
    m.output(m.op("ARG_MAX", [m.input((1, 8, 8, 3)), m.constant(3, "int32")], (1, 8, 8), "int64", output_type=4))
    path = tmp_path / "map.tflite"
    path.write_bytes(m.build())
    red = np.zeros((8, 8, 3), np.uint8)
    red[:, :4, 2] = 255
    with texelflow.Segmenter(path, "cpu", channel=2, input_range=(0, 1), preprocessing="plain") as segment:
        assert segment.classes == ("2",)
        scores = segment.scores(red)
        assert scores.shape == (8, 8, 1)
        np.testing.assert_array_equal(scores[..., 0], red[..., 2] > 0)


@pytest.mark.parametrize("backend", [GL, "cpu"])
def test_one_of_several_outputs_is_chosen(backend: Any, with_two_outputs: Path) -> None:
    frame = np.random.default_rng(0).integers(0, 256, (8, 8, 3), np.uint8)
    said: dict[str, Any] = {"input_range": (0, 1), "activation": "none", "channel": 1, "preprocessing": "plain"}
    names = [tensor.name for tensor in texelflow.Model.load(with_two_outputs).outputs]
    for output, wanted in ((0, frame), (names[0], frame), (1, 255 - frame), (names[1], 255 - frame)):
        with texelflow.Segmenter(with_two_outputs, backend, output=output, **said) as segment:
            np.testing.assert_allclose(segment(frame), wanted[..., 1] / 255, atol=1e-5)


@pytest.mark.parametrize(
    ("output", "error", "said"),
    [
        (None, texelflow.UnsupportedError, "it has 2 outputs (t4, t6); texelflow.Segmenter(output=NAME) makes masks"),
        (2, texelflow.UsageError, "output 2: no such output; there are 0 t4, 1 t6"),
        ("mask", texelflow.UsageError, "output mask: no such output"),
        (True, texelflow.UsageError, "output True: no such output"),
    ],
)
def test_what_is_no_choice_is_refused(
    output: Any, error: type[texelflow.TexelflowError], said: str, with_two_outputs: Path
) -> None:
    with pytest.raises(error) as refused:
        texelflow.Segmenter(with_two_outputs, output=output)
    names = (tensor.name for tensor in texelflow.Model.load(with_two_outputs).outputs)
    assert said.replace("t4", next(names)).replace("t6", next(names)) in str(refused.value)


def test_scores_that_cannot_be_given_are_refused_in_one_line(with_classes: Path) -> None:
    frame = np.zeros((8, 8, 3), np.uint8)
    many = np.broadcast_to(np.zeros((1, 1, 3), np.uint8), (8000, 8000, 3))
    with texelflow.Segmenter(with_classes, "cpu", channel=0) as segment:
        for given, size, said in (
            (many, "frame", "8000x8000 pixels have too many scores of 5 classes; size='network' has fewer"),
            (frame, "grid", "size is one of 'frame', 'network', not 'grid'"),
            (frame[0], "frame", "a frame is uint8"),
        ):
            wanted: Any = size
            with pytest.raises(texelflow.UsageError) as refused:
                segment.scores(given, size=wanted)
            assert said in str(refused.value)
    with (
        texelflow.Segmenter(with_classes, "cpu", channel=0, refine=True) as segment,
        pytest.raises(texelflow.UsageError, match="scores are of single frames; make another Segmenter"),
    ):
        segment.scores(frame)
