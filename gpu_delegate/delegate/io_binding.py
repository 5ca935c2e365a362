"""I/O binding: copies tensors between RAM, or the caller's OpenGL objects, and a Program's inputs and outputs.

float32 and integers of 8 bits go up as they are and are repacked to PHWC4 by a shader; an output is repacked back and
read. Where shaders run on the CPU, NumPy packs pictures. Other types are few and small: they take Program.write and
Program.read. What is bound to an object of OpenGL is read from it and written to it by run(), without the CPU.
"""

from collections.abc import Sequence
from typing import Any

import numpy.typing as npt

from ..base.errors import UsageError
from ..model.packing import check_values
from ..model.quantization import BYTE_DTYPES
from ..plan.hazards import STORAGE, TEXTURE_FETCH
from ..targets.gl import opengl
from ..targets.gl.gl_buffers import WayOut
from ..targets.gl.runtime import Program
from .gl_objects import Bound, BufferLayout, GlObject, bound_object
from .native_tensors import array_at
from .repacking import RepackingPrograms
from .synchronization import WaitType, wait_for_gpu
from .tensor_binding import TensorIoBinding

_REPACKED = ("float32", *BYTE_DTYPES)


class IoBinding:
    """The inputs and outputs of one Program. Use it only on the context's thread; release() frees it."""

    def __init__(self, program: Program, shaders: RepackingPrograms, wait_type: WaitType = "passive") -> None:
        """`shaders` is of the same context, and outlives this."""
        self._program, self._wait_type = program, wait_type
        self._context, self._gl = program.context, program.context.gl
        graph = program.compiled.graph
        self._tensors = {
            tensor: TensorIoBinding(shaders, program.range_of(tensor), program.compiled.tensor(tensor))
            for tensor in dict.fromkeys((*graph.inputs, *graph.outputs))
        }
        self._way_out = WayOut(self._context)
        self._arrays: dict[int, tuple[int, npt.NDArray[Any]]] = {}  # by tensor: an address, and the array there
        self._bound_inputs: dict[int, Bound] = {}
        self._bound_outputs: dict[int, Bound] = {}

    # Running ------------------------------------------------------------------------------------------------------

    def upload(self, tensor: int, address: int, size_bytes: int) -> None:
        """An input from RAM: its values in the order and type of the file.

        Raises UsageError for another size and for what is not finite.
        """
        values = self._array_in_ram(tensor, address, size_bytes)
        self.write(tensor, check_values(values, self._program.compiled.tensor(tensor)))

    def write(self, tensor: int, values: npt.NDArray[Any]) -> None:
        """The same of a contiguous array that is known to be of its type and shape, finite or not."""
        if values.dtype in _REPACKED:
            self._tensors[tensor].upload(values)
        else:
            self._program.upload(tensor, values)

    def take(self, tensor: int, source: "IoBinding") -> None:
        """An input from another program of this context, whose output it is. Raises UsageError for another shape."""
        own, theirs = (io._program.compiled.tensor(tensor) for io in (self, source))
        if (own.shape, own.dtype) != (theirs.shape, theirs.dtype):
            raise UsageError(f"{own.name} is {own.dtype} {list(own.shape)}, not {theirs.dtype} {list(theirs.shape)}")
        if self._tensors[tensor].place.shape == source._tensors[tensor].place.shape:
            self._tensors[tensor].copy_from(source._tensors[tensor])
        else:  # integers, of which one of both has digits
            self._program.write(tensor, source._program.read(tensor))

    def run(self) -> None:
        """One inference on the inputs as they are, bound ones from where they are bound; outputs likewise.

        It returns before the GPU has finished, unless an output is bound and the wait type is to wait, or an index may
        be out of range. Raises UsageError, before anything is done, if an object that is bound is not there any more,
        and InferenceError as Program.check_run.
        """
        bound = *self._bound_inputs.items(), *self._bound_outputs.items()
        for tensor, what in bound:
            what.check(self._context, self._program.compiled.tensor(tensor))
        if bound:
            self._gl.glMemoryBarrier(opengl.ALL_BARRIER_BITS)  # the caller may have used them in any way
        for tensor, what in self._bound_inputs.items():
            self._tensors[tensor].read_bound(what)
        self._gl.glMemoryBarrier(STORAGE | TEXTURE_FETCH)
        self._program.run()
        self._program.check_run()
        for tensor, what in self._bound_outputs.items():
            self._tensors[tensor].write_bound(what)
        if self._bound_outputs:
            self._gl.glMemoryBarrier(opengl.ALL_BARRIER_BITS)  # and may use them so again
            wait_for_gpu(self._context, self._wait_type)
        if bound:
            self._context.check_errors(f"running {self._program.compiled.source.name} on what is bound to it")

    def read(self, tensor: int, address: int, size_bytes: int) -> None:
        """An output to RAM, in the order and type of the file; waits for the GPU. Raises UsageError, DeviceError."""
        self.read_all([(tensor, address, size_bytes)])

    def read_all(self, outputs: Sequence[tuple[int, int, int]]) -> None:
        """The same for several, each as (tensor, address, size in bytes), waiting once."""
        compiled = self._program.compiled
        arrays = {tensor: self._array_in_ram(tensor, address, size) for tensor, address, size in outputs}
        repacked = [output for output in outputs if compiled.tensor(output[0]).dtype in _REPACKED]
        spans = [self._tensors[tensor].array() for tensor, _, _ in repacked]
        self._gl.glMemoryBarrier(opengl.BUFFER_UPDATE_BARRIER_BIT)
        self._way_out.take(spans)
        wait_for_gpu(self._context, self._wait_type)
        self._way_out.give([address for _, address, _ in repacked])
        for tensor, values in arrays.items():
            if values.dtype not in _REPACKED:
                values[...] = self._program.read(tensor)
        self._context.check_errors(f"reading what {compiled.source.name} has computed")

    # Binding ------------------------------------------------------------------------------------------------------

    def bind_input(self, tensor: int, source: GlObject, layout: BufferLayout = "BHWC") -> None:
        """From now on run() reads an input from a texture of its size, or from a buffer.

        Row 0 of a texture is row 0 of the tensor; values are those that a shader reads from it, or its bytes where the
        tensor has bytes. A buffer holds the values of the tensor's type in the order of BHWC, or what Program.input has
        as PHWC4 with zeros in the lanes behind the last channel. Raises UsageError.
        """
        self._bound_inputs[tensor] = self._bind(tensor, source, layout, is_written=False)

    def bind_output(self, tensor: int, target: GlObject, layout: BufferLayout = "BHWC") -> None:
        """From now on run() writes an output to a texture of its size, or to a buffer. Raises UsageError.

        What 8 bits cannot hold is clamped to 0 and 1 and rounded, as OpenGL does.
        """
        self._bound_outputs[tensor] = self._bind(tensor, target, layout, is_written=True)

    def unbind(self, tensor: int) -> None:
        """From now on a tensor is in RAM again. Nothing happens to one that is not bound."""
        self._bound_inputs.pop(tensor, None)
        self._bound_outputs.pop(tensor, None)

    @property
    def buffer_bytes(self) -> int:
        """Of GL buffers beside the program's own."""
        return self._way_out.size_bytes + sum(tensor.buffer_bytes for tensor in self._tensors.values())

    def release(self) -> None:
        """Free all GL objects; a second call does nothing."""
        for tensor in self._tensors.values():
            tensor.release()
        self._way_out.release()
        self._bound_inputs.clear()
        self._bound_outputs.clear()

    def _bind(self, tensor: int, given: GlObject, layout: BufferLayout, is_written: bool) -> Bound:
        graph, what = self._program.compiled.graph, "output" if is_written else "input"
        if tensor not in (graph.outputs if is_written else graph.inputs):
            raise UsageError(f"tensor {tensor} is no {what} of what runs on the GPU")
        return bound_object(self._context, self._program.compiled.tensor(tensor), given, layout, is_written)

    def _array_in_ram(self, tensor: int, address: int, size_bytes: int) -> npt.NDArray[Any]:
        """Memory as an array of a tensor's type and shape, made once: it takes longer than a read.

        Raises UsageError for another size, or if there is none.
        """
        known = self._arrays.get(tensor)
        if known is None or (address, size_bytes) != (known[0], known[1].nbytes):
            known = self._arrays[tensor] = address, array_at(address, size_bytes, self._program.compiled.tensor(tensor))
        return known[1]
