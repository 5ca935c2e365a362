"""Quantized tensors become bytes by one rule: large ones some pixels at a time, small ones in few passes."""

import numpy as np
import pytest

import texelflow
from tests.model_files.sketch import Sketch
from tests.model_files.state_models import drawn, lstm
from texelflow.gpu_delegate.interpreter.native_way import SmallSteps, bytes_of
from texelflow.gpu_delegate.model.graph import Quantization, Tensor
from texelflow.gpu_delegate.model.packing import in_file_type


@pytest.mark.parametrize("dtype", ["int8", "uint8"])
@pytest.mark.parametrize("shape", [(1, 3, 5, 7), (2, 65, 63, 11), (1, 200_000), (1, 300, 300, 1)])
def test_bytes_are_those_of_the_general_rule(dtype: str, shape: tuple[int, ...]) -> None:
    tensor = Tensor(0, "x", shape, dtype, quantization=Quantization((0.5,), (3,)))
    steps = np.random.default_rng(0).integers(-300, 300, shape[::-1]).astype(np.float32).T
    np.testing.assert_array_equal(bytes_of(steps, tensor), in_file_type(steps, tensor))


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16"])
def test_small_tensors_are_those_of_the_general_rule(dtype: str) -> None:
    tensor = Tensor(0, "x", (3, 7, 5), dtype, quantization=Quantization((0.5,), (3,)))
    view = np.random.default_rng(0).uniform(-40_000, 40_000, (5, 7, 3)).astype(np.float32).T
    view[0] /= 200
    view[1] = np.rint(view[0]) + np.float32(0.5)
    small = SmallSteps(view, tensor)
    np.testing.assert_array_equal(found := small.read(), in_file_type(view, tensor))
    assert found.dtype == dtype
    small.write(found)
    np.testing.assert_array_equal(view, found.astype(np.float32) - 3)
    np.testing.assert_array_equal(small.read(), found)


def test_what_a_large_quantized_tensor_was_given_comes_back() -> None:
    m, shape = Sketch(1), (1, 67, 61, 21)
    x, y = (m.tensor(shape, "int8", scales=(0.01,), zero_points=(zero,)) for zero in (3, 3))
    m.inputs.append(x)
    m.output(*m.op_of("RELU", [x], [y]))
    values = np.random.default_rng(0).integers(-128, 128, shape).astype(np.int8)
    with texelflow.Interpreter(model_content=m.build(), backend="native") as made:
        np.testing.assert_array_equal(made(values), np.maximum(values, 3))
        np.testing.assert_array_equal(made.get_tensor(x), values)


def test_sizes_that_come_again_begin_with_states_as_at_first() -> None:
    """Networks of earlier sizes are kept: what they keep themselves is not what they had when they were left."""
    with texelflow.Interpreter(model_content=drawn(lstm), backend="native") as made:
        made.allocate_tensors()
        (source,) = made.get_input_details()
        values = np.ones(source["shape"], np.float32)
        first = made(values)
        assert not np.array_equal(made(values), first)
        made.resize_tensor_input(source["index"], source["shape"])
        made.allocate_tensors()
        assert not np.array_equal(made(values), first), "the size is the same: nothing is allocated anew"
        made.reset_all_variables()
        np.testing.assert_array_equal(made(values), first)
