"""A partition and its program go in; what TensorFlow Lite runs as one operator, the delegate's kernel, comes out."""

import ctypes
import math
from typing import Any

import numpy as np
import numpy.typing as npt

from ..errors import UnsupportedError, UsageError
from ..graph import Shape, Tensor
from ..partition import Partition
from ..runtime import Program
from .gl_thread import GlThread
from .structs import TYPES, TfLiteContext, TfLiteTensor, integers_at


class DelegateKernel:
    """One partition. Without a program it does nothing: its constants are in the programs of others."""

    def __init__(self, partition: Partition, program: Program | None, thread: GlThread) -> None:
        self.partition = partition
        self._program = program
        self._thread = thread

    def prepare(self, context: TfLiteContext) -> None:
        """Compare the shapes of the inputs with those that the program is compiled for. Raises UnsupportedError."""
        if self._program is None:
            return
        for index in self.partition.inputs:
            shape, wanted = shape_at(context, index), self._tensor(index).shape
            if shape != wanted:
                raise UnsupportedError(f"tensor {index} has the shape {list(shape)} instead of {list(wanted)}")

    def run(self, context: TfLiteContext) -> None:
        """Inputs from TensorFlow Lite's memory to outputs in TensorFlow Lite's memory."""
        program = self._program
        if program is None:
            return
        inputs = [(index, values_at(context, self._tensor(index))) for index in self.partition.inputs]
        outputs = [(index, values_at(context, self._tensor(index))) for index in self.partition.outputs]

        def work(_: object) -> None:
            for index, values in inputs:
                program.write(index, values)
            program.run()
            for index, values in outputs:
                values[...] = program.read(index)

        self._thread.call(work)

    def release(self) -> None:
        """Free the program; a second call does nothing."""
        program, self._program = self._program, None
        if program is not None:
            self._thread.call(lambda _: program.release())

    def _tensor(self, index: int) -> Tensor:
        assert self._program is not None
        return self._program.compiled.tensor(index)


def shape_at(context: TfLiteContext, index: int) -> Shape:
    """The shape of a tensor as TensorFlow Lite has it."""
    return integers_at(_tensor_at(context, index).dims)


def values_at(context: TfLiteContext, tensor: Tensor) -> npt.NDArray[Any]:
    """The memory of a tensor, which TensorFlow Lite may use for something else after this call. Raises UsageError."""
    found, dtype = _tensor_at(context, tensor.index), np.dtype(tensor.dtype)
    size_bytes = math.prod(tensor.shape) * dtype.itemsize
    if TYPES.get(found.type) != tensor.dtype or found.bytes != size_bytes or not found.data:
        raise UsageError(f"tensor {tensor.index} of TensorFlow Lite is not {tensor.dtype} of shape {tensor.shape}")
    memory = (ctypes.c_ubyte * size_bytes).from_address(found.data)
    return np.ctypeslib.as_array(memory).view(dtype).reshape(tensor.shape)


def _tensor_at(context: TfLiteContext, index: int) -> TfLiteTensor:
    if not 0 <= index < context.tensors_size:
        raise UsageError(f"tensor {index} of {context.tensors_size}")
    tensor: TfLiteTensor = context.tensors[index]
    return tensor
