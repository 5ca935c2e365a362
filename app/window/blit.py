"""Shows a picture whole in a window, as large as fits, with black bars beside or above it."""

from fractions import Fraction
from functools import lru_cache

from texelflow.gpu_delegate.targets.gl import opengl
from texelflow.gpu_delegate.targets.gl.context import Context

from ..frame.textures.offscreen_target import OffscreenTarget
from ..picture.preprocess import ImageSize
from .glfw_window import Window

_BLACK = (0.0, 0.0, 0.0, 1.0)


@lru_cache(maxsize=8)
def letterbox(aspect: Fraction, size: ImageSize) -> tuple[int, int, int, int]:
    """(x, y, width, height) of the largest picture with an aspect (width / height) in the middle of a window."""
    width, height = size
    wide = max(1, min(width, round(height * aspect)))
    high = max(1, min(height, round(width / aspect)))
    return (width - wide) // 2, (height - high) // 2, wide, high


def blit(picture: OffscreenTarget, place: tuple[int, int, int, int], window: Window) -> None:
    """Draw a picture in a place (x, y, width, height), filtered linearly. The rest of the window is black."""
    if not window.multisampled:

        def call() -> None:
            clear(window)
            _copy(window.context, picture, window.framebuffer, place)

        window.calls.run((picture.framebuffer, picture.size, place), call)
        return
    clear(window)
    wide, high = place[2:]
    scaled = OffscreenTarget(window.context, (wide, high))  # what has samples takes pixels of the same size alone
    _copy(window.context, picture, scaled.framebuffer, (0, 0, wide, high))
    _copy(window.context, scaled, window.framebuffer, place)
    scaled.release()


def _copy(context: Context, picture: OffscreenTarget, framebuffer: int, place: tuple[int, int, int, int]) -> None:
    """All of a picture into a place (x, y, width, height) of a framebuffer."""
    gl, (width, height), (x, y, wide, high) = context.gl, picture.size, place
    gl.glBindFramebuffer(opengl.READ_FRAMEBUFFER, picture.framebuffer)
    gl.glBindFramebuffer(opengl.DRAW_FRAMEBUFFER, framebuffer)
    gl.glBlitFramebuffer(
        0, 0, width, height, x, y, x + wide, y + high, opengl.COLOR_BUFFER_BIT, opengl.LINEAR
    )  # fmt: skip


def clear(window: Window) -> None:
    """Make the whole window black; it is what is drawn into from now on."""
    gl = window.context.gl
    gl.glBindFramebuffer(opengl.DRAW_FRAMEBUFFER, window.framebuffer)
    gl.glClearColor(*_BLACK)
    gl.glClear(opengl.COLOR_BUFFER_BIT)
