"""Interval arithmetic on real numbers over the words of elementwise ops: between which values results lie.

Ends may be infinite. Where nothing is said of a word, its values may be any. Rounding is not counted, nor integers that
overflow, nor what is no number. What words compute is said in evaluate.py alone; here is where their extremes are.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType

import numpy as np

from .evaluate import WORDS
from .vocabulary import Argument, ChooseLanes, Compared, LaneComparison, Operand, Operation, Splat

Interval = tuple[float, float]  # the least and the greatest

ALL_REALS: Interval = (-math.inf, math.inf)


def interval_of(arithmetic: Operand, ranges: Sequence[Interval] = ()) -> Interval:
    """What a value lies in where its first arguments lie in ranges, and the others anywhere."""
    match arithmetic:
        case int() | float():
            return float(arithmetic), float(arithmetic)
        case Splat(value):
            return value, value
        case Argument(number):
            return ranges[number] if number < len(ranges) else ALL_REALS
        case Compared():
            return 0.0, 1.0
        case ChooseLanes():
            chosen = [interval_of(each, ranges) for each in (arithmetic.value, arithmetic.other)]
            return min(low for low, _ in chosen), max(high for _, high in chosen)
        case Operation(operation="multiply", operands=(one, other)) if one == other:
            return _square(interval_of(one, ranges))
        case Operation():
            rule = _RULES.get(arithmetic.operation)
            return rule(*(interval_of(each, ranges) for each in arithmetic.operands)) if rule else ALL_REALS
    return ALL_REALS


def always_is(arithmetic: Operand, ranges: Sequence[Interval] = ()) -> Operand | None:
    """The argument or the number that a value is whatever its arguments are in these ranges; None if it is neither.

    max(x, 0) is x where x lies in (0, 6), and 0.0 where it lies in (-6, -1).
    """
    match arithmetic:
        case int() | float():
            return float(arithmetic)
        case Splat(value):
            return value
        case Argument():
            return arithmetic
        case ChooseLanes(comparison, left, right, value, other):
            is_true = _holds(comparison, interval_of(left, ranges), interval_of(right, ranges))
            return None if is_true is None else always_is(value if is_true else other, ranges)
        case Operation(operation="multiply add", operands=(a, b, c)):
            return always_is(Operation("add", (Operation("multiply", (a, b)), c)), ranges)
        case Operation(operation="add" | "multiply", operands=(one, other)):
            return _joined(arithmetic, always_is(one, ranges), always_is(other, ranges))
        case Operation(operation="clamp", operands=(x, low, high)):
            return always_is(Operation("minimum", (Operation("maximum", (x, low)), high)), ranges)
        case Operation(operation="absolute", operands=(x,)) if interval_of(x, ranges)[0] >= 0:
            return always_is(x, ranges)
        case Operation(operation="minimum" | "maximum", operands=(one, other)):
            (low, high), (other_low, other_high) = (interval_of(each, ranges) for each in (one, other))
            first, last = (one, other) if high <= other_low else (other, one) if other_high <= low else (None, None)
            chosen = first if arithmetic.operation == "minimum" else last
            return None if chosen is None else always_is(chosen, ranges)
    return None


def _joined(arithmetic: Operation, one: Operand | None, other: Operand | None) -> Operand | None:
    """A sum or product of what two values always are."""
    neutral = 0.0 if arithmetic.operation == "add" else 1.0
    if neutral in (one, other):
        return other if one == neutral else one
    return 0.0 if arithmetic.operation == "multiply" and 0.0 in (one, other) else None


def _holds(comparison: LaneComparison, left: Interval, right: Interval) -> bool | None:
    """Whether numbers of two intervals compare so; None where some do and some do not."""
    match comparison:
        case "less":
            return True if left[1] < right[0] else False if left[0] >= right[1] else None
        case "at most":
            return True if left[1] <= right[0] else False if left[0] > right[1] else None
        case "greater":
            return _holds("less", right, left)
        case "at least":
            return _holds("at most", right, left)
    return None


def _increasing(word: str, domain: Interval = ALL_REALS) -> Callable[..., Interval]:
    """A word that is the greater the greater its operands are, of any number in its domain."""

    def rule(*found: Interval) -> Interval:
        with np.errstate(all="ignore"):
            low, high = (
                float(WORDS[word](*(np.asarray(min(max(ends[end], domain[0]), domain[1])) for ends in found)))
                for end in (0, 1)
            )
        return ALL_REALS if math.isnan(low) or math.isnan(high) else (low, high)

    return rule


def _negated(found: Interval) -> Interval:
    return -found[1], -found[0]


def _absolute(found: Interval) -> Interval:
    low, high = found
    return (max(0.0, low, -high), max(-low, high))


def _square(found: Interval) -> Interval:
    low, high = _absolute(found)
    return low * low, high * high


def _subtracted(one: Interval, other: Interval) -> Interval:
    return _increasing("add")(one, _negated(other))


def _product(one: Interval, other: Interval) -> Interval:
    """Zero times an end that is infinite is zero: no number is."""
    corners = [a * b if a and b else 0.0 for a in one for b in other]
    return min(corners), max(corners)


def _inverse(found: Interval) -> Interval:
    """Of numbers of one sign; others have any."""
    low, high = found
    if low < 0 < high or low == high == 0:
        return ALL_REALS
    return 1 / high if high else -math.inf, 1 / low if low else math.inf


def _inverse_root(found: Interval) -> Interval:
    low, high = _increasing("square root", (0.0, math.inf))(found)
    return _inverse((low, high)) if high else ALL_REALS


def _power(base: Interval, exponent: Interval) -> Interval:
    return (0.0, math.inf) if base[0] >= 0 else ALL_REALS


def _hard_swish(found: Interval) -> Interval:
    """It falls to -3/8 at -1.5, and rises from there."""
    low, high = found
    rising = _increasing("hard swish", (0.0, math.inf))
    return rising(found) if low >= 0 else (-0.375, rising((0.0, max(0.0, high)))[1])


_NOT_NEGATIVE: Interval = (0.0, math.inf)
_RULES: Mapping[str, Callable[..., Interval]] = MappingProxyType(
    {
        **{
            word: _increasing(word)
            for word in (
                *("add", "minimum", "maximum", "clamp", "floor", "ceiling", "truncate", "round even", "sign"),
                *("exponential", "exponential less one", "hyperbolic tangent", "error function", "logistic"),
            )
        },
        **{word: _increasing(word, _NOT_NEGATIVE) for word in ("square root", "logarithm")},
        **dict.fromkeys(("sine", "cosine"), lambda found: (-1.0, 1.0)),
        "subtract": _subtracted,
        "multiply": _product,
        "multiply add": lambda a, b, c: _increasing("add")(_product(a, b), c),
        "divide": lambda divided, by: _product(divided, _inverse(by)),
        "negate": _negated,
        "absolute": _absolute,
        "fraction": lambda found: (0.0, 1.0),
        "inverse square root": _inverse_root,
        "power": _power,
        "angle": lambda y, x: (-math.pi, math.pi),
        "hard swish": _hard_swish,
    }
)
