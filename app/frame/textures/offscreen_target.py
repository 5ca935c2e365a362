"""Makes offscreen targets: pictures in the device's memory that are drawn into."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Protocol, runtime_checkable

import moderngl

from texelflow.gpu_delegate.base.errors import DeviceError
from texelflow.gpu_delegate.targets.gl import opengl
from texelflow.gpu_delegate.targets.gl.context import Context

from ...picture.preprocess import ImageSize
from .picture_device import SampleKind, Target

_SAMPLES: Mapping[SampleKind, str] = MappingProxyType(
    {"bytes": "f1", "halves": "f2", "floats": "f4", "codes": "f1", "mask": "f2"}
)
_SINGLE: tuple[SampleKind, ...] = ("codes", "mask")  # of one channel


class OffscreenTarget:
    """A picture in the device's memory, RGBA8, 16F, 32F, or codes, R8, or a mask, R16F.

    Row 0 is the bottom row, as in all framebuffers.

    It may be larger than the frame, for even sizes. `overdrawn` counts how often something was drawn over the picture.
    """

    overdrawn = 0

    def __init__(self, context: Context, size: ImageSize, kind: SampleKind = "bytes") -> None:
        """Raises DeviceError if the device does not draw pictures of that size."""
        limit = (min(side, context.limits.texture_size) for side in context.limits.viewport_size)
        widest, highest = limit
        if size[0] > widest or size[1] > highest:
            most = f"at most {widest}x{highest}"
            raise DeviceError(f"{size[0]}x{size[1]} pixels are too many for {context.renderer}: {most}")
        self.size = size
        try:
            self._texture = context.mgl.texture(size, 1 if kind in _SINGLE else 4, dtype=_SAMPLES[kind])
            self._texture.repeat_x = self._texture.repeat_y = False
            if kind == "floats" and not context.gl.float_linear:  # a filter would make it unreadable
                self._texture.filter = moderngl.NEAREST, moderngl.NEAREST
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


@runtime_checkable
class Uploadable(Protocol):
    """A target in RAM, which OpenGL may have a copy of."""

    def uploaded(self) -> OffscreenTarget:
        """The copy, as new as the target. Raises DeviceError."""


def on_opengl(target: Target) -> OffscreenTarget:
    """A target as OpenGL has it, with a framebuffer: itself, or its copy, which goes up if it is older."""
    if isinstance(target, Uploadable):
        return target.uploaded()
    assert isinstance(target, OffscreenTarget), "a target is in OpenGL's memory or in RAM"
    return target
