"""How pictures are uploaded as OpenGL textures: one for each plane, row 0 first.

Planes are uploaded from their own memory, also with padded rows: nothing is copied before, except where another way
than the direct one was measured to be faster (app/frame/textures/upload_path.py).
"""

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from types import TracebackType
from typing import Any

import numpy as np

from texelflow.gpu_delegate.base.errors import DeviceError
from texelflow.gpu_delegate.targets.gl import opengl
from texelflow.gpu_delegate.targets.gl.call_list import ChangingAddress
from texelflow.gpu_delegate.targets.gl.calls import CallCache
from texelflow.gpu_delegate.targets.gl.context import Context
from texelflow.gpu_delegate.targets.glsl.shader import ParameterValue

from ...picture.picture import Picture, PictureFormat, Plane
from .frame_planes import KeptPlanes, frame_defines
from .texture_copies import TexturePicture, copy_in

DEPTH = 3  # buffers of a ring for each plane

_PIXELS = {  # by samples, and bytes of each: as they are stored, and OpenGL's words for them in RAM
    (1, 1): (opengl.R8, opengl.RED, opengl.UNSIGNED_BYTE),
    (1, 2): (opengl.R16, opengl.RED, opengl.UNSIGNED_SHORT),
    (2, 1): (opengl.RG8, opengl.RG, opengl.UNSIGNED_BYTE),
    (4, 1): (opengl.RGBA8, opengl.RGBA, opengl.UNSIGNED_BYTE),
}
_APART = opengl.RG8, opengl.RG, opengl.UNSIGNED_BYTE  # samples of two bytes, for want of textures of such


@dataclass(frozen=True)
class UploadPath:
    """How planes go up: through so many buffers each, 0 for none; an orphaned buffer gets new memory each time.

    times_ms tells what each way took for a frame, where that was measured.
    """

    name: str = "direct"
    buffers: int = 0
    orphaned: bool = False
    times_ms: tuple[tuple[str, float], ...] = ()


DIRECT, RING, ORPHANED = UploadPath(), UploadPath("ring", DEPTH), UploadPath("orphaned", 1, True)


class FrameTextures(KeptPlanes):
    """Textures for pictures of one format, and a count of what went up. `path` is the way that was chosen.

    The last `kept` pictures stay: their age is 0 for the newest, 1 for the one before, and so on.
    """

    def __init__(self, context: Context, format: PictureFormat, path: UploadPath = DIRECT, kept: int = 1) -> None:
        """Raises DeviceError if the device has no textures of that size, or no memory for them."""
        size, limit = format.size, context.limits.texture_size
        if max(size) > limit:
            raise DeviceError(
                f"{size[0]}x{size[1]} pixels are too many for {context.renderer}: at most {limit}x{limit}"
            )
        self.path, self._context = path, context
        self._sets = tuple(
            tuple(_PlaneTexture(context, shape, format.sample_bytes, path) for shape in format.plane_shapes)
            for _ in range(kept)
        )
        super().__init__(format, [tuple(plane.texture for plane in planes) for planes in self._sets])
        self._calls, self._flushes = CallCache(context.calls), -1
        self._picture_bytes = sum(map(prod, format.plane_shapes)) * format.sample_bytes
        context.check_errors(f"making textures for {size[0]}x{size[1]} pixels")

    def upload(self, picture: Picture) -> None:
        """Put a picture into the textures; one that is a texture is copied. Raises ValueError for other planes.

        Where calls are gathered the picture must stay as it is until they are made.
        """
        calls, newest = self._context.calls, (self._newest + 1) % self.kept
        if isinstance(picture, TexturePicture):
            self._newest = newest
            copy_in(self._context, picture.texture, self.textures[0], self.format.size)
            return
        textures, planes = self._sets[newest], picture.planes
        if len(planes) != len(textures) or not all(map(_PlaneTexture.fits, textures, planes)):
            raise self._refused(planes)
        if self._flushes == calls.flushes:  # what was uploaded before is still gathered
            calls.flush()
        self._newest = newest
        pitches = tuple(map(_PlaneTexture.take, textures, planes))
        if self.path.buffers:
            _put(textures, pitches)
        else:
            self._calls.run((newest, pitches), lambda: _put(textures, pitches))
        self._flushes = calls.flushes
        self.uploaded_bytes += self._picture_bytes

    def bind(self, first_unit: int = 0, age: int = 0) -> None:
        """Bind the planes to texture units from `first_unit` on; frame.glsl reads units 0, 1 and 2.

        Raises ValueError for a picture that is not kept.
        """
        for unit, texture in enumerate(self.textures_of(age), first_unit):
            self._context.gl.bind_texture(unit, opengl.TEXTURE_2D, texture)

    def defines(self) -> dict[str, ParameterValue]:
        """The parameters of frame.glsl."""
        return frame_defines(self.format, self.format.sample_bytes == 2 and not self._context.gl.texture_norm16)

    def release(self) -> None:
        """Delete the textures."""
        for plane in (plane for planes in self._sets for plane in planes):
            plane.release()

    def __enter__(self) -> "FrameTextures":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()


def _put(textures: Sequence["_PlaneTexture"], pitches_bytes: Sequence[int]) -> None:
    for texture, pitch_bytes in zip(textures, pitches_bytes, strict=True):
        texture.put(pitch_bytes)


class _PlaneTexture:
    """One plane on the device, and the buffers through which it goes up, if any, used in turn."""

    def __init__(self, context: Context, shape: tuple[int, ...], sample_bytes: int, path: UploadPath) -> None:
        self._gl, self._shape, self._orphaned = context.gl, shape, path.orphaned
        self._pixels = ChangingAddress()
        self._copy: Plane | None = None  # of rows that OpenGL cannot step through
        channels = shape[2] if len(shape) == 3 else 1
        self._sample_bytes, self._pixel_bytes = sample_bytes, channels * sample_bytes
        self._row_bytes = shape[1] * self._pixel_bytes
        self._strides_within = [self._pixel_bytes, sample_bytes][: len(shape) - 1]  # of a row, in bytes
        is_apart = sample_bytes == 2 and not context.gl.texture_norm16
        stored, self._order, self._type = _APART if is_apart else _PIXELS[channels, sample_bytes]
        self.texture = self._gl.generate("Textures")
        self._buffers = [self._gl.generate("Buffers") for _ in range(path.buffers)]
        self._sizes = dict.fromkeys(self._buffers, 0)
        self._gl.glBindTexture(opengl.TEXTURE_2D, self.texture)
        size = shape[1], shape[0]
        self._gl.glTexImage2D(opengl.TEXTURE_2D, 0, stored, *size, 0, self._order, self._type, None)
        context.label(opengl.TEXTURE, self.texture, f"a plane of the frame, {size[0]}x{size[1]}")
        for name in (opengl.TEXTURE_MIN_FILTER, opengl.TEXTURE_MAG_FILTER):
            self._gl.glTexParameteri(opengl.TEXTURE_2D, name, opengl.NEAREST)
        for name in (opengl.TEXTURE_WRAP_S, opengl.TEXTURE_WRAP_T):
            self._gl.glTexParameteri(opengl.TEXTURE_2D, name, opengl.CLAMP_TO_EDGE)

    def fits(self, plane: Plane) -> bool:
        """Whether it is a plane of that shape."""
        return plane.shape == self._shape and plane.itemsize == self._sample_bytes

    def take(self, plane: Plane) -> int:
        """Have it go up at the next put; the bytes from one row to the next."""
        pitch_bytes, *within = plane.strides
        self._copy = None
        if within != self._strides_within or pitch_bytes < self._row_bytes or pitch_bytes % self._pixel_bytes:
            self._copy = plane = np.ascontiguousarray(plane)
            pitch_bytes = plane.strides[0]
        self._pixels.value = plane.ctypes.data
        return pitch_bytes

    def put(self, pitch_bytes: int) -> None:
        """Upload what was taken."""
        address: Any = self._pixels
        row_length = pitch_bytes // self._pixel_bytes
        self._gl.glBindTexture(opengl.TEXTURE_2D, self.texture)
        self._gl.glPixelStorei(opengl.UNPACK_ALIGNMENT, 1)
        if row_length != self._shape[1]:
            self._gl.glPixelStorei(opengl.UNPACK_ROW_LENGTH, row_length)
        if self._buffers:
            self._stage(self._pixels.value, pitch_bytes * (self._shape[0] - 1) + self._row_bytes)
            address = None
        size = self._shape[1], self._shape[0]
        self._gl.glTexSubImage2D(opengl.TEXTURE_2D, 0, 0, 0, *size, self._order, self._type, address)
        if row_length != self._shape[1]:
            self._gl.glPixelStorei(opengl.UNPACK_ROW_LENGTH, 0)
        if self._buffers:
            self._gl.glBindBuffer(opengl.PIXEL_UNPACK_BUFFER, 0)

    def _stage(self, address: int, size_bytes: int) -> None:
        """Copy bytes into the next buffer, and leave that bound, to be read from its beginning."""
        gl = self._gl
        buffer = self._buffers[0]
        self._buffers = [*self._buffers[1:], buffer]
        gl.glBindBuffer(opengl.PIXEL_UNPACK_BUFFER, buffer)
        if self._orphaned or self._sizes[buffer] != size_bytes:
            gl.glBufferData(opengl.PIXEL_UNPACK_BUFFER, size_bytes, None, opengl.STREAM_DRAW)
            self._sizes[buffer] = size_bytes
        bits = opengl.MAP_WRITE_BIT | opengl.MAP_INVALIDATE_BUFFER_BIT
        target = gl.glMapBufferRange(opengl.PIXEL_UNPACK_BUFFER, 0, size_bytes, bits)
        if not target:
            raise DeviceError(f"the device has no memory to upload {size_bytes} bytes through; try a smaller size")
        ctypes.memmove(target, address, size_bytes)
        gl.glUnmapBuffer(opengl.PIXEL_UNPACK_BUFFER)

    def release(self) -> None:
        self._gl.delete("Textures", self.texture)
        for buffer in self._buffers:
            self._gl.delete("Buffers", buffer)
