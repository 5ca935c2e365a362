"""Integers of 32 and 64 bits as digits of 16 bits, which float32 has: how they lie in memory, the least one first.

A digit is a whole number from 0 to 65535; those of a negative integer are its two's complement's. A tensor of digits
has all first ones, then all second ones, and so on, along its first dimension.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt

from .graph import Shape

DIGIT_BITS = 16
END_OF_DIGITS = 1 << DIGIT_BITS
DIGITS: Mapping[str, int] = MappingProxyType({"int32": 2, "int64": 4})  # of a value of each type


def shape_of_digits(shape: Shape, dtype: str) -> Shape:
    """Of a tensor with all digits of another one."""
    first, *others = shape or (1,)
    return first * DIGITS[dtype], *others


def are_digits(size: int, values: int, dtype: str) -> bool:
    """Whether so many numbers in memory are the digits of so many values of a type."""
    return dtype in DIGITS and size == DIGITS[dtype] * values != values


def digits_of(values: npt.NDArray[Any], dtype: str) -> npt.NDArray[np.float32]:
    """Integers as float32 [digits, ...]."""
    wide = values.astype(np.int64)
    return np.stack([(wide >> DIGIT_BITS * k & END_OF_DIGITS - 1).astype(np.float32) for k in range(DIGITS[dtype])])


def from_digits(digits: npt.NDArray[np.float32], dtype: str) -> npt.NDArray[Any]:
    """The integers again, in one dimension."""
    found = np.zeros(digits.size // DIGITS[dtype], np.uint64)
    for k, each in enumerate(digits.reshape(DIGITS[dtype], -1)):
        found |= each.astype(np.uint64) << np.uint64(DIGIT_BITS * k)
    return found.astype(np.int64).astype(dtype)
