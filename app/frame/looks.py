"""The options --effect, --background and --blur go in; what pictures look like comes out."""

import re
from dataclasses import dataclass, replace
from importlib import resources
from pathlib import Path

import numpy as np
import numpy.typing as npt

from app.frame.blur import LEAST_RADIUS, MOST_RADIUS
from app.frame.render import EFFECTS, Look
from app.media.background import read_image
from gpu_delegate.errors import UsageError

_COLOUR = re.compile(r"#([0-9a-fA-F]{6})")
DEFAULT_BACKGROUND = "background.jpg"  # among the assets


@dataclass(frozen=True)
class Choice:
    """A look, and the picture (H, W, 4) behind the person if one was chosen."""

    look: Look
    background: npt.NDArray[np.uint8] | None = None


def choose_look(effect: str | None, background: str | None, blur: float | None = None) -> Choice:
    """What the options mean together; what belongs to one effect alone chooses that effect.

    `background` is a file or #rrggbb, `blur` a radius in pixels. Raises UsageError, MediaError.
    """
    colour = _COLOUR.fullmatch(background) if background else None
    if effect is None:
        replaced = "color" if colour else "replace"
        effect = replaced if background is not None else "tint" if blur is None else "blur"
    if effect not in EFFECTS:
        raise UsageError(f"--effect {effect}: one of {', '.join(EFFECTS)} is needed")
    if blur is not None and effect != "blur":
        raise UsageError(f"--blur goes with --effect blur, not with {effect}")
    if blur is not None and not LEAST_RADIUS <= blur <= MOST_RADIUS:
        raise UsageError(f"--blur {blur:g}: a radius from {LEAST_RADIUS:g} to {MOST_RADIUS:g} pixels is needed")
    if background is not None and effect not in ("replace", "color"):
        raise UsageError(f"--background goes with --effect replace or color, not with {effect}")
    if colour:
        red, green, blue = bytes.fromhex(colour[1])
        return Choice(Look("color", (red / 255, green / 255, blue / 255)))
    if effect == "color" and background is not None:
        raise UsageError(f"--background {background}: the effect color takes a colour such as #20c070")
    return Choice(Look(effect, radius=blur), None if background is None else read_image(Path(background)))


def next_effect(look: Look, steps: int = 1) -> Look:
    """The same look with the effect that comes so many steps later in EFFECTS, round and round."""
    return replace(look, effect=EFFECTS[(EFFECTS.index(look.effect) + steps) % len(EFFECTS)])


def default_background() -> npt.NDArray[np.uint8]:
    """The picture (H, W, 4) that replaces the background where none was chosen. Raises MediaError."""
    with resources.as_file(resources.files("assets") / DEFAULT_BACKGROUND) as stored:
        return read_image(stored)
