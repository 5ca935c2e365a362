"""Bounded access to the flatbuffer of a .tflite file, so that a damaged file cannot exhaust memory."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt
import tflite

from ..base.errors import ModelError, ModelSizeError
from ..model.graph import constant_location

MAX_OPERATORS = 10_000
MAX_TENSORS = 100_000
MAX_NAME = 80


class ModelFile:
    """The flatbuffer of a model. Python's flatbuffers may read garbage inside a damaged file, but never outside it:
    so counts are bounded before they are looped over, and values are validated."""

    def __init__(self, data: bytes, subgraph: int = 0) -> None:
        """For one of its subgraphs, by its number.

        Raises ModelError for a model without that subgraph, and whatever flatbuffers raises for damaged bytes.
        """
        self.data = data
        self.model = tflite.Model.GetRootAs(data, 0)
        self.subgraph_count = self.bounded("subgraphs", self.model.SubgraphsLength(), MAX_TENSORS)
        self.bounded("operator codes", self.model.OperatorCodesLength(), MAX_TENSORS)
        self.buffer_count = self.bounded("buffers", self.model.BuffersLength(), MAX_TENSORS)
        if not 0 <= subgraph < self.subgraph_count:
            raise ModelError("no subgraph" if subgraph == 0 else f"no subgraph {subgraph}")
        self.number, self.subgraph = subgraph, self.model.Subgraphs(subgraph)
        self.tensor_count = self.bounded("tensors", self.subgraph.TensorsLength(), MAX_TENSORS)
        self.operator_count = self.bounded("operators", self.subgraph.OperatorsLength(), MAX_OPERATORS)
        self._copies: dict[tuple[int, int], bytes] = {}  # of small vectors, by their place
        self._places: set[tuple[int, int]] = set()  # of what is kept
        self._stored_bytes = 0

    def bounded(self, what: str, count: int, limit: int, item_bytes: int = 4) -> int:
        """The count. Raises ModelError if so many entries cannot be in the file, ModelSizeError beyond the limit."""
        if item_bytes * count > len(self.data):
            raise ModelError(f"{count} {what} in a file of {len(self.data)} bytes")
        if count > limit:
            raise ModelSizeError(f"{count} {what}, at most {limit} are read")
        return count

    def values(self, what: str, vector: npt.NDArray[Any] | int, limit: int) -> tuple[int, ...]:
        """A vector of integers as flatbuffers gives it, 0 where there is none. Raises as bounded()."""
        if isinstance(vector, int):
            return ()
        self.bounded(what, len(vector), limit)
        return tuple(vector.tolist())

    def copied(self, vector: npt.NDArray[Any]) -> bytes:
        """The bytes of a vector that is kept; those at one place are copied once."""
        place = constant_location(vector)
        self.store(place)
        if place not in self._copies:
            self._copies[place] = vector.tobytes()
        return self._copies[place]

    def store(self, place: tuple[int, int]) -> None:
        """ModelSizeError where what is kept overlaps so often that a file without overlaps would be larger."""
        if place not in self._places:
            self._places.add(place)
            self._stored_bytes += place[1]
            if self._stored_bytes > len(self.data):
                raise ModelSizeError(
                    f"constants of more than {len(self.data)} bytes in a file of as many: they overlap"
                )

    def buffer(self, index: int) -> npt.NDArray[np.uint8]:
        """The bytes of a buffer as a read-only view of the file; none for a runtime tensor."""
        if not 0 <= index < self.buffer_count:
            raise ModelError(f"buffer {index} of {self.buffer_count}")
        table = self.model.Buffers(index)
        start, size = table.Offset(), table.Size()
        if index == 0 or (start <= 1 and not table.DataLength()):
            return np.empty(0, np.uint8)
        if start <= 1:  # otherwise the bytes follow the flatbuffer, as in files of more than 2 GB
            vector: npt.NDArray[np.uint8] = table.DataAsNumpy()
            return vector
        if start + size > len(self.data):
            raise ModelError(f"buffer {index} reaches beyond the file's end")
        return np.frombuffer(self.data, np.uint8, size, start)


def printable_name(text: str | bytes | None, limit: int = MAX_NAME) -> str:
    """A text from a file, safe for a terminal: no control characters, not longer than the limit."""
    if isinstance(text, bytes):
        text = text.decode("utf-8", "replace")
    if text and len(text) <= limit and text.isprintable():
        return text
    return "".join(char if char.isprintable() else "?" for char in (text or "")[:limit])


def names_of(enumeration: type) -> Mapping[int, str]:
    """Value to name of one of the schema's enumerations."""
    return MappingProxyType({value: name for name, value in vars(enumeration).items() if isinstance(value, int)})
