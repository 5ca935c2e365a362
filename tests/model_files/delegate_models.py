"""Models to try delegates on, and interpreters with delegates."""

from typing import Any

import numpy as np
import numpy.typing as npt

from tests.model_files.model_builder import ModelBuilder
from texelflow.gpu_delegate.delegate.auto_delegate import Delegate
from texelflow.gpu_delegate.delegate.delegate import GpuDelegate

Values = npt.NDArray[Any]


def interpreter(runtime: Any, model: bytes, *delegates: GpuDelegate | Delegate) -> Any:
    """An interpreter of a model's bytes with memory for its tensors; `runtime` is TensorFlow Lite's module."""
    made = runtime.Interpreter(model_content=model, experimental_delegates=list(delegates))
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
            value = builder.cpu_op(value)
    builder.output(value)
    return builder.build()


def any_size(rows: int = 6, columns: int = 8, unsupported: bool = False) -> bytes:
    """A model of a file's size that runs at others, too: windows, an operand of one pixel, a reshape, parts."""
    builder, rng = ModelBuilder(), np.random.default_rng(2)
    x = builder.input((1, rows, columns, 3))
    weights, bias = builder.constant(rng.normal(0, 0.3, (6, 3, 3, 3))), builder.constant(rng.normal(0, 1, 6))
    half = (1, rows // 2, columns // 2, 6)
    y = builder.op("CONV_2D", [x, weights, bias], half, padding="SAME", stride=(2, 2), activation="RELU")
    if unsupported:
        y = builder.cpu_op(y)
    mean = builder.op("MEAN", [y, builder.constant((1, 2), "int32")], (1, 1, 1, 6), keep_dims=True)
    y = builder.op("MUL", [y, mean], half)
    axis = builder.constant(3, "int32")
    first, second = builder.split("SPLIT", [axis, y], [(*half[:3], 3)] * 2, num_splits=2)
    y = builder.op("CONCATENATION", [second, first], half, axis=3)
    flat = builder.op("RESHAPE", [y, builder.constant((1, -1, 6), "int32")], (1, rows * columns // 4, 6))
    builder.output(flat, mean)
    return builder.build()


def late_size() -> bytes:
    """A convolution of what a RESHAPE makes to a size that is another input: it is known when the model runs."""
    builder, rng = ModelBuilder(), np.random.default_rng(3)
    values, size = builder.input((1, 24, 3)), builder.input((4,), "int32")
    weights, bias = builder.constant(rng.normal(0, 0.3, (5, 3, 3, 3))), builder.constant(rng.normal(0, 1, 5))
    y = builder.op("RESHAPE", [values, size], (1, 4, 6, 3))
    y = builder.op("CONV_2D", [y, weights, bias], (1, 4, 6, 5), padding="SAME", stride=(1, 1))
    y = builder.op("TANH", [y], (1, 4, 6, 5))
    builder.output(builder.cpu_op(y), y)
    return builder.build()


def kept() -> bytes:
    """A graph in which one partition hands a tensor to another one that nothing on the CPU reads."""
    builder = ModelBuilder()
    shape = (1, 5, 6, 7)
    y = builder.op("TANH", [builder.input(shape)], shape)
    left = builder.op("MUL", [y, builder.constant(-1.0)], shape)
    summed = builder.cpu_op(y)
    builder.output(builder.op("ADD", [summed, left], shape))
    return builder.build()


def branches() -> bytes:
    """RELU, then one of two subgraphs, by the first input, then TANH."""
    builder, shape = ModelBuilder(), (1, 2)
    for op in ("NEG", "ABS"):
        branch = ModelBuilder()
        branch.output(branch.op(op, [branch.input(shape)], shape))
        builder.further.append(branch)
    condition, x = builder.input((1,), "bool"), builder.input(shape)
    y = builder.op("RELU", [x], shape)
    y = builder.op("IF", [condition, y], shape, then_subgraph_index=1, else_subgraph_index=2)
    builder.output(builder.op("TANH", [y], shape))
    return builder.build()


def interleaved(side: int = 40) -> bytes:
    """Operators of the CPU, which take their time, before, between and behind two partitions."""
    builder, shape = ModelBuilder(), (1, side, side, 8)
    y = builder.input(shape)
    for op in ("TANH", "NEG"):
        for _ in range(3):
            y = builder.cpu_op(y)
            y = builder.op("MUL", [y, builder.constant(0.05)], shape, activation="RELU_N1_TO_1")
        y = builder.op(op, [y], shape)
    builder.output(builder.cpu_op(y))
    return builder.build()
