"""Reads and resizes the tensors of a TensorFlow Lite context."""

import ctypes
import math
import sys
from typing import Any

import numpy as np
import numpy.typing as npt

from ..base.errors import DeviceError, UsageError
from ..model.graph import Shape, Tensor
from .structs import OK, TYPES, TfLiteContext, TfLiteTensor, int_array, integers_at


def tensor_at(context: TfLiteContext, index: int) -> TfLiteTensor:
    """A tensor, as long as no tensor is added. Raises UsageError for one that does not exist."""
    if not 0 <= index < context.tensors_size:
        raise UsageError(f"TensorFlow Lite has {context.tensors_size} tensors, and no tensor {index}")
    found: TfLiteTensor = context.tensors[index]
    return found


def number_of(context: TfLiteContext, tensor: TfLiteTensor) -> int:
    """The index of a tensor of the context, by its place in memory."""
    distance = ctypes.addressof(tensor) - ctypes.addressof(context.tensors.contents)
    return distance // ctypes.sizeof(TfLiteTensor)


def shape_at(context: TfLiteContext, index: int) -> Shape:
    """The shape that a tensor has now."""
    return integers_at(tensor_at(context, index).dims)


def memory_of(found: TfLiteTensor, tensor: Tensor) -> tuple[int, int]:
    """Address and size in bytes of a tensor's values, which are those of `tensor`. Raises UsageError if they are not.

    TensorFlow Lite may use the same memory for other tensors before and after an operator runs.
    """
    size_bytes = math.prod(tensor.shape) * np.dtype(tensor.dtype).itemsize
    dtype, shape = TYPES.get(found.type, "unknown"), integers_at(found.dims)
    if (dtype, shape, found.bytes) != (tensor.dtype, tensor.shape, size_bytes):
        what = f"{dtype} of shape {list(shape)}, {found.bytes} bytes"
        raise UsageError(f"tensor {tensor.index} is {what}, not {tensor.dtype} of shape {list(tensor.shape)}")
    if not found.data:
        raise UsageError(f"tensor {tensor.index} has no memory; call allocate_tensors()")
    return found.data, size_bytes


def array_at(address: int, size_bytes: int, tensor: Tensor) -> npt.NDArray[Any]:
    """Memory as an array of a tensor's type and shape. Raises UsageError for another size, or if there is none."""
    dtype = np.dtype(tensor.dtype)
    wanted_bytes = int(np.prod(tensor.shape, dtype=np.int64)) * dtype.itemsize
    if not address:
        raise UsageError(f"{tensor.name} has no memory yet; call allocate_tensors() first")
    if size_bytes != wanted_bytes:
        raise UsageError(f"{tensor.name} {list(tensor.shape)} takes {wanted_bytes} bytes, not {size_bytes}")
    return np.ctypeslib.as_array((ctypes.c_ubyte * size_bytes).from_address(address)).view(dtype).reshape(tensor.shape)


def reshape(context: TfLiteContext, index: int, shape: Shape) -> None:
    """Give a tensor a shape, if it has another one. Raises DeviceError where TensorFlow Lite refuses it."""
    if shape_at(context, index) == shape:
        return
    values = int_array(shape)
    memory = _c_library().malloc(ctypes.sizeof(values))
    if not memory:
        raise MemoryError
    ctypes.memmove(memory, values, ctypes.sizeof(values))  # TensorFlow Lite frees it
    place = ctypes.addressof(context.tensors.contents) + index * ctypes.sizeof(TfLiteTensor)
    if context.ResizeTensor(ctypes.addressof(context), place, memory) != OK:
        raise DeviceError(f"TensorFlow Lite does not give tensor {index} the shape {list(shape)}")


def _c_library() -> Any:
    """The library whose free() TensorFlow Lite calls."""
    library = ctypes.CDLL("ucrtbase" if sys.platform == "win32" else None)
    library.malloc.restype, library.malloc.argtypes = ctypes.c_void_p, (ctypes.c_size_t,)
    return library
