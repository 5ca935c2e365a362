"""Draws a clip of two people with faces and four hands, of the photographs that tests have."""

import math
from pathlib import Path

import numpy as np

from tests.tools.mediapipe_beside.drawn_people import Rgb, photo, placed

__all__ = ["FRAMES", "two_people"]

FRAMES = 48  # the first follows the last
_SIZE = (640, 480)
_DATA = Path(__file__).parents[2] / "data"


def two_people() -> Rgb:
    """Frames uint8 (48, 480, 640, 3), in which all of it moves a little."""
    left, right = (photo(_DATA / "scenes" / "photos" / f"{name}.jpg") for name in ("astronaut", "hopper"))
    people = left[:300, 110:360], right[40:440, 60:460]
    pointing, bent = (photo(_DATA / "people" / f"hand_{name}.jpg") for name in ("point", "half"))
    hands = pointing, bent, pointing[:, ::-1], bent[:, ::-1]
    return np.stack([_frame(people, hands, 2 * math.pi * number / FRAMES) for number in range(FRAMES)])


def _frame(people: tuple[Rgb, ...], hands: tuple[Rgb, ...], angle: float) -> Rgb:
    frame = np.full((*_SIZE[::-1], 3), 110, np.uint8)
    for nth, picture in enumerate(people):
        scale = 320 / picture.shape[1]
        x = 160 + 320 * nth + 8 * math.sin(angle + nth)
        y = picture.shape[0] * scale / 2 - 20 + 4 * math.sin(2 * angle)
        frame = placed(picture, _SIZE, (x, y), scale, 5 * math.sin(angle), frame)
    for nth, picture in enumerate(hands):
        at = 80 + 160 * nth + 5 * math.sin(angle + nth), 385 + 5 * math.sin(2 * angle + nth)
        frame = placed(picture, _SIZE, at, 175 / picture.shape[0], 4 * math.sin(angle + nth), frame)
    return frame
