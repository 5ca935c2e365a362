"""A look and the file behind the person, together; and a colour as it is written goes in, its numbers come out."""

from dataclasses import dataclass
from pathlib import Path

from .effects import COLOUR
from .render import Color, Look


@dataclass(frozen=True)
class ChosenLook:
    """A look, and the file of its background if one was chosen."""

    look: Look
    background: Path | None = None


def parse_color(text: str) -> Color | None:
    """The colour that #rrggbb names, each part from 0 to 1; None for everything else."""
    found = COLOUR.fullmatch(text)
    if found is None:
        return None
    red, green, blue = bytes.fromhex(found[1])
    return red / 255, green / 255, blue / 255
