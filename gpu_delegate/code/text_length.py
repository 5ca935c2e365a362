"""Estimates how many characters an integer expression has in a language with C's operators.

Plans ask before anything is printed: what is long gets a name of its own, and what reads many values is declined.
"""

from collections.abc import Mapping
from types import MappingProxyType

from .vocabulary import Name, Operand, Operation, Sum, Value

SIGNS: Mapping[str, tuple[str, int]] = MappingProxyType(  # signs between two operands, and how tightly each binds
    {
        "multiply": ("*", 6),
        "divide": ("/", 6),
        "remainder": ("%", 6),
        "add": ("+", 5),
        "subtract": ("-", 5),
        "less": ("<", 4),
        "at least": (">=", 4),
        "at most": ("<=", 4),
        "equal": ("==", 4),
        "both": ("&&", 3),
        "either": ("||", 2),
    }
)
JOINS = ("&&", "||")  # which need no brackets in a row
FUNCTIONS: Mapping[str, str] = MappingProxyType(
    {"minimum": "min", "maximum": "max", "clamp": "clamp", "floor": "floor", "fraction": "fract"}
    | {"int": "int", "float": "float"}
)
WHOLE = 9  # how tightly a word, a number or a call binds


def text_length(value: Operand) -> int:
    """Characters of an integer or a condition made of names, numbers, sums and operations."""
    if not isinstance(value, Value):
        return len(str(value))
    if isinstance(value, Name):
        return len(value.name)
    if isinstance(value, Sum):
        return _sum_length(value)
    assert isinstance(value, Operation), f"{type(value).__name__} is no integer expression"
    if value.operation in FUNCTIONS:
        return len(FUNCTIONS[value.operation]) + 2 * len(value.operands) + sum(map(text_length, value.operands))
    sign, binding = SIGNS[value.operation]
    left, right = value.operands
    return length_within(left, binding) + len(sign) + 2 + length_within(right, binding + (sign not in JOINS))


def length_within(value: Operand, binding: int = WHOLE) -> int:
    """The same as part of another expression, in brackets where it binds less tightly."""
    is_loose = isinstance(value, Operation) and value.operation in SIGNS and SIGNS[value.operation][1] < binding
    return text_length(value) + 2 * is_loose


def _sum_length(value: Sum) -> int:
    """In brackets, whatever stands around it."""
    terms = [length_within(term) + (0 if factor == 1 else 3 + len(str(factor))) for term, factor in value.terms]
    constant = 3 + len(str(abs(value.constant))) if value.constant else 0
    return 2 + sum(terms) + 3 * (len(terms) - 1) + constant
