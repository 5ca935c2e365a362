"""The names of gestures, which settings have, too."""

from typing import Literal, get_args

__all__ = ["GESTURES", "Gesture"]

Gesture = Literal["hand-raised", "thumb-up", "thumb-down", "open-palm", "fist", "victory"]
GESTURES: tuple[Gesture, ...] = get_args(Gesture)
