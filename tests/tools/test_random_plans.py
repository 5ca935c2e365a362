"""The default plan against TensorFlow Lite's, on random tensors: few of those that the command has."""

import pytest

from tests.helpers.markers import exhaustive
from tests.tools.random_plans import planned_set, random_records
from texelflow.app.bench.memory_plans.memory_records import synthetic


@pytest.mark.parametrize("seed", range(20))
def test_the_default_is_nowhere_larger_than_tensorflow_lites(seed: int) -> None:
    found = planned_set(random_records(seed))
    assert found.bound <= found.ours <= found.tflite


@exhaustive
def test_10000_tensors_take_no_more_than_in_tensorflow_lite() -> None:
    (records,) = synthetic().programs
    found = planned_set(records)
    assert found.bound < found.ours <= found.tflite


def test_random_tensors_differ_and_repeat() -> None:
    assert random_records(3) == random_records(3) != random_records(4)
    sizes = {len(random_records(seed)) for seed in range(20)}
    assert min(sizes) < 40 < 80 < max(sizes)
