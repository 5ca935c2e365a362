"""Buffers in the GPU's own memory: how bytes get into them from RAM, and back.

Drivers may move a buffer that the CPU writes or reads directly to the host's memory, from where kernels would then
fetch weights. Buffers without such access (glBufferStorage, no flags) stay; what goes there and comes from there is
copied on the device, through a staging buffer. Software renderers have one memory: there all access is direct.
"""

import ctypes
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ...base.errors import DeviceError
from . import opengl
from .context import Context
from .opengl import BufferRange, BufferSpan

BufferBytes = npt.NDArray[np.uint8]


def is_device_only(context: Context) -> bool:
    """Whether device_buffer makes buffers that the CPU cannot reach."""
    return context.gl.buffer_storage and not context.is_software


def device_buffer(context: Context, size_bytes: int, data: npt.NDArray[Any] | None = None) -> int:
    """A new buffer for kernels, bound as an SSBO, with this content of at least its size; OpenGL errors are pending."""
    gl, name = context.gl, context.gl.generate("Buffers")
    address = None if data is None or not data.size else data.ctypes.data
    gl.glBindBuffer(opengl.SHADER_STORAGE_BUFFER, name)
    if is_device_only(context):
        gl.glBufferStorage(opengl.SHADER_STORAGE_BUFFER, size_bytes, address, 0)
    else:
        gl.glBufferData(opengl.SHADER_STORAGE_BUFFER, size_bytes, address, opengl.DYNAMIC_COPY)
    return name


def write_buffer(context: Context, target: BufferSpan, address: int) -> None:
    """Fill a span from RAM. The caller issues the barrier for what shaders have written there before."""
    gl = context.gl
    if not is_device_only(context):
        gl.glBindBuffer(opengl.COPY_WRITE_BUFFER, target.buffer)
        gl.glBufferSubData(opengl.COPY_WRITE_BUFFER, target.offset_bytes, target.size_bytes, address)
        return
    way = gl.generate("Buffers")
    gl.glBindBuffer(opengl.COPY_READ_BUFFER, way)
    gl.glBufferData(opengl.COPY_READ_BUFFER, target.size_bytes, address, opengl.STREAM_DRAW)
    copy_span(context, BufferRange(way, 0, target.size_bytes), target)
    gl.delete("Buffers", way)


def clear_buffer(context: Context, target: BufferSpan) -> None:
    """Fill a span with zeros; its size is a multiple of 4."""
    if context.gl.is_es:
        write_buffer(context, target, np.zeros(target.size_bytes, np.uint8).ctypes.data)
        return
    context.gl.glBindBuffer(opengl.COPY_WRITE_BUFFER, target.buffer)
    span, zero = (opengl.R32F, target.offset_bytes, target.size_bytes), ctypes.byref(ctypes.c_float())
    context.gl.glClearBufferSubData(opengl.COPY_WRITE_BUFFER, *span, opengl.RED, opengl.FLOAT, zero)


def read_buffer(context: Context, source: BufferSpan) -> BufferBytes:
    """The bytes of a span, now: waits for all that was asked of the device before. Raises DeviceError."""
    way = WayOut(context)
    try:
        return way.read(source)
    finally:
        way.release()


class WayOut:
    """From spans of buffers to RAM in two steps, between which the caller waits for the device, or does other work.

    Who reads again and again keeps one: a new staging buffer for each mask costs an H200 up to 1 ms (at 4K). Use it
    only on the context's thread; release() frees its buffer, and a later read makes another.
    """

    def __init__(self, context: Context) -> None:
        self._context, self._gl = context, context.gl
        self._spans: Sequence[BufferSpan] = ()
        self._buffer = self.size_bytes = 0  # of the buffer for the way, which grows

    def read(self, source: BufferSpan) -> BufferBytes:
        """The bytes of a span, now: waits for all that was asked of the device before. Raises DeviceError."""
        data = np.empty(source.size_bytes, np.uint8)
        self._gl.glMemoryBarrier(opengl.BUFFER_UPDATE_BARRIER_BIT)
        self.take([source])
        self.give([data.ctypes.data])
        return data

    def take(self, spans: Sequence[BufferSpan]) -> None:
        """Have them copied; the caller issues the barrier for what shaders have written there."""
        self._spans = spans
        if not is_device_only(self._context):
            return
        self._make_room(sum(span.size_bytes for span in spans))
        for span, place in zip(spans, self._places(), strict=True):
            copy_span(self._context, span, place)

    def give(self, addresses: Sequence[int]) -> None:
        """What was taken, to RAM; waits for the device if nobody has. Raises DeviceError."""
        if is_device_only(self._context) and self._spans:
            self._map(addresses)
            return
        for span, address in zip(self._spans, addresses, strict=True):
            self._gl.glBindBuffer(opengl.COPY_READ_BUFFER, span.buffer)
            self._gl.read_buffer(opengl.COPY_READ_BUFFER, span.offset_bytes, span.size_bytes, address)

    def release(self) -> None:
        """Delete the buffer; a second call does nothing."""
        if self._buffer:
            self._gl.delete("Buffers", self._buffer)
        self._buffer = self.size_bytes = 0

    def _make_room(self, size_bytes: int) -> None:
        if size_bytes <= self.size_bytes:
            return
        self.release()
        self._buffer, self.size_bytes = self._gl.generate("Buffers"), size_bytes
        self._gl.glBindBuffer(opengl.COPY_WRITE_BUFFER, self._buffer)
        self._gl.glBufferData(opengl.COPY_WRITE_BUFFER, size_bytes, None, opengl.STREAM_READ)

    def _places(self) -> Iterator[BufferRange]:
        """Of the spans in the buffer for the way, one behind the other."""
        start = 0
        for span in self._spans:
            yield BufferRange(self._buffer, start, span.size_bytes)
            start += span.size_bytes

    def _map(self, addresses: Sequence[int]) -> None:
        size_bytes = sum(span.size_bytes for span in self._spans)
        self._gl.glBindBuffer(opengl.COPY_READ_BUFFER, self._buffer)
        mapped = self._gl.glMapBufferRange(opengl.COPY_READ_BUFFER, 0, size_bytes, opengl.MAP_READ_BIT)
        if not mapped:
            self.release()  # a later read makes room anew
            self._context.check_errors("reading from the GPU")
            raise DeviceError(f"{self._context.renderer} does not hand out {size_bytes} bytes; its memory may be full")
        for place, address in zip(self._places(), addresses, strict=True):
            ctypes.memmove(address, mapped + place.offset_bytes, place.size_bytes)
        self._gl.glUnmapBuffer(opengl.COPY_READ_BUFFER)


def copy_span(context: Context, source: BufferSpan, target: BufferSpan) -> None:
    """Copy on the device, as many bytes as the smaller span has."""
    gl, pair = context.gl, (opengl.COPY_READ_BUFFER, opengl.COPY_WRITE_BUFFER)
    for name, span in zip(pair, (source, target), strict=True):
        gl.glBindBuffer(name, span.buffer)
    size_bytes = min(source.size_bytes, target.size_bytes)
    gl.glCopyBufferSubData(*pair, source.offset_bytes, target.offset_bytes, size_bytes)
