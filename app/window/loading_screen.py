"""Shows the progress of work that comes in steps in a window, which stays responsive."""

from collections.abc import Callable, Generator
from fractions import Fraction
from time import perf_counter
from types import TracebackType
from typing import TypeVar

import numpy as np

from texelflow.gpu_delegate.base.errors import TexelflowError
from texelflow.gpu_delegate.targets.gl import opengl
from texelflow.gpu_delegate.targets.gl.context import Context

from ..frame.textures.offscreen_target import OffscreenTarget
from ..media.sources import VideoFrame
from ..overlay import panel
from ..overlay.gui import Gui
from .blit import blit, clear, letterbox
from .glfw_window import Window
from .keys import action_of

Result = TypeVar("Result")
_TURN_S = 0.03  # of work between two polls of the window
_DIMMED = 3  # times as dark


class WindowClosedError(TexelflowError):
    """The person closed the window before there was anything to play, which is no failure."""

    exit_code = 0

    def __init__(self) -> None:
        super().__init__("the window was closed before the first frame")


class LoadingScreen:
    """What a window shows before it can play: the first frame, dim, and a bar. Leave its with-block to free that."""

    def __init__(self, window: Window, gui: Gui, peek: Callable[[], VideoFrame | None], aspect: Fraction) -> None:
        """`peek` tells the first frame when there is one; `aspect` is that of the whole frame as displayed."""
        self._window, self._gui, self._peek, self._aspect = window, gui, peek, aspect
        self._still: OffscreenTarget | None = None

    def run(self, steps: Generator[tuple[int, int], None, Result], title: str) -> Result:
        """Do all steps, which tell (done, in all). Raises WindowClosedError, and what steps and decoding raise."""
        try:
            while True:
                self._show(title, *next(steps))
                end = perf_counter() + _TURN_S
                while perf_counter() < end:
                    next(steps)
        except StopIteration as finished:
            result: Result = finished.value
            return result
        finally:
            steps.close()

    def _show(self, title: str, done: int, total: int) -> None:
        window = self._window
        actions = [action_of(key) for key in window.events()]
        if window.closed or any(action and action.command in ("quit", "leave") for action in actions):
            raise WindowClosedError
        if self._still is None and (frame := self._peek()):
            self._still = dimmed(window.context, frame)
        if window.minimized:
            return
        if self._still:
            blit(self._still, letterbox(self._aspect, window.size), window)
        else:
            clear(window)
        self._gui.draw(window.framebuffer, window.size, window.scale, [lambda: panel.progress(title, done, total)])
        window.swap()

    def __enter__(self) -> "LoadingScreen":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._still:
            self._still.release()


def dimmed(context: Context, frame: VideoFrame) -> OffscreenTarget:
    """A frame, darkened, as a picture on the device. Raises DeviceError, MediaError."""
    rgba = frame.rgba
    pixels = np.ascontiguousarray(rgba[::-1]) // np.array([_DIMMED, _DIMMED, _DIMMED, 1], np.uint8)
    target = OffscreenTarget(context, (rgba.shape[1], rgba.shape[0]))
    context.gl.glBindTexture(opengl.TEXTURE_2D, target.texture)
    context.gl.glTexSubImage2D(
        opengl.TEXTURE_2D, 0, 0, 0, *target.size, opengl.RGBA, opengl.UNSIGNED_BYTE, pixels.ctypes.data
    )
    return target
