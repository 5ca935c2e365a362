"""Tensors in RAM, BHWC, go into a Program's inputs on the GPU; what it computes comes out there.

float32 goes up as it is and is repacked to PHWC4 by a shader; an output is repacked back and read. Other types are few
and small: they take Program.write and Program.read, which convert them in NumPy.
"""

import ctypes
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from .. import opengl
from ..context import Context
from ..errors import UsageError
from ..graph import Tensor
from ..hazards import STORAGE, TEXTURE_FETCH
from ..layout import TEXEL_BYTES
from ..opengl import BufferRange
from ..packing import check_values
from ..runtime import Program, TensorRange
from .repacking import (
    PIXELS_OF_THREAD,
    Repacking,
    RepackingPrograms,
    array_bytes,
    is_array,
    repacking_grid,
    staging_bytes,
)


@dataclass(frozen=True)
class _Staging:
    """A buffer for one tensor as an array of floats, and a buffer texture over its texels, 0 where it has too many."""

    span: BufferRange
    texture: int


class ProgramBorder:
    """The inputs and outputs of one Program. Use it only on the context's thread; release() frees it."""

    def __init__(self, program: Program, shaders: RepackingPrograms) -> None:
        """`shaders` is of the same context, and outlives this. Raises DeviceError."""
        self._program, self._shaders = program, shaders
        self._context, self._gl = program.context, program.context.gl
        self._staged: dict[int, _Staging] = {}
        self._packings: dict[int, Repacking] = {}
        self._unpackings: dict[int, Repacking] = {}
        for tensor in program.compiled.graph.inputs:
            self._clear(program.range_of(tensor))  # uploads leave padding lanes as they are

    def upload(self, tensor: int, address: int, size_bytes: int) -> None:
        """An input from RAM: its values in the order and type of the file.

        Raises UsageError for another size, for what is not finite, and for integers that float32 does not have.
        """
        own = self._program.compiled.tensor(tensor)
        values = check_values(_array_at(address, size_bytes, own), own)
        if own.dtype != "float32":
            self._program.write(tensor, values.astype(own.dtype))
            return
        place = self._program.range_of(tensor)
        if is_array(place.shape, place.storage):
            self._write(BufferRange(place.buffer, place.offset_bytes, size_bytes), address)
        else:
            self._write(BufferRange(self._staging(tensor).span.buffer, 0, size_bytes), address)
            self._pack(tensor)

    def run(self) -> None:
        """One inference on the inputs as they are; returns before the GPU has finished."""
        self._gl.glMemoryBarrier(STORAGE | TEXTURE_FETCH)
        self._program.run()

    def read(self, tensor: int, address: int, size_bytes: int) -> None:
        """An output to RAM, in the order and type of the file; waits for the GPU. Raises UsageError, DeviceError."""
        own = self._program.compiled.tensor(tensor)
        values = _array_at(address, size_bytes, own)
        if own.dtype == "float32":
            span = self._array(tensor)
            self._gl.glMemoryBarrier(opengl.BUFFER_UPDATE_BARRIER_BIT)
            self._gl.glBindBuffer(opengl.COPY_READ_BUFFER, span.buffer)
            self._gl.glGetBufferSubData(opengl.COPY_READ_BUFFER, span.offset_bytes, size_bytes, address)
        else:
            values[...] = self._program.read(tensor)
        self._context.check_errors(f"reading {own.name}")

    def release(self) -> None:
        """Free all GL objects; a second call does nothing."""
        for staging in self._staged.values():
            self._gl.delete("Buffers", staging.span.buffer)
            if staging.texture:
                self._gl.delete("Textures", staging.texture)
        self._staged.clear()
        self._packings.clear()
        self._unpackings.clear()

    def _array(self, tensor: int) -> BufferRange:
        """Where a tensor is an array of floats, after repacking it if it is not."""
        place = self._program.range_of(tensor)
        size_bytes = array_bytes(place.shape)
        if is_array(place.shape, place.storage):
            return BufferRange(place.buffer, place.offset_bytes, size_bytes)
        if tensor not in self._unpackings:
            self._unpackings[tensor] = self._unpacking(place, self._staging(tensor))
        self._gl.glMemoryBarrier(STORAGE | TEXTURE_FETCH)
        self._unpackings[tensor].dispatch(self._context)
        return BufferRange(self._staging(tensor).span.buffer, 0, size_bytes)

    def _pack(self, tensor: int) -> None:
        """Repack an input from its staging buffer."""
        if tensor not in self._packings:
            self._packings[tensor] = self._packing(self._program.range_of(tensor), self._staging(tensor))
        self._gl.glMemoryBarrier(STORAGE)  # kernels of the run before may still read what is written here
        self._packings[tensor].dispatch(self._context)

    def _packing(self, place: TensorRange, staging: _Staging) -> Repacking:
        shape = place.shape
        program = self._shaders.get("pack_bhwc", shape, through_storage=not staging.texture)
        grid = repacking_grid(-(-shape.pixels // PIXELS_OF_THREAD), shape.slices, self._context.limits)
        return Repacking("pack_bhwc", program, grid, staging.span, staging.texture, place)

    def _unpacking(self, place: TensorRange, staging: _Staging) -> Repacking:
        shape = place.shape
        program = self._shaders.get("unpack_bhwc", shape, through_storage=not place.texture)
        grid = repacking_grid(shape.pixels, shape.slices, self._context.limits)
        return Repacking("unpack_bhwc", program, grid, place, place.texture, staging.span)

    def _staging(self, tensor: int) -> _Staging:
        if tensor not in self._staged:
            name = self._program.compiled.tensor(tensor).name
            self._staged[tensor] = _staging_buffer(
                self._context, staging_bytes(self._program.range_of(tensor).shape), f"{name}, BHWC"
            )
        return self._staged[tensor]

    def _clear(self, place: TensorRange) -> None:
        self._gl.glBindBuffer(opengl.COPY_WRITE_BUFFER, place.buffer)
        self._gl.glClearBufferSubData(
            opengl.COPY_WRITE_BUFFER, opengl.R32F, place.offset_bytes, place.size_bytes, opengl.RED, opengl.FLOAT,
            (ctypes.c_float * 1)(0.0),
        )  # fmt: skip

    def _write(self, span: BufferRange, address: int) -> None:
        self._gl.glMemoryBarrier(opengl.BUFFER_UPDATE_BARRIER_BIT)  # shaders may have written there before
        self._gl.glBindBuffer(opengl.COPY_WRITE_BUFFER, span.buffer)
        self._gl.glBufferSubData(opengl.COPY_WRITE_BUFFER, span.offset_bytes, span.size_bytes, address)


def _staging_buffer(context: Context, size_bytes: int, label: str) -> _Staging:
    """Room for an array of floats. Raises DeviceError."""
    gl, texture = context.gl, 0
    buffer = gl.generate("Buffers")
    gl.glBindBuffer(opengl.COPY_WRITE_BUFFER, buffer)
    gl.glBufferData(opengl.COPY_WRITE_BUFFER, size_bytes, None, opengl.DYNAMIC_COPY)
    context.label(opengl.BUFFER, buffer, label)
    if size_bytes // TEXEL_BYTES <= context.limits.texture_buffer_texels:
        texture = gl.generate("Textures")
        gl.glBindTexture(opengl.TEXTURE_BUFFER, texture)
        gl.glTexBuffer(opengl.TEXTURE_BUFFER, opengl.RGBA32F, buffer)
    context.check_errors(f"allocating {size_bytes} bytes for {label}")
    return _Staging(BufferRange(buffer, 0, size_bytes), texture)


def _array_at(address: int, size_bytes: int, tensor: Tensor) -> npt.NDArray[Any]:
    """Memory as an array of a tensor's type and shape. Raises UsageError for another size, or if there is none."""
    dtype = np.dtype(tensor.dtype)
    wanted_bytes = int(np.prod(tensor.shape, dtype=np.int64)) * dtype.itemsize
    if not address:
        raise UsageError(f"{tensor.name} has no memory yet; call allocate_tensors() first")
    if size_bytes != wanted_bytes:
        raise UsageError(f"{tensor.name} {list(tensor.shape)} takes {wanted_bytes} bytes, not {size_bytes}")
    return np.ctypeslib.as_array((ctypes.c_ubyte * size_bytes).from_address(address)).view(dtype).reshape(tensor.shape)
