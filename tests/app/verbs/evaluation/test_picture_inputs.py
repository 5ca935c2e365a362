"""How a picture becomes a network's input, against TensorFlow Lite's own resizing."""

import numpy as np
import pytest

from tests.model_files.sketch import Sketch
from texelflow.app.verbs.evaluation.picture_inputs import PictureInput, cropped, picture_input, resized
from texelflow.gpu_delegate.base.errors import UsageError
from texelflow.gpu_delegate.cpu.reference import Reference
from texelflow.gpu_delegate.model.graph import Graph, Quantization, Tensor
from texelflow.gpu_delegate.reading.reader import read_model

RNG = np.random.default_rng(2)


@pytest.mark.parametrize(
    ("size", "wanted"), [((5, 7), (11, 3)), ((40, 23), (9, 31)), ((6, 6), (6, 6)), ((1, 9), (4, 4))]
)
def test_pictures_are_resized_as_tensorflow_lite_does(size: tuple[int, int], wanted: tuple[int, int]) -> None:
    rgb = RNG.integers(0, 256, (*size, 3), np.uint8)
    sketch = Sketch(0)
    sketch.output(sketch.resize(sketch.image(*size, 3), wanted))
    (expected,) = Reference(read_model(sketch.build()), keep_all_tensors=True).run(rgb[None].astype(np.float32))
    assert np.abs(resized(rgb, *wanted) - expected[0]).max() < 1e-3


def test_the_square_in_the_middle_is_cropped() -> None:
    rgb = np.arange(16 * 24 * 3, dtype=np.int64).reshape(16, 24, 3).astype(np.uint8)
    assert np.array_equal(cropped(rgb, 0.875), rgb[1:15, 5:19])
    assert cropped(rgb[:1], 0.5).shape == (1, 1, 3)


def way(dtype: str, value_range: tuple[float, float] | None, quantization: Quantization | None = None) -> PictureInput:
    return PictureInput(Tensor(0, "x", (1, 2, 2, 3), dtype, quantization=quantization), 0.0, value_range)


def test_bytes_are_those_of_the_picture_and_floats_in_a_range() -> None:
    rgb = np.array([[[0, 128, 255]] * 2] * 2, np.uint8)
    assert way("uint8", None).values(rgb)[0, 0, 0].tolist() == [0, 128, 255]
    assert way("int8", None).values(rgb)[0, 0, 0].tolist() == [-128, 0, 127]
    assert way("float32", (-1.0, 1.0)).values(rgb)[0, 0, 0] == pytest.approx([-1.0, 1 / 255, 1.0], abs=1e-6)
    steps = Quantization((0.5,), (3,))
    assert way("int8", (0.0, 2.0), steps).values(rgb)[0, 0, 0].tolist() == [3, 5, 7]


def graph(*shape: int, dtype: str = "float32") -> Graph:
    return Graph("m", {0: Tensor(0, "x", shape, dtype)}, (), (0,), (0,))


def test_the_range_is_the_users_or_the_metadatas_or_the_usual_one() -> None:
    assert picture_input(graph(1, 4, 4, 3), 0.0, None, False).value_range == (-1.0, 1.0)
    assert picture_input(graph(1, 4, 4, 3), 0.0, (0.0, 1.0), False).value_range == (0.0, 1.0)
    assert picture_input(graph(1, 4, 4, 3, dtype="int8"), 0.0, (0.0, 1.0), False).value_range is None
    assert picture_input(graph(1, 4, 4, 3, dtype="int8"), 0.0, (0.0, 1.0), True).value_range == (0.0, 1.0)


@pytest.mark.parametrize("shape", [(1, 3, 4, 4), (2, 4, 4, 3), (4, 4, 3), (1, -1, 4, 3)])
def test_other_inputs_are_refused(shape: tuple[int, ...]) -> None:
    with pytest.raises(UsageError, match="one picture of the shape"):
        picture_input(graph(*shape), 0.0, None, False)
    with pytest.raises(UsageError, match="takes int32"):
        picture_input(graph(1, 4, 4, 3, dtype="int32"), 0.0, None, False)
