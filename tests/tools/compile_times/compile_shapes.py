"""Networks of shapes that are hard to compile, of any number of ops.

A shape is a pure function that adds ops to a builder: GraphBuilder makes a Graph of it at once, the tests'
Sketch a file, with constants at random, that TensorFlow Lite runs as well.
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Protocol

import numpy as np

from texelflow.gpu_delegate.model.graph import (
    Activated,
    Attributes,
    Concatenation,
    Conv2D,
    DepthwiseConv2D,
    Graph,
    Node,
    Padding,
    Pool2D,
    Reduce,
    Size2,
    Tensor,
)
from texelflow.gpu_delegate.model.graph import Shape as Sizes

OPERANDS = 100  # of a wide concatenation


class NetworkBuilder(Protocol):
    """Takes ops one by one and gives the numbers of their outputs; all maps keep their size."""

    def shape(self, tensor: int, /) -> Sizes:
        """Of an input or an output, BHWC."""

    def image(self, height: int, width: int, channels: int, /) -> int:
        """An input."""

    def unary(self, op: str, x: int, /) -> int:
        """An elementwise op on one value."""

    def binary(self, op: str, x: int, y: int, /) -> int:
        """An elementwise op on two values."""

    def conv(self, x: int, channels: int, kernel: Size2, /) -> int:
        """A convolution."""

    def depthwise(self, x: int, kernel: Size2, /) -> int:
        """A depthwise convolution."""

    def pool(self, op: str, x: int, kernel: Size2, /) -> int:
        """A pooling op."""

    def mean(self, x: int, /) -> int:
        """The mean over rows and columns."""

    def concatenation(self, *xs: int) -> int:
        """All channels, concatenated."""


NetworkShape = Callable[[NetworkBuilder, int, int], int]  # from an input and a number of ops to the last value


def chain(m: NetworkBuilder, x: int, ops: int) -> int:
    for number in range(ops):
        x = m.unary("TANH" if number % 2 else "HARD_SWISH", x)
    return x


def self_additions(m: NetworkBuilder, x: int, ops: int) -> int:
    for _ in range(ops):
        x = m.binary("ADD", x, x)
    return x


def residuals(m: NetworkBuilder, x: int, ops: int) -> int:
    for _ in range(ops // 2):
        x = m.binary("ADD", x, m.unary("TANH", x))
    return x


def diamonds(m: NetworkBuilder, x: int, ops: int) -> int:
    for _ in range(ops // 3):
        x = m.binary("MUL", m.unary("TANH", x), m.unary("LOGISTIC", x))
    return x


def fibonacci(m: NetworkBuilder, x: int, ops: int) -> int:
    before = x
    for _ in range(ops):
        before, x = x, m.binary("ADD", x, before)
    return x


def fan(m: NetworkBuilder, x: int, ops: int) -> int:
    return _sum(m, [m.unary("TANH", x) for _ in range((ops + 1) // 2)])


def fan_of_windows(m: NetworkBuilder, x: int, ops: int) -> int:
    """All values of the fan are in memory at one time."""
    return _sum(m, [m.depthwise(x, (3, 3)) for _ in range((ops + 1) // 2)])


def skips(m: NetworkBuilder, x: int, ops: int) -> int:
    """A U-Net without change of size: the first half is read again in reverse."""
    down = [x]
    for _ in range(ops // 3):
        down.append(m.depthwise(down[-1], (3, 3)))
    x = down.pop()
    for other in reversed(down):
        x = m.depthwise(m.binary("ADD", x, other), (3, 3))
    return x


def late_readers(m: NetworkBuilder, x: int, ops: int) -> int:
    """Early values are used at the end of a chain: kernels that included these ops would depend on themselves."""
    early = [m.unary("TANH", m.pool("MAX_POOL_2D", x, (2, 2))) for _ in range(ops // 5)]
    for value in early:
        x = m.pool("MAX_POOL_2D", m.binary("ADD", x, value), (2, 2))
    return _sum(m, [m.binary("MUL", value, x) for value in early[: ops // 10]])


def convolutions(m: NetworkBuilder, x: int, ops: int) -> int:
    for _ in range(ops // 2):
        x = m.unary("RELU", m.conv(x, m.shape(x)[-1], (3, 3)))
    return x


def pointwise(m: NetworkBuilder, x: int, ops: int) -> int:
    for _ in range(ops // 2):
        x = m.unary("RELU", m.conv(x, m.shape(x)[-1], (1, 1)))
    return x


def separable(m: NetworkBuilder, x: int, ops: int) -> int:
    """Depthwise and pointwise convolutions with an activation."""
    for _ in range(ops // 3):
        x = m.unary("RELU6", m.conv(m.depthwise(x, (3, 3)), m.shape(x)[-1], (1, 1)))
    return x


def pools(m: NetworkBuilder, x: int, ops: int) -> int:
    for number in range(ops):
        x = m.pool("AVERAGE_POOL_2D" if number % 2 else "MAX_POOL_2D", x, (3, 3))
    return x


def squeeze_and_excite(m: NetworkBuilder, x: int, ops: int) -> int:
    for _ in range(ops // 7):
        x = m.depthwise(x, (3, 3))
        small = m.unary("RELU", m.conv(m.mean(x), 4, (1, 1)))
        x = m.binary("MUL", x, m.unary("LOGISTIC", m.conv(small, m.shape(x)[-1], (1, 1))))
    return x


def gates(m: NetworkBuilder, x: int, ops: int) -> int:
    """One long chain of vectors, each of which a window's result is multiplied with."""
    vector = m.mean(x)
    for _ in range(ops // 3):
        vector = m.unary("TANH", vector)
        x = m.binary("MUL", m.pool("MAX_POOL_2D", x, (2, 2)), vector)
    return x


def concatenations(m: NetworkBuilder, x: int, ops: int) -> int:
    """Wide ones, which the GPU refuses with a reason."""
    operands, count = min(OPERANDS, ops - 1), max(1, ops // (OPERANDS + 2))
    return _sum(m, [m.concatenation(*[m.unary("TANH", x) for _ in range(operands)]) for _ in range(count)])


def _sum(m: NetworkBuilder, values: list[int]) -> int:
    total = values[0]
    for value in values[1:]:
        total = m.binary("ADD", total, value)
    return total


SHAPES: Mapping[str, NetworkShape] = MappingProxyType(
    {
        shape.__name__.replace("_", " "): shape
        for shape in (
            chain, self_additions, residuals, diamonds, fibonacci, fan, fan_of_windows, skips, late_readers,
            convolutions, pointwise, separable, pools, squeeze_and_excite, gates, concatenations,
        )
    }
)  # fmt: skip


class GraphBuilder:
    """A Drawing that becomes a Graph; constants of one shape are one, so that 10,000 ops take little memory."""

    def __init__(self) -> None:
        self._tensors: list[Tensor] = []
        self._nodes: list[Node] = []
        self._constants: dict[Sizes, int] = {}

    def image(self, height: int, width: int, channels: int, /) -> int:
        return self._tensor((1, height, width, channels))

    def unary(self, op: str, x: int, /) -> int:
        return self._op(op, (x,), self.shape(x), Attributes())

    def binary(self, op: str, x: int, y: int, /) -> int:
        return self._op(op, (x, y), self.shape(x), Activated())

    def conv(self, x: int, channels: int, kernel: Size2, /) -> int:
        *size, depth = self.shape(x)
        weights, bias = self._constant(channels, *kernel, depth), self._constant(channels)
        return self._op("CONV_2D", (x, weights, bias), (*size, channels), Conv2D(padding=_around(kernel)))

    def depthwise(self, x: int, kernel: Size2, /) -> int:
        channels = self.shape(x)[-1]
        inputs = (x, self._constant(1, *kernel, channels), self._constant(channels))
        return self._op("DEPTHWISE_CONV_2D", inputs, self.shape(x), DepthwiseConv2D(padding=_around(kernel)))

    def pool(self, op: str, x: int, kernel: Size2, /) -> int:
        return self._op(op, (x,), self.shape(x), Pool2D(kernel=kernel, padding=_around(kernel)))

    def mean(self, x: int, /) -> int:
        return self._op("MEAN", (x,), (1, 1, 1, self.shape(x)[-1]), Reduce((1, 2), True))

    def concatenation(self, *xs: int) -> int:
        *size, channels = self.shape(xs[0])
        return self._op("CONCATENATION", xs, (*size, channels * len(xs)), Concatenation(axis=3))

    def graph(self, name: str, x: int, out: int) -> Graph:
        """What was drawn, from one input to one output."""
        return Graph(name, MappingProxyType(dict(enumerate(self._tensors))), tuple(self._nodes), (x,), (out,))

    def shape(self, tensor: int, /) -> Sizes:
        return self._tensors[tensor].shape

    def _tensor(self, shape: Sizes) -> int:
        self._tensors.append(Tensor(len(self._tensors), f"t{len(self._tensors)}", shape))
        return len(self._tensors) - 1

    def _constant(self, *shape: int) -> int:
        if shape not in self._constants:
            self._constants[shape] = number = len(self._tensors)
            values = np.full(shape, 0.125, np.float32)
            self._tensors.append(Tensor(number, f"c{number}", shape, "float32", values))
        return self._constants[shape]

    def _op(self, op: str, inputs: tuple[int, ...], shape: Sizes, attributes: Attributes) -> int:
        out = self._tensor(shape)
        self._nodes.append(Node(op, inputs, (out,), attributes, len(self._nodes)))
        return out


def _around(kernel: Size2) -> Padding:
    """What SAME is with a stride of 1."""
    (top, left), (height, width) = ((taps - 1) // 2 for taps in kernel), kernel
    return Padding(top, height - 1 - top, left, width - 1 - left)


def shaped(name: str, ops: int, size: Size2 = (16, 16), channels: int = 8) -> Graph:
    """A graph of one of SHAPES on a map of this size."""
    drawing = GraphBuilder()
    x = drawing.image(*size, channels)
    return drawing.graph(name, x, SHAPES[name](drawing, x, ops))
