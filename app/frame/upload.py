"""A picture in RAM goes in, OpenGL textures with the same samples come out: one for each plane, row 0 first."""

from types import TracebackType

import numpy as np

from app.frame.picture import Picture, PictureFormat
from gpu_delegate import opengl
from gpu_delegate.context import Context
from gpu_delegate.errors import DeviceError
from gpu_delegate.shader import Value


class FrameTextures:
    """Textures for pictures of one format, and a count of what went up."""

    def __init__(self, context: Context, format: PictureFormat) -> None:
        """Raises DeviceError if the device has no textures of that size, or no memory for them."""
        size, limit = format.size, context.limits.texture_size
        if max(size) > limit:
            raise DeviceError(
                f"{size[0]}x{size[1]} pixels are too many for {context.renderer}: at most {limit}x{limit}"
            )
        self.format = format
        self.uploaded_bytes = 0
        self._context = context
        gl = context.gl
        self.textures = (gl.generate("Textures"),)
        self.bind()
        gl.glTexImage2D(opengl.TEXTURE_2D, 0, opengl.RGBA8, *size, 0, opengl.RGBA, opengl.UNSIGNED_BYTE, None)
        for name in (opengl.TEXTURE_MIN_FILTER, opengl.TEXTURE_MAG_FILTER):
            gl.glTexParameteri(opengl.TEXTURE_2D, name, opengl.NEAREST)
        context.check_errors(f"making a texture of {size[0]}x{size[1]} pixels")

    def upload(self, picture: Picture) -> None:
        """Put a picture into the textures. Raises ValueError for planes of another shape."""
        width, height = self.format.size
        (rgba,) = picture.planes
        if rgba.shape != (height, width, 4) or rgba.dtype != np.uint8:
            raise ValueError(f"a frame of {width}x{height} RGBA bytes is expected, not {rgba.dtype} {rgba.shape}")
        pixels = np.ascontiguousarray(rgba)
        self.bind()
        self._context.gl.glTexSubImage2D(
            opengl.TEXTURE_2D, 0, 0, 0, width, height, opengl.RGBA, opengl.UNSIGNED_BYTE, pixels.ctypes.data
        )
        self.uploaded_bytes += pixels.nbytes

    def bind(self, first_unit: int = 0) -> None:
        """Bind the planes to texture units from `first_unit` on; frame.glsl reads units 0, 1 and 2."""
        gl = self._context.gl
        for unit, texture in enumerate(self.textures, first_unit):
            gl.glActiveTexture(opengl.TEXTURE0 + unit)
            gl.glBindTexture(opengl.TEXTURE_2D, texture)

    def defines(self) -> dict[str, Value]:
        """The parameters of frame.glsl."""
        return {"STORED_W": self.format.size[0], "STORED_H": self.format.size[1]}

    def release(self) -> None:
        """Delete the textures."""
        for texture in self.textures:
            self._context.gl.delete("Textures", texture)

    def __enter__(self) -> "FrameTextures":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()
