"""The immutable graph: what the reader makes of a .tflite file, and what every pass takes and returns.

Tensor, Node and Graph, and a small class of attributes for each family of ops; operators that only TensorFlow Lite can
compute have Opaque instead. Node.op is TensorFlow Lite's own name of the builtin ("CONV_2D") or the custom op's name
("Convolution2DTransposeBias"). Sizes are (h, w).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Literal

import numpy as np
import numpy.typing as npt

from ..base.errors import InferenceError

Shape = tuple[int, ...]
Size2 = tuple[int, int]  # (h, w)
Hybrid = Literal["expanded", "reference"]
ABSENT = -1  # an optional input that is left out


@dataclass(frozen=True)
class Padding:
    """Rows and columns of zeros around an input, resolved from SAME or VALID by the reader."""

    top: int = 0
    bottom: int = 0
    left: int = 0
    right: int = 0


NO_PADDING = Padding()


@dataclass(frozen=True)
class Attributes:
    """Attributes of an op that has none."""


@dataclass(frozen=True)
class Activated(Attributes):
    """ADD, SUB, MUL, DIV: only a fused activation."""

    activation: str = "NONE"  # NONE RELU RELU6 RELU_N1_TO_1 TANH


@dataclass(frozen=True)
class AsymmetricInputs(Activated):
    """FULLY_CONNECTED of which TensorFlow Lite, if it is hybrid, rounds rows from zero points of their own on."""


@dataclass(frozen=True)
class Conv2D(Activated):
    """CONV_2D: inputs (x BHWC, weights OHWI, bias O or ABSENT)."""

    stride: Size2 = (1, 1)
    dilation: Size2 = (1, 1)
    padding: Padding = NO_PADDING


@dataclass(frozen=True)
class DepthwiseConv2D(Conv2D):
    """DEPTHWISE_CONV_2D: inputs (x BHWC, weights 1HWC', bias C' or ABSENT), C' = C * multiplier."""

    multiplier: int = 1


@dataclass(frozen=True)
class TransposeConv2D(Activated):
    """TRANSPOSE_CONV and Convolution2DTransposeBias: inputs (x BHWC, weights OHWI, bias O or ABSENT).

    The output's size is in its tensor; out[y * stride + ky - padding.top] += x[y] * weights[ky].
    """

    stride: Size2 = (1, 1)
    padding: Padding = NO_PADDING


@dataclass(frozen=True)
class Pool2D(Activated):
    """AVERAGE_POOL_2D, MAX_POOL_2D and L2_POOL_2D; padding counts neither in the average nor in the maximum."""

    kernel: Size2 = (1, 1)
    stride: Size2 = (1, 1)
    padding: Padding = NO_PADDING


@dataclass(frozen=True)
class Unpool2D(Attributes):
    """MaxUnpooling2D: inputs (x, indices); where in its window each value lies. Sizes as of the pool that it undoes."""

    kernel: Size2 = (1, 1)
    stride: Size2 = (1, 1)
    padding: Padding = NO_PADDING


@dataclass(frozen=True)
class Resize(Attributes):
    """RESIZE_BILINEAR and RESIZE_NEAREST_NEIGHBOR: input (x,); the size is that of the output tensor."""

    align_corners: bool = False
    half_pixel_centers: bool = False
    in_1024ths: bool = False  # scale and positions, as in TensorFlow Lite's bilinear kernel for int8
    in_products: bool = False  # a sum of four products, rounded in the order of its kernel for uint8


@dataclass(frozen=True)
class Reduce(Attributes):
    """MEAN, SUM and the REDUCE_ ops: input (x,)."""

    axes: tuple[int, ...] = ()  # not negative, ascending
    keep_dims: bool = False


@dataclass(frozen=True)
class Pad(Attributes):
    """PAD and PADV2: input (x,); one (before, after) per dimension."""

    amounts: tuple[tuple[int, int], ...] = ()
    value: float = 0.0


@dataclass(frozen=True)
class MirrorPad(Attributes):
    """MIRROR_PAD: input (x,); one (before, after) per dimension."""

    amounts: tuple[tuple[int, int], ...] = ()
    symmetric: bool = False  # whether the edge itself is repeated


@dataclass(frozen=True)
class StridedSlice(Attributes):
    """SLICE and STRIDED_SLICE: input (x,). Per dimension of x, masks and negative positions resolved.

    Value k along a dimension is that at begin + k * stride. The output's shape is `sizes`, or, where the file shrinks
    or adds dimensions, another shape of as many values.
    """

    begin: tuple[int, ...] = ()
    sizes: tuple[int, ...] = ()
    strides: tuple[int, ...] = ()  # may be negative


@dataclass(frozen=True)
class Split(Attributes):
    """SPLIT and SPLIT_V: input (x,), as many outputs as sizes."""

    axis: int = 0  # not negative
    sizes: tuple[int, ...] = ()


@dataclass(frozen=True)
class Axis(Attributes):
    """PACK, UNPACK (of one or into several tensors of one dimension less), GATHER (inputs x, constant indices)."""

    axis: int = 0  # not negative


@dataclass(frozen=True)
class Transpose(Attributes):
    """TRANSPOSE: input (x,); dimension k of the output is dimension order[k] of x."""

    order: tuple[int, ...] = ()


@dataclass(frozen=True)
class SpaceToBatch(Attributes):
    """SPACE_TO_BATCH_ND: input (x BHWC); padded with zeros, then each block's places become batches."""

    block: Size2 = (1, 1)
    padding: Padding = NO_PADDING


@dataclass(frozen=True)
class BatchToSpace(Attributes):
    """BATCH_TO_SPACE_ND: input (x BHWC); the reverse, then rows and columns are cut off as padding says."""

    block: Size2 = (1, 1)
    padding: Padding = NO_PADDING


@dataclass(frozen=True)
class Axes(Attributes):
    """REVERSE_V2: input (x,); the dimensions that are reversed."""

    axes: tuple[int, ...] = ()  # not negative, ascending


@dataclass(frozen=True)
class Repeat(Attributes):
    """TILE: input (x,); how often each dimension is repeated."""

    repeats: tuple[int, ...] = ()


@dataclass(frozen=True)
class Softmax(Attributes):
    """SOFTMAX over the last dimension: input (x,)."""

    beta: float = 1.0


@dataclass(frozen=True)
class Concatenation(Activated):
    """CONCATENATION of all inputs."""

    axis: int = 0  # not negative


@dataclass(frozen=True)
class Alpha(Attributes):
    """LEAKY_RELU: the slope below zero."""

    alpha: float = 0.0


@dataclass(frozen=True)
class VarHandle(Attributes):
    """VAR_HANDLE: no input, output a resource."""

    name: str = ""  # of the variable, the same in all subgraphs
    initial: bytes = b""  # what it holds at first, zeros where nothing is said


@dataclass(frozen=True)
class OptionVector:
    """A vector of numbers among the options of an operator, as its file has it."""

    dtype: str  # NumPy's name
    data: bytes


OptionValue = bool | int | float | bytes | OptionVector  # bytes are a string


@dataclass(frozen=True)
class Opaque(Attributes):
    """An operator for TensorFlow Lite alone: no rule here reads it, or not in this form. All that its file says."""

    reason: str = ""
    code: int = 0  # of the builtin, in the schema
    version: int = 1
    custom_code: bytes = b""  # the name of a custom op
    table: str = ""  # the schema's class of its options
    options: tuple[tuple[str, OptionValue], ...] = ()  # by the names of that class
    custom_options: bytes = b""


@dataclass(frozen=True)
class Quantization:
    """What the integers of a tensor mean: scale * (integer - zero point)."""

    scales: tuple[float, ...]  # one, or one for each place along a dimension
    zero_points: tuple[int, ...]  # as many
    dimension: int = 0


@dataclass(frozen=True)
class WeightBlocks(Quantization):
    """What a packed constant means that has a scale for so many neighbours along its last dimension."""

    scales: tuple[float, ...] = ()
    zero_points: tuple[int, ...] = ()
    scale_tensor: int = ABSENT  # which has them
    zero_point_tensor: int = ABSENT  # likewise, where it is not negative
    size: int = 1


@dataclass(frozen=True)
class Steps:
    """That values are whole numbers, from the least to the greatest that they can be."""

    low: int
    high: int


@dataclass(frozen=True)
class Tensor:
    """A value of the graph: a constant if it has data, else computed at run time.

        tensor = texelflow.Model.load("model.tflite").inputs[0]
        print(tensor.index, tensor.name, tensor.shape, tensor.dtype)
        values = np.zeros(tensor.shape, tensor.dtype)
        assert not tensor.is_constant and tensor.data is None and not tensor.is_variable
        if tensor.quantization:  # real numbers are scale * (integer - zero point)
            print(tensor.quantization.scales, tensor.quantization.zero_points)

    `unusable` and `steps` are the engine's own.
    """

    index: int
    name: str
    shape: Shape  # as in the file: BHWC for pictures
    dtype: str = "float32"  # NumPy's name; for what it has none (string, int4) the schema's, in lower case
    data: npt.NDArray[np.generic] | None = None
    quantization: Quantization | None = None
    is_variable: bool = False  # keeps its value from run to run
    unusable: str = ""  # why only TensorFlow Lite can use it: its size or its values are unknown before it runs
    steps: Steps | None = None  # of float32 that stands for a quantized type: steps of its scale from the zero point

    @property
    def is_constant(self) -> bool:
        """Whether it has data."""
        return self.data is not None


def constant_location(values: npt.NDArray[np.generic]) -> tuple[int, int]:
    """Address and size in bytes of a constant: tensors that share both are one constant in the file."""
    return values.__array_interface__["data"][0], values.nbytes


@dataclass(frozen=True)
class KeptState:
    """A value that is kept from run to run: an input that nobody writes, and an output that takes its place.

    `own` is it as the file has it: type, shape, meaning, and its name, by which callers know it; what it holds at first
    are its data, zeros where it has none.
    """

    own: Tensor
    read: int = ABSENT  # an input of the graph; ABSENT where nothing reads what it was
    written: int = ABSENT  # an output of the graph; ABSENT where it stays as it is
    is_shared: bool = True  # whether other programs of the model have it, too, by its name

    @property
    def name(self) -> str:
        return self.own.name


@dataclass(frozen=True)
class Node:
    """One operator: tensor indices in, tensor indices out."""

    op: str
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    attributes: Attributes = Attributes()
    index: int = -1  # position in the file's operator list, -1 if a pass made it


@dataclass(frozen=True)
class CalledBody(Attributes):
    """Of an op that runs another subgraph of the file: what that computes, in numbers of its own.

    The node's inputs and outputs are those of the body, in order; constants of the body are further inputs.
    """

    nodes: tuple[Node, ...] = ()
    tensors: tuple[Tensor, ...] = ()  # all that the nodes read and write, without values
    inputs: tuple[int, ...] = ()
    outputs: tuple[int, ...] = ()


@dataclass(frozen=True)
class Faults:
    """What may be wrong with the values of a run: a vector of truths, further output of a graph, and what each says."""

    tensor: int
    messages: tuple[str, ...]

    def check(self, found: npt.NDArray[np.generic]) -> None:
        """Raise InferenceError if any value of that output is true."""
        said = [message for message, is_true in zip(self.messages, found.reshape(-1), strict=True) if is_true]
        if said:
            raise InferenceError(said[0])


@dataclass(frozen=True)
class Graph:
    """Nodes in an executable order."""

    name: str
    tensors: Mapping[int, Tensor]
    nodes: tuple[Node, ...]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    original: bytes = field(default=b"", repr=False)  # the file itself, where the graph does not hold all that it says
    subgraph: int = field(default=0, compare=False)  # its number in the file
    signature: str = field(default="", compare=False)  # its name there, if it has one
    other_signatures: tuple[str, ...] = field(default=(), compare=False)  # of the file, which lead to other subgraphs
    dropped_below: int = field(default=0, compare=False)  # passes may have dropped tensors with numbers below: no reuse
    states: tuple[KeptState, ...] = ()  # that outputs are fed back as; passes add those that operators keep
    faults: Faults | None = None  # which passes add, behind the outputs of the file
    hybrid: Hybrid = "expanded"  # of floats with weights of bytes: products of floats, or TensorFlow Lite's of bytes

    @property
    def opaque(self) -> tuple[Node, ...]:
        """The operators that only TensorFlow Lite can compute."""
        return tuple(node for node in self.nodes if isinstance(node.attributes, Opaque))

    def producers(self) -> dict[int, Node]:
        """Tensor index to the node that writes it."""
        return {out: node for node in self.nodes for out in node.outputs}

    def consumers(self) -> dict[int, list[Node]]:
        """Tensor index to the nodes that read it, in order."""
        readers: dict[int, list[Node]] = {}
        for node in self.nodes:
            for tensor in dict.fromkeys(node.inputs):
                readers.setdefault(tensor, []).append(node)
        return readers

    def with_changes(
        self, nodes: tuple[Node, ...] | None = None, new_tensors: Mapping[int, Tensor] | None = None
    ) -> "Graph":
        """A copy with other nodes and further tensors; tensors that are no longer referenced are dropped."""
        nodes = self.nodes if nodes is None else nodes
        tensors = {**self.tensors, **(new_tensors or {})}
        end = max(self.dropped_below, 1 + max(tensors, default=-1))
        used = {i for node in nodes for i in (*node.inputs, *node.outputs)} | {*self.inputs, *self.outputs}
        kept = {i: tensor for i, tensor in tensors.items() if i in used}
        return replace(self, nodes=nodes, tensors=MappingProxyType(kept), dropped_below=end)
