"""One interface to a window, or to none: keys, pictures to be drawn, whether anybody sees them."""

import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from ..frame.stages.frame_pipeline import Stage
from ..overlay.input_events import Input
from ..overlay.overlay_placement import ScreenArea
from ..window.glfw_window import Window
from ..window.keys import Key
from ..window.screen import Part, Screen


class View(Protocol):
    """What shows pictures and takes keys. `seen`: whether anybody could see a picture now; `stirred`: whether the mouse
    was moved over it, or pressed there, when keys were looked for last; picture_area: where the picture was last."""

    @property
    def stages(self) -> Sequence[Stage]: ...
    @property
    def seen(self) -> bool: ...
    @property
    def closed(self) -> bool: ...
    @property
    def damaged(self) -> bool: ...
    @property
    def fullscreen(self) -> bool: ...
    @property
    def stirred(self) -> bool: ...
    @property
    def picture_area(self) -> ScreenArea: ...

    def keys(self, timeout_s: float) -> list[Key]:
        """The keys pressed since the last call, after waiting at most that long for something to happen."""
        ...

    def watch_mouse(self) -> None:
        """Notice the mouse wherever it is, from now on."""
        ...

    def pointed(self) -> list[Input]:
        """What the mouse did to the picture since the last call, as far as keys() has noticed it."""
        ...

    def dropped(self) -> list[Path]:
        """The files that were dropped onto it since the last call."""
        ...

    def lay_out(self, parts: tuple[Part, ...]) -> None:
        """Draw these over the next pictures."""
        ...

    def redraw(self) -> None:
        """Show the same picture again."""
        ...

    def toggle_fullscreen(self) -> None:
        """Fill the screen, or no more."""
        ...


class WindowView:
    """A window and what it shows."""

    def __init__(self, window: Window, screen: Screen) -> None:
        self.window, self._screen = window, screen
        self.stages: Sequence[Stage] = screen.stages

    @property
    def seen(self) -> bool:
        """Unless it is minimized."""
        return not self.window.minimized

    @property
    def closed(self) -> bool:
        """Whether the user has closed it."""
        return self.window.closed

    @property
    def damaged(self) -> bool:
        """Whether it has to be drawn again."""
        return self.window.damaged

    @property
    def fullscreen(self) -> bool:
        """Whether it fills the screen."""
        return self.window.fullscreen

    @property
    def stirred(self) -> bool:
        """As Screen has it."""
        return self._screen.stirred

    @property
    def picture_area(self) -> ScreenArea:
        """As Screen has it."""
        return self._screen.picture_area

    def watch_mouse(self) -> None:
        """Notice the mouse wherever it is, from now on."""
        self._screen.watches_mouse = True

    def pointed(self) -> list[Input]:
        """As Screen.pointed has it."""
        return self._screen.pointed()

    def keys(self, timeout_s: float) -> list[Key]:
        """As Screen.keys has it."""
        return self._screen.keys(timeout_s)

    def dropped(self) -> list[Path]:
        """As Window.dropped has it."""
        return self.window.dropped()

    def lay_out(self, parts: tuple[Part, ...]) -> None:
        """Draw these over the next pictures."""
        self._screen.parts = parts

    def redraw(self) -> None:
        """Show the same picture again."""
        self._screen.redraw()

    def toggle_fullscreen(self) -> None:
        """Fill the screen, or no more."""
        self.window.toggle_fullscreen()


class NoView:
    """Nobody looks: outputs alone take pictures. wake() ends a wait, from any thread."""

    stages: Sequence[Stage] = ()
    seen = closed = damaged = fullscreen = stirred = False
    picture_area = ScreenArea(0, 0, 0, 0)

    def __init__(self) -> None:
        self._woken = threading.Event()

    def wake(self) -> None:
        """End the wait for something to happen, or the next one."""
        self._woken.set()

    def keys(self, timeout_s: float) -> list[Key]:
        """None; waits until it is woken, but not longer."""
        if timeout_s > 0 and self._woken.wait(timeout_s):
            self._woken.clear()
        return []

    def watch_mouse(self) -> None:
        """There is none."""

    def pointed(self) -> list[Input]:
        """Nothing."""
        return []

    def dropped(self) -> list[Path]:
        """None."""
        return []

    def lay_out(self, parts: tuple[Part, ...]) -> None:
        """Nothing is seen."""

    def redraw(self) -> None:
        """Nothing is seen."""

    def toggle_fullscreen(self) -> None:
        """Nothing is seen."""
