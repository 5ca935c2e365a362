"""Shows the picture and its overlay in the window: the last stages of a frame's path."""

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Protocol

from ..frame.stages.frame_pipeline import Stage, gathers_always
from ..frame.textures.offscreen_target import on_opengl
from ..frame.textures.picture_device import Target
from ..media.sources import VideoFrame
from ..overlay.gui import Gui
from ..overlay.input_events import Button, Input, Moved, Wheel
from ..overlay.overlay_placement import ScreenArea
from ..picture.preprocess import ImageSize
from .blit import blit, letterbox
from .glfw_window import Window
from .keys import Key

Part = Callable[[], None]  # draws something with Dear ImGui
_MOST_UNCLEAR = 1000


class ShownPicture(Protocol):
    """What is drawn elsewhere; `target` has the picture, and shown() what a screen shows of it, which may be wider."""

    @property
    def target(self) -> Target: ...

    def shown(self) -> Target: ...


class Screen:
    """Shows a canvas in a window, and `parts` over it. While that is minimized nothing is drawn.

    watches_mouse: whether it is noticed where nothing can be clicked, too; `stirred`: whether keys() found that it was
    moved over the window, or pressed there.
    """

    def __init__(self, window: Window, gui: Gui, canvas: ShownPicture, aspect: Fraction) -> None:
        """`aspect` is the width of the picture divided by its height, as displayed."""
        self.parts: tuple[Part, ...] = ()
        self.watches_mouse = self.stirred = False
        self._sizes: tuple[ImageSize, ...] = ()  # of what is shown, and of the window
        self._place = (0, 0, 0, 0)  # where it is shown there
        self._mouse: Moved | None = None  # where it was last
        self._pointed: list[Input] = []  # what the mouse did beside all that is over the picture
        self._unclear: list[Input] = []  # what it did perhaps to something that is: the next drawing tells
        self._window, self._gui, self._canvas, self._aspect = window, gui, canvas, aspect
        self.stages = (
            Stage("blit", self._if_seen(self._blit), gathers_always),
            Stage("overlay", self._if_seen(self._write), lambda: not self.parts),
            Stage("swap", self._if_seen(window.swap), gathers_always),
        )

    @property
    def picture_area(self) -> ScreenArea:
        """Where in the window the picture is, in pixels; what stands beside it on the left is not in it."""
        x, y, width, high = self._place
        if self._sizes:
            width = width * self._sizes[1][0] // self._sizes[0][0]
        right = x + self._place[2]
        return ScreenArea(right - width, y, right, y + high)

    def keys(self, timeout_s: float = 0) -> list[Key]:
        """The keys pressed since the last call, after waiting for the first event for at most timeout_s.

        Keys that are typed into a text field are not included.
        """
        keys = self._window.events(timeout_s)
        inputs = self._window.inputs()
        self._gui.feed(inputs)
        self._notice(inputs)
        (self._unclear if self._gui.takes_mouse else self._pointed).extend(inputs)
        del self._unclear[:-_MOST_UNCLEAR]
        return [] if self._gui.takes_keys else keys

    def pointed(self) -> list[Input]:
        """What the mouse did to the picture since the last call; what the panel, say, took is not among it."""
        done, self._pointed = self._pointed, []
        return done

    def _notice(self, inputs: Sequence[Input]) -> None:
        """Where the mouse is first is no news."""
        before, (width, height) = self._mouse, self._window.size
        places = [done for done in inputs if isinstance(done, Moved)]
        self._mouse = mouse = places[-1] if places else before
        moved = before is not None and mouse is not None and mouse != before
        is_over = mouse is not None and 0 <= mouse.x < width and 0 <= mouse.y < height
        self.stirred = is_over and (moved or any(isinstance(done, Button) for done in inputs))

    def redraw(self) -> None:
        """The same picture again: in another size, or with other parts."""
        for step in (self._blit, self._write, self._window.swap):
            if not self._window.minimized:
                step()

    def _if_seen(self, step: Callable[[], None]) -> Callable[[VideoFrame], None]:
        def run(frame: VideoFrame) -> None:
            if not self._window.minimized:
                step()

        return run

    def _blit(self) -> None:
        picture, shown, window = self._canvas.target, self._canvas.shown(), self._window
        sizes = shown.size, picture.size, window.size
        if sizes != self._sizes:
            alone = shown.size == picture.size
            aspect = self._aspect if alone else self._aspect * Fraction(shown.size[0], picture.size[0])
            self._sizes, self._place = sizes, letterbox(aspect, window.size)
        blit(on_opengl(shown), self._place, window)

    def _write(self) -> None:
        scale = self._window.scale if self.parts else 1.0
        self._gui.draw(self._window.framebuffer, self._window.size, scale, self.parts)
        taken = (Wheel, Button) if self._gui.has_mouse else ()
        self._pointed += (done for done in self._unclear if not isinstance(done, taken) or _ends(done))
        self._unclear = []
        self._window.points = self._gui.takes_mouse
        self._window.listening = self._gui.takes_mouse or self.watches_mouse


def _ends(done: Input) -> bool:
    """Whether a button is let go: what began over the picture ends there."""
    return isinstance(done, Button) and not done.down
