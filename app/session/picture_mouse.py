"""What a mouse does to a picture in a window: the wheel zooms around it, dragging moves what is zoomed, a click points.

Pure: events go in, and where the pictures are (several of a grid show the same part), and another part comes out.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from ..overlay.input_events import Button, Input, Left, Moved, Wheel
from ..overlay.overlay_placement import ScreenArea
from ..settings.settings import MOST_ZOOM

ZOOM_STEP = 1.1  # times, by one press of a key or one step of the wheel
_MOST_STEPS = 100  # at once: more lead no further, and their power is no number
_CLICK_PX = 4.0  # how far the mouse may move while a button is held that only points
_LEFT_BUTTON = 0


@dataclass(frozen=True)
class ZoomedPart:
    """The part of a picture that is shown: how many times it is enlarged, and where its middle is, as fractions."""

    zoom: float
    center: tuple[float, float]

    def around(self, steps: float, place: tuple[float, float]) -> "ZoomedPart":
        """Enlarged by steps; what is at a place of the picture, in fractions of what is shown, stays there."""
        steps = min(max(steps, -_MOST_STEPS), _MOST_STEPS)
        zoom = min(max(self.zoom * ZOOM_STEP**steps, 1.0), MOST_ZOOM)
        shift = 1 / self.zoom - 1 / zoom
        x, y = (middle + (at - 0.5) * shift for middle, at in zip(self._within().center, place, strict=True))
        return ZoomedPart(zoom, (x, y))._within()

    def moved(self, x: float, y: float) -> "ZoomedPart":
        """With the picture drawn along, by fractions of what is shown."""
        left, top = self._within().center
        return replace(self, center=(left - x / self.zoom, top - y / self.zoom))._within()

    def _within(self) -> "ZoomedPart":
        margin = 0.5 / self.zoom
        x, y = (min(max(middle, margin), 1 - margin) for middle in self.center)
        return replace(self, center=(x, y))


@dataclass(frozen=True)
class Pointed:
    """A click: on which of the pictures, and where, as fractions of what is shown of it."""

    picture: int
    x: float
    y: float


class PictureMouse:
    """Where a mouse is, and what it drags, from call to call."""

    def __init__(self) -> None:
        self._at: Moved | None = None
        self._pressed: tuple[int, Moved] | None = None  # on which picture, and where
        self._drags = False

    def follow(
        self, inputs: Sequence[Input], areas: Sequence[ScreenArea], part: ZoomedPart
    ) -> tuple[ZoomedPart, tuple[Pointed, ...]]:
        """The part that is shown after some inputs, and the clicks among them. `areas` are where the pictures are."""
        clicks = list[Pointed]()
        for done in inputs:
            match done:
                case Moved():
                    part = self._move(done, areas, part)
                case Wheel(_, up) if self._at and (place := _place(self._at, areas)):
                    part = part.around(up, (place.x, place.y))
                case Button(number, down) if number == _LEFT_BUTTON:
                    place = _place(self._at, areas) if self._at else None
                    if not down and place and self._pressed and not self._drags:
                        clicks.append(place)
                    self._pressed = (place.picture, self._at) if down and place and self._at else None
                    self._drags = False
                case Left():
                    self._pressed = None
        return part, tuple(clicks)

    def _move(self, to: Moved, areas: Sequence[ScreenArea], part: ZoomedPart) -> ZoomedPart:
        before, self._at = self._at, to
        if self._pressed is None or before is None or self._pressed[0] >= len(areas):
            return part
        picture, begun = self._pressed
        if not self._drags and math.hypot(to.x - begun.x, to.y - begun.y) <= _CLICK_PX:
            return part
        start, self._drags = before if self._drags else begun, True
        area = areas[picture]
        return part.moved((to.x - start.x) / max(1.0, area.width), (to.y - start.y) / max(1.0, area.height))


def _place(at: Moved, areas: Sequence[ScreenArea]) -> Pointed | None:
    """Where a mouse is in the pictures; None beside them."""
    for picture, area in enumerate(areas):
        if area.left <= at.x < area.right and area.top <= at.y < area.bottom:
            return Pointed(picture, (at.x - area.left) / area.width, (at.y - area.top) / area.height)
    return None
