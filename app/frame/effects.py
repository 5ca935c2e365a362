"""The names of the effects and the limits of looks: constants that need none of the drawing code."""

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Literal, get_args

Effect = Literal["tint", "replace", "color", "blur", "cutout", "mask", "none", "checker"]
EFFECTS: tuple[Effect, ...] = get_args(Effect)  # their places are composite.frag's numbers
COLOUR = re.compile(r"#([0-9a-fA-F]{6})")  # what a background may be instead of a file
BUILT_IN_BACKGROUNDS: Mapping[str, str] = MappingProxyType(  # by name, files among the assets
    {
        "dusk": "background.jpg",
        "room": "background_room.jpg",
        "studio": "background_studio.jpg",
        "lights": "background_lights.jpg",
    }
)
DEFAULT_BACKGROUND = "dusk"
LEAST_RADIUS, MOST_RADIUS = 4.0, 500.0  # of blur, in pixels of the frame
LEAST_GAMMA, MOST_GAMMA = 0.1, 10.0  # of the mask's curve


def effect_by_number(number: int, now: Effect) -> Effect | None:
    """The effect of a number from 1 on, or for 0 the one after `now`, cyclically; None: no such effect."""
    place = EFFECTS.index(now) + 1 if number == 0 else number - 1
    return None if number > len(EFFECTS) else EFFECTS[place % len(EFFECTS)]
