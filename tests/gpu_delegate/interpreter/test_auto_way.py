"""Interpreter(backend="auto"): what it takes gives the right numbers, stays, is known to the next one, and is told."""

from typing import Any

import numpy as np
import pytest

import texelflow
from tests.model_files.delegate_models import any_size
from tests.model_files.quantized_models import SCHEMES, small_quantized
from tests.model_files.sketch import Sketch
from tests.model_files.state_models import drawn, lstm
from tests.quantized.runs import REFERENCE, TfliteRun


def small(channels: int) -> bytes:
    m = Sketch(1)
    m.output(m.conv(m.image(30, 40, 3), channels, (3, 3)))
    return m.build()


def values_of(made: Any, seed: int = 0) -> list[Any]:
    rng = np.random.default_rng(seed)
    return [rng.random(detail["shape"], np.float32) for detail in made.get_input_details()]


@pytest.mark.parametrize("scheme", SCHEMES)
def test_8_bit_models_give_the_bytes_of_the_reference_kernels(scheme: str) -> None:
    model = small_quantized(SCHEMES[scheme])
    reference = TfliteRun(model, REFERENCE)
    limits = np.iinfo(reference.input_dtype)
    values = np.random.default_rng(0).integers(
        limits.min, limits.max, reference.input_shape, reference.input_dtype, endpoint=True
    )
    interpreter = texelflow.Interpreter(model_content=model)
    np.testing.assert_array_equal(interpreter(values), reference([values])[0])
    assert "tflite" not in interpreter.report().times_ms


def test_what_was_measured_is_known_to_later_ones() -> None:
    """At the latest to the fourth: what is close is measured in three starts."""
    made = [texelflow.Interpreter(model_content=small(7)) for _ in range(5)]
    outputs = [each(*values_of(each)) for each in made]
    first, *_, last = (each.report() for each in made)
    assert (made[3].backend, made[3].report().times_ms) == (last.backend, last.times_ms)
    assert {"native", "tflite, 1 thread"} <= {*first.times_ms} == {*last.times_ms}
    assert "measured now" in str(first)
    assert "an earlier start has measured" in str(last)
    np.testing.assert_allclose(outputs[0], outputs[4], rtol=1e-5, atol=1e-6)


def test_a_choice_stays_at_other_sizes() -> None:
    interpreter = texelflow.Interpreter(model_content=any_size())
    interpreter(*values_of(interpreter))
    before = interpreter.backend
    for rows in (8, 64, 6):
        interpreter.resize_tensor_input(interpreter.get_input_details()[0]["index"], (1, rows, 8, 3))
        interpreter.allocate_tensors()
        interpreter.invoke()
        assert interpreter.backend == before


def test_trials_leave_no_traces_in_states() -> None:
    model = drawn(lstm)
    chosen = texelflow.Interpreter(model_content=model)
    asked = texelflow.Interpreter(model_content=model, backend=chosen_backend(model))
    values = values_of(asked)
    for _ in range(3):
        found, wanted = chosen(*values), asked(*values)
        np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-6)


def chosen_backend(model: bytes) -> Any:
    made = texelflow.Interpreter(model_content=model)
    made.allocate_tensors()
    return made.backend
