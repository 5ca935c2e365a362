"""Quantized elementwise functions (EXP, RSQRT and others): computed on real numbers and rounded once."""

import math
from collections.abc import Mapping, Sequence
from types import MappingProxyType

import numpy as np

from ..model.graph import Node, Steps
from ..ops.requantize import HardSwishSteps
from .quantized_node import Form, QuantizedNode

GREATEST_POWER = 40.0  # of e that EXP makes: infinity would not be limited
LEAST_SHORT_POWER = 2.0**-15  # that reference kernels shift 16 bits by
LEAST = 1e-30  # that LOG and RSQRT are taken of
ROOT_BITS = 20
BYTES = 256  # values of a byte


def _real(node: QuantizedNode) -> int:
    """The input as real numbers."""
    return node.add("MUL", node.operand(0), node.constant("scale", node.scale(node.input(0))))


def _function(node: QuantizedNode) -> Sequence[Node]:
    found = node.add(node.node.op, _real(node), attributes=node.node.attributes)
    return node.round(found, 1 / node.scale(node.out))


def _power(node: QuantizedNode) -> Sequence[Node]:
    """EXP."""
    limited = node.add("MINIMUM", _real(node), node.constant("most", GREATEST_POWER))
    return node.round(node.add("EXP", limited), 1 / node.scale(node.out))


def _inverse_root(node: QuantizedNode) -> Sequence[Node]:
    """RSQRT, which TensorFlow Lite has as a whole number of 2**-20 before it is steps; the greatest step for 0."""
    one, limits = node.constant("one", 1), node.limits()
    root = node.add("RSQRT", node.add("MAXIMUM", node.operand(0), one))
    whole = node.rounded(root, 2.0**ROOT_BITS, Steps(0, 1 << ROOT_BITS))
    scale = 1 / (math.sqrt(node.scale(node.input(0))) * node.scale(node.out))
    steps = node.requantized(whole, scale / 2**ROOT_BITS, 1 << ROOT_BITS, limits)
    is_zero = node.add("SUB", one, node.add("MINIMUM", node.operand(0), one))
    return node.finish("MAXIMUM", steps, node.add("MUL", is_zero, node.constant("greatest", limits.high)))


def _root(node: QuantizedNode) -> Sequence[Node]:
    """SQRT, of which TensorFlow Lite drops the fraction."""
    root = node.add("SQRT", node.add("MAXIMUM", _real(node), node.constant("least", 0.0)))
    steps = node.add("DIV", root, node.constant("scale of steps", node.scale(node.out)))
    return node.round(node.add("FLOOR", steps))


def _logarithm(node: QuantizedNode) -> Sequence[Node]:
    """LOG; the lowest step for what has none, however far below the logarithm of LEAST that is."""
    found, scale = _limited(node), node.scale(node.out)
    if node.limits().low * scale < math.log(LEAST):
        before_one = node.add("SUB", node.operand(0), node.constant("one", 1))
        below = node.add("MINIMUM", before_one, node.constant("none", 0))  # -1 and less where there is no logarithm
        found = node.add("ADD", found, node.add("MUL", below, node.constant("far", 2 * BYTES * scale)))
    return node.round(found, 1 / scale)


def _limited(node: QuantizedNode) -> int:
    """The function of the input, or of LEAST."""
    return node.add(node.node.op, node.add("MAXIMUM", _real(node), node.constant("least", LEAST)))


def _hard_swish(node: QuantizedNode) -> Sequence[Node]:
    """HARD_SWISH, which TensorFlow Lite computes in 16 bits: steps as 1/128 of them, the gate up to 32768."""
    fine = np.float32(node.scale(node.input(0))) / np.float32(128)
    value, power = _short_factors(float(fine / np.float32(node.scale(node.out))))
    gate, shift = _short_factors(float(fine / np.float32(3 / 32768)))
    if power > 1:
        node.refuse("a scale of the output that is much smaller than the input's")
    if min(power, shift) < LEAST_SHORT_POWER:
        node.refuse("a scale of the input that is too small for numbers of 16 bits")
    gates = (128.0, gate, shift) if shift <= 1 else (64.0 * shift, gate, 2.0)
    attributes = HardSwishSteps(128.0 * value, gates, power, node.limits())
    return node.finish("HARD_SWISH_STEPS", node.operand(0), attributes=attributes)


def _short_factors(multiplier: float) -> tuple[float, float]:
    """A multiplier as one of 16 bits, below 1, and a power of two."""
    mantissa, exponent = math.frexp(multiplier)
    mantissa_32 = round(mantissa * 2**31)
    return min((mantissa_32 + 2**15) >> 16, 2**15 - 1) / 2**15, 2.0**exponent


FUNCTION_FORMS: Mapping[str, Form] = MappingProxyType(
    {
        **dict.fromkeys(("LOGISTIC", "TANH", "ELU", "GELU"), _function),
        "HARD_SWISH": _hard_swish,
        "EXP": _power,
        "LOG": _logarithm,
        "SQRT": _root,
        "RSQRT": _inverse_root,
    }
)
