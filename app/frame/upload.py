"""A frame in RAM goes in, an OpenGL texture with the same pixels comes out: RGBA8, row 0 is the top row."""

from types import TracebackType

import numpy as np
import numpy.typing as npt

from app.frame.preprocess import ImageSize
from gpu_delegate import opengl
from gpu_delegate.context import Context
from gpu_delegate.errors import DeviceError


class FrameUploader:
    """A texture for frames of one size, and a count of what went up."""

    def __init__(self, context: Context, size: ImageSize) -> None:
        """Raises DeviceError if the device has no textures of that size, or no memory for one."""
        limit = context.limits.texture_size
        if max(size) > limit:
            raise DeviceError(
                f"{size[0]}x{size[1]} pixels are too many for {context.renderer}: at most {limit}x{limit}"
            )
        self.size = size
        self.uploaded_bytes = 0
        self._context = context
        gl = context.gl
        self.texture = gl.generate("Textures")
        gl.glActiveTexture(opengl.TEXTURE0)
        gl.glBindTexture(opengl.TEXTURE_2D, self.texture)
        gl.glTexImage2D(opengl.TEXTURE_2D, 0, opengl.RGBA8, *size, 0, opengl.RGBA, opengl.UNSIGNED_BYTE, None)
        for name in (opengl.TEXTURE_MIN_FILTER, opengl.TEXTURE_MAG_FILTER):
            gl.glTexParameteri(opengl.TEXTURE_2D, name, opengl.NEAREST)
        context.check_errors(f"making a texture of {size[0]}x{size[1]} pixels")

    def upload(self, rgba: npt.NDArray[np.uint8]) -> int:
        """Put a frame (H, W, 4) into the texture, whose name comes back. Raises ValueError for another shape."""
        width, height = self.size
        if rgba.shape != (height, width, 4) or rgba.dtype != np.uint8:
            raise ValueError(f"a frame of {width}x{height} RGBA bytes is expected, not {rgba.dtype} {rgba.shape}")
        pixels = np.ascontiguousarray(rgba)
        gl = self._context.gl
        gl.glActiveTexture(opengl.TEXTURE0)
        gl.glBindTexture(opengl.TEXTURE_2D, self.texture)
        gl.glTexSubImage2D(
            opengl.TEXTURE_2D, 0, 0, 0, width, height, opengl.RGBA, opengl.UNSIGNED_BYTE, pixels.ctypes.data
        )
        self.uploaded_bytes += pixels.nbytes
        return self.texture

    def release(self) -> None:
        """Delete the texture."""
        self._context.gl.delete("Textures", self.texture)

    def __enter__(self) -> "FrameUploader":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()
