"""The names of the effects and the limits of looks: constants that need none of the drawing code."""

import re
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Literal, get_args

Effect = Literal[
    "tint", "replace", "color", "blur", "cutout", "mask", "none", "checker", "classes", "picture", "findings",
    "blur-faces", "pixelate-faces",
]  # fmt: skip
LegendSide = Literal["none", "left", "right"]  # of the picture
EFFECTS: tuple[Effect, ...] = get_args(Effect)  # their places are the shaders' numbers
HIDING_FACES: tuple[Effect, ...] = ("blur-faces", "pixelate-faces")  # a finder sees every frame for them
FOUND_EFFECTS: tuple[Effect, ...] = ("findings", *HIDING_FACES)  # of the frame and what was found in it, without masks
MASK_EFFECTS = tuple(each for each in EFFECTS if each not in ("classes", "picture", *FOUND_EFFECTS))  # composite.frag's
_SHOWING_ROOM = (
    "tint",
    "none",
    "classes",
    "picture",
    *FOUND_EFFECTS,
)  # what is behind people, whatever their masks are
COLOR = re.compile(r"#([0-9a-fA-F]{6})")  # what a background may be instead of a file
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


def effect_by_number(number: int, now: Effect, able: Sequence[Effect]) -> Effect:
    """The effect of a number from 1 on, or for 0 the one after `now`, cyclically, that a network is able to have."""
    return EFFECTS[number - 1] if number else able[(able.index(nearest_effect(now, able)) + 1) % len(able)]


def shows_room(effect: Effect, opaque: bool = False) -> bool:
    """Whether a picture with an effect has in it what is behind people; `opaque`: whether transparency is dropped."""
    return effect in _SHOWING_ROOM or (effect == "cutout" and opaque)


def mask_effects(has_classes: bool) -> tuple[Effect, ...]:
    """What can be drawn with masks, the usual effect first; more where there are masks of several classes."""
    return (*MASK_EFFECTS, "classes") if has_classes else MASK_EFFECTS


def picture_effects(has_alpha: bool) -> tuple[Effect, ...]:
    """What picture.frag draws with a network's picture, the usual effect first; more where that has transparency."""
    of_all: tuple[Effect, ...] = ("picture", "none")
    return (*of_all, "replace", "color", "cutout", "mask", "checker") if has_alpha else of_all


def found_effects(besides: tuple[Effect, ...] = ()) -> tuple[Effect, ...]:
    """What can be drawn of what a finder finds, the usual effect first; behind those of a model that it runs beside."""
    return (*besides, *FOUND_EFFECTS) if besides else (*FOUND_EFFECTS, "none")


def with_hidden_faces(effects: tuple[Effect, ...]) -> tuple[Effect, ...]:
    """Of any frame those that hide faces, too; all of it where no finder sees it."""
    return (*effects, *(each for each in HIDING_FACES if each not in effects))


def nearest_effect(wanted: Effect, able: Sequence[Effect]) -> Effect:
    """The effect that is wanted if a network is able to have it, else the first of those that it has."""
    return wanted if wanted in able else able[0]
