"""Products of floats with int8 weights as TensorFlow Lite's hybrid kernels compute them, in the engine's own ops.

Such a kernel rounds each batch of x, or each row of FULLY_CONNECTED's, to 8 bits: by its largest magnitude (symmetric),
or from a zero point of its own on, by its extreme values and 0 (asymmetric). Sums of products are whole numbers, which
the scales of x and of the weights make real; then the bias is added. Found with ai-edge-litert's reference kernels:
FULLY_CONNECTED is symmetric unless its file says otherwise, CONV_2D with one scale is symmetric, with several
asymmetric, DEPTHWISE_CONV_2D asymmetric. No kernel heeds the zero points of weights. A zero point is added behind the
rounding; tflite-runtime adds it before, which leads values in the middle between two steps elsewhere.
"""

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from ..model.graph import ABSENT, Activated, AsymmetricInputs, Graph, Node, Reduce, Shape, Steps, Tensor
from ..model.quantization import quantization_of
from ..model.rewrite import Outcome, Rewriter
from ..ops.requantize import RoundToSteps
from .quantized_node import QuantizedNode

_SYMMETRIC, _BYTE, _FROM_POINT = Steps(-127, 127), Steps(-128, 127), Steps(-255, 255)
_LEAST_RANGE = 1e-30  # of values that are told from zeros: what they are divided by is finite
_HYBRID = ("FULLY_CONNECTED", "CONV_2D", "DEPTHWISE_CONV_2D")


def hybrid_to_steps(graph: Graph) -> tuple[Graph, Outcome]:
    """Floats with int8 weights, if TensorFlow Lite's rounding is asked for -> steps of each batch, their products."""
    edit = Rewriter(graph)
    for node in graph.nodes if graph.hybrid == "reference" else ():
        form = QuantizedNode(edit, graph, node)
        if _is_hybrid(form):
            form.verify_rules()
            edit.replace(node, *_HybridForm(form).nodes())
    return edit.finish()


def _is_hybrid(node: QuantizedNode) -> bool:
    """Whether TensorFlow Lite has a hybrid kernel for the node."""
    if node.node.op not in _HYBRID:
        return False
    weights = node.input(1)
    return (node.input(0).dtype, weights.dtype) == ("float32", "int8") and node.is_quantized(1) and weights.is_constant


class _HybridForm:
    def __init__(self, node: QuantizedNode) -> None:
        self.node, self.op, self.x = node, node.node.op, node.input(0)
        self.weights, self.scales = node.input(1), quantization_of(node.input(1)).scales
        self.rows: Shape = self.x.shape  # of x as it is rounded: batches, or rows, first
        if self.op == "FULLY_CONNECTED":
            depth = self.weights.shape[1]
            self.rows = (math.prod(self.x.shape) // depth, depth)
        self.each: Shape = (self.rows[0], *(1 for _ in self.rows[1:]))  # of one number for each of these

    def nodes(self) -> Sequence[Node]:
        node, attributes = self.node, self.node.node.attributes
        assert isinstance(attributes, Activated)
        x = self.x.index if self.rows == self.x.shape else node.add("RESHAPE", self.x.index, shape=self.rows)
        steps, size = self._asymmetric(x) if self.is_asymmetric else self._symmetric(x)
        outputs: Shape = (*self.rows[:1], node.out.shape[-1]) if self.op == "FULLY_CONNECTED" else node.out.shape
        linear = replace(attributes, activation="NONE")
        whole = node.edit.new_constant(f"{self.weights.name}:whole", np.asarray(self.weights.data, np.float32))
        sums = node.add(self.op, steps, whole, ABSENT, shape=outputs, attributes=linear)
        found = self._real(sums, size, outputs)
        if outputs != node.out.shape:
            found = node.add("RESHAPE", found)
        bias = node.node.inputs[2] if len(node.node.inputs) > 2 else ABSENT
        if bias == ABSENT:
            bias = node.constant("bias", 0.0)
        return node.finish("ADD", found, bias, attributes=Activated(attributes.activation))

    def _real(self, sums: int, size: int, shape: Shape) -> int:
        """Sums in the scales of x and of the weights; in the order in which each kernel multiplies, to the bit."""
        scales = self.node.constant("scales", self.scales)
        if self.op == "CONV_2D" and self.is_asymmetric:
            return self.node.add("MUL", self.node.add("MUL", sums, scales, shape=shape), size, shape=shape)
        both = self.node.add("MUL", size, scales, shape=(*self.each[:-1], len(self.scales)))
        return self.node.add("MUL", sums, both, shape=shape)

    @property
    def is_asymmetric(self) -> bool:
        if self.op == "FULLY_CONNECTED":
            return isinstance(self.node.node.attributes, AsymmetricInputs)
        return self.op == "DEPTHWISE_CONV_2D" or len(self.scales) > 1

    def _symmetric(self, x: int) -> tuple[int, int]:
        """Whole numbers for x, and the size of a step of each batch."""
        most = self._extreme("REDUCE_MAX", self.node.add("ABS", x, shape=self.rows))
        most = self._one_each("MAXIMUM", most, self._number(_LEAST_RANGE))
        factor = self._one_each("DIV", self._number(127.0), most)
        scaled = self.node.add("MUL", x, factor, shape=self.rows)
        return self._whole(scaled, self.rows, _SYMMETRIC), self._one_each("DIV", most, self._number(127.0))

    def _asymmetric(self, x: int) -> tuple[int, int]:
        """Whole numbers from the zero point on for x, and the size of a step of each batch."""
        zero = self._number(0.0)
        low = self._one_each("MINIMUM", self._extreme("REDUCE_MIN", x), zero)
        high = self._one_each("MAXIMUM", self._extreme("REDUCE_MAX", x), zero)
        extent = self._one_each("MAXIMUM", self._one_each("SUB", high, low), self._number(_LEAST_RANGE))
        size = self._one_each("DIV", extent, self._number(255.0))
        below = self._one_each("DIV", self._one_each("MUL", low, self._number(255.0)), extent)
        point = self._whole(self._one_each("SUB", self._number(-128.0), below), self.each, _BYTE)
        least, most = (self._one_each("SUB", self._number(end), point) for end in (-128.0, 127.0))
        factor = self._one_each("DIV", self._number(1.0), size)
        whole = self._whole(self.node.add("MUL", x, factor, shape=self.rows), self.rows, _FROM_POINT)
        above = self.node.add("MAXIMUM", whole, least, shape=self.rows)
        return self._known(self.node.add("MINIMUM", above, most, shape=self.rows), self.rows, _FROM_POINT), size

    def _extreme(self, op: str, x: int) -> int:
        return self.node.add(op, x, shape=self.each, attributes=Reduce(tuple(range(1, len(self.rows))), True))

    def _one_each(self, op: str, *inputs: int) -> int:
        """An op on one number for each batch."""
        return self.node.add(op, *inputs, shape=self.each)

    def _whole(self, x: int, shape: Shape, limits: Steps) -> int:
        """Rounded, halves away from zero."""
        factor = self._number(1.0)
        rounded = self.node.add("ROUND_TO_STEPS", x, factor, shape=shape, attributes=RoundToSteps(limits))
        return self._known(rounded, shape, limits)

    def _known(self, number: int, shape: Shape, steps: Steps) -> int:
        """The same tensor, of which later passes know its whole numbers."""
        return self.node.edit.set_tensor(Tensor(number, f"{self.x.name}:steps", shape, steps=steps))

    def _number(self, value: float) -> int:
        return self.node.constant("number", value)
