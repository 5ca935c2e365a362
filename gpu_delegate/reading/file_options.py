"""Reads an operator's options field by field, for operators that are kept whole for TensorFlow Lite.

The schema's generated classes tell the fields. What they cannot tell, or what leads elsewhere (to other subgraphs),
cannot be verified, and raises UnsupportedError.
"""

from typing import Any

import numpy as np
import numpy.typing as npt
import tflite

from ..base.errors import UnsupportedError
from ..model.graph import OptionValue, OptionVector
from .model_file import ModelFile, names_of

MAX_CUSTOM_BYTES = 1 << 20
MAX_VECTOR = 1 << 16
MAX_TEXT = 1 << 12
MOST_NEWER_FIELDS = 64  # that a newer schema may have

Options = tuple[str, tuple[tuple[str, OptionValue], ...]]  # the class of the options, and their fields


def read_options(file: ModelFile, operator: Any) -> Options:
    """The builtin options of an operator. Raises UnsupportedError where they cannot be verified, ModelError."""
    if operator.BuiltinOptions2Type() or operator.LargeCustomOptionsSize() or operator.IntermediatesLength():
        raise UnsupportedError("options of a newer schema")
    table = operator.BuiltinOptions()
    if table is None:
        return "", ()
    name = OPTIONS_CLASSES.get(operator.BuiltinOptionsType(), "")
    if not hasattr(tflite, name):
        raise UnsupportedError("unknown options")
    options = getattr(tflite, name)()
    options.Init(table.Bytes, table.Pos)
    fields = [field for field in vars(type(options)) if hasattr(tflite, f"{name}Add{field}")]
    if any("Subgraph" in field for field in fields) or _has_newer_fields(table, name):
        raise UnsupportedError(f"{name} that lead to other subgraphs, or have fields of a newer schema")
    found = ((field, _value(file, options, field)) for field in fields)
    return name, tuple((field, value) for field, value in found if value is not None)


def read_custom_options(file: ModelFile, operator: Any) -> bytes:
    """The bytes of a custom op's options. Raises UnsupportedError for more than a mebibyte, ModelError."""
    count = operator.CustomOptionsLength()
    if count > MAX_CUSTOM_BYTES:
        raise UnsupportedError(f"{count} bytes of options")
    file.bounded("bytes of options", count, MAX_CUSTOM_BYTES, item_bytes=1)
    return file.copied(operator.CustomOptionsAsNumpy()) if count else b""


def _value(file: ModelFile, options: Any, field: str) -> OptionValue | None:
    """A field's value, None where the file leaves it out."""
    if hasattr(options, f"{field}Length"):
        return _vector(file, options, field)
    value = getattr(options, field)()
    if value is None or isinstance(value, bool | int | float):
        return value
    if not isinstance(value, bytes) or len(value) > MAX_TEXT:
        raise UnsupportedError(f"options with a table or a long text, {field}")
    return value


def _vector(file: ModelFile, options: Any, field: str) -> OptionVector | None:
    if getattr(options, f"{field}IsNone")():
        return None
    if not hasattr(options, f"{field}AsNumpy"):
        raise UnsupportedError(f"options with tables, {field}")
    file.bounded("options", getattr(options, f"{field}Length")(), MAX_VECTOR, item_bytes=1)
    vector: npt.NDArray[np.generic] = getattr(options, f"{field}AsNumpy")()
    return OptionVector(vector.dtype.name, file.copied(vector))


def _has_newer_fields(table: Any, name: str) -> bool:
    """Whether the table has fields that this schema does not know, and so cannot write."""
    known = _FieldCount()
    getattr(tflite, f"{name}Start")(known)
    entries = int.from_bytes(table.Bytes[_vtable(table) : _vtable(table) + 2], "little") // 2 - 2
    if entries > known.count + MOST_NEWER_FIELDS:
        return True
    return any(table.Offset(4 + 2 * slot) for slot in range(known.count, entries))


def _vtable(table: Any) -> int:
    distance = int.from_bytes(table.Bytes[table.Pos : table.Pos + 4], "little", signed=True)
    return int(table.Pos) - distance


class _FieldCount:
    """Takes the place of a builder, to learn how many fields a class has."""

    count = 0

    def StartObject(self, count: int) -> None:  # noqa: N802 - flatbuffers' name
        self.count = count


OPTIONS_CLASSES = names_of(tflite.BuiltinOptions)
