"""What elementwise ops compute, in float64: functions of the op's attributes and its operands, by the op's name."""

import math
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt

TrueValues = npt.NDArray[Any]  # float64 for floats; integers and truth values in their own types

_erf = np.vectorize(math.erf, otypes=[np.float64])


def activated(activation: str, x: TrueValues) -> TrueValues:
    """A fused activation, by its name. Raises KeyError for one that is not known."""
    return x if activation == "NONE" else ARITHMETIC[activation](None, x)


def _gelu(attributes: Any, x: TrueValues) -> TrueValues:
    if attributes.approximate:
        return np.asarray(0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))))
    return 0.5 * x * (1 + np.asarray(_erf(x / math.sqrt(2))))


def true_logistic(x: TrueValues) -> TrueValues:
    """1 / (1 + exp(-x)), of any x."""
    return np.asarray(np.exp(-np.logaddexp(0, -x)))


def _divided(attributes: Any, x: TrueValues, y: TrueValues) -> TrueValues:
    """Integers lose their fraction, whatever their sign."""
    return x / y if x.dtype.kind == "f" else np.sign(x) * np.sign(y) * (np.abs(x) // np.abs(y))


def _selected(_: Any, condition: TrueValues, x: TrueValues, y: TrueValues) -> TrueValues:
    """A vector of conditions chooses among the first dimension."""
    rows = condition.ndim == 1 < x.ndim
    return np.where(condition.reshape(-1, *[1] * (x.ndim - 1)) if rows else condition, x, y)


def _leaky(attributes: Any, x: TrueValues) -> TrueValues:
    return np.where(x >= 0, x, attributes.alpha * x)


def _alone(function: Callable[..., Any]) -> Callable[..., TrueValues]:
    """Of an op that has no attributes, or only a fused activation."""
    return lambda _, *operands: np.asarray(function(*operands))


_OF_OPERANDS: Mapping[str, Callable[..., Any]] = MappingProxyType(
    {
        "RELU": lambda x: np.maximum(x, 0),
        "RELU6": lambda x: np.clip(x, 0, 6),
        "RELU_N1_TO_1": lambda x: np.clip(x, -1, 1),
        "RELU_0_TO_1": lambda x: np.clip(x, 0, 1),
        "PRELU": lambda x, slope: np.where(x >= 0, x, slope * x),
        "ELU": lambda x: np.where(x >= 0, x, np.expm1(x)),
        "HARD_SWISH": lambda x: x * np.clip(x + 3, 0, 6) / 6,
        "LOGISTIC": true_logistic,
        "TANH": np.tanh,
        "ABS": np.abs,
        "NEG": np.negative,
        "SIGN": np.sign,
        "CEIL": np.ceil,
        "FLOOR": np.floor,
        "ROUND": np.rint,
        "SIN": np.sin,
        "COS": np.cos,
        "EXP": np.exp,
        "LOG": np.log,
        "SQRT": np.sqrt,
        "RSQRT": lambda x: 1 / np.sqrt(x),
        "SQUARE": np.square,
        "ADD": np.add,
        "SUB": np.subtract,
        "MUL": np.multiply,
        "ADD_N": lambda *terms: sum(terms[1:], start=terms[0]),
        "MAXIMUM": np.maximum,
        "MINIMUM": np.minimum,
        "SQUARED_DIFFERENCE": lambda x, y: (x - y) ** 2,
        "POW": np.power,
        "ATAN2": np.arctan2,
        "FLOOR_DIV": np.floor_divide,
        "FLOOR_MOD": np.mod,
        "EQUAL": np.equal,
        "NOT_EQUAL": np.not_equal,
        "GREATER": np.greater,
        "GREATER_EQUAL": np.greater_equal,
        "LESS": np.less,
        "LESS_EQUAL": np.less_equal,
        "LOGICAL_AND": np.logical_and,
        "LOGICAL_OR": np.logical_or,
        "LOGICAL_NOT": np.logical_not,
        "SELECT_V2": np.where,
        "CAST": lambda x: x,  # the output has the type that is meant
        "DEQUANTIZE": lambda x: x,  # the walk has made floats of constants
        "DENSIFY": lambda x: x,  # the reader has made them dense
    }
)
ARITHMETIC: Mapping[str, Callable[..., TrueValues]] = MappingProxyType(
    {
        "LEAKY_RELU": _leaky,
        "GELU": _gelu,
        "DIV": _divided,
        "SELECT": _selected,
        **{name: _alone(function) for name, function in _OF_OPERANDS.items()},
    }
)
