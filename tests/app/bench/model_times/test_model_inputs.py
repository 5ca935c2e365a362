"""The values that a measured model is given."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from texelflow.app.bench.model_times.model_inputs import NO_INPUTS, InputLayer, ModelInputs
from texelflow.gpu_delegate.base.errors import UsageError


@pytest.mark.parametrize(
    ("dtype", "low", "high"), [("int32", -2, 3), ("uint8", 250, 255), ("float32", 4, 4), ("int64", 0, 9)]
)
def test_a_range_has_both_its_ends(dtype: str, low: int, high: int) -> None:
    inputs = ModelInputs((InputLayer("x", (7, 90), (low, high)),))
    (values,) = inputs.values([(7, 90)], [dtype])
    assert (values.dtype, values.shape) == (np.dtype(dtype), (7, 90))
    assert {*values.ravel().tolist()} == {*range(low, high + 1)}


@pytest.mark.parametrize(
    ("dtype", "bounds"), [("uint8", (0, 256)), ("int8", (-129, 0)), ("bytes", (0, 1)), ("bool", (0, 1))]
)
def test_a_range_that_a_type_does_not_hold_is_refused(dtype: str, bounds: tuple[int, int]) -> None:
    with pytest.raises(UsageError, match="input x"):
        ModelInputs((InputLayer("x", (1,), bounds),)).values([(1,)], [dtype])


@pytest.mark.parametrize("values", [np.arange(6, dtype=np.int16), np.arange(6) / 7, np.arange(6) > 2])
def test_a_file_has_the_bytes_of_an_input(values: np.ndarray[Any, Any], tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(values.tobytes())
    inputs = ModelInputs((InputLayer("x", (2, 3), None, tmp_path / "x"),))
    (found,) = inputs.values([(2, 3)], [values.dtype.name])
    assert np.array_equal(found, values.reshape(2, 3))
    with pytest.raises(UsageError, match="more than"):
        inputs.values([(1, 3)], [values.dtype.name])
    with pytest.raises(UsageError, match="takes"):
        inputs.values([(7, 3)], [values.dtype.name])


def test_texts_end_in_a_null_byte_each(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b"one\0\0three\0")
    inputs = ModelInputs((InputLayer("x", (3,), None, tmp_path / "x"),))
    assert inputs.values([(3,)], ["bytes"])[0].tolist() == [b"one", b"", b"three"]
    with pytest.raises(UsageError, match="3 texts; input x takes 2"):
        inputs.values([(2,)], ["bytes"])


def test_without_a_word_values_are_random_and_the_same_each_time() -> None:
    first, again = (NO_INPUTS.values([(50,), (50,), (4,)], ["float32", "int8", "int32"]) for _ in range(2))
    assert all(np.array_equal(one, other) for one, other in zip(first, again, strict=True))
    assert abs(first[0]).max() <= 0.5
    assert first[1].min() < 0 < first[1].max()
    assert not first[2].any()
