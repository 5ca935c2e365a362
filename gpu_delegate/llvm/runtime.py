"""A NativeProgram goes in, a network that runs on the CPU comes out: BHWC arrays in, BHWC arrays out."""

import ctypes
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from ..errors import UsageError
from ..graph import Graph
from ..layout import shape_of
from ..packing import Float32Array, as_type, check_values
from .compiler import CompiledCode, compile_module, native_target
from .planes import FLOAT_BYTES, from_planes, planes_of, reserve_floats, tensor_floats
from .program import NativeProgram, compile_native

_PROTOTYPE = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, *[ctypes.c_int32] * 4)


class NativeNetwork:
    """One model as machine code, with memory of its own. Not for use from several threads at once."""

    def __init__(self, program: NativeProgram, code: CompiledCode) -> None:
        self.compiled = program
        self._code = code
        self._arena = reserve_floats(program.plan.total_bytes // FLOAT_BYTES)
        self._weights = reserve_floats(program.weights.size)
        self._weights[:] = program.weights
        inputs, outputs = ([program.tensor(t) for t in side] for side in (program.graph.inputs, program.graph.outputs))
        self.input_shapes, self.input_dtypes = ([t.shape for t in inputs], [np.dtype(t.dtype) for t in inputs])
        self.output_shapes, self.output_dtypes = ([t.shape for t in outputs], [np.dtype(t.dtype) for t in outputs])
        self._calls = [self._call(number) for number in range(len(program.kernels))]

    @classmethod
    def load(cls, graph: Graph) -> "NativeNetwork":
        """A network for this machine. Raises UnsupportedError for what it cannot compute, DeviceError without LLVM."""
        program = compile_native(graph, native_target())
        return cls(program, compile_module(program.text, program.target))

    def run(self, inputs: Sequence[npt.NDArray[Any]] | npt.NDArray[Any] | None = None) -> tuple[npt.NDArray[Any], ...]:
        """Output tensors, as copies, for one input tensor or one per input; without any, for what is in memory.

        Raises UsageError for other inputs than the model's.
        """
        if inputs is not None:
            self._write_inputs((inputs,) if isinstance(inputs, np.ndarray) else inputs)
        for number, kernel in enumerate(self.compiled.kernels):
            self.run_part(number, (0, kernel.row_groups), (0, kernel.slice_blocks))
        return tuple(self.read(number) for number in self.compiled.graph.outputs)

    def run_part(self, number: int, groups: tuple[int, int], blocks: tuple[int, int]) -> None:
        """Some of a kernel's row groups and slice blocks: from the first number of each on, up to the second."""
        self._calls[number](*groups, *blocks)

    def _write_inputs(self, arrays: Sequence[npt.NDArray[Any]]) -> None:
        numbers = self.compiled.graph.inputs
        if len(arrays) != len(numbers):
            raise UsageError(f"the model takes {len(numbers)} inputs, not {len(arrays)}")
        for number, array in zip(numbers, arrays, strict=True):
            self.write(number, array)

    def write(self, tensor: int, values: npt.NDArray[Any]) -> None:
        """Values of a tensor: exactly its type and shape in the file, all finite. Raises UsageError for others."""
        shape = shape_of(self.compiled.graph.tensors[tensor])
        checked = check_values(values, self.compiled.tensor(tensor))
        planes = planes_of(self.memory(tensor), shape, self.compiled.storages[tensor])
        planes[: shape.channels] = checked.reshape(shape.rows, shape.width, shape.channels).transpose(2, 0, 1)

    def read(self, tensor: int) -> npt.NDArray[Any]:
        """A stored tensor in its type and shape in the file."""
        own, shape = self.compiled.tensor(tensor), shape_of(self.compiled.graph.tensors[tensor])
        values = from_planes(self.memory(tensor), shape, self.compiled.storages[tensor])
        return as_type(values, own.dtype).reshape(own.shape)

    def memory(self, tensor: int) -> Float32Array:
        """The floats of a stored tensor as they lie in memory (planes.py). Raises KeyError for one that is not."""
        start = self.compiled.plan.offsets[tensor] // FLOAT_BYTES
        shape = shape_of(self.compiled.graph.tensors[tensor])
        return self._arena[start : start + tensor_floats(shape, self.compiled.storages[tensor])]

    def _address(self, tensor: int) -> int:
        """Of a tensor or constant map."""
        if tensor in self.compiled.constants:
            return self._weights.ctypes.data + FLOAT_BYTES * self.compiled.constants[tensor]
        return self._arena.ctypes.data + self.compiled.plan.offsets[tensor]

    def _call(self, number: int) -> Callable[[int, int, int, int], None]:
        """A kernel's function, but for the row groups and slice blocks that it computes."""
        kernel = self.compiled.kernels[number]
        tensors = (*kernel.inputs, *kernel.outputs)
        addresses = (ctypes.c_void_p * len(tensors))(*map(self._address, tensors))
        weights = self._weights.ctypes.data + FLOAT_BYTES * self.compiled.weight_offsets[number]
        return partial(self._code.function(kernel.symbol, _PROTOTYPE), addresses, weights)
