"""What elementwise ops compute, in NumPy: how constants are computed before a run, as TensorFlow Lite computes them.

Arrays of float32 or of integers stand for vectors, truth values are 1.0 and 0.0. Integers stay integers: they are
divided as in C.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt

from .digit_words import DIGIT_WORDS
from .vocabulary import Argument, ChooseLanes, Compared, Name, Operand, Operation, Splat, Sum, Value

Values = npt.NDArray[Any]


def evaluate(arithmetic: Value, arguments: Sequence[Values]) -> Values:
    """What a value of arguments is. Raises ValueError for a word that has no value here, or that the numbers forbid."""
    floats = [each.astype(np.float32) if each.dtype == np.bool_ else each for each in arguments]
    return _Reader(floats).value(arithmetic)


class _Reader:
    """Computes each value once."""

    def __init__(self, arguments: Sequence[Values]) -> None:
        self._arguments = arguments
        self._dtype = arguments[-1].dtype if arguments else np.dtype(np.float32)
        self._known: dict[Value, Values] = {}

    def value(self, value: Operand) -> Values:
        if isinstance(value, int | float):
            return np.asarray(value, self._dtype if float(value).is_integer() else np.float32)
        if isinstance(value, Splat):
            return self.value(value.value)
        if isinstance(value, Argument):
            return self._arguments[value.number]
        if value not in self._known:
            self._known[value] = self._computed(value)
        return self._known[value]

    def _computed(self, value: Value) -> Values:
        if isinstance(value, Operation) and value.operation in WORDS:
            return np.asarray(WORDS[value.operation](*map(self.value, value.operands)))
        if isinstance(value, Compared):
            return _COMPARISONS[value.comparison](*map(self.value, (value.left, value.right))).astype(self._dtype)
        if isinstance(value, ChooseLanes):
            left, right, chosen, other = map(self.value, (value.left, value.right, value.value, value.other))
            return np.where(_COMPARISONS[value.comparison](left, right), chosen, other)
        word = value.operation if isinstance(value, Operation) else type(value).__name__
        raise ValueError(f"{word} is not computed before a run")


def with_known_numbers(value: Operand) -> Operand:
    """An elementwise op's value with numbers, or vectors of one, in place of what is computed of numbers alone.

    x * tanh(0.5) becomes x * 0.46211717. What has no value here stays as it is.
    """
    if not isinstance(value, Operation | Compared | ChooseLanes):
        return value
    parts = {name: _known(part) for name, part in vars(value).items()}
    known = replace(value, **parts)
    read = known.operands if isinstance(known, Operation) else tuple(parts.values())
    if any(isinstance(part, Value) and not isinstance(part, Splat) for part in read):
        return known
    try:
        number = float(evaluate(known, ()))
    except ValueError:
        return known
    return Splat(number) if known.type == "vec4" else number


def _known(part: Any) -> Any:
    """The same for what a value consists of: words, and operands."""
    if isinstance(part, tuple):
        return tuple(map(with_known_numbers, part))
    return with_known_numbers(part) if isinstance(part, Value) else part


def evaluate_places(value: Operand, names: Mapping[str, Values]) -> Values:
    """An integer or a condition of names, as of a moving op's map: for all places at once."""
    if isinstance(value, Name):
        return names[value.name]
    if isinstance(value, Sum):
        terms = (evaluate_places(term, names) * factor for term, factor in value.terms)
        return np.asarray(sum(terms, start=value.constant))
    if isinstance(value, Operation):
        return np.asarray(_PLACES[value.operation](*(evaluate_places(each, names) for each in value.operands)))
    assert not isinstance(value, Value), f"{type(value).__name__} is no place"
    return np.asarray(value)


def _divide(a: Values, b: Values) -> Values:
    """Integers are cut off towards zero."""
    if a.dtype.kind == "f":
        return np.asarray(np.divide(a, b))
    quotient = _floor_divide(a, b)
    return np.where((quotient < 0) & (quotient * b != a), quotient + 1, quotient)


def _floor_divide(a: Values, b: Values) -> Values:
    if a.dtype.kind == "f":
        return np.asarray(np.floor(a / b))
    if not b.all():
        raise ValueError("an integer is divided by zero")
    return np.asarray(a // b)


def _floor_remainder(a: Values, b: Values) -> Values:
    return np.asarray(a - b * _floor_divide(a, b) if a.dtype.kind != "f" else np.mod(a, b))


def _power(a: Values, b: Values) -> Values:
    if a.dtype.kind != "f" and (b < 0).any():
        raise ValueError("an integer has a negative exponent")
    return np.asarray(np.power(a, b))


def _error_function(x: Values) -> Values:
    return np.array([math.erf(each) for each in x.ravel().tolist()], x.dtype).reshape(x.shape)


_COMPARISONS: Mapping[str, Callable[[Values, Values], Values]] = MappingProxyType(
    {
        "less": np.less,
        "greater": np.greater,
        "at least": np.greater_equal,
        "at most": np.less_equal,
        "equal": np.equal,
        "not equal": np.not_equal,
    }
)
_PLACES: Mapping[str, Callable[..., Values]] = MappingProxyType(
    {
        **_COMPARISONS,
        "add": np.add,
        "subtract": np.subtract,
        "multiply": np.multiply,
        "divide": np.floor_divide,  # of numbers that are not negative
        "remainder": np.remainder,
        "minimum": np.minimum,
        "maximum": np.maximum,
        "clamp": np.clip,
        "both": np.logical_and,
    }
)
WORDS: Mapping[str, Callable[..., Values]] = MappingProxyType(
    {
        "add": np.add,
        "subtract": np.subtract,
        "multiply": np.multiply,
        "divide": _divide,
        "multiply add": lambda a, b, c: a * b + c,
        "minimum": np.minimum,
        "maximum": np.maximum,
        "clamp": np.clip,
        "floor": np.floor,
        "fraction": lambda x: x - np.floor(x),
        "ceiling": np.ceil,
        "truncate": np.trunc,
        "round even": np.rint,
        "absolute": np.abs,
        "negate": np.negative,
        "sign": np.sign,
        "square root": np.sqrt,
        "inverse square root": lambda x: 1 / np.sqrt(x),
        "exponential": np.exp,
        "exponential less one": np.expm1,
        "logarithm": np.log,
        "power": _power,
        "sine": np.sin,
        "cosine": np.cos,
        "angle": np.arctan2,
        "hyperbolic tangent": np.tanh,
        "error function": _error_function,
        "logistic": lambda x: 1 / (1 + np.exp(-x)),
        "hard swish": lambda x: x * np.clip(x + 3, 0, 6) / 6,
        "floor quotient": _floor_divide,
        "floor remainder": _floor_remainder,
        "whole quotient": _divide,
        "whole floor quotient": _floor_divide,
        "whole floor remainder": _floor_remainder,
        **DIGIT_WORDS,
    }
)
