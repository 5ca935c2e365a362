"""Writes frozen dataclasses as bytes, and reads them back as their annotations demand.

A description as JSON comes first, then the arrays. Whatever the bytes are, the value that is read matches the
annotations, or ValueError is raised; only the classes in the annotations, and their subclasses, are ever called.
"""

import dataclasses
import json
import math
import operator
import types
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

import numpy as np
import numpy.typing as npt

_Value = TypeVar("_Value")
_Array = npt.NDArray[Any]

_HEAD_BYTES = 8  # the length of the description in front of it
_ALIGNMENT = 16  # of arrays, in bytes
_NUMBERS = "biuf"  # kinds of NumPy's types
_PLAIN = (bool, int, float, str)
_UNIONS = (Union, types.UnionType)


def to_bytes(value: object) -> bytes:
    """A dataclass as bytes. Raises ValueError for what it holds of other kinds than those below."""
    arrays: list[_Array] = []
    head = json.dumps(_said(type(value), value, arrays)).encode()
    content = bytearray(len(head).to_bytes(_HEAD_BYTES, "little") + head)
    for array in arrays:
        content += bytes(-len(content) % _ALIGNMENT)
        content += np.ascontiguousarray(array).data.cast("B") if array.size else b""
    return bytes(content)


def from_bytes(kind: type[_Value], data: bytes) -> _Value:
    """The dataclass that was made bytes of; its arrays lie in these, and cannot be written. Raises ValueError."""
    end = _HEAD_BYTES + int.from_bytes(data[:_HEAD_BYTES], "little")
    reader = _Reader(data, end)
    try:
        value: _Value = reader.read(kind, json.loads(data[_HEAD_BYTES:end]))
    except (TypeError, KeyError, OverflowError, RecursionError) as error:
        raise ValueError(f"no {kind.__name__}: {error}") from None
    if reader.end != len(data):
        raise ValueError(f"no {kind.__name__}: another length")
    return value


def _said(hint: Any, value: Any, arrays: list[_Array]) -> Any:
    """What JSON holds of a value; arrays are collected."""
    if type(value) is hint and hint in _PLAIN:
        return value
    origin, arguments = _origin(hint), get_args(hint)
    if dataclasses.is_dataclass(hint):
        kind: Any = type(value)
        parts = (_said(part, getattr(value, name), arrays) for name, part in _annotations(kind).items())
        return [kind.__name__, *parts]
    if origin in _UNIONS:
        return None if value is None else _said(_present(hint), value, arrays)
    if origin is tuple:
        return [_said(part, each, arrays) for part, each in zip(_parts(arguments, len(value)), value, strict=True)]
    if origin is Mapping:
        return [
            [_said(part, each, arrays) for part, each in zip(arguments, pair, strict=True)] for pair in value.items()
        ]
    if origin is np.ndarray:
        arrays.append(value)
        return [value.dtype.name, value.shape]
    if hint is bytes:
        return value.hex()
    if hint is int:
        return operator.index(value)
    if hint in _PLAIN:
        return hint(value)
    if origin is Literal and value in arguments:
        return value
    raise ValueError(f"{hint} cannot be kept")


class _Reader:
    """Makes values of what JSON holds; arrays come one behind the other."""

    def __init__(self, data: bytes, end: int) -> None:
        self._data = data
        self.end = end  # of what was read

    def read(self, hint: Any, said: Any) -> Any:
        """A value as annotated. Raises ValueError, or what Python does for anything of another form."""
        if type(said) is hint:  # most are plain
            return said
        origin, arguments = _origin(hint), get_args(hint)
        if dataclasses.is_dataclass(hint):
            return self._dataclass(hint, said)
        if origin in _UNIONS:
            return None if said is None else self.read(_present(hint), said)
        if origin is tuple:
            return tuple(map(self.read, _parts(arguments, len(said)), said))
        if origin is Mapping:
            pairs = (tuple(map(self.read, arguments, pair)) for pair in said)
            return types.MappingProxyType(dict(pairs))
        if origin is np.ndarray:
            return self._array(*said)
        if hint is bytes:
            return bytes.fromhex(said)
        if hint is float and type(said) is int:
            return float(said)
        if origin is Literal and said in arguments:
            return said
        raise ValueError(f"{said!r} is none of {hint}")

    def _dataclass(self, hint: Any, said: Any) -> Any:
        name, *parts = said
        kind = next((each for each in _kinds(hint) if each.__name__ == name), None)
        hints = _annotations(kind) if kind else {}
        if kind is None or len(hints) != len(parts):
            raise ValueError(f"{name} is no {hint.__name__}")
        return kind(**{field: self.read(part, each) for (field, part), each in zip(hints.items(), parts, strict=True)})

    def _array(self, dtype: str, shape: list[int]) -> _Array:
        kind, sizes = np.dtype(dtype), tuple(map(operator.index, shape))
        if kind.kind not in _NUMBERS or min(sizes, default=0) < 0:
            raise ValueError(f"an array of {dtype} {sizes}")
        start, count = self.end + -self.end % _ALIGNMENT, math.prod(sizes)
        self.end = start + count * kind.itemsize
        if self.end > len(self._data):
            raise ValueError("an array beyond the end")
        return np.frombuffer(self._data, kind, count, start).reshape(sizes) if count else np.zeros(sizes, kind)


@cache
def _annotations(kind: Any) -> Mapping[str, Any]:
    """The fields of a dataclass that make it, by name."""
    hints = get_type_hints(kind)
    return types.MappingProxyType({field.name: hints[field.name] for field in dataclasses.fields(kind) if field.init})


def _origin(hint: Any) -> Any:
    """The class of an annotation like tuple[int, ...]; NDArray is an alias, not a class, in newer NumPy."""
    origin = get_origin(hint)
    return get_origin(origin.__value__) if hasattr(origin, "__value__") else origin


def _kinds(hint: type) -> Iterator[type]:
    """A class and all below it."""
    yield hint
    below: list[type] = hint.__subclasses__()
    for each in below:
        yield from _kinds(each)


def _present(hint: Any) -> Any:
    """What a value is that may be missing. Raises ValueError where it may be of several kinds."""
    (kind,) = [each for each in get_args(hint) if each is not types.NoneType]
    return kind


def _parts(arguments: tuple[Any, ...], count: int) -> tuple[Any, ...]:
    """The annotation of each part of a tuple. Raises ValueError for another number of parts."""
    if arguments[1:] == (...,):
        return (arguments[0],) * count
    if len(arguments) != count:
        raise ValueError(f"{count} parts, not {len(arguments)}")
    return arguments
