"""Work that comes in steps goes in, its result comes out; the window shows how far it is, and answers meanwhile."""

from collections.abc import Generator
from time import perf_counter
from typing import TypeVar

from app.overlay import panel
from app.overlay.gui import Gui
from app.window.keys import action_of
from app.window.window import Window
from gpu_delegate import opengl
from gpu_delegate.errors import TexelflowError

Result = TypeVar("Result")
_TURN_S = 0.03  # of work between two looks at the window


class WindowClosedError(TexelflowError):
    """The person closed the window before there was anything to play, which is no failure."""

    exit_code = 0

    def __init__(self) -> None:
        super().__init__("the window was closed before the first frame")


def in_view(steps: Generator[tuple[int, int], None, Result], title: str, window: Window, gui: Gui) -> Result:
    """Do all steps, which tell (done, in all). Raises WindowClosedError, and what the steps raise."""
    try:
        while True:
            _show(next(steps), title, window, gui)
            end = perf_counter() + _TURN_S
            while perf_counter() < end:
                next(steps)
    except StopIteration as finished:
        result: Result = finished.value
        return result
    finally:
        steps.close()


def _show(progress: tuple[int, int], title: str, window: Window, gui: Gui) -> None:
    keys = window.events()
    actions = [action_of(key) for key in keys]
    if window.closed or any(action and action.command in ("quit", "leave") for action in actions):
        raise WindowClosedError
    if not window.minimised:
        gl = window.context.gl
        gl.glBindFramebuffer(opengl.DRAW_FRAMEBUFFER, window.framebuffer)
        gl.glClearColor(0, 0, 0, 1)
        gl.glClear(opengl.COLOR_BUFFER_BIT)
        gui.draw(window.framebuffer, window.size, window.scale, [lambda: panel.progress(title, *progress)])
        window.swap()
