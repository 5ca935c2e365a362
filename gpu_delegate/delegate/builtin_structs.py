"""Reads the options of builtins from the structs in TensorFlow Lite's memory, as a file would say them.

The structs are those of tensorflow/lite/core/c/builtin_op_data.h, from TensorFlow Lite 2.12 to LiteRT 2, each as far as
all of these have it. runtime_probe.py compares every field with each runtime before any is trusted. Ops whose
records name none have no options that the reader asks for.
"""

import ctypes
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType

import numpy as np

from ..model.graph import OptionValue, OptionVector
from ..ops.called import COMPOSITE, LOOP
from ..ops.record import OptionsStruct
from ..ops.registry import OPS
from ..ops.variables import CALL_ONCE

MOST_INTEGERS = 8  # of a list in a struct, behind which stands how many there are
_FORMATS = MappingProxyType(
    {"i": "i", "f": "f", "b": "?", "e": "i", "t": "i", "s": "P", "l": f"{MOST_INTEGERS + 1}i", "p": "P"}
)

StructOptions = tuple[tuple[str, OptionValue], ...]  # by the names of the schema's class


@dataclass(frozen=True)
class BuiltinStruct(OptionsStruct):
    """The options of an op, or of control flow, as OptionsStruct in gpu_delegate/ops/record.py says them."""

    @cached_property
    def fields(self) -> tuple[tuple[str, str], ...]:
        """(name, kind) of each field."""
        return tuple((name, kind) for name, _, kind in (field.partition(":") for field in self.layout.split()))

    @cached_property
    def format(self) -> struct.Struct:
        """Values at the places that C gives them."""
        return struct.Struct("@" + "".join(_FORMATS[kind] for _, kind in self.fields))

    def options_at(self, address: int) -> StructOptions | None:
        """The options in a struct; None where a value is one that no file can say."""
        values = iter(self.format.unpack(ctypes.string_at(address, self.format.size)))
        found = list[tuple[str, OptionValue]]()
        for name, kind in self.fields:
            if kind == "l":
                *integers, count = (next(values) for _ in range(MOST_INTEGERS + 1))
                if not 0 <= count <= MOST_INTEGERS:
                    return None
                found.append((name, OptionVector("int32", np.array(integers[:count], np.int32).tobytes())))
                continue
            if kind == "s":
                text = next(values)
                found.append((name, ctypes.string_at(text) if text else b""))
                continue
            value = next(values) - (kind == "e")
            if kind == "p":  # what it leads to is not read
                continue
            if kind == "e" and value < 0:
                return None
            found.append((name, value))
        return tuple(found)


STRUCTS: Mapping[str, BuiltinStruct] = MappingProxyType(
    {
        name: BuiltinStruct(record.file.struct.table, record.file.struct.layout)
        for name, record in OPS.items()
        if record.file is not None and record.file.struct is not None
    }
)

# What runs other subgraphs: their numbers.
CALLS: Mapping[str, BuiltinStruct] = MappingProxyType(
    {
        COMPOSITE: BuiltinStruct("StableHLOCompositeOptions", "Name:p DecompositionSubgraphIndex:i"),
        CALL_ONCE: BuiltinStruct("CallOnceOptions", "InitSubgraphIndex:i"),
        "IF": BuiltinStruct("IfOptions", "ThenSubgraphIndex:i ElseSubgraphIndex:i"),
        LOOP: BuiltinStruct("WhileOptions", "CondSubgraphIndex:i BodySubgraphIndex:i"),
    }
)
