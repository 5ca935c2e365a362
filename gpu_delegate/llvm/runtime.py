"""A NativeProgram goes in, a network that runs on the CPU comes out: BHWC arrays in, BHWC arrays out."""

import ctypes
from collections.abc import Sequence
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
        self.program = program
        self._code = code
        self._arena = reserve_floats(program.plan.total_bytes // FLOAT_BYTES)
        self._weights = reserve_floats(program.weights.size)
        self._weights[:] = program.weights
        inputs, outputs = ([program.tensor(t) for t in side] for side in (program.graph.inputs, program.graph.outputs))
        self.input_shapes, self.input_dtypes = ([t.shape for t in inputs], [np.dtype(t.dtype) for t in inputs])
        self.output_shapes, self.output_dtypes = ([t.shape for t in outputs], [np.dtype(t.dtype) for t in outputs])
        self._calls = [self._call(number) for number in range(len(program.steps))]

    @classmethod
    def load(cls, graph: Graph) -> "NativeNetwork":
        """A network for this machine. Raises UnsupportedError for what it cannot compute, DeviceError without LLVM."""
        program = compile_native(graph, native_target())
        return cls(program, compile_module(program.text, program.target))

    def run(self, inputs: Sequence[npt.NDArray[Any]] | npt.NDArray[Any]) -> tuple[npt.NDArray[Any], ...]:
        """Output tensors, as copies, for one input tensor or one per input. Raises UsageError for other ones."""
        arrays = (inputs,) if isinstance(inputs, np.ndarray) else tuple(inputs)
        numbers = self.program.graph.inputs
        if len(arrays) != len(numbers):
            raise UsageError(f"the model takes {len(numbers)} inputs, not {len(arrays)}")
        for number, array in zip(numbers, arrays, strict=True):
            self.write(number, array)
        self.run_steps()
        return tuple(self.read(number) for number in self.program.graph.outputs)

    def run_steps(self) -> None:
        """One inference on what the inputs' memory holds."""
        for function, arguments in self._calls:
            function(*arguments)

    def write(self, tensor: int, values: npt.NDArray[Any]) -> None:
        """Values of a tensor: exactly its type and shape in the file, all finite. Raises UsageError for others."""
        shape = shape_of(self.program.graph.tensors[tensor])
        checked = check_values(values, self.program.tensor(tensor))
        planes = planes_of(self.memory(tensor), shape, self.program.storages[tensor])
        planes[: shape.channels] = checked.reshape(shape.rows, shape.width, shape.channels).transpose(2, 0, 1)

    def read(self, tensor: int) -> npt.NDArray[Any]:
        """A stored tensor in its type and shape in the file."""
        own, shape = self.program.tensor(tensor), shape_of(self.program.graph.tensors[tensor])
        values = from_planes(self.memory(tensor), shape, self.program.storages[tensor])
        return as_type(values, own.dtype).reshape(own.shape)

    def memory(self, tensor: int) -> Float32Array:
        """The floats of a stored tensor as they lie in memory (planes.py). Raises KeyError for one that is not."""
        start = self.program.plan.offsets[tensor] // FLOAT_BYTES
        shape = shape_of(self.program.graph.tensors[tensor])
        return self._arena[start : start + tensor_floats(shape, self.program.storages[tensor])]

    def _address(self, tensor: int) -> int:
        """Of a tensor or constant map."""
        if tensor in self.program.constants:
            return self._weights.ctypes.data + FLOAT_BYTES * self.program.constants[tensor]
        return self._arena.ctypes.data + self.program.plan.offsets[tensor]

    def _call(self, number: int) -> tuple[Any, tuple[Any, ...]]:
        """A step's function and its arguments: all row groups, all slice blocks."""
        step = self.program.steps[number]
        tensors = (*step.inputs, *step.outputs)
        addresses = (ctypes.c_void_p * len(tensors))(*map(self._address, tensors))
        weights = self._weights.ctypes.data + FLOAT_BYTES * self.program.weight_offsets[number]
        function = self._code.function(step.symbol, _PROTOTYPE)
        return function, (addresses, weights, 0, step.row_groups, 0, step.slice_blocks)
