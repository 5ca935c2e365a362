"""Takes the constants of a model from the interpreter's memory, where a program may have changed them.

A program may change constants in an interpreter's memory, which TensorFlow Lite reads when tensors are allocated.
"""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ..base.errors import UnsupportedError
from ..model.graph import ABSENT
from ..reading.model_file import ModelFile
from .context_model import constant_of
from .structs import TfLiteContext

_CHUNK_BYTES = 1 << 22  # compared at once

Bytes = npt.NDArray[np.uint8]


@dataclass(frozen=True)
class ConstantPlace:
    """Where a file has the values of a tensor."""

    index: int
    start: int
    size_bytes: int


def constant_places(file: bytes, operators: Iterable[int]) -> tuple[ConstantPlace, ...]:
    """Of all constants that these operators of a model's file read, weights as well as sizes and axes."""
    model, base = ModelFile(file), _address(np.frombuffer(file, np.uint8))
    tables = (model.subgraph.Operators(number) for number in operators)
    read = {int(index) for table in tables if table.InputsLength() for index in table.InputsAsNumpy()}
    buffers = ((index, model.buffer(model.subgraph.Tensors(index).Buffer())) for index in sorted(read - {ABSENT}))
    return tuple(ConstantPlace(index, _address(values) - base, values.size) for index, values in buffers if values.size)


def with_constants_of(context: TfLiteContext, file: bytes, places: Iterable[ConstantPlace]) -> bytes:
    """The file with the values that the context has there now; the same object where nothing has changed.

    Raises UnsupportedError where a constant has become another tensor.
    """
    stored, changed = np.frombuffer(file, np.uint8), list[tuple[ConstantPlace, Bytes]]()
    for place in places:
        values = constant_of(context.tensors[place.index])
        found = None if values is None else as_bytes(values)
        if found is None or found.size != place.size_bytes:
            raise UnsupportedError(
                f"tensor {place.index} is not the constant any more that it was; make an interpreter anew"
            )
        if not same_bytes(stored[place.start : place.start + place.size_bytes], found):
            changed.append((place, found))
    if not changed:
        return file
    copy = bytearray(file)
    for place, found in changed:
        copy[place.start : place.start + place.size_bytes] = found.data
    return bytes(copy)


def as_bytes(values: npt.NDArray[np.generic]) -> Bytes:
    """The bytes of an array, one behind the other."""
    return np.ascontiguousarray(values).reshape(-1).view(np.uint8)


def same_bytes(one: Bytes, other: Bytes) -> bool:
    """Whether two arrays of bytes are equal, by as much at once as caches hold."""
    starts = range(0, one.size, _CHUNK_BYTES)
    return one.size == other.size and all(
        np.array_equal(one[at : at + _CHUNK_BYTES], other[at : at + _CHUNK_BYTES]) for at in starts
    )


def _address(values: Bytes) -> int:
    return int(values.__array_interface__["data"][0])
