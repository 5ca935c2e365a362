"""Functions of 8-bit integers go in; the same of real numbers, rounded once, come out."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from ..graph import Node
from .quantized_node import Form, QuantizedNode

GREATEST_POWER = 40.0  # of e that EXP makes: infinity would not be limited
LEAST = 1e-30  # that LOG and RSQRT are taken of


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


def _of_positive(node: QuantizedNode) -> Sequence[Node]:
    """LOG, SQRT and RSQRT; the least output for what has none."""
    limited = node.add("MAXIMUM", _real(node), node.constant("least", LEAST))
    return node.round(node.add(node.node.op, limited), 1 / node.scale(node.out))


FUNCTION_FORMS: Mapping[str, Form] = MappingProxyType(
    {
        **dict.fromkeys(("LOGISTIC", "TANH", "HARD_SWISH", "ELU", "GELU"), _function),
        "EXP": _power,
        **dict.fromkeys(("LOG", "SQRT", "RSQRT"), _of_positive),
    }
)
