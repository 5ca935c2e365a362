"""Reads the options of a custom op that are a FlexBuffer: bytes to a mapping, whatever the bytes are.

Written after the public description of the format (flatbuffers.dev/flexbuffers, "FlexBuffers Internals"): values are
numbers in the place itself, or the distance from there back to a string, a vector or a map. A byte behind each value of
a mixed vector says its type and, of what it points at, the width.
"""

import struct
from collections.abc import Iterator
from typing import Any

from ..base.errors import ModelError

_MOST_VALUES, _MOST_DEPTH, _MOST_TEXT = 1 << 16, 8, 1 << 16
_NULL, _INT, _UINT, _FLOAT, _KEY, _STRING, _MAP, _VECTOR, _BLOB, _BOOL = 0, 1, 2, 3, 4, 5, 9, 10, 25, 26
_INDIRECT = {6: _INT, 7: _UINT, 8: _FLOAT}
_TYPED = {11: _INT, 12: _UINT, 13: _FLOAT, 14: _KEY, 36: _BOOL}
_FIRST_FIXED, _LAST_FIXED = 16, 24  # vectors of 2, 3 and 4 integers, naturals and floats, whose length is not stored
_NUMBERS = {_INT: "bhiq", _UINT: "BHIQ", _FLOAT: "?efd"}


def flexbuffer_map(data: bytes) -> dict[str, Any]:
    """The values by their names: None, bool, int, float, str, bytes, lists and mappings of these.

    Raises ModelError for bytes that are no FlexBuffer of a map.
    """
    try:
        found = _Reader(data).root()
    except (struct.error, IndexError, ValueError, OverflowError) as error:
        raise ModelError("its options are a damaged FlexBuffer") from error
    if not isinstance(found, dict):
        raise ModelError("its options are no FlexBuffer of a map")
    return found


class _Reader:
    """Reads one buffer; raises ValueError, IndexError or struct.error for a place outside of it."""

    def __init__(self, data: bytes) -> None:
        self._data, self._left = data, _MOST_VALUES

    def root(self) -> Any:
        width, kind = self._data[-1], self._data[-2]
        if width not in (1, 2, 4, 8):
            raise ValueError
        return self._value(len(self._data) - 2 - width, width, kind, 0)

    def _value(self, place: int, width: int, packed: int, depth: int) -> Any:
        """What is at a place of so many bytes; its type has the width of what it points at in two bits."""
        kind, inner = packed >> 2, 1 << (packed & 3)
        self._left -= 1
        if depth > _MOST_DEPTH or self._left < 0:
            raise ValueError
        if kind == _NULL:
            return None
        if kind == _BOOL:
            return bool(self._number(place, width, _UINT))
        if kind in _NUMBERS:
            return self._number(place, width, kind)
        return self._pointed(self._target(place, width), inner, kind, depth)

    def _pointed(self, target: int, width: int, kind: int, depth: int) -> Any:
        if kind in _INDIRECT:
            return self._number(target, width, _INDIRECT[kind])
        if kind == _KEY:
            return self._key(target)
        if kind in (_STRING, _BLOB):
            data = self._bytes(target, self._length(target, width))
            return data.decode(errors="replace") if kind == _STRING else data
        if kind == _MAP:
            return dict(zip(self._names(target, width, depth), self._mixed(target, width, depth), strict=True))
        if kind == _VECTOR:
            return list(self._mixed(target, width, depth))
        if _FIRST_FIXED <= kind <= _LAST_FIXED:
            count, each = 2 + (kind - _FIRST_FIXED) // 3, _INT + (kind - _FIRST_FIXED) % 3
        else:
            count, each = self._length(target, width), _TYPED.get(kind, -1)
        return self._typed(target, width, each, count, depth)

    def _names(self, target: int, width: int, depth: int) -> list[Any]:
        """The names of a map: a vector of keys, of which the distance and the width stand before its length."""
        keys = self._target(target - 3 * width, width)
        keys_width = self._number(target - 2 * width, width, _UINT)
        return self._typed(keys, keys_width, _KEY, self._length(keys, keys_width), depth)

    def _mixed(self, target: int, width: int, depth: int) -> Iterator[Any]:
        count = self._length(target, width)
        for number in range(count):
            kind = self._bytes(target + count * width + number, 1)[0]
            yield self._value(target + number * width, width, kind, depth + 1)

    def _typed(self, target: int, width: int, kind: int, count: int, depth: int) -> list[Any]:
        if kind < 0:
            raise ValueError
        return [self._value(target + number * width, width, kind << 2, depth + 1) for number in range(count)]

    def _length(self, target: int, width: int) -> int:
        """The length that stands before a string or a vector."""
        found = int(self._number(target - width, width, _UINT))
        if found > len(self._data):
            raise ValueError
        return found

    def _target(self, place: int, width: int) -> int:
        return place - int(self._number(place, width, _UINT))

    def _key(self, target: int) -> str:
        end = self._data.index(b"\0", target, target + _MOST_TEXT) if target >= 0 else -1
        return self._bytes(target, end - target).decode(errors="replace")

    def _number(self, place: int, width: int, kind: int) -> Any:
        if width not in (1, 2, 4, 8):
            raise ValueError
        form = _NUMBERS[kind][width.bit_length() - 1]
        return struct.unpack(f"<{form}", self._bytes(place, width))[0]

    def _bytes(self, place: int, count: int) -> bytes:
        if place < 0 or count < 0 or place + count > len(self._data):
            raise ValueError
        return self._data[place : place + count]
