"""Random networks with a delegate at other sizes than the file's: as without it, or a refusal that says why.

TEXELFLOW_NETWORKS=FIRST:COUNT tries other networks. TensorFlow Lite itself does not survive some of them at some sizes.
"""

from typing import Any

import numpy as np
import pytest

from tests.generators.profiles import random_graph
from tests.gpu_delegate.targets.gl.test_random_networks import asked_for
from tests.helpers.delegated import MOST_ERROR, AnyValues, inferred, interpreter_of, random_inputs
from tests.helpers.markers import one_in
from tests.models.measure import error_of
from texelflow.gpu_delegate.base.errors import UnsupportedError
from texelflow.gpu_delegate.delegate.delegate import GpuDelegate

QUICK = (43, 46, 52, 54, 63, 65, 79, 80, 85)  # none refuses all sizes
SIZES = 3
LARGEST_SIDE = 19


def other_shape(shape: list[int], rng: np.random.Generator) -> list[int]:
    """Of another height and width, and sometimes of two maps."""
    batch = int(rng.integers(1, 3)) if rng.random() < 0.3 else shape[0]
    return [batch, *(int(side) for side in rng.integers(1, LARGEST_SIDE + 1, 2)), shape[3]]


def at_size(interpreter: Any, shape: list[int], rng: np.random.Generator) -> list[AnyValues] | Exception:
    """The outputs for inputs of this shape, or why there are none."""
    first = interpreter.get_input_details()[0]["shape"].tolist()
    try:
        for detail in interpreter.get_input_details():
            if detail["shape"].tolist() == first:
                interpreter.resize_tensor_input(detail["index"], shape)
        interpreter.allocate_tensors()
        return inferred(interpreter, random_inputs(interpreter, rng))
    except (RuntimeError, ValueError) as error:
        return error


@pytest.mark.gl
@one_in(3, "seed", asked_for(QUICK))
def test_outputs_are_those_of_the_cpu_or_the_size_is_refused(seed: int) -> None:
    model, rng = random_graph(seed, "partial").build(), np.random.default_rng(seed)
    plain = interpreter_of(model, xnnpack=False)
    with GpuDelegate(model=model, min_nodes_per_partition=1, strict=True, quiet=True) as delegate:
        made = interpreter_of(model, delegate, xnnpack=seed % 2 == 0)
        compared = 0
        for number in range(SIZES):
            shape = other_shape(plain.get_input_details()[0]["shape"].tolist(), rng)
            expected, found = (at_size(each, shape, np.random.default_rng(number)) for each in (plain, made))
            if isinstance(expected, Exception) or isinstance(found, Exception):
                assert isinstance(found, Exception), f"seed {seed}: runs at {shape}, though TensorFlow Lite refuses it"
                assert isinstance(expected, Exception) or isinstance(delegate.error, UnsupportedError)
                continue
            assert [each.shape for each in found] == [each.shape for each in expected], f"seed {seed} at {shape}"
            assert error_of(found, expected) < MOST_ERROR, f"seed {seed} at {shape}"
            compared += 1
        assert compared or seed not in QUICK
        del made
