"""Models through TensorFlow Lite's interpreter with the delegate, against the interpreter without it."""

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import texelflow
from tests.model_builder import ModelBuilder
from texelflow.gpu_delegate.cpu.reference import Reference, load_interpreter_module
from texelflow.gpu_delegate.reading.reader import load_model

pytestmark = pytest.mark.gl

Values = npt.NDArray[Any]


def interpreter(model: bytes, *delegates: texelflow.GpuDelegate) -> Any:
    """An interpreter of a model's bytes, ready to run."""
    made = load_interpreter_module().Interpreter(model_content=model, experimental_delegates=list(delegates))
    made.allocate_tensors()
    return made


def run(made: Any, *inputs: Values) -> list[Values]:
    """Copies of all outputs."""
    for detail, values in zip(made.get_input_details(), inputs, strict=True):
        made.set_tensor(detail["index"], values)
    made.invoke()
    return [made.get_tensor(detail["index"]) for detail in made.get_output_details()]


def three_partitions() -> bytes:
    """Convolutions with sums along rows between them, which only TensorFlow Lite computes."""
    builder, rng = ModelBuilder(), np.random.default_rng(1)
    value = builder.input((1, 5, 7, 3))
    for channels_in, channels in ((3, 6), (6, 5), (5, 2)):
        weights = builder.constant(rng.normal(0, 0.3, (channels, 3, 3, channels_in)))
        bias = builder.constant(rng.normal(0, 1, channels))
        value = builder.op("CONV_2D", [value, weights, bias], (1, 5, 7, channels), padding="SAME", stride=(1, 1))
        value = builder.op("RELU", [value], (1, 5, 7, channels))
        if channels != 2:
            value = builder.op("CUMSUM", [value, builder.constant(2, "int32")], (1, 5, 7, channels))
    builder.output(value)
    return builder.build()


def test_a_model_with_a_custom_op_runs_whole(selfie_model: Path) -> None:
    """TensorFlow Lite has no kernel for it: without the delegate the interpreter refuses the model."""
    delegate = texelflow.GpuDelegate()
    made = load_interpreter_module().Interpreter(model_path=str(selfie_model), experimental_delegates=[delegate])
    made.allocate_tensors()
    picture = np.random.default_rng(0).uniform(0, 1, (1, 256, 256, 3)).astype(np.float32)
    (mask,) = run(made, picture)
    graph = load_model(selfie_model)
    (expected,) = Reference(graph).run(picture)
    np.testing.assert_allclose(mask, expected, atol=1e-3)
    assert [len(partition.nodes) for partition in delegate.partitions] == [len(graph.nodes)]
    assert delegate.is_applied
    assert not delegate.reasons
    assert delegate.error is None


def test_partitions_and_operators_of_the_cpu_run_in_turn() -> None:
    delegate = texelflow.GpuDelegate(min_nodes_per_partition=1)
    model = three_partitions()
    made, plain = interpreter(model, delegate), interpreter(model)
    for seed in range(3):
        values = np.random.default_rng(seed).normal(0, 1, (1, 5, 7, 3)).astype(np.float32)
        np.testing.assert_allclose(run(made, values)[0], run(plain, values)[0], atol=1e-4)
    assert [partition.nodes for partition in delegate.partitions] == [(0, 1), (3, 4), (6, 7)]
    assert set(delegate.reasons) == {2, 5}
