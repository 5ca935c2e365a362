"""What gestures are for: reads the setting, pairs of a gesture and of an action by its name."""

import re
from collections.abc import Mapping
from types import MappingProxyType

from ..tracking.gesture_names import GESTURES, Gesture

__all__ = ["GESTURE_ACTIONS", "parse_gestures"]

GESTURE_ACTIONS: Mapping[str, str] = MappingProxyType(  # names, and the keys of live that do the same
    {
        "freeze": "x",
        "mute": "u",
        "record": "r",
        "screenshot": "s",
        "next-effect": "e",
        "next-background": "b",
        "mirror": "m",
        "follow": "t",
        "virtual-camera": "c",
        "figures": "o",
        **{f"effect-{number}": str(number) for number in range(1, 10)},
    }
)
_SEPARATOR = re.compile(r"\s*,\s*")


def parse_gestures(text: str) -> Mapping[Gesture, str] | None:
    """Which action each gesture is for, of "open-palm=freeze,thumb-up=effect 2"; None where that is not understood."""
    found = dict[Gesture, str]()
    for pair in _SEPARATOR.split(text.strip()) if text.strip() else ():
        name, _, action = (part.strip().lower().replace(" ", "-") for part in pair.partition("="))
        gesture = next((each for each in GESTURES if each == name), None)
        if gesture is None or gesture in found or action not in GESTURE_ACTIONS:
            return None
        found[gesture] = action
    return found
