"""Elementwise ops: one row each. The GLSL functions they name live in shaders/elementwise.glsl.

To add one: a row here, a GLSL function there if no built-in fits, and a row in tests/op_cases.py.
"""

from collections.abc import Mapping
from types import MappingProxyType

from ..graph import Alpha, Node

# {0} is the vec4 operand; every expression must be finite where its operand is, or the op is listed in NEEDS_MASK.
UNARY: Mapping[str, str] = MappingProxyType(
    {
        "RELU": "max({0}, 0.0)",
        "RELU6": "clamp({0}, 0.0, 6.0)",
        "RELU_N1_TO_1": "clamp({0}, -1.0, 1.0)",
        "LEAKY_RELU": "max({0}, 0.0) + {alpha} * min({0}, 0.0)",
        "HARD_SWISH": "hard_swish({0})",
        "LOGISTIC": "logistic({0})",
        "TANH": "tanh_exact({0})",
        "ABS": "abs({0})",
        "NEG": "-{0}",
        "EXP": "exp({0})",
        "LOG": "log({0})",
        "SQRT": "sqrt({0})",
        "RSQRT": "inversesqrt({0})",
        "SQUARE": "{0} * {0}",
    }
)

BINARY: Mapping[str, str] = MappingProxyType(
    {
        "ADD": "{0} + {1}",
        "SUB": "{0} - {1}",
        "MUL": "{0} * {1}",
        "DIV": "{0} / {1}",
        "MAXIMUM": "max({0}, {1})",
        "MINIMUM": "min({0}, {1})",
    }
)

# Values in the padding lanes may become infinite or NaN here, and a weight of zero would not remove that.
NEEDS_MASK = frozenset({"DIV", "EXP", "LOG", "MUL", "RSQRT", "SQRT", "SQUARE"})


def is_elementwise(node: Node) -> bool:
    """Whether each output value depends only on the input values at the same position."""
    return node.op in UNARY or node.op in BINARY


def expression(node: Node, operands: list[str]) -> str:
    """The GLSL expression of an elementwise node on vec4 operands."""
    if node.op in BINARY:
        return BINARY[node.op].format(*operands)
    alpha = node.attributes.alpha if isinstance(node.attributes, Alpha) else 0.0
    return UNARY[node.op].format(operands[0], alpha=repr(float(alpha)))
