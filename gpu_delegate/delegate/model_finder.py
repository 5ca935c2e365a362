"""A context of TensorFlow Lite, and the model that the user may have given, go in; the model that it runs comes out.

Prepare gets no file, but tensors of constants lie in it, and each knows its tflite::Allocation: a C++ object that says
where the whole file is. Whatever was found or given is compared with the context, operator by operator.
"""

import bisect
import ctypes
import os
import sys
from dataclasses import dataclass
from pathlib import Path

import tflite

from ..errors import ModelError
from ..graph import Graph
from ..reading.model_file import ModelFile, names_of
from ..reading.reader import CUSTOM, MAX_FILE_BYTES, ReadModel, model_file_bytes, printable_name, read_model
from .native_operators import execution_plan, operator_at
from .structs import TYPES, TfLiteContext, TfLiteTensor, integers_at

_IN_FILE = 1  # kTfLiteMmapRo, the allocation type of constants
_BASE, _BYTES = 2, 3  # entries of Allocation's table of virtual functions (Itanium C++ ABI), after two destructors
_POINTER_BYTES = ctypes.sizeof(ctypes.c_void_p)
_MAPS = Path("/proc/self/maps")
_SCHEMA_TYPES = names_of(tflite.TensorType)
_DELEGATE = tflite.BuiltinOperator.DELEGATE
_GIVE = "give its file: GpuDelegate(model=PATH)"


@dataclass(frozen=True)
class FoundModel:
    """The model of an interpreter."""

    data: bytes
    graph: Graph


def find_model(
    context: TfLiteContext, given: str | os.PathLike[str] | bytes | None = None, read: ReadModel = read_model
) -> FoundModel:
    """The context's model: `given`, a path or bytes, or the file that its constants lie in. Before nodes are replaced.

    Raises ModelError where there is none, where it is damaged, or where it is not what the context runs.
    """
    if given is None:
        data, name = _file_of(context), "model"
    elif isinstance(given, bytes):
        data, name = given, "model"
    else:
        data, name = model_file_bytes(given), Path(given).stem
    graph = read(data, name)
    if any(operator_at(context, index)[1].builtin_code == _DELEGATE for index in execution_plan(context)):
        raise ModelError("another delegate has replaced operators before; put GpuDelegate in front of it")
    difference = difference_from(context, ModelFile(data))
    if difference and given is not None:
        raise ModelError(f"model={_shown(given)} is not the model of this interpreter: {difference}")
    if difference:
        raise ModelError(f"the model that was found in memory is not that of this interpreter: {difference}; {_GIVE}")
    return FoundModel(data, graph)


def difference_from(context: TfLiteContext, file: ModelFile) -> str:
    """What is different in a context from what a valid file says; "" if nothing is."""
    plan = execution_plan(context)
    if plan != tuple(range(file.operator_count)):
        return f"{file.operator_count} operators instead of {len(plan)}"
    if context.tensors_size < file.tensor_count:
        return f"{file.tensor_count} tensors instead of {context.tensors_size}"
    found = (_tensor_difference(context, file, index) for index in range(file.tensor_count))
    others = (_operator_difference(context, file, index) for index in plan)
    return next(filter(None, (*found, *others)), "")


def _tensor_difference(context: TfLiteContext, file: ModelFile, index: int) -> str:
    tensor, table = context.tensors[index], file.subgraph.Tensors(index)
    shape, own_shape = _integers(table.ShapeAsNumpy()), integers_at(tensor.dims)
    if shape != own_shape:
        return f"tensor {index} has the shape {list(shape)} instead of {list(own_shape)}"
    dtype, own_dtype = _SCHEMA_TYPES[table.Type()].lower(), TYPES.get(tensor.type)
    if dtype not in TYPES.values() and own_dtype is None:  # one that only the CPU computes with
        return ""
    return f"tensor {index} is {dtype} instead of {own_dtype}" if dtype != own_dtype else ""


def _operator_difference(context: TfLiteContext, file: ModelFile, index: int) -> str:
    node, registration = operator_at(context, index)
    table = file.subgraph.Operators(index)
    code = file.model.OperatorCodes(table.OpcodeIndex())
    builtin = max(code.BuiltinCode(), code.DeprecatedBuiltinCode())
    if builtin != registration.builtin_code:
        return f"operator {index} is builtin {builtin} instead of {registration.builtin_code}"
    custom, own_custom = code.CustomCode() or b"", registration.custom_name or b""
    if builtin == CUSTOM and custom != own_custom:
        return f"operator {index} is {printable_name(custom)} instead of {printable_name(own_custom)}"
    for what, indices, own in (
        ("reads", table.InputsAsNumpy(), node.inputs),
        ("writes", table.OutputsAsNumpy(), node.outputs),
    ):
        if _integers(indices) != integers_at(own):
            return f"operator {index} {what} tensors {list(_integers(indices))} instead of {list(integers_at(own))}"
    return ""


# The file in memory ---------------------------------------------------------------------------------------------------


def _file_of(context: TfLiteContext) -> bytes:
    """A copy of the file that constants lie in. Raises ModelError."""
    if sys.platform == "win32":
        raise ModelError(f"on Windows the model cannot be found in memory; {_GIVE}")
    memory = _Memory()
    constants = [
        tensor
        for tensor in (context.tensors[index] for index in range(context.tensors_size))
        if tensor.allocation_type == _IN_FILE and tensor.allocation
    ]
    if not constants:
        raise ModelError(f"a model without constants cannot be found in memory; {_GIVE}")
    for tensor in constants:
        data = _whole_file(tensor, memory)
        if data:
            return data
    raise ModelError(f"the model cannot be found in memory; {_GIVE}")


def _whole_file(tensor: TfLiteTensor, memory: "_Memory") -> bytes:
    """What the Allocation of a tensor holds; nothing where it is none, or not of a model."""
    table = memory.pointer(tensor.allocation)
    functions = [memory.pointer(table + entry * _POINTER_BYTES) for entry in (_BASE, _BYTES)] if table else [0]
    if not all(map(memory.is_code, functions)):
        return b""
    start, size = (ctypes.CFUNCTYPE(ctypes.c_size_t, ctypes.c_void_p)(each)(tensor.allocation) for each in functions)
    is_inside = start <= (tensor.data or 0) < start + size
    if not (8 <= size <= MAX_FILE_BYTES and is_inside and memory.is_readable(start, size)):
        return b""
    return ctypes.string_at(start, size) if ctypes.string_at(start + 4, 4) == b"TFL3" else b""


class _Memory:
    """The address space of this process, where the system tells it (Linux); elsewhere every address counts as mapped:
    the layout of structs has been compared with the runtime's before."""

    def __init__(self) -> None:
        self._ranges: list[tuple[int, int, str]] = []  # start, end, permissions; ascending
        if _MAPS.exists():
            for line in _MAPS.read_text(encoding="utf-8", errors="replace").splitlines():
                place, permissions = line.split()[:2]
                start, end = (int(part, 16) for part in place.split("-"))
                self._ranges.append((start, end, permissions))

    def pointer(self, address: int) -> int:
        """The pointer at an address, 0 where nothing can be read."""
        if address % _POINTER_BYTES or not self.is_readable(address, _POINTER_BYTES):
            return 0
        return ctypes.c_void_p.from_address(address).value or 0

    def is_readable(self, address: int, size_bytes: int) -> bool:
        return self._has(address, size_bytes, "r")

    def is_code(self, address: int) -> bool:
        return self._has(address, 1, "x")

    def _has(self, address: int, size_bytes: int, permission: str) -> bool:
        """Whether ranges with that permission, without a gap, hold all bytes."""
        if not self._ranges:
            return address != 0
        end = address + size_bytes
        place = bisect.bisect_right(self._ranges, (address, sys.maxsize, "")) - 1
        for start, stop, permissions in self._ranges[max(place, 0) :]:
            if not start <= address < stop or permission not in permissions:
                return False
            address = stop
            if address >= end:
                return True
        return False


def _integers(vector: object) -> tuple[int, ...]:
    """A vector as flatbuffers gives it: 0 where there is none."""
    return () if isinstance(vector, int) else tuple(map(int, vector))  # type: ignore[call-overload]


def _shown(given: str | os.PathLike[str] | bytes) -> str:
    return f"{len(given)} bytes" if isinstance(given, bytes) else printable_name(os.fspath(given))
