"""A quantized node while a pass rewrites it: its scales, limits and constants, and how results are rounded.

TensorFlow Lite's reference kernels round in one of three ways. Sums of products are multiplied by a number of 31 bits
and rounded, halves up, then divided by a power of two and rounded, halves away from zero (`requantize`); those of fully
connected layers are rounded once, behind both, halves away from zero (its `is_once`). What they compute in finer steps,
or in floats, is rounded once, halves away from zero (`rounded`).
"""

import math
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import NoReturn

import numpy as np
import numpy.typing as npt

from ..base.errors import UnsupportedError
from ..model.graph import ABSENT, Activated, Attributes, Graph, Node, Shape, Steps, Tensor
from ..model.quantization import is_quantized, nearest_whole, quantization_of, steps_of
from ..model.rewrite import END_OF_INTEGERS, Rewriter
from ..ops.requantize import MULTIPLIER_BITS, FixedPoint, FixedPoints, Requantize, RoundToSteps, fixed_points
from .byte_rules import broken_rule

EXACT = Steps(1 - END_OF_INTEGERS, END_OF_INTEGERS - 1)  # limits of whole numbers that are not steps yet
MOST_INT32 = (1 << 31) - 128  # that float32 has, too
MOST_STEPS = 1 << 20  # from zero to the end of an activation: more than any byte has
_ARITHMETIC = ("ADD", "SUB", "MUL", "DIV")
_ACTIVATION_LIMITS: Mapping[str, tuple[float, float]] = MappingProxyType(
    {"RELU": (0.0, math.inf), "RELU6": (0.0, 6.0), "RELU_N1_TO_1": (-1.0, 1.0), "RELU_0_TO_1": (0.0, 1.0)}
)


def takes_type(tensor: Tensor) -> bool:
    """Whether an op that has a form may have such a tensor: integers in one scale, or constants, or a bias."""
    if is_quantized(tensor):
        return tensor.is_constant or len(quantization_of(tensor).scales) == 1
    return tensor.dtype in ("int32", "int64") and tensor.is_constant


class QuantizedNode:
    """A node with bytes among its tensors, and what its form in steps is made with."""

    def __init__(self, edit: Rewriter, graph: Graph, node: Node) -> None:
        self.edit, self.graph, self.node = edit, graph, node
        self.nodes: list[Node] = []  # before the last one

    @property
    def has_bytes(self) -> bool:
        return any(is_quantized(self.graph.tensors[i]) for i in (*self.node.inputs, *self.node.outputs) if i != ABSENT)

    @property
    def has_shorts(self) -> bool:
        """Whether any of these tensors has 16 bits."""
        tensors = [self.graph.tensors[i] for i in (*self.node.inputs, *self.node.outputs) if i != ABSENT]
        return any(is_quantized(tensor) and tensor.dtype == "int16" for tensor in tensors)

    @property
    def out(self) -> Tensor:
        return self.graph.tensors[self.node.outputs[0]]

    def input(self, position: int) -> Tensor:
        """An input that is there."""
        return self.graph.tensors[self.node.inputs[position]]

    def is_quantized(self, position: int) -> bool:
        """Whether an input is there, as steps or as a constant's bytes."""
        inputs = self.node.inputs
        return len(inputs) > position and inputs[position] != ABSENT and is_quantized(self.input(position))

    def zero_point(self, tensor: Tensor) -> int:
        """Of a tensor in one scale."""
        self.scale(tensor)
        return quantization_of(tensor).zero_points[0]

    def verify_rules(self) -> None:
        """Refuse what TensorFlow Lite's specification of quantization forbids."""
        if broken := broken_rule(self.graph, self.node):
            self.refuse(broken)

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
        scale = self.scale(self.out)  # first: it refuses a tensor without steps
        all_of = steps_of(self.out)
        low, high = _ACTIVATION_LIMITS.get(activation, (math.inf, math.inf))
        if activation != "NONE" and math.isinf(low):
            self.refuse(f"{activation} fused into an op of bytes")
        return Steps(
            max(all_of.low, _nearest_step(low, scale)) if math.isfinite(low) else all_of.low,
            min(all_of.high, _nearest_step(high, scale)) if math.isfinite(high) else all_of.high,
        )

    def operand(self, position: int) -> int:
        """The number of an input in steps: of a constant, a new one."""
        tensor = self.input(position)
        if not is_quantized(tensor):
            self.refuse(f"{tensor.name} is {tensor.dtype}")
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
        """The number of a new tensor, with the output's shape unless another is given."""
        return self.edit.new_tensor(f"{self.out.name}:{what}", self.out.shape if shape is None else shape)

    def add(self, op: str, *inputs: int, shape: Shape | None = None, attributes: Attributes | None = None) -> int:
        """A further node before the last one; the number of what it writes."""
        plain = Activated() if op in _ARITHMETIC else Attributes()
        found = self.between(op.lower(), shape)
        self.nodes.append(Node(op, inputs, (found,), attributes or plain))
        return found

    def digits(self, position: int, base: int, count: int) -> Sequence[int]:
        """An input as so many digits, the highest first, all of which lie around zero."""
        return self.digits_of(self.operand(position), self.input(position).shape, base, count)

    def digits_of(self, rest: int, shape: Shape, base: int, count: int) -> Sequence[int]:
        """The same of whole numbers."""
        digits = list[int]()
        for _ in range(count - 1):
            part = self.add("MUL", rest, self.constant("of digit", 1 / base), shape=shape)
            upper = self.add("FLOOR", self.add("ADD", part, self.constant("half", 0.5), shape=shape), shape=shape)
            below = self.add("MUL", upper, self.constant("base", float(base)), shape=shape)
            digits.append(self.add("SUB", rest, below, shape=shape))
            rest = upper
        return [rest, *reversed(digits)]

    def most(self, position: int) -> int:
        """The largest magnitude of the steps of an input in one scale."""
        limits = steps_of(self.input(position))
        return max(-limits.low, limits.high)

    def requantized(
        self, x: int, multiplier: float, most: int, limits: Steps = EXACT, shape: Shape | None = None
    ) -> int:
        """Whole numbers up to `most` in another scale, before the last node: rounded twice, as `requantize` does."""
        factors = self._factors(self._fixed_points([multiplier], most))
        return self.add("REQUANTIZE", x, *factors, shape=shape, attributes=Requantize(limits))

    def requantize(
        self, x: int, multipliers: npt.ArrayLike, most: int, limits: Steps | None = None, is_once: bool = False
    ) -> Sequence[Node]:
        """All nodes, the last from whole numbers up to `most` in scales that are `multipliers` of the output's."""
        points = self._fixed_points(np.ravel(multipliers), most)
        return self._requantize(x, points, limits or self.limits(), is_once)

    def requantize_mean(self, total: int, multiplier: float, count: int) -> Sequence[Node]:
        """The same of a sum, for its mean: an integer is divided by the count, after a shift by its bits."""
        (whole,) = self._fixed_points([multiplier], self.most(0) * count).points
        bits = min(count.bit_length() - 1, MULTIPLIER_BITS - whole.shift)
        point = FixedPoint((whole.multiplier << bits) // count, whole.shift + bits)
        return self._requantize(total, FixedPoints.of([point]), self.limits())

    def _fixed_points(self, multipliers: npt.ArrayLike, most: int) -> FixedPoints:
        """Refuses what needs more than 32 bits, which the reference kernels cut off."""
        largest = float(np.max(multipliers))
        if not math.isfinite(largest):
            self.refuse(f"a multiplier of {largest:g}")
        points = fixed_points(multipliers)
        if most << max(0, -int(points.shifts.min())) > MOST_INT32:
            self.refuse(f"sums up to {most} times {largest:g}, which is more than 32 bits hold")
        return points

    def _requantize(self, x: int, points: FixedPoints, limits: Steps, is_once: bool = False) -> Sequence[Node]:
        return self.finish("REQUANTIZE", x, *self._factors(points), attributes=Requantize(limits, is_once))

    def round(self, x: int, multiplier: float = 1.0, limits: Steps | None = None) -> Sequence[Node]:
        """All nodes, the last from real numbers to the output: rounded once."""
        factor = self.constant("multiplier", multiplier)
        return self.finish("ROUND_TO_STEPS", x, factor, attributes=RoundToSteps(limits or self.limits()))

    def rounded(self, x: int, multiplier: float = 1.0, limits: Steps = EXACT, shape: Shape | None = None) -> int:
        """Real numbers as whole ones, before the last node: rounded once."""
        factor = self.constant("multiplier", multiplier)
        return self.add("ROUND_TO_STEPS", x, factor, shape=shape, attributes=RoundToSteps(limits))

    def finish(self, op: str, *inputs: int, attributes: Attributes | None = None) -> Sequence[Node]:
        """All nodes, the last one of this op."""
        plain = Activated() if op in _ARITHMETIC else Attributes()
        return [*self.nodes, Node(op, inputs, self.node.outputs, attributes or plain, self.node.index)]

    def _factors(self, points: FixedPoints) -> Sequence[int]:
        values = [each if len(each) > 1 else each[0] for each in points.in_floats]
        return [self.constant(what, each) for what, each in zip(("high", "low", "power"), values, strict=True)]


Form = Callable[[QuantizedNode], Sequence[Node]]


def activation_of(node: Node) -> str:
    """The fused one."""
    return node.attributes.activation if isinstance(node.attributes, Activated) else "NONE"


def in_float32(value: float) -> float:
    """What is left of a number in float32, in which some of TensorFlow Lite's kernels compute their multipliers."""
    with np.errstate(over="ignore"):
        return float(np.float32(value))


def _nearest_step(value: float, scale: float) -> int:
    """Of the quotient in float32, which at a tie is not the one of float64; no step of a byte is farther off."""
    with np.errstate(over="ignore"):
        steps = np.array(value, np.float32) / np.float32(scale)
    return int(nearest_whole(np.clip(steps, -MOST_STEPS, MOST_STEPS)))
