"""RetinaFace's 27 layers (MobileNet 0.25) for square pictures, as one graph and one by one.

Random weights from a fixed seed, ReLU everywhere, TensorFlow's SAME padding: they take as long as the trained ones.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Literal

from texelflow.app.models.network_builder import Network
from texelflow.gpu_delegate.base.errors import UsageError
from texelflow.gpu_delegate.model.graph import Conv2D, DepthwiseConv2D, Graph, Node, Tensor, Transpose
from texelflow.gpu_delegate.model.operators import attributes_of
from texelflow.gpu_delegate.targets.glsl.roofline import Cost

LayerKind = Literal["3x3", "depthwise", "pointwise"]
FLOAT_BYTES = 4
LEAST_SIDE, MOST_SIDE = 8, 2048
_FIRST_CHANNELS = 8
_BACKBONE = (  # channels that each pair of a depthwise and a pointwise layer makes, and the stride of the depthwise one
    (16, 1), (32, 2), (32, 1), (64, 2), (64, 1), (128, 2), *((128, 1),) * 5, (256, 2), (256, 1)
)  # fmt: skip


@dataclass(frozen=True)
class ConvLayer:
    """One layer, on square maps."""

    kind: LayerKind
    inputs: int  # channels
    outputs: int
    stride: int
    side: int  # of the input, in pixels
    side_out: int

    @property
    def name(self) -> str:
        """As tables call it: depthwise 64 s2."""
        channels = str(self.inputs) if self.kind == "depthwise" else f"{self.inputs}->{self.outputs}"
        return f"{self.kind} {channels}{f' s{self.stride}' if self.stride > 1 else ''}"

    @property
    def taps(self) -> int:
        """Multiply-adds for each value of the output."""
        return {"3x3": 9 * self.inputs, "depthwise": 9, "pointwise": self.inputs}[self.kind]

    @property
    def weights(self) -> int:
        """Floats, those of the bias too."""
        return (self.taps + 1) * self.outputs

    @property
    def cost(self) -> Cost:
        """Its multiply-adds and compulsory bytes: input, weights and output once each."""
        read, written = self.side**2 * self.inputs + self.weights, self.side_out**2 * self.outputs
        return Cost(self.taps * written, read * FLOAT_BYTES, written * FLOAT_BYTES)

    @property
    def flops(self) -> int:
        """Operations, two for a multiply-add."""
        return 2 * self.cost.macs

    @property
    def intensity(self) -> float:
        """Operations per compulsory byte."""
        return 2 * self.cost.intensity

    @property
    def paper_intensity(self) -> float:
        """Operations per byte as the paper counts the better of its algorithms for such a layer."""
        return PAPER_LOOPS[{"3x3": 2, "depthwise": 4, "pointwise": 6}[self.kind]].intensity(self)


@dataclass(frozen=True)
class LoopTraffic:
    """What an algorithm of the paper moves, in floats: how often each input is read for each channel that it goes to,
    and how often a sum is read or written for each channel that goes into it. Weights are read once."""

    reads: float
    sums: float

    def intensity(self, layer: ConvLayer) -> float:
        """Operations per byte of a layer computed so."""
        pairs = layer.inputs * (1 if layer.kind == "depthwise" else layer.outputs)
        floats = pairs * (self.reads * layer.side**2 + self.sums * layer.side_out**2) + layer.weights
        return layer.flops / (floats * FLOAT_BYTES)


# The algorithms of the paper on direct convolution in a layout of four channels (on a Raspberry Pi), by number: the
# plain and the better one for 3x3 with stride 2, for depthwise 3x3, and for pointwise layers
PAPER_LOOPS = MappingProxyType(
    {
        1: LoopTraffic(1, 6),  # a sum is read and written for each row of the kernel
        2: LoopTraffic(1 / 4, 2),  # an input is read once for four outputs
        3: LoopTraffic(3, 5),  # three rows of the kernel; the first one does not read the sum
        4: LoopTraffic(1 / 4, 2),  # the paper counts a vector of four inputs as one float
        5: LoopTraffic(1, 2),
        6: LoopTraffic(1 / 4, 1 / 2),  # four inputs are added to four outputs at a time
    }
)
DEPTHWISE_IN_FLOATS = LoopTraffic(1, 2)  # algorithm 4 with all inputs counted


def retinaface(side: int) -> Graph:
    """The chain of all layers, picture (1, side, side, 3) in. Raises UsageError for a side that is out of range."""
    if not LEAST_SIDE <= side <= MOST_SIDE:
        raise UsageError(f"a side of {side} pixels: they go from {LEAST_SIDE} to {MOST_SIDE}")
    net = Network()
    x = net.layer(net.image(side, side, 3), _FIRST_CHANNELS, (3, 3), 2, "RELU")
    for channels, stride in _BACKBONE:
        x = net.layer(net.separate(x, stride, activation="RELU"), channels, activation="RELU")
    net.output(x)
    return net.graph(f"RetinaFace mnet 0.25 {side}")


def layers_of(chain: Graph) -> tuple[ConvLayer, ...]:
    """What its layers are, in order."""
    return tuple(_layer(chain, node) for node in chain.nodes)


def single_layers(chain: Graph) -> Iterator[Graph]:
    """Each layer as a graph of its own, with the same weights."""
    for node in chain.nodes:
        x, out = node.inputs[0], node.outputs[0]
        tensors = {i: chain.tensors[i] for i in (*node.inputs, out)}
        yield Graph(_layer(chain, node).name, MappingProxyType(tensors), (replace(node, index=0),), (x,), (out,))


def from_channel_planes(graph: Graph) -> Graph:
    """The same network from planes: an operator in front makes BHWC of an input (batch, channel, height, width)."""
    (x,) = graph.inputs
    batch, height, width, channels = graph.tensors[x].shape
    planes = 1 + max(graph.tensors)
    tensor = Tensor(planes, "planes", (batch, channels, height, width))
    turn = Node("TRANSPOSE", (planes,), (x,), Transpose((0, 2, 3, 1)), 0)
    nodes = (turn, *(replace(node, index=node.index + 1) for node in graph.nodes))
    tensors = MappingProxyType({planes: tensor, **graph.tensors})
    return replace(graph, tensors=tensors, nodes=nodes, inputs=(planes,))


def _layer(chain: Graph, node: Node) -> ConvLayer:
    conv = attributes_of(node, Conv2D)
    (_, side, _, inputs), (_, side_out, _, outputs) = (
        chain.tensors[i].shape for i in (node.inputs[0], node.outputs[0])
    )
    is_pointwise = chain.tensors[node.inputs[1]].shape[1:3] == (1, 1)
    dense: LayerKind = "pointwise" if is_pointwise else "3x3"
    kind: LayerKind = "depthwise" if isinstance(conv, DepthwiseConv2D) else dense
    return ConvLayer(kind, inputs, outputs, conv.stride[0], side, side_out)
