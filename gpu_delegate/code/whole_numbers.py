"""Interval arithmetic on whole numbers over the words of elementwise ops: between which values results lie.

Kernels compute with float32, which has every integer below 2^24. A range holds nothing but whole numbers that it has;
values that may be others have none.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt

from ..model.graph import Steps
from ..model.rewrite import END_OF_INTEGERS
from .vocabulary import Argument, ChooseLanes, Compared, Operand, Operation, Splat, TexelNumbers, Value

WholeRange = Steps | None  # None: values that may be no whole numbers, or too large

ONLY_ZERO, TRUTH = Steps(0, 0), Steps(0, 1)
ANY_SIZE = Steps(-(1 << 128), 1 << 128)  # whole numbers of any size, of which limits may make small ones
_SAMPLED = 64  # values of floats that are looked at before all are
_LONGEST_POWER = END_OF_INTEGERS.bit_length()


def exact(low: int, high: int) -> WholeRange:
    """A range if float32 has all of its integers."""
    return Steps(low, high) if -END_OF_INTEGERS < low <= high < END_OF_INTEGERS else None


def range_of_values(values: npt.NDArray[Any]) -> WholeRange:
    """The range of an array, of any type of numbers."""
    if not values.size or values.dtype.kind not in "biuf":
        return None
    if values.dtype.kind == "f" and not (are_whole(values.ravel()[:_SAMPLED]) and are_whole(values)):
        return None
    return exact(int(values.min()), int(values.max()))


def are_whole(values: npt.NDArray[Any]) -> bool:
    """Whether all values are whole numbers."""
    return bool(np.isfinite(values).all() and np.array_equal(values, np.rint(values)))


def common_range(one: Steps, other: Steps) -> Steps:
    """What lies in both; the first where they contradict each other."""
    low, high = max(one.low, other.low), min(one.high, other.high)
    return Steps(low, high) if low <= high else one


def joined_range(ranges: Iterable[WholeRange]) -> WholeRange:
    """What lies in any; none where one is unknown."""
    known = list(ranges)
    if not known or None in known:
        return None
    return Steps(min(r.low for r in known if r), max(r.high for r in known if r))


def repeated_sum(found: WholeRange, count: int) -> WholeRange:
    """The sum of up to so many values, in any order."""
    return None if found is None else exact(min(0, found.low * count), max(0, found.high * count))


def repeated_product(found: WholeRange, count: int) -> WholeRange:
    """The product of up to so many values."""
    if found is None:
        return None
    most = max(abs(found.low), abs(found.high), 1)
    if most > 1 and count >= _LONGEST_POWER:
        return None
    return exact(0 if found.low >= 0 else -(most**count), most**count)


def product_range(one: WholeRange, other: WholeRange) -> WholeRange:
    """Products of a number of each."""
    return _of_corners(lambda a, b: a * b)(one, other)


def range_of(
    arithmetic: Value, ranges: Sequence[WholeRange], numbers: Sequence[TexelNumbers] = (), of_integers: bool = False
) -> WholeRange:
    """What a value lies in where its first arguments lie in ranges, and the others are numbers of attributes.

    Integers are divided as in C.
    """

    def of(value: Operand) -> WholeRange:
        if isinstance(value, int | float):
            return Steps(int(value), int(value)) if float(value).is_integer() else None
        if isinstance(value, Splat):
            return of(value.value)
        if isinstance(value, Argument):
            return ranges[value.number] if value.number < len(ranges) else None
        if isinstance(value, Compared):
            return TRUTH
        if isinstance(value, ChooseLanes):
            return joined_range(map(of, (value.value, value.other)))
        if not isinstance(value, Operation):
            return None
        if value.operation in _LIMITS:
            last = value.operands[-1]
            assert isinstance(last, Argument), "limits are numbers of attributes"
            low, high = (int(numbers[last.number - len(ranges)][at]) for at in _LIMITS[value.operation])
            return Steps(low, high)
        if value.operation == "multiply" and value.operands[0] == value.operands[1]:
            return _of_one(lambda x: x * x)(of(value.operands[0]))
        rule = (of_integers and _OF_INTEGERS.get(value.operation)) or _RULES.get(value.operation)
        return rule(*map(of, value.operands)) if rule else None

    return of(arithmetic)


def _of_corners(function: Callable[[int, int], int]) -> Callable[[WholeRange, WholeRange], WholeRange]:
    """A function of two numbers that has its extremes where both have theirs."""

    def rule(first: WholeRange, second: WholeRange) -> WholeRange:
        if first is None or second is None:
            return None
        corners = [function(a, b) for a in (first.low, first.high) for b in (second.low, second.high)]
        return exact(min(corners), max(corners))

    return rule


def _of_one(function: Callable[[int], int]) -> Callable[[WholeRange], WholeRange]:
    """A function of one number that has its extremes at both ends or, if it lies between, at zero."""

    def rule(found: WholeRange) -> WholeRange:
        if found is None:
            return None
        ends = [found.low, found.high, *([0] if found.low < 0 < found.high else [])]
        values = [function(end) for end in ends]
        return exact(min(values), max(values))

    return rule


def _either(choose: Callable[[int, int], int]) -> Callable[[WholeRange, WholeRange], WholeRange]:
    """The larger or the smaller of two numbers."""

    def rule(first: WholeRange, second: WholeRange) -> WholeRange:
        if first is None or second is None:
            return None
        return Steps(choose(first.low, second.low), choose(first.high, second.high))

    return rule


def _clamped(found: WholeRange, low: WholeRange, high: WholeRange) -> WholeRange:
    return _either(min)(_either(max)(found, low), high)


def _multiplied_and_added(first: WholeRange, second: WholeRange, third: WholeRange) -> WholeRange:
    return _of_corners(lambda a, b: a + b)(product_range(first, second), third)


def _sign(found: WholeRange) -> WholeRange:
    return _clamped(found, Steps(-1, -1), Steps(1, 1)) if found else Steps(-1, 1)


def _rounded(found: WholeRange) -> WholeRange:
    return found or ANY_SIZE


def _whole_quotient(divided: WholeRange, by: WholeRange) -> WholeRange:
    """Quotients of integers are never further from zero than what is divided, by a divisor of zero too."""
    if divided is None or by is None:
        return None
    if by.low > 0 and divided.low >= 0:
        return Steps(divided.low // by.high, divided.high // by.low)
    most = max(abs(divided.low), abs(divided.high))
    return Steps(-most, most)


def _whole_remainder(divided: WholeRange, by: WholeRange) -> WholeRange:
    """The remainder has the sign of what it is divided by."""
    if divided is None or by is None:
        return None
    if by.low > 0 and divided.low >= 0:
        return Steps(0, min(divided.high, by.high - 1))
    return Steps(min(0, by.low + 1), max(0, by.high - 1))


def _by_no_zero(rule: Callable[[WholeRange, WholeRange], WholeRange]) -> Callable[[WholeRange, WholeRange], WholeRange]:
    """Of floats, by zero: infinite, or no number."""
    return lambda divided, by: None if by is None or by.low <= 0 <= by.high else rule(divided, by)


def _power(base: WholeRange, exponent: WholeRange) -> WholeRange:
    if base is None or exponent is None or exponent.low < 0 or exponent.high >= _LONGEST_POWER:
        return None
    most = max(abs(base.low), abs(base.high), 1) ** exponent.high
    return exact(0 if base.low >= 0 else -most, most)


_RULES: Mapping[str, Callable[..., WholeRange]] = MappingProxyType(
    {
        "add": _of_corners(lambda a, b: a + b),
        "subtract": _of_corners(lambda a, b: a - b),
        "multiply": product_range,
        "multiply add": _multiplied_and_added,
        "minimum": _either(min),
        "maximum": _either(max),
        "clamp": _clamped,
        "negate": _of_one(lambda x: -x),
        "absolute": _of_one(abs),
        "sign": _sign,
        **dict.fromkeys(("floor", "ceiling", "truncate", "round even"), _rounded),
        "whole quotient": _whole_quotient,
        "whole floor quotient": _whole_quotient,
        "whole floor remainder": _whole_remainder,
        "floor quotient": _by_no_zero(_whole_quotient),
        "floor remainder": _by_no_zero(_whole_remainder),
        "power": _power,
    }
)
_OF_INTEGERS: Mapping[str, Callable[..., WholeRange]] = MappingProxyType(
    {"divide": _whole_quotient, "floor quotient": _whole_quotient, "floor remainder": _whole_remainder}
)
_LIMITS: Mapping[str, tuple[int, int]] = MappingProxyType(  # where they are in the last numbers of attributes
    {
        "requantize": (0, 1),
        "requantize narrow": (0, 1),
        "requantize once": (0, 1),
        "round to steps": (0, 1),
        "add steps": (2, 3),
        "hard swish steps": (1, 2),
        "requantize wide": (0, 1),
        "requantize wide once": (0, 1),
        "requantize product": (0, 1),
        "add short steps": (2, 3),
        "softmax steps": (0, 1),
    }
)
