"""Events of mouse and keyboard, in Dear ImGui's terms."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Moved:
    """The mouse is there now: pixels of the framebuffer from its upper left corner, also outside of it."""

    x: float
    y: float


@dataclass(frozen=True)
class Button:
    """A button of the mouse went down or up: 0 left, 1 right, 2 middle."""

    number: int
    down: bool


@dataclass(frozen=True)
class Wheel:
    """The wheel was turned, by so many steps; up and left are positive."""

    across: float
    up: float


@dataclass(frozen=True)
class Held:
    """A key went down or up; the name is one of imgui.Key."""

    name: str
    down: bool


@dataclass(frozen=True)
class Typed:
    """A character was typed, or a whole text pasted."""

    text: str


@dataclass(frozen=True)
class Left:
    """Input was lost (focus changed): everything held down counts as released."""


Input = Moved | Button | Wheel | Held | Typed | Left
