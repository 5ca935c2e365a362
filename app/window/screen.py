"""A picture and what is to be written over it go in; the window shows both: the last stages of a frame's way."""

from collections.abc import Callable
from fractions import Fraction

from app.frame.canvas import Canvas
from app.frame.pipeline import Stage
from app.media.sources import VideoFrame
from app.overlay.gui import Gui
from app.window.blit import blit
from app.window.window import Window

Part = Callable[[], None]  # draws something with Dear ImGui


class Screen:
    """Shows a canvas in a window, and `parts` over it. While that is minimised nothing is drawn."""

    def __init__(self, window: Window, gui: Gui, canvas: Canvas, aspect: Fraction) -> None:
        """`aspect` is the width of the picture divided by its height, as displayed."""
        self.parts: tuple[Part, ...] = ()
        self._window, self._gui, self._canvas, self._aspect = window, gui, canvas, aspect
        steps = {"blit": self._blit, "overlay": self._write, "swap": window.swap}
        self.stages = tuple(Stage(name, self._if_seen(step)) for name, step in steps.items())

    def redraw(self) -> None:
        """The same picture again: in another size, or with other parts."""
        for step in (self._blit, self._write, self._window.swap):
            if not self._window.minimised:
                step()

    def _if_seen(self, step: Callable[[], None]) -> Callable[[VideoFrame], None]:
        def run(frame: VideoFrame) -> None:
            if not self._window.minimised:
                step()

        return run

    def _blit(self) -> None:
        blit(self._canvas.shown(), self._aspect, self._window)

    def _write(self) -> None:
        self._gui.draw(self._window.framebuffer, self._window.size, self._window.scale, self.parts)
