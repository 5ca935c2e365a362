"""Copies pictures to the GPU and back."""

import numpy as np
import numpy.typing as npt

from texelflow.app.frame.looks.effects import Effect
from texelflow.app.frame.textures.offscreen_target import OffscreenTarget
from texelflow.app.picture.preprocess import ImageSize
from texelflow.gpu_delegate.targets.gl import opengl
from texelflow.gpu_delegate.targets.gl.context import Context

Bytes = npt.NDArray[np.uint8]


def put(context: Context, target: OffscreenTarget, rgba: Bytes) -> None:
    """Replace a target's picture by (h, w, 4), the top row first."""
    stored = np.ascontiguousarray(rgba[::-1])
    context.gl.glActiveTexture(opengl.TEXTURE0)
    context.gl.glBindTexture(opengl.TEXTURE_2D, target.texture)
    context.gl.glPixelStorei(opengl.UNPACK_ALIGNMENT, 1)
    pixels = (opengl.RGBA, opengl.UNSIGNED_BYTE, stored.ctypes.data)
    context.gl.glTexSubImage2D(opengl.TEXTURE_2D, 0, 0, 0, *target.size, *pixels)


def pixels_of(context: Context, framebuffer: int, size: ImageSize) -> Bytes:
    """What a framebuffer has, (h, w, 4), its row 0 first; waits for it."""
    found = np.zeros((size[1], size[0], 4), np.uint8)
    context.gl.glBindFramebuffer(opengl.READ_FRAMEBUFFER, framebuffer)
    context.gl.glPixelStorei(opengl.PACK_ALIGNMENT, 1)
    context.gl.glReadPixels(0, 0, *size, opengl.RGBA, opengl.UNSIGNED_BYTE, found.ctypes.data)
    return found


def target_of(context: Context, rgba: Bytes) -> OffscreenTarget:
    """A target that holds the picture (h, w, 4)."""
    target = OffscreenTarget(context, (rgba.shape[1], rgba.shape[0]))
    put(context, target, rgba)
    return target


class Easel:
    """Pictures as outputs want them: what was painted last, whatever the effect, but each effect in its own shade."""

    def __init__(self, context: Context, size: tuple[int, int]) -> None:
        self.target = OffscreenTarget(context, size)
        self._others: dict[Effect, OffscreenTarget] = {
            "mask": OffscreenTarget(context, size),
            "cutout": OffscreenTarget(context, size),
        }
        self._context = context

    def drawn(self, effect: Effect) -> OffscreenTarget:
        return self._others[effect]

    def paint(self, rgba: Bytes, effect: Effect | None = None) -> None:
        """Put (h, w, 4) where the picture is, or where an effect is."""
        put(self._context, self.target if effect is None else self._others[effect], rgba)

    def release(self) -> None:
        for target in (self.target, *self._others.values()):
            target.release()
