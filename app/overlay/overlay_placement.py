"""Finds room in the picture beside what is there already. Coordinates are pixels from the upper left."""

from dataclasses import dataclass

from ..settings.settings import Corner


@dataclass(frozen=True)
class ScreenArea:
    """A rectangle, in pixels; one without any width or height has no room for anything."""

    left: float
    top: float
    right: float
    bottom: float

    @property
    def width(self) -> float:
        """From the left to the right."""
        return max(0.0, self.right - self.left)

    @property
    def height(self) -> float:
        """From the top to the bottom."""
        return max(0.0, self.bottom - self.top)

    def within(self, margin: float, footer: float = 0.0) -> "ScreenArea":
        """Without a margin at each side and, below, a footer."""
        return ScreenArea(self.left + margin, self.top + margin, self.right - margin, self.bottom - margin - footer)


def largest_beside(whole: ScreenArea, taken: ScreenArea | None) -> ScreenArea:
    """The largest part of an area that is wholly to the left, to the right, above or below what is taken of it."""
    if taken is None or not _meet(whole, taken):
        return whole
    parts = (
        ScreenArea(whole.left, whole.top, taken.left, whole.bottom),
        ScreenArea(taken.right, whole.top, whole.right, whole.bottom),
        ScreenArea(whole.left, whole.top, whole.right, taken.top),
        ScreenArea(whole.left, taken.bottom, whole.right, whole.bottom),
    )
    return max(parts, key=lambda part: part.width * part.height)


def in_corner(area: ScreenArea, corner: Corner, wide: float, high: float) -> tuple[float, float]:
    """Where something of that size begins that lies in a corner of an area."""
    below, aside = corner.split("-")
    x = area.left if aside == "left" else area.right - wide
    y = area.top if below == "top" else area.bottom - high
    return x, y


def _meet(one: ScreenArea, other: ScreenArea) -> bool:
    across = min(one.right, other.right) > max(one.left, other.left)
    return across and min(one.bottom, other.bottom) > max(one.top, other.top)
