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


def any_size(rows: int = 6, columns: int = 8, unsupported: bool = False) -> bytes:
    """A model of a file's size that runs at others, too: windows, an operand of one pixel, a reshape, parts."""
    builder, rng = ModelBuilder(), np.random.default_rng(2)
    x = builder.input((1, rows, columns, 3))
    weights, bias = builder.constant(rng.normal(0, 0.3, (6, 3, 3, 3))), builder.constant(rng.normal(0, 1, 6))
    half = (1, rows // 2, columns // 2, 6)
    y = builder.op("CONV_2D", [x, weights, bias], half, padding="SAME", stride=(2, 2), activation="RELU")
    if unsupported:
        y = builder.op("CUMSUM", [y, builder.constant(2, "int32")], half)
    mean = builder.op("MEAN", [y, builder.constant((1, 2), "int32")], (1, 1, 1, 6), keep_dims=True)
    y = builder.op("MUL", [y, mean], half)
    axis = builder.constant(3, "int32")
    first, second = builder.split("SPLIT", [axis, y], [(*half[:3], 3)] * 2, num_splits=2)
    y = builder.op("CONCATENATION", [second, first], half, axis=3)
    flat = builder.op("RESHAPE", [y, builder.constant((1, -1, 6), "int32")], (1, rows * columns // 4, 6))
    builder.output(flat, mean)
    return builder.build()


@pytest.mark.parametrize(("unsupported", "most"), [(False, None), (True, None), (True, 1)])
def test_other_sizes_of_the_input(unsupported: bool, most: int | None) -> None:
    """XNNPACK has TensorFlow Lite undo all delegates for other sizes, where it runs a part."""
    delegate = texelflow.GpuDelegate(min_nodes_per_partition=1, max_delegated_partitions=most, strict=True)
    rng = np.random.default_rng(0)
    made, plain = (interpreter(any_size(unsupported=unsupported), *each) for each in ([delegate], []))
    for shape in ((1, 6, 8, 3), (1, 9, 5, 3), (2, 9, 5, 3), (1, 6, 8, 3), (1, 34, 20, 3)):
        values = rng.normal(0, 1, shape).astype(np.float32)
        for each in (made, plain):
            each.resize_tensor_input(0, shape)
            each.allocate_tensors()
        for _ in range(2):
            found, expected = run(made, values), run(plain, values)
            assert [each.shape for each in found] == [each.shape for each in expected]
            for ours, theirs in zip(found, expected, strict=True):
                np.testing.assert_allclose(ours, theirs, atol=1e-4)
    assert len(delegate.partitions) == (most or 1 + unsupported)
    assert delegate.error is None


def late_size() -> bytes:
    """A convolution of what a RESHAPE makes to a size that is another input: it is known when the model runs."""
    builder, rng = ModelBuilder(), np.random.default_rng(3)
    values, size = builder.input((1, 24, 3)), builder.input((4,), "int32")
    weights, bias = builder.constant(rng.normal(0, 0.3, (5, 3, 3, 3))), builder.constant(rng.normal(0, 1, 5))
    y = builder.op("RESHAPE", [values, size], (1, 4, 6, 3))
    y = builder.op("CONV_2D", [y, weights, bias], (1, 4, 6, 5), padding="SAME", stride=(1, 1))
    y = builder.op("TANH", [y], (1, 4, 6, 5))
    builder.output(builder.op("CUMSUM", [y, builder.constant(1, "int32")], (1, 4, 6, 5)), y)
    return builder.build()


def test_sizes_that_are_known_when_the_model_runs() -> None:
    delegate = texelflow.GpuDelegate(min_nodes_per_partition=1, strict=True)
    made, plain = interpreter(late_size(), delegate), interpreter(late_size())
    values = np.random.default_rng(0).normal(0, 1, (1, 24, 3)).astype(np.float32)
    for size in ((1, 4, 6, 3), (1, 2, 12, 3), (2, 3, 4, 3), (2, 3, 4, 3), (1, 24, 1, 3), (1, 4, 6, 3)):
        inputs = values, np.array(size, np.int32)
        found, expected = run(made, *inputs), run(plain, *inputs)
        for ours, theirs in zip(found, expected, strict=True):
            np.testing.assert_allclose(ours, theirs, atol=1e-4)
    assert [partition.nodes for partition in delegate.partitions] == [(1, 2)]


def test_sizes_that_an_operator_does_not_take() -> None:
    builder = ModelBuilder()
    y = builder.op("RELU", [builder.input((1, 4, 6, 3))], (1, 4, 6, 3))
    builder.output(builder.op("RESHAPE", [y, builder.constant((1, 24, 3), "int32")], (1, 24, 3)))
    delegate = texelflow.GpuDelegate(strict=True)
    made = interpreter(builder.build(), delegate)
    values = np.random.default_rng(0).normal(0, 1, (1, 4, 6, 3)).astype(np.float32)
    made.resize_tensor_input(0, (1, 5, 6, 3))
    with pytest.raises(RuntimeError, match=r"inputs of shape \[1, 5, 6, 3\].*RESHAPE.*into \[1, 24, 3\]"):
        made.allocate_tensors()
    assert isinstance(delegate.error, texelflow.UnsupportedError)
    made.resize_tensor_input(0, (1, 4, 6, 3))
    made.allocate_tensors()
    np.testing.assert_array_equal(run(made, values)[0], np.maximum(values, 0).reshape(1, 24, 3))


def kept() -> bytes:
    """A graph in which one partition hands a tensor to another one that nothing on the CPU reads."""
    builder = ModelBuilder()
    shape = (1, 5, 6, 7)
    y = builder.op("TANH", [builder.input(shape)], shape)
    left = builder.op("NEG", [y], shape)
    summed = builder.op("CUMSUM", [y, builder.constant(1, "int32")], shape)
    builder.output(builder.op("ADD", [summed, left], shape))
    return builder.build()


def test_what_only_partitions_read_stays_on_the_gpu() -> None:
    delegate = texelflow.GpuDelegate(min_nodes_per_partition=1, strict=True)
    made, plain = interpreter(kept(), delegate), interpreter(kept())
    for seed in range(2):
        values = np.random.default_rng(seed).normal(0, 1, (1, 5, 6, 7)).astype(np.float32)
        np.testing.assert_allclose(run(made, values)[0], run(plain, values)[0], atol=1e-5)
    assert [partition.outputs for partition in delegate.partitions] == [(1, 2), (5,)]
    assert delegate.summary == "3 of 4 operators on the GPU in 2 partitions (2 dispatches), 1 by builtin kernels"
