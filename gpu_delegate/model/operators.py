"""One operator of a .tflite file: checked access to its shapes, options and constants.

Contradictions raise ModelError; what is valid but not supported raises UnsupportedError. Neither is the whole file's:
either leaves the operator to TensorFlow Lite, which has rules of its own and refuses what does not fit these.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, NoReturn, TypeVar

import numpy as np
import numpy.typing as npt
import tflite

from ..base.errors import ModelError, UnsupportedError
from .graph import Attributes, Node, Shape, Size2, Tensor

AttributesT = TypeVar("AttributesT", bound=Attributes)

ACTIVATIONS = MappingProxyType({0: "NONE", 1: "RELU", 2: "RELU_N1_TO_1", 3: "RELU6", 4: "TANH"})
ACTIVATION_CODES = MappingProxyType({name: code for code, name in ACTIVATIONS.items()})
MAX_OPERANDS = 128
NO_RULE = "not supported"  # the reason of opaque nodes whose op no rule knows
MAX_STRIDE = 1 << 15  # of windows, dilations and paddings
EMPTY_TABLE = (b"\x04\0\x04\0\x04\0\0\0", 4)  # a flatbuffer table without fields: every option has its default


class ShapeError(ModelError):
    """The outputs of an operator have other shapes than its inputs give them."""

    def __init__(self, text: str, shapes: tuple[Shape, ...]) -> None:
        super().__init__(text)
        self.shapes = shapes  # that the inputs give them, one for each output


@dataclass(frozen=True)
class Operator:
    """One operator as in the file, its tensors resolved; None is an input that is left out."""

    op: str
    index: int
    inputs: tuple[Tensor | None, ...]
    outputs: tuple[Tensor, ...]
    options_type: str = "NONE"
    options_at: tuple[bytes, int] = EMPTY_TABLE  # buffer and position of the options' table
    custom_options: bytes = b""

    def damaged(self, what: str) -> NoReturn:
        """Raise ModelError: the operator contradicts itself."""
        raise ModelError(f"operator {self.index} ({self.op}): {what}")

    def unsupported(self, what: str) -> NoReturn:
        """Raise UnsupportedError: the operator is valid, but this form of it is not supported."""
        raise UnsupportedError(f"operator {self.index} ({self.op}): {what}")

    def options(self, name: str) -> Any:
        """The builtin options as the generated class `name`; defaults where the file has none."""
        if self.options_type not in ("NONE", name):
            self.damaged(f"has {self.options_type} instead of {name}")
        options = getattr(tflite, name)()
        options.Init(*(self.options_at if self.options_type == name else EMPTY_TABLE))
        return options

    def shape(self, position: int, rank: int | None = None) -> Shape:
        """The shape of an input; ModelError if it is left out or has another rank."""
        tensor = self.inputs[position] if position < len(self.inputs) else None
        if tensor is None:
            self.damaged(f"input {position} is missing")
        if rank is not None and len(tensor.shape) != rank:
            self.damaged(f"input {position} has {len(tensor.shape)} dimensions instead of {rank}")
        return tensor.shape

    def output_size(self, usual: Size2) -> Size2:
        """(h, w) of the output as the file records it, for ops that may give several; the usual one if it does not."""
        shape = self.outputs[0].shape
        return (shape[1], shape[2]) if len(shape) == 4 else usual

    def integers(self, position: int) -> tuple[int, ...]:
        """The values of a small constant input, such as a size or axes; UnsupportedError if it is computed."""
        tensor = self.inputs[position] if position < len(self.inputs) else None
        if tensor is None:
            self.damaged(f"input {position} is missing")
        if tensor.data is None:
            self.unsupported(f"dynamic shapes: input {position} is not a constant")
        if tensor.dtype not in ("int32", "int64") or tensor.data.size > MAX_OPERANDS:
            self.damaged(f"input {position} is not a short list of integers")
        return tuple(int(value) for value in tensor.data.ravel())

    def expect(self, *shapes: Shape) -> None:
        """ShapeError unless the outputs have these shapes."""
        for tensor, shape in zip(self.outputs, shapes, strict=True):
            if tensor.shape != shape:
                what = f"the output's shape is {list(tensor.shape)}, but the inputs make it {list(shape)}"
                raise ShapeError(f"operator {self.index} ({self.op}): {what}", shapes)

    def expect_type(self, code: int) -> None:
        """UnsupportedError unless the first output has the type of an option, which TensorFlow Lite would give it."""
        if code != getattr(tflite.TensorType, self.outputs[0].dtype.upper(), None):
            self.unsupported(f"its option says another type than {self.outputs[0].dtype}, its output's")

    def activation(self, options: Any) -> str:
        """The name of the fused activation. Most of TensorFlow Lite's kernels ignore TANH, some do not."""
        code = options.FusedActivationFunction()
        if code not in ACTIVATIONS:
            self.unsupported(f"fused activation {code}")
        if ACTIVATIONS[code] == "TANH":
            self.unsupported("a fused TANH, which most of TensorFlow Lite's kernels ignore")
        return ACTIVATIONS[code]

    def check_bias(self, position: int, channels: int) -> None:
        """ModelError if there is a bias and it is not one value per channel."""
        if position < len(self.inputs) and self.inputs[position] is not None:
            bias = self.shape(position)
            if math.prod(bias) != channels or bias[-1:] != (channels,):
                self.damaged(f"a bias of shape {list(bias)} for {channels} channels")


@dataclass(frozen=True)
class EncodedOperator:
    """A node as it is encoded in a .tflite file."""

    inputs: tuple[int | npt.NDArray[Any], ...]  # tensors of the graph, or arrays that become constants
    table: str = ""  # the class of its options, such as "Conv2DOptions"; none where the op has no options
    options: Mapping[str, Any] = field(default_factory=dict)  # by the names of the schema's fields; a tuple is a vector
    custom_options: bytes = b""


def integers(*values: int) -> npt.NDArray[np.int32]:
    """A small constant input, such as a size or axes, for an EncodedOperator."""
    return np.array(values, np.int32)


def attributes_of(node: Node, kind: type[AttributesT]) -> AttributesT:
    """The attributes of a node that the reader created; TypeError for any other node."""
    if not isinstance(node.attributes, kind):
        raise TypeError(f"{node.op} with {type(node.attributes).__name__} instead of {kind.__name__}")
    return node.attributes
