"""States are those of TensorFlow Lite: on the GPU, in native code, and on the CPU beside either."""

import numpy as np
import pytest

import texelflow
from tests.helpers.delegated import AnyValues, inferred, interpreter_of
from tests.helpers.markers import one_in
from tests.model_files.state_models import STATE_MODELS
from texelflow.gpu_delegate.ops.left_to_cpu import LEFT_TO_CPU
from texelflow.gpu_delegate.ops.registry import OPS
from texelflow.gpu_delegate.reading.reader import BUILTIN_NAMES, read_model

RUNS = 5
RESET_BEFORE = 3  # a run


@pytest.mark.gl
@one_in(3, "name", STATE_MODELS)
def test_states_are_those_of_tensorflow_lite_alone(name: str) -> None:
    model, rng = STATE_MODELS[name](), np.random.default_rng(2)
    alone = interpreter_of(model, xnnpack=False)
    shapes = [detail["shape"] for detail in alone.get_input_details()]
    inputs = [rng.uniform(-1, 1, shape).astype(np.float32) for shape in shapes]
    wanted, found = list[AnyValues](), list[AnyValues]()
    with texelflow.GpuDelegate(min_nodes_per_partition=1, strict=True, quiet=True) as delegate:
        beside = interpreter_of(model, delegate, xnnpack=False)
        for run in range(RUNS):
            for interpreter, outputs in ((alone, wanted), (beside, found)):
                if run == RESET_BEFORE:
                    interpreter.reset_all_variables()
                outputs.append(inferred(interpreter, inputs)[0])
        assert delegate.partitions
        ops = {node.op for node in read_model(model).nodes if node.index in delegate.reasons}
        del beside
    assert ops == ({"CONV_3D"} if name == "volumes" else set())
    np.testing.assert_allclose(found, wanted, atol=1e-5)
    if name != "volumes":  # the same inputs give other outputs as long as states differ
        assert np.abs(np.subtract(wanted[0], wanted[1])).max() > 1e-3


def test_reasons_are_of_ops_that_the_engine_lacks() -> None:
    assert LEFT_TO_CPU.keys() <= BUILTIN_NAMES
    assert not LEFT_TO_CPU.keys() & OPS.keys()


def test_a_reason_names_what_is_left_to_the_cpu() -> None:
    reasons = {name: [each.attributes.reason for each in read_model(f()).opaque] for name, f in STATE_MODELS.items()}  # type: ignore[attr-defined]
    assert "five dimensions, at most 4 are possible" in reasons["volumes"]
