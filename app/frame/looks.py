"""The options --effect and --background go in; what pictures look like comes out."""

import re
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

import numpy as np
import numpy.typing as npt

from app.frame.render import EFFECTS, Look
from app.media.background import read_image
from gpu_delegate.errors import UsageError

_COLOUR = re.compile(r"#([0-9a-fA-F]{6})")
DEFAULT_BACKGROUND = "background.jpg"  # among the assets


@dataclass(frozen=True)
class Choice:
    """A look, and the picture (H, W, 4) behind the person if it needs one."""

    look: Look
    background: npt.NDArray[np.uint8] | None = None


def choose_look(effect: str | None, background: str | None) -> Choice:
    """What the two options mean together: --background alone replaces the background, by a file or by #rrggbb.

    Raises UsageError, MediaError.
    """
    colour = _COLOUR.fullmatch(background) if background else None
    effect = effect or ("tint" if background is None else "color" if colour else "replace")
    if effect not in EFFECTS:
        raise UsageError(f"--effect {effect}: one of {', '.join(EFFECTS)} is needed")
    if background is not None and effect not in ("replace", "color"):
        raise UsageError(f"--background goes with --effect replace or color, not with {effect}")
    if colour:
        red, green, blue = bytes.fromhex(colour[1])
        return Choice(Look("color", (red / 255, green / 255, blue / 255)))
    if effect == "color" and background is not None:
        raise UsageError(f"--background {background}: the effect color takes a colour such as #20c070")
    if effect == "replace":
        return Choice(Look("replace"), _picture(background))
    return Choice(Look(effect))


def _picture(path: str | None) -> npt.NDArray[np.uint8]:
    if path is not None:
        return read_image(Path(path))
    with resources.as_file(resources.files("assets") / DEFAULT_BACKGROUND) as stored:
        return read_image(stored)
