"""A graph with 8-bit tensors goes in, one of float32 comes out that computes the same integers.

A quantised tensor becomes steps, whole numbers q - zero point. Zeros stay zeros (padding, unused lanes), and sums of
products of steps are exact in float32 below 2^24, in whichever order they are added. REQUANTIZE makes steps of the
output of them, as TensorFlow Lite's reference kernels do. FORMS has a function for each op; what only moves values, all
in one scale, stays as it is.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import NoReturn

import numpy as np
import numpy.typing as npt

from ..errors import UnsupportedError
from ..graph import ABSENT, Activated, Graph, Node, Quantization, Shape, Steps, Tensor
from ..ops.requantize import Requantize
from ..rewrite import Outcome, Rewriter

BYTE_DTYPES = ("int8", "uint8")
_Doubles = npt.NDArray[np.float64]


def is_quantized(tensor: Tensor) -> bool:
    """Whether a tensor's bytes stand for real numbers."""
    return tensor.dtype in BYTE_DTYPES and tensor.quantization is not None


def takes_type(tensor: Tensor) -> bool:
    """Whether an op that has a form may have such a tensor: bytes in one scale, or constants, or a bias."""
    if is_quantized(tensor):
        return tensor.is_constant or len(quantization_of(tensor).scales) == 1
    return tensor.dtype == "int32" and tensor.is_constant


def steps_of(tensor: Tensor) -> Steps:
    """The least and greatest steps that a tensor in one scale can have."""
    limits, zero_point = np.iinfo(tensor.dtype), quantization_of(tensor).zero_points[0]
    return Steps(int(limits.min) - zero_point, int(limits.max) - zero_point)


def quantization_of(tensor: Tensor) -> Quantization:
    """What the integers of a tensor mean. Raises UnsupportedError where its file does not say it."""
    if tensor.quantization is None:
        raise UnsupportedError(f"{tensor.name}: {tensor.dtype} without a scale")
    return tensor.quantization


def quantized_to_steps(graph: Graph) -> tuple[Graph, Outcome]:
    """int8 and uint8 in a scale -> steps from the zero point in float32, and REQUANTIZE behind what computes."""
    edit = Rewriter(graph)
    quantized = [tensor for tensor in graph.tensors.values() if is_quantized(tensor)]
    if not quantized:
        return graph, Outcome(0)
    for node in graph.nodes:
        form = QuantizedNode(edit, graph, node)
        if form.has_bytes:
            edit.replace(node, *FORMS.get(node.op, _without_form)(form))
    for tensor in quantized:
        if not tensor.is_constant:
            edit.set_tensor(replace(tensor, dtype="float32", quantization=None, steps=steps_of(tensor)))
    return edit.finish()


class QuantizedNode:
    """A node with bytes among its tensors, and what its form in steps is made with."""

    def __init__(self, edit: Rewriter, graph: Graph, node: Node) -> None:
        self.edit, self.graph, self.node = edit, graph, node

    @property
    def has_bytes(self) -> bool:
        return any(is_quantized(self.graph.tensors[i]) for i in (*self.node.inputs, *self.node.outputs) if i != ABSENT)

    @property
    def out(self) -> Tensor:
        return self.graph.tensors[self.node.outputs[0]]

    def input(self, position: int) -> Tensor:
        """An input that is there."""
        return self.graph.tensors[self.node.inputs[position]]

    def refuse(self, reason: str) -> NoReturn:
        """Raise UnsupportedError."""
        raise UnsupportedError(f"{self.node.op} (operator {self.node.index}) does not run on the GPU: {reason}")

    def scale(self, tensor: Tensor) -> float:
        """Of a tensor in one scale."""
        scales = quantization_of(tensor).scales
        if not is_quantized(tensor) or len(scales) != 1:
            self.refuse(f"{tensor.name} is {tensor.dtype} in {len(scales)} scales")
        return scales[0]

    def limits(self, activation: str = "NONE") -> Steps:
        """Of the output, behind a fused activation."""
        all_of, scale = steps_of(self.out), self.scale(self.out)
        low, high = _ACTIVATION_LIMITS.get(activation, (math.inf, math.inf))
        if activation != "NONE" and math.isinf(low):
            self.refuse(f"{activation} fused into an op of bytes")
        return Steps(
            max(all_of.low, _rounded(low / scale)) if math.isfinite(low) else all_of.low,
            min(all_of.high, _rounded(high / scale)) if math.isfinite(high) else all_of.high,
        )

    def operand(self, position: int) -> int:
        """The number of an input in steps: of a constant, a new one."""
        tensor = self.input(position)
        return self.steps_constant(tensor) if tensor.is_constant else tensor.index

    def steps_constant(self, tensor: Tensor) -> int:
        """A constant's bytes as steps."""
        assert tensor.data is not None, "asked for constants alone"
        quantization = quantization_of(tensor)
        shape = [-1 if k == quantization.dimension else 1 for k in range(tensor.data.ndim)]
        zero_points = np.array(quantization.zero_points, np.float32)
        zero_points = zero_points.reshape(shape if zero_points.size > 1 else ())
        return self.edit.new_constant(f"{tensor.name}:steps", tensor.data.astype(np.float32) - zero_points)

    def constant(self, what: str, values: npt.ArrayLike) -> int:
        """A number for all channels, or one for each."""
        return self.edit.new_constant(f"{self.out.name}:{what}", np.asarray(values, np.float32))

    def between(self, what: str, shape: Shape | None = None) -> int:
        """The number of a new tensor with the output's shape."""
        return self.edit.new_tensor(f"{self.out.name}:{what}", self.out.shape if shape is None else shape)

    def requantize(self, x: int, multipliers: npt.ArrayLike, limits: Steps | None = None) -> Node:
        """From a tensor in another scale, `multipliers` of the output's, for all channels or each, to the output."""
        first, power = _two_factors(np.asarray(multipliers, np.float64))
        inputs = (x, self.constant("multiplier", first), self.constant("power", power))
        return Node("REQUANTIZE", inputs, self.node.outputs, Requantize(limits or self.limits()))


Form = Callable[[QuantizedNode], Sequence[Node]]


_ACTIVATION_LIMITS: Mapping[str, tuple[float, float]] = MappingProxyType(
    {"RELU": (0.0, math.inf), "RELU6": (0.0, 6.0), "RELU_N1_TO_1": (-1.0, 1.0)}
)


def _rounded(value: float) -> int:
    """The nearest whole number, of two the one farther from zero."""
    return int(math.copysign(math.floor(abs(value) + 0.5), value))


def _two_factors(multipliers: _Doubles) -> tuple[_Doubles, _Doubles]:
    """What values are multiplied with before each of the two roundings (QuantizeMultiplier of TensorFlow Lite)."""
    mantissas, exponents = np.frexp(multipliers)
    mantissas = np.round(mantissas * 2**31) / 2**31
    return mantissas * np.exp2(np.maximum(exponents, 0)), np.exp2(np.minimum(exponents, 0))


def _without_form(node: QuantizedNode) -> NoReturn:
    node.refuse("8-bit integers")


# Forms ----------------------------------------------------------------------------------------------------------------


def _moved(node: QuantizedNode) -> Sequence[Node]:
    """What keeps all values, in one scale."""
    tensors = [node.graph.tensors[i] for i in (*node.node.inputs, *node.node.outputs) if i != ABSENT]
    bytes_of = [tensor for tensor in tensors if is_quantized(tensor)]
    if len({(tensor.dtype, tensor.quantization) for tensor in bytes_of}) > 1:
        node.refuse("its tensors have different scales")
    inputs = tuple(
        node.operand(k) if i != ABSENT and is_quantized(node.input(k)) else i for k, i in enumerate(node.node.inputs)
    )
    return [replace(node.node, inputs=inputs)]


def _convolved(node: QuantizedNode) -> Sequence[Node]:
    """Sums of products of steps, with the bias in its own scale, which is that of the products."""
    x, weights = node.input(0), node.input(1)
    attributes = node.node.attributes
    assert isinstance(attributes, Activated)
    if not is_quantized(x) or not is_quantized(weights) or not weights.is_constant:
        node.refuse(
            f"{x.dtype} with weights of {weights.dtype}" if weights.is_constant else "weights that are computed"
        )
    sums, products = node.between("sums"), np.array(quantization_of(weights).scales) * node.scale(x)
    inputs = [x.index, node.steps_constant(weights), ABSENT]
    if len(node.node.inputs) > 2 and node.node.inputs[2] != ABSENT:
        bias = node.input(2)
        if bias.data is None or bias.dtype != "int32":
            node.refuse(f"a bias of {bias.dtype}" if bias.data is not None else "a bias that is computed")
        inputs[2] = node.constant("bias", bias.data)
    linear = replace(
        node.node, inputs=tuple(inputs), outputs=(sums,), attributes=replace(attributes, activation="NONE")
    )
    multipliers = products / node.scale(node.out)
    limits = node.limits(attributes.activation)
    return [linear, node.requantize(sums, multipliers if multipliers.size > 1 else multipliers[0], limits)]


def _quantized(node: QuantizedNode) -> Sequence[Node]:
    """QUANTIZE: of floats, or from one scale to another."""
    x = node.input(0)
    if is_quantized(x):
        return [node.requantize(node.operand(0), node.scale(x) / node.scale(node.out))]
    if x.dtype != "float32":
        node.refuse(f"from {x.dtype}")
    divided = node.between("divided")
    scale = node.constant("scale", node.scale(node.out))
    return [Node("DIV", (x.index, scale), (divided,), Activated(), node.node.index), node.requantize(divided, 1.0)]


def _dequantized(node: QuantizedNode) -> Sequence[Node]:
    """DEQUANTIZE: steps times the scale, or the scales of a constant's channels."""
    x = node.input(0)
    quantization = quantization_of(x)
    shape = [-1 if k == quantization.dimension else 1 for k in range(len(x.shape))]
    scales = np.array(quantization.scales)
    scale = node.constant("scale", scales.reshape(shape) if scales.size > 1 else scales[0])
    return [replace(node.node, op="MUL", inputs=(node.operand(0), scale), attributes=Activated())]


FORMS: Mapping[str, Form] = MappingProxyType(
    {
        **dict.fromkeys(("CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED"), _convolved),
        **dict.fromkeys(("RESHAPE", "MAX_POOL_2D", "PAD", "STRIDED_SLICE", "SLICE", "TRANSPOSE", "SQUEEZE"), _moved),
        "QUANTIZE": _quantized,
        "DEQUANTIZE": _dequantized,
    }
)
