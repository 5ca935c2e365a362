"""A size goes in, a place in the device's memory that pictures are drawn into comes out."""

from typing import Literal

import moderngl

from app.frame.preprocess import ImageSize
from gpu_delegate import opengl
from gpu_delegate.context import Context
from gpu_delegate.errors import DeviceError


class OffscreenTarget:
    """A picture in the device's memory, RGBA8, RGBA16F or codes, R8; row 0 is the bottom row, as in all framebuffers.

    It may be larger than the frame, for even sizes.
    """

    def __init__(self, context: Context, size: ImageSize, kind: Literal["bytes", "halves", "codes"] = "bytes") -> None:
        """Raises DeviceError if the device does not draw pictures of that size."""
        limit = (min(side, context.limits.texture_size) for side in context.limits.viewport_size)
        widest, highest = limit
        if size[0] > widest or size[1] > highest:
            most = f"at most {widest}x{highest}"
            raise DeviceError(f"{size[0]}x{size[1]} pixels are too many for {context.renderer}: {most}")
        self.size = size
        try:
            channels, samples = (1 if kind == "codes" else 4), ("f2" if kind == "halves" else "f1")
            self._texture = context.mgl.texture(size, channels, dtype=samples)
            self._framebuffer = context.mgl.framebuffer([self._texture])
        except moderngl.Error as error:
            raise DeviceError(f"{context.renderer} cannot draw {size[0]}x{size[1]} pixels: {error}") from None
        context.label(opengl.TEXTURE, self.texture, f"picture of {size[0]}x{size[1]} {kind}")
        context.check_errors(f"making a picture of {size[0]}x{size[1]} pixels")

    @property
    def framebuffer(self) -> int:
        return self._framebuffer.glo

    @property
    def texture(self) -> int:
        """OpenGL's name of the texture that holds the picture."""
        return self._texture.glo

    def release(self) -> None:
        """Delete the picture."""
        self._framebuffer.release()
        self._texture.release()
