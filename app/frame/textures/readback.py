"""Reads pictures and masks back from the device some frames later, without stopping it.

A ring of buffers: `request` copies into one of them on the device and sets a fence; its bytes are mapped once the fence
has signaled, and not before the next request was made.
"""

import ctypes
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import numpy as np
import numpy.typing as npt

from texelflow.gpu_delegate.base.errors import DeviceError
from texelflow.gpu_delegate.targets.gl import opengl
from texelflow.gpu_delegate.targets.gl.context import Context
from texelflow.gpu_delegate.targets.gl.opengl import BufferSpan

from ...picture.preprocess import ImageSize

Tag = TypeVar("Tag")
ReadBytes = npt.NDArray[np.uint8]

_WAIT_NS = 100_000_000
_MOST_WAITS = 100  # 10 s: a device that takes longer for one frame hangs


@dataclass(frozen=True)
class _Request(Generic[Tag]):
    tag: Tag
    buffer: int
    fence: Any
    size_bytes: int
    rows: int


class ReadbackRing(Generic[Tag]):
    """Read-backs of up to size_bytes each; tags say which frame is which. In: request_*; out: collect and drain."""

    def __init__(self, context: Context, size_bytes: int, depth: int = 3) -> None:
        """Raises DeviceError if the device has no memory for `depth` buffers; depth is 2 or more."""
        if depth < 2:
            raise ValueError("a ring has 2 buffers or more")
        self._context = context
        self._waiting: deque[_Request[Tag]] = deque()
        self._free: deque[int] = deque()
        for _ in range(depth):
            self._free.append(context.gl.generate("Buffers"))
            context.gl.glBindBuffer(opengl.PIXEL_PACK_BUFFER, self._free[-1])
            context.gl.glBufferData(opengl.PIXEL_PACK_BUFFER, size_bytes, None, opengl.STREAM_READ)
            context.label(opengl.BUFFER, self._free[-1], "read-back")
        context.gl.glBindBuffer(opengl.PIXEL_PACK_BUFFER, 0)
        self.size_bytes = size_bytes
        context.check_errors(f"making {depth} read-back buffers of {size_bytes} bytes")

    @property
    def full(self) -> bool:
        """Whether collect must be called before the next request."""
        return not self._free

    def request_picture(self, tag: Tag, framebuffer: int, size: ImageSize) -> None:
        """Begin to read a framebuffer's RGBA bytes, the top row first. Raises ValueError if full or too small."""
        buffer = self._read(framebuffer, size, opengl.RGBA, size[0] * size[1] * 4)
        self._fence(tag, buffer, size[0] * size[1] * 4, rows=size[1])

    def request_codes(self, tag: Tag, framebuffer: int, size: ImageSize) -> None:
        """Begin to read a framebuffer's red bytes, its row 0 first. Raises ValueError if full or too small."""
        buffer = self._read(framebuffer, size, opengl.RED, size[0] * size[1])
        self._fence(tag, buffer, size[0] * size[1])

    def request_buffer(self, tag: Tag, source: BufferSpan) -> None:
        """Begin to read part of a buffer. Raises ValueError if full or too small."""
        gl, buffer = self._context.gl, self._take(source.size_bytes)
        gl.glBindBuffer(opengl.COPY_READ_BUFFER, source.buffer)
        gl.glBindBuffer(opengl.COPY_WRITE_BUFFER, buffer)
        pair = (opengl.COPY_READ_BUFFER, opengl.COPY_WRITE_BUFFER)
        gl.glMemoryBarrier(opengl.BUFFER_UPDATE_BARRIER_BIT)
        gl.glCopyBufferSubData(*pair, source.offset_bytes, 0, source.size_bytes)
        self._fence(tag, buffer, source.size_bytes)

    def collect(self) -> Iterator[tuple[Tag, ReadBytes]]:
        """What has arrived, oldest first, but never the newest request; waits only if the ring is full."""
        while len(self._waiting) > 1 and (self.full or self._signaled(self._waiting[0], 0)):
            yield self._map()

    def drain(self) -> Iterator[tuple[Tag, ReadBytes]]:
        """Everything that is still under way, oldest first, waiting for it: for the end of a recording."""
        while self._waiting:
            yield self._map()

    def release(self) -> None:
        """Delete the buffers; what was not collected is lost."""
        for request in self._waiting:
            self._context.gl.glDeleteSync(request.fence)
            self._free.append(request.buffer)
        self._waiting.clear()
        while self._free:
            self._context.gl.delete("Buffers", self._free.popleft())

    def _read(self, framebuffer: int, size: ImageSize, order: int, size_bytes: int) -> int:
        """The buffer into which the pixels go, tightly packed."""
        gl, buffer = self._context.gl, self._take(size_bytes)
        gl.glBindFramebuffer(opengl.READ_FRAMEBUFFER, framebuffer)
        gl.glBindBuffer(opengl.PIXEL_PACK_BUFFER, buffer)
        gl.glPixelStorei(opengl.PACK_ALIGNMENT, 1)
        gl.glReadPixels(0, 0, *size, order, opengl.UNSIGNED_BYTE, None)
        gl.glBindBuffer(opengl.PIXEL_PACK_BUFFER, 0)
        return buffer

    def _take(self, size_bytes: int) -> int:
        if size_bytes > self.size_bytes:
            raise ValueError(f"{size_bytes} bytes do not fit into a ring of {self.size_bytes}")
        if self.full:
            raise ValueError("the read-back ring is full: collect first")
        return self._free.popleft()

    def _fence(self, tag: Tag, buffer: int, size_bytes: int, rows: int = 1) -> None:
        fence = self._context.gl.glFenceSync(opengl.SYNC_GPU_COMMANDS_COMPLETE, 0)
        self._waiting.append(_Request(tag, buffer, fence, size_bytes, rows))

    def _signaled(self, request: _Request[Tag], timeout_ns: int) -> bool:
        state = self._context.gl.glClientWaitSync(request.fence, opengl.SYNC_FLUSH_COMMANDS_BIT, timeout_ns)
        if state == opengl.WAIT_FAILED:
            self._context.check_errors("waiting for a picture")
        return state in (opengl.ALREADY_SIGNALED, opengl.CONDITION_SATISFIED)

    def _map(self) -> tuple[Tag, ReadBytes]:
        gl, request = self._context.gl, self._waiting[0]
        if not any(self._signaled(request, _WAIT_NS) for _ in range(_MOST_WAITS)):
            raise DeviceError(f"{self._context.renderer} did not finish a frame within 10 s; try a smaller size")
        self._waiting.popleft()
        gl.glDeleteSync(request.fence)
        gl.glBindBuffer(opengl.COPY_READ_BUFFER, request.buffer)
        address = gl.glMapBufferRange(opengl.COPY_READ_BUFFER, 0, request.size_bytes, opengl.MAP_READ_BIT)
        self._free.append(request.buffer)
        if not address:
            self._context.check_errors("mapping a picture")
            raise DeviceError(f"{self._context.renderer} does not hand out a picture; try a smaller size")
        mapped = np.ctypeslib.as_array((ctypes.c_ubyte * request.size_bytes).from_address(address))
        data = mapped.reshape(request.rows, -1)[::-1].copy()  # OpenGL's row 0 is the lowest
        gl.glUnmapBuffer(opengl.COPY_READ_BUFFER)
        return request.tag, data.reshape(-1)


def frame_mask(data: ReadBytes, frame_size: ImageSize) -> npt.NDArray[np.float32]:
    """The mask (H, W) out of the padded rows that MaskToFrame writes."""
    width, height = frame_size
    pitch = -(-width // 4) * 4
    return np.ascontiguousarray(data.view(np.float32).reshape(-1, pitch)[:height, :width])
