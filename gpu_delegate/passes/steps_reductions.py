"""Quantized means, sums and normalizations in steps, rounded as TensorFlow Lite rounds them.

Averages are rounded as integers with their zero point: which way a half goes depends on it.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

from ..model.graph import Node, Pool2D, Reduce, Steps
from ..model.operators import attributes_of
from .quantized_node import Form, QuantizedNode, activation_of

ABOVE_ONE = 1 + 2**-20  # moves a quotient that should be a half, and is just below it, past it


def _averaged(node: QuantizedNode) -> Sequence[Node]:
    """AVERAGE_POOL_2D."""
    linear = replace(attributes_of(node.node, Pool2D), activation="NONE")
    average = node.add(node.node.op, node.operand(0), attributes=linear)
    return rounded_with_zero_point(node, average, node.limits(activation_of(node.node)), ABOVE_ONE)


def rounded_with_zero_point(node: QuantizedNode, x: int, limits: Steps, factor: float = 1.0) -> Sequence[Node]:
    """Steps in fractions to steps, rounded as integers from zero on, times a factor near 1."""
    zero_point = node.zero_point(node.input(0))
    if not zero_point:
        return node.round(x, factor, limits)
    offset = node.constant("zero point", zero_point)
    whole = node.rounded(node.add("ADD", x, offset), factor, Steps(limits.low + zero_point, limits.high + zero_point))
    return node.finish("SUB", whole, offset)


def _mean(node: QuantizedNode) -> Sequence[Node]:
    """MEAN: the sum, with a multiplier that is divided by the count as an integer."""
    x, reduced = node.input(0), attributes_of(node.node, Reduce)
    count = math.prod(x.shape[axis] for axis in reduced.axes)
    total = node.add("SUM", node.operand(0), attributes=reduced)
    return node.requantize_mean(total, node.scale(x) / node.scale(node.out), count)


def _sum(node: QuantizedNode) -> Sequence[Node]:
    if node.input(0).dtype == "int8":
        node.refuse("int8, which TensorFlow Lite's kernels add as if it were uint8")
    x, reduced = node.input(0), attributes_of(node.node, Reduce)
    count = math.prod(x.shape[axis] for axis in reduced.axes)
    total = node.add("SUM", node.operand(0), attributes=reduced)
    return node.requantize(total, node.scale(x) / node.scale(node.out), node.most(0) * count)


def _normalized(node: QuantizedNode) -> Sequence[Node]:
    """SOFTMAX, LOG_SOFTMAX."""
    real = node.add("MUL", node.operand(0), node.constant("scale", node.scale(node.input(0))))
    found = node.add(node.node.op, real, attributes=node.node.attributes)
    return node.round(found, 1 / node.scale(node.out))


def _of_length_one(node: QuantizedNode) -> Sequence[Node]:
    """L2_NORMALIZATION, which no scale changes."""
    return node.round(
        node.add(node.node.op, node.operand(0), attributes=node.node.attributes), 1 / node.scale(node.out)
    )


REDUCTION_FORMS: Mapping[str, Form] = MappingProxyType(
    {
        "AVERAGE_POOL_2D": _averaged,
        "MEAN": _mean,
        "SUM": _sum,
        "SOFTMAX": _normalized,
        "LOG_SOFTMAX": _normalized,
        "L2_NORMALIZATION": _of_length_one,
    }
)
