"""Sketches of small test models: shapes are inferred, and constants random."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import tflite

from tests.model_files.model_builder import CUSTOM_TRANSPOSE, ModelBuilder
from texelflow.gpu_delegate.cases.op_case import CaseArray
from texelflow.gpu_delegate.model.graph import Graph
from texelflow.gpu_delegate.reading.reader import read_model

Size = tuple[int, int]  # (h, w)
Shape = tuple[int, ...]


class Sketch(ModelBuilder):
    """A model builder that knows output shapes and draws its constants at random."""

    def __init__(self, seed: int) -> None:
        super().__init__()
        self.rng = np.random.default_rng(seed)

    def shape(self, tensor: int) -> Shape:
        return self.tensors[tensor].shape

    def image(self, height: int, width: int, channels: int, batch: int = 1) -> int:
        return self.input((batch, height, width, channels))

    def random(self, *shape: int) -> int:
        return self.constant(self.rng.uniform(-1, 1, shape))

    def _bias(self, channels: int, bias: bool) -> list[int]:
        return [self.random(channels)] if bias else []

    def conv(
        self, x: int, channels: int, kernel: Size = (1, 1), bias: bool = True, groups: int = 1, **options: Any
    ) -> int:
        weights = self.random(channels, *kernel, self.shape(x)[3] // groups)
        shape = (self.shape(x)[0], *slid(self.shape(x)[1:3], kernel, **options), channels)
        return self.op("CONV_2D", [x, weights, *self._bias(channels, bias)], shape, **defaults(options))

    def depthwise(self, x: int, kernel: Size = (3, 3), multiplier: int = 1, bias: bool = True, **options: Any) -> int:
        channels = self.shape(x)[3] * multiplier
        shape = (self.shape(x)[0], *slid(self.shape(x)[1:3], kernel, **options), channels)
        inputs = [x, self.random(1, *kernel, channels), *self._bias(channels, bias)]
        return self.op("DEPTHWISE_CONV_2D", inputs, shape, depth_multiplier=multiplier, **defaults(options))

    def transpose(
        self, x: int, channels: int, kernel: Size, stride: Size, padding: str, custom: bool = False, **options: Any
    ) -> int:
        height, width = (
            size * step if padding == "SAME" else (size - 1) * step + taps
            for size, step, taps in zip(self.shape(x)[1:3], stride, kernel, strict=True)
        )
        shape, weights = (self.shape(x)[0], height, width, channels), self.random(channels, *kernel, self.shape(x)[3])
        bias = self.random(channels)
        if custom:
            return self.op(CUSTOM_TRANSPOSE, [x, weights, bias], shape, stride=stride, padding=padding)
        inputs = [self.constant(shape, "int32"), weights, x, bias]
        return self.op("TRANSPOSE_CONV", inputs, shape, stride=stride, padding=padding, **options)

    def pool(self, op: str, x: int, kernel: Size, **options: Any) -> int:
        shape = (self.shape(x)[0], *slid(self.shape(x)[1:3], kernel, **options), self.shape(x)[3])
        options = {"stride": (1, 1), "padding": "SAME"} | options
        return self.op(op, [x], shape, kernel=kernel, **options)

    def resize(self, x: int, size: Size, op: str = "RESIZE_BILINEAR", **options: Any) -> int:
        shape = (self.shape(x)[0], *size, self.shape(x)[3])
        return self.op(op, [x, self.constant(size, "int32")], shape, **options)

    def mean(self, x: int, axes: Sequence[int] = (1, 2), keep_dims: bool = True) -> int:
        return self.reduce("MEAN", x, axes, keep_dims)

    def reduce(
        self, op: str, x: int, axes: Sequence[int] = (3,), keep_dims: bool = True, dtype: str = "float32"
    ) -> int:
        shape = tuple(1 if k in axes else n for k, n in enumerate(self.shape(x)) if keep_dims or k not in axes)
        return self.op(op, [x, self.constant(tuple(axes), "int32")], shape, dtype, keep_dims=keep_dims)

    def extremum(self, op: str, x: int, axis: int = -1, dtype: str = "int32") -> int:
        """ARG_MAX or ARG_MIN."""
        shape, table = self.shape(x), "ArgMaxOptions" if op == "ARG_MAX" else "ArgMinOptions"
        left = (*shape[: axis % len(shape)], *shape[axis % len(shape) + 1 :])
        kind = getattr(tflite.TensorType, dtype.upper())
        return self.op(op, [x, self.constant(axis, "int32")], left, dtype, table=table, output_type=kind)

    def running_sum(self, x: int, axis: int, exclusive: bool = False, reverse: bool = False) -> int:
        """CUMSUM."""
        inputs, dtype = [x, self.constant(axis, "int32")], self.tensors[x].dtype
        return self.op("CUMSUM", inputs, self.shape(x), dtype, exclusive=exclusive, reverse=reverse)

    def top(self, x: int, count: int) -> tuple[int, ...]:
        """TOPK_V2: values and positions."""
        shape = (*self.shape(x)[:-1], count)
        outputs = [self.tensor(shape, dtype) for dtype in (self.tensors[x].dtype, "int32")]
        return self.op_of("TOPK_V2", [x, self.constant(count, "int32")], outputs, table="TopKV2Options")

    def softmax(self, x: int) -> int:
        """Over channels, in the ops that it consists of."""
        powers = self.unary("EXP", self.binary("SUB", x, self.reduce("REDUCE_MAX", x)))
        return self.binary("DIV", powers, self.reduce("SUM", powers))

    def connected(self, x: int, outputs: int, **options: Any) -> int:
        depth = self.shape(x)[-1]
        rows = int(np.prod(self.shape(x))) // depth
        inputs = [x, self.random(outputs, depth), self.random(outputs)]
        return self.op("FULLY_CONNECTED", inputs, (rows, outputs), **options)

    def unary(self, op: str, x: int, **options: Any) -> int:
        return self.op(op, [x], self.shape(x), **options)

    def binary(self, op: str, x: int, y: int, **options: Any) -> int:
        return self.op(op, [x, y], np.broadcast_shapes(self.shape(x), self.shape(y)), **options)

    def concatenation(self, *xs: int) -> int:
        channels = sum(self.shape(x)[-1] for x in xs)
        return self.op("CONCATENATION", list(xs), (*self.shape(xs[0])[:-1], channels), axis=3)

    def deep(self, block: int, channels: int) -> int:
        x = self.image(3, 5, block * block * channels)
        return self.op("DEPTH_TO_SPACE", [x], (1, 3 * block, 5 * block, channels), block_size=block)

    def pad(self, x: int, *amounts: Size) -> int:
        shape = tuple(before + n + after for n, (before, after) in zip(self.shape(x), amounts, strict=True))
        return self.op("PAD", [x, self.constant(amounts, "int32")], shape)


def defaults(options: dict[str, Any]) -> dict[str, Any]:
    return {"stride": (1, 1), "dilation": (1, 1), "padding": "SAME"} | options


def slid(
    size: Sequence[int], kernel: Size, stride: Size = (1, 1), dilation: Size = (1, 1), padding: str = "SAME", **_: Any
) -> Size:
    """(h, w) of the output of sliding windows."""
    height, width = (
        -(-n // step) if padding == "SAME" else (n - (taps - 1) * spread - 1) // step + 1
        for n, taps, step, spread in zip(size, kernel, stride, dilation, strict=True)
    )
    return height, width


@dataclass(frozen=True)
class GraphCase:
    """A small model of several ops, or of one whose operands lie in an unusual way: what ops make of each other."""

    op: str  # that it is about, or what several have in common
    what: str
    draw: Callable[..., int | tuple[int, ...]]  # adds the ops to a Sketch; gives the output, or outputs
    tolerance: float = 1e-5  # of the largest magnitude in the output, or of 1 if that is more
    low: float = -2.0  # of the random inputs
    high: float = 2.0
    refused: str = ""  # the start of what UnsupportedError says, fused and not; "" where the GPU does it

    @property
    def name(self) -> str:
        return f"{self.op} {self.what}"

    def model(self, seed: int = 0) -> bytes:
        """The .tflite file with constants drawn from `seed`."""
        sketch = Sketch(seed)
        outputs = self.draw(sketch)
        sketch.output(*(outputs if isinstance(outputs, tuple) else (outputs,)))
        return sketch.build()

    def graph(self, seed: int = 0) -> Graph:
        """What the model holds."""
        return read_model(self.model(seed))

    def inputs(self, graph: Graph, seed: int = 1) -> list[CaseArray]:
        """Random values of the inputs of its graph."""
        rng = np.random.default_rng(seed)
        drawn = (
            (rng.uniform(self.low, self.high, t.shape), t.dtype) for t in map(graph.tensors.__getitem__, graph.inputs)
        )
        return [values.astype(dtype) for values, dtype in drawn]
