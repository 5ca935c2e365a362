"""The words on the digits of wide integers in NumPy; their second operands and which digit is asked for come behind."""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt

_Values = npt.NDArray[Any]
_BITS = np.int64(16)


def _joined(digits: tuple[_Values, ...]) -> _Values:
    """Integers of as many bits as the digits have, as int64."""
    unused = np.int64(64 - 16 * len(digits))
    total = np.zeros((), np.int64)
    for k, digit in enumerate(digits):
        total = total | digit.astype(np.int64) << _BITS * k
    return total << unused >> unused


def _digit(compute: Callable[[_Values, _Values], _Values]) -> Callable[..., _Values]:
    def word(*operands: _Values) -> _Values:
        *digits, number = operands
        half = len(digits) // 2
        with np.errstate(over="ignore"):
            found = compute(_joined(tuple(digits[:half])), _joined(tuple(digits[half:])))
        return np.asarray(found >> _BITS * number.astype(np.int64) & 0xFFFF, np.float32)

    return word


def _not_zero(divisor: _Values) -> _Values:
    return np.where(divisor == 0, 1, divisor)


def _floor_quotient(a: _Values, b: _Values) -> _Values:
    return np.asarray(a // _not_zero(b))


def _quotient(a: _Values, b: _Values) -> _Values:
    return np.asarray(np.abs(a) // np.abs(_not_zero(b)) * np.where((a < 0) != (b < 0), -1, 1))


def _floor_remainder(a: _Values, b: _Values) -> _Values:
    divisor = _not_zero(b)
    return np.where(divisor == -1, 0, a % np.where(divisor == -1, 1, divisor))


def _of_halves(lower: _Values, upper: _Values, carried: _Values) -> _Values:
    """A sum of digits by those of their lower and upper eight bits."""
    return np.asarray(lower.astype(np.int64) + (upper.astype(np.int64) << 8) + carried.astype(np.int64))


DIGIT_WORDS: Mapping[str, Callable[..., _Values]] = MappingProxyType(
    {
        "int32 product": _digit(np.multiply),
        "int32 quotient": _digit(_quotient),
        "int32 floor quotient": _digit(_floor_quotient),
        "int32 floor remainder": _digit(_floor_remainder),
        "int64 product": _digit(np.multiply),
        "int64 floor remainder": _digit(_floor_remainder),
        "digit of halves": lambda *sums: np.asarray(_of_halves(*sums) & 0xFFFF, np.float32),
        "carry of halves": lambda *sums: np.asarray(_of_halves(*sums) >> _BITS, np.float32),
        "int32 value": lambda *digits: _joined(digits).astype(np.float32),
        "int64 value": lambda *digits: _joined(digits).astype(np.float32),
    }
)
