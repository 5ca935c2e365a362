"""Builds the graph of a network layer by layer, with random weights.

Weights are drawn from a fixed seed and scaled so that values keep their size from layer to layer: they take as long as
trained ones.
"""

from collections.abc import Sequence
from types import MappingProxyType

import numpy as np
import numpy.typing as npt

from texelflow.gpu_delegate.model.graph import (
    ABSENT,
    Activated,
    Attributes,
    Concatenation,
    Conv2D,
    DepthwiseConv2D,
    Graph,
    Node,
    Pad,
    Padding,
    Pool2D,
    Resize,
    Shape,
    Size2,
    Softmax,
    StridedSlice,
    Tensor,
    Transpose,
)

CLASSES = 1001  # of ImageNet, and the background
SEED = 1


class Network:
    """A graph that grows layer by layer, each given by the tensors that it reads; `parameters` and `macs` count."""

    def __init__(self, seed: int = SEED) -> None:
        self.parameters = 0
        self.macs = 0
        self._rng = np.random.default_rng(seed)
        self._tensors: dict[int, Tensor] = {}
        self._nodes: list[Node] = []
        self._inputs: list[int] = []
        self._outputs: list[int] = []

    def graph(self, name: str) -> Graph:
        """What has been drawn, as the reader makes it of a file."""
        tensors = MappingProxyType(self._tensors)
        return Graph(name, tensors, tuple(self._nodes), tuple(self._inputs), tuple(self._outputs))

    def shape(self, tensor: int) -> Shape:
        return self._tensors[tensor].shape

    def image(self, height: int, width: int, channels: int) -> int:
        """An input."""
        self._inputs.append(self._tensor((1, height, width, channels)))
        return self._inputs[-1]

    def integers(self, *shape: int) -> int:
        """An input of numbers of words and the like."""
        self._inputs.append(self._tensor(shape, dtype="int32"))
        return self._inputs[-1]

    def constant(self, *shape: int, terms: int = 1) -> int:
        """Random values of about 1, which are parameters; less where they scale a sum of some terms."""
        return self._weights(shape, terms, 1.0)

    def filled(self, value: float, *shape: int) -> int:
        """The same value everywhere, which is no parameter."""
        return self._tensor(shape, np.full(shape, value, np.float32))

    def output(self, *tensors: int) -> None:
        self._outputs += tensors

    def op(
        self,
        op: str,
        inputs: Sequence[int],
        shape: Shape,
        attributes: Attributes = Attributes(),  # noqa: B008
        dtype: str = "float32",
    ) -> int:
        """A layer with one output of this shape."""
        return self.split(op, inputs, [shape], attributes, dtype)[0]

    def split(
        self, op: str, inputs: Sequence[int], shapes: Sequence[Shape], attributes: Attributes, dtype: str = "float32"
    ) -> list[int]:
        """A layer with an output of each shape."""
        outs = [self._tensor(shape, dtype=dtype) for shape in shapes]
        self._nodes.append(Node(op, tuple(inputs), tuple(outs), attributes, len(self._nodes)))
        return outs

    def layer(
        self,
        x: int,
        channels: int,
        kernel: Size2 = (1, 1),
        stride: int = 1,
        activation: str = "RELU6",
        padding: str = "SAME",
    ) -> int:
        """A convolution, and its activation inside."""
        (size, around), depth = slid(self.shape(x), kernel, stride, padding), self.shape(x)[3]
        attributes = Conv2D(activation, (stride, stride), (1, 1), around)
        return self._convolution("CONV_2D", x, (channels, *kernel, depth), (1, *size, channels), attributes)

    def connected(self, x: int, channels: int, activation: str = "NONE") -> int:
        """Every row of a matrix times one of weights."""
        rows, depth = self.shape(x)
        self.macs += rows * channels * depth
        gain = 1.0 if activation == "NONE" else 2.0
        weights, bias = self._weights((channels, depth), depth, gain), self._weights((channels,), 100, 1.0)
        return self.op("FULLY_CONNECTED", [x, weights, bias], (rows, channels), Activated(activation))

    def multiplied(self, x: int, y: int) -> int:
        """x with each of its rows times a row of y, both matrices, as FULLY_CONNECTED does it with computed weights."""
        (rows, depth), (columns, _) = self.shape(x), self.shape(y)
        self.macs += rows * columns * depth
        return self.op("FULLY_CONNECTED", [x, y, ABSENT], (rows, columns), Activated())

    def separate(
        self, x: int, stride: int = 1, dilation: int = 1, activation: str = "RELU6", kernel: Size2 = (3, 3)
    ) -> int:
        """A depthwise convolution."""
        (size, around), depth = slid(self.shape(x), kernel, stride, "SAME", dilation), self.shape(x)[3]
        attributes = DepthwiseConv2D(activation, (stride, stride), (dilation, dilation), around)
        return self._convolution("DEPTHWISE_CONV_2D", x, (1, *kernel, depth), (1, *size, depth), attributes)

    def pooled(self, x: int, op: str, size: int, stride: int = 1, padding: str = "SAME") -> int:
        (height, width), around = slid(self.shape(x), (size, size), stride, padding)
        attributes = Pool2D("NONE", (size, size), (stride, stride), around)
        return self.op(f"{op}_POOL_2D", [x], (1, height, width, self.shape(x)[3]), attributes)

    def side(self, *xs: int, axis: int = 3) -> int:
        """Maps side by side, channel behind channel, or along another dimension."""
        first = self.shape(xs[0])
        joined = sum(self.shape(x)[axis] for x in xs)
        return self.op("CONCATENATION", xs, (*first[:axis], joined, *first[axis + 1 :]), Concatenation("NONE", axis))

    def resized(self, x: int, size: int) -> int:
        shape = (1, size, size, self.shape(x)[3])
        return self.op("RESIZE_BILINEAR", [x], shape, Resize(align_corners=True))

    def reshaped(self, x: int, *shape: int) -> int:
        return self.op("RESHAPE", [x], shape, dtype=self._tensors[x].dtype)

    def transposed(self, x: int, *order: int) -> int:
        shape = self.shape(x)
        return self.op("TRANSPOSE", [x], tuple(shape[axis] for axis in order), Transpose(order))

    def sliced(self, x: int, begin: Shape, sizes: Shape) -> int:
        return self.op("SLICE", [x], sizes, StridedSlice(begin, sizes, (1,) * len(sizes)))

    def added(self, x: int, y: int, activation: str = "NONE") -> int:
        return self.op("ADD", [x, y], self.shape(x), Activated(activation))

    def deepened(self, x: int, channels: int) -> int:
        """With so many channels: zeros behind those that are there."""
        *size, depth = self.shape(x)
        amounts = ((0, 0), (0, 0), (0, 0), (0, channels - depth))
        return self.op("PAD", [x], (*size, channels), Pad(amounts))

    def sigmoid(self, x: int) -> int:
        return self.op("LOGISTIC", [x], self.shape(x))

    def classify(self, x: int, squeeze: bool = True) -> None:
        """Pooling, a 1x1 convolution to the classes, SQUEEZE or RESHAPE, SOFTMAX."""
        x = self.pooled(x, "AVERAGE", self.shape(x)[1], padding="VALID")
        x = self.layer(x, CLASSES, activation="NONE")
        x = self.op("SQUEEZE" if squeeze else "RESHAPE", [x], (1, CLASSES))
        self.output(self.op("SOFTMAX", [x], (1, CLASSES), Softmax()))

    def _tensor(self, shape: Shape, data: npt.NDArray[np.float32] | None = None, dtype: str = "float32") -> int:
        index = len(self._tensors)
        self._tensors[index] = Tensor(index, f"tensor{index}", shape, dtype, data)
        return index

    def _weights(self, shape: Shape, taps: int, gain: float) -> int:
        values = self._rng.standard_normal(shape, np.float32) * np.float32((gain / taps) ** 0.5)
        self.parameters += values.size
        return self._tensor(shape, values)

    def _convolution(self, op: str, x: int, weights: Shape, out: Shape, attributes: Conv2D) -> int:
        """Its weights keep the size of values, as far as its activation leaves them (He et al.)."""
        taps = weights[1] * weights[2] * (weights[3] if op == "CONV_2D" else 1)
        self.macs += taps * out[1] * out[2] * out[3]
        drawn_weights = self._weights(weights, taps, 1.0 if attributes.activation == "NONE" else 2.0)
        return self.op(op, [x, drawn_weights, self._weights((out[3],), 100, 1.0)], out, attributes)


def slid(shape: Shape, kernel: Size2, stride: int, padding: str, dilation: int = 1) -> tuple[Size2, Padding]:
    """(h, w) of what a window makes of a BHWC shape, and the zeros around it; SAME has the odd one at the end."""
    outs, befores, afters = [], [], []
    for size, taps in zip(shape[1:3], kernel, strict=True):
        reach = (taps - 1) * dilation + 1
        outs.append(-(-size // stride) if padding == "SAME" else (size - reach) // stride + 1)
        total = max(0, (outs[-1] - 1) * stride + reach - size) if padding == "SAME" else 0
        befores.append(total // 2)
        afters.append(total - total // 2)
    return (outs[0], outs[1]), Padding(befores[0], afters[0], befores[1], afters[1])
