"""Notices that TensorFlow Lite has set variables to zero, of which a delegate keeps the values elsewhere.

No delegate is told of reset_all_variables(), nor that allocate_tensors() does the same. But both fill the memory that
TensorFlow Lite has for a variable: a mark in its first byte is gone then.
"""

import ctypes
from collections.abc import Iterable

from ..model.graph import KeptState
from .native_tensors import tensor_at
from .structs import TfLiteContext

_MARKS = (0xA5, 0x5A)  # the second where a variable's zero is the first


def variables_reset(context: TfLiteContext, states: Iterable[KeptState]) -> list[str]:
    """The names of states that have been reset since they were marked, or have not been; they are marked now."""
    found = list[str]()
    for state in states:
        tensor = tensor_at(context, state.own.index)
        if not state.is_shared and tensor.data and tensor.bytes:
            zero = state.own.quantization.zero_points[0] & 0xFF if state.own.quantization else 0
            mark = next(each for each in _MARKS if each != zero)
            first = ctypes.c_uint8.from_address(tensor.data)
            if first.value != mark:
                found.append(state.name)
                first.value = mark
    return found
