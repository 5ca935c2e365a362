"""Reads single options of a custom op, with the defaults and conversions of FlexBuffers: missing numbers are 0."""

from collections.abc import Mapping
from typing import Any

from ..base.errors import ModelError


def number_option(options: Mapping[str, Any], name: str, default: float = 0.0) -> float:
    """A number, or the default where there is none. Raises ModelError for what is no number."""
    found = options.get(name)
    if found is None:
        return default
    if not isinstance(found, bool | int | float):
        raise ModelError(f"its option {name} is no number")
    return float(found)


def whole_option(options: Mapping[str, Any], name: str, low: int, high: int, default: int = 0) -> int:
    """A whole number from `low` to `high`. Raises ModelError for another one."""
    found = number_option(options, name, default)
    if not low <= found <= high:  # NaN is not, either
        raise ModelError(f"its option {name} is {found:g}, not a number from {low} to {high}")
    return int(found)


def whole_numbers_option(options: Mapping[str, Any], name: str) -> tuple[int, ...]:
    """A vector of whole numbers, which is there. Raises ModelError for anything else."""
    found = options.get(name)
    if not isinstance(found, list) or not all(isinstance(each, int) for each in found):
        raise ModelError(f"its option {name} is no vector of whole numbers")
    return tuple(map(int, found))
