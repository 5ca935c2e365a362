"""One input or output of a Program: copies it from and to other memory, in either layout.

Integers of 8 bits lie as steps in a program's memory (quantization.py), and as bytes in all other.
Whoever reads a tensor of a program by a shader, or writes it, issues the barriers between this and the program's run:
here are those between the steps of one copy.
"""

import ctypes
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ..base.errors import DeviceError
from ..model.graph import Tensor
from ..model.layout import PHWC4, TEXEL_BYTES
from ..plan.hazards import STORAGE, TEXTURE_FETCH
from ..targets.gl import opengl
from ..targets.gl.gl_buffers import clear_buffer, copy_span, device_buffer, write_buffer
from ..targets.gl.opengl import BufferRange, BufferSpan
from ..targets.gl.runtime import TensorRange
from .gl_objects import Bound, BoundTexture
from .repacking import (
    RepackingPrograms,
    array_bytes,
    byte_format,
    is_array,
    pack,
    pack_bytes,
    staging_bytes,
    unpack,
    unpack_bytes,
    words_bytes,
)
from .texture_passes import tensor_to_texture, texture_to_tensor


@dataclass(frozen=True)
class _Staging:
    """A buffer for a tensor in another layout, and a buffer texture over its texels, 0 where it has too many."""

    span: BufferRange
    texture: int


class TensorIoBinding:
    """One tensor. Use it only on the context's thread; release() frees what it has made."""

    def __init__(self, shaders: RepackingPrograms, place: TensorRange, tensor: Tensor) -> None:
        """`tensor` is as in the file: an array of floats, or of integers of 8 bits."""
        self._shaders, self._context, self._gl = shaders, shaders.context, shaders.context.gl
        self.place, self._name, self._bytes = place, tensor.name, byte_format(tensor)
        self._is_array, self._array_bytes = is_array(place.shape, place.storage), array_bytes(place.shape)
        self._padding_bytes = place.size_bytes - self._array_bytes  # behind an array
        # NumPy packs up to three channels in a third of the CPU time of a shader that runs on the CPU.
        has_floats = self._is_array and not self._bytes
        self._is_packed_in_ram = self._context.is_software and place.shape.slices == 1 and not has_floats
        self._staged: dict[str, _Staging] = {}  # by layout

    # Into the tensor, padding lanes included: its memory may have been another tensor's since -------------------------

    def upload(self, values: npt.NDArray[Any]) -> None:
        """From a contiguous array in RAM, of the type in the file."""
        self._gl.glMemoryBarrier(opengl.BUFFER_UPDATE_BARRIER_BIT)  # shaders may have written there before
        if self._is_packed_in_ram:
            self._write_lanes(values)
            return
        if self._bytes:
            write_buffer(self._context, self._byte_target(), values.ctypes.data)
            self._pack_bytes()
            return
        write_buffer(self._context, self._array_target(), values.ctypes.data)
        self._pack()

    def copy_from(self, source: "TensorIoBinding") -> None:
        """From the same tensor of another program in this context."""
        if source.place.storage == self.place.storage:
            self._copy(source.place, self.place)
        else:
            self._copy(source._floats(), self._array_target())
            self._pack()

    def read_bound(self, bound: Bound) -> None:
        """From what the caller has bound. Padding lanes of PHWC4 are to be zero there."""
        if isinstance(bound, BoundTexture):
            self._gl.glMemoryBarrier(STORAGE)  # kernels of the run before may still read what is written here
            texture_to_tensor(self._shaders, bound.name, self.place, self._bytes)
        elif bound.layout == "PHWC4":
            self._copy(bound.span, self.place)
        elif self._bytes:
            self._copy(bound.span, self._byte_target())
            self._pack_bytes()
        else:
            self._copy(bound.span, self._array_target())
            self._pack()

    # Out of the tensor --------------------------------------------------------------------------------------------

    def array(self) -> BufferRange:
        """Where it lies as an array of the type in the file, after repacking it if it does not lie so anyway."""
        if not self._bytes:
            return self._floats()
        target = self._byte_target()
        self._gl.glMemoryBarrier(STORAGE | TEXTURE_FETCH)
        unpack_bytes(self._shaders, self.place, self._bytes, self._staging("bytes").span)
        return target

    def _floats(self) -> BufferRange:
        """Where it lies as an array of floats."""
        if self._is_array:
            return self._array_target()
        staging = self._staging("BHWC")
        self._gl.glMemoryBarrier(STORAGE | TEXTURE_FETCH)
        unpack(self._shaders, self.place.shape, self.place, self.place.texture, staging.span)
        return self._array_target()

    def write_bound(self, bound: Bound) -> None:
        """To what the caller has bound."""
        if isinstance(bound, BoundTexture):
            self._gl.glMemoryBarrier(STORAGE | TEXTURE_FETCH | opengl.SHADER_IMAGE_ACCESS_BARRIER_BIT)
            tensor_to_texture(self._shaders, self.place, bound.name, bound.image_format, self._bytes)
        else:
            self._copy(self._packed() if bound.layout == "PHWC4" else self.array(), bound.span)

    def release(self) -> None:
        """Free all GL objects; a second call does nothing."""
        for staging in self._staged.values():
            self._gl.delete("Buffers", staging.span.buffer)
            if staging.texture:
                self._gl.delete("Textures", staging.texture)
        self._staged.clear()

    # Steps --------------------------------------------------------------------------------------------------------

    def _array_target(self) -> BufferRange:
        """Where it is written and read as an array of floats: the tensor itself, or a buffer to be repacked from."""
        if self._is_array:
            return BufferRange(self.place.buffer, self.place.offset_bytes, self._array_bytes)
        return BufferRange(self._staging("BHWC").span.buffer, 0, self._array_bytes)

    def _byte_target(self) -> BufferRange:
        """Where it is written and read as an array of bytes; behind it the last word is filled up."""
        return BufferRange(self._staging("bytes").span.buffer, 0, self.place.shape.pixels * self.place.shape.channels)

    def _pack_bytes(self) -> None:
        """From the array of bytes to the tensor."""
        assert self._bytes
        self._gl.glMemoryBarrier(STORAGE)  # as below
        pack_bytes(self._shaders, self.place.shape, self._bytes, self._staging("bytes").span, self.place)

    def _write_lanes(self, values: npt.NDArray[Any]) -> None:
        place, channels = self.place, self.place.shape.channels
        zero_point = self._bytes.zero_point if self._bytes else 0
        self._gl.glBindBuffer(opengl.COPY_WRITE_BUFFER, place.buffer)
        span = opengl.COPY_WRITE_BUFFER, place.offset_bytes, place.size_bytes
        address = self._gl.glMapBufferRange(*span, opengl.MAP_WRITE_BIT)
        if not address:
            self._context.check_errors(f"writing {self._name}")
            raise DeviceError(f"{self._context.renderer} has no memory to write {self._name} to")
        memory = (ctypes.c_float * (place.size_bytes // 4)).from_address(address)
        texels, pixels = np.ctypeslib.as_array(memory).reshape(-1, 4), values.reshape(-1, channels)
        for channel in range(channels):
            texels[:, channel] = pixels[:, channel]
        if zero_point:
            texels[:, :channels] -= np.float32(zero_point)
        texels[:, channels:] = 0
        self._gl.glUnmapBuffer(opengl.COPY_WRITE_BUFFER)

    def _pack(self) -> None:
        """From the array to the tensor, if they are two; else zeros behind it."""
        if self._is_array:
            behind = BufferRange(self.place.buffer, self.place.offset_bytes + self._array_bytes, self._padding_bytes)
            if behind.size_bytes:
                clear_buffer(self._context, behind)
        else:
            staging = self._staging("BHWC")
            self._gl.glMemoryBarrier(STORAGE)  # kernels of the run before may still read what is written here
            pack(self._shaders, self.place.shape, staging.span, staging.texture, self.place)

    def _packed(self) -> BufferSpan:
        """Where it lies as PHWC4, after repacking it if it is a plain tensor."""
        if self.place.storage == PHWC4:
            return self.place
        array, packed = self._staging("BHWC"), self._staging("PHWC4")
        self._copy(self.place, array.span)
        self._gl.glMemoryBarrier(STORAGE)
        pack(self._shaders, self.place.shape, array.span, array.texture, packed.span)
        return packed.span

    def _copy(self, source: BufferSpan, target: BufferSpan) -> None:
        """Bytes of one buffer to another, as many as the smaller range has."""
        self._gl.glMemoryBarrier(opengl.BUFFER_UPDATE_BARRIER_BIT)
        copy_span(self._context, source, target)

    @property
    def buffer_bytes(self) -> int:
        """Of the buffers that copies have needed so far."""
        return sum(staging.span.size_bytes for staging in self._staged.values())

    def _staging(self, layout: str) -> _Staging:
        if layout not in self._staged:
            shape = self.place.shape
            sizes = {"PHWC4": PHWC4.size_bytes, "BHWC": staging_bytes, "bytes": words_bytes}
            self._staged[layout] = self._new_buffer(sizes[layout](shape), f"{self._name} as {layout}")
        return self._staged[layout]

    def _new_buffer(self, size_bytes: int, label: str) -> _Staging:
        """Raises DeviceError if there is no memory for it."""
        gl, texture, buffer = self._gl, 0, device_buffer(self._context, size_bytes)
        self._context.label(opengl.BUFFER, buffer, label)
        if size_bytes // TEXEL_BYTES <= self._context.limits.texture_buffer_texels and not self._bytes:
            texture = gl.generate("Textures")
            gl.glBindTexture(opengl.TEXTURE_BUFFER, texture)
            gl.glTexBuffer(opengl.TEXTURE_BUFFER, opengl.RGBA32F, buffer)
        self._context.check_errors(f"allocating {size_bytes} bytes for {label}")
        return _Staging(BufferRange(buffer, 0, size_bytes), texture)
