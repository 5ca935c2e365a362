"""A look and the file behind the person, together; and a color as it is written goes in, its numbers come out."""

from dataclasses import dataclass
from pathlib import Path

from .color_names import CSS_COLORS
from .effects import COLOR
from .render import Color, Look


@dataclass(frozen=True)
class ChosenLook:
    """A look, and the file of its background if one was chosen."""

    look: Look
    background: Path | None = None


def parse_color(text: str) -> Color | None:
    """The color that #rrggbb or a name of CSS means, each part from 0 to 1; None for everything else.

    A file that is called as a color is is meant by ./red.
    """
    found = COLOR.fullmatch(text)
    digits = found[1] if found else CSS_COLORS.get(text.lower())
    if digits is None:
        return None
    red, green, blue = bytes.fromhex(digits)
    return red / 255, green / 255, blue / 255
