"""A drawn room in which a hand holds a thing: grids of brightness of its frames, and where the hand is found."""

from dataclasses import dataclass
from functools import lru_cache

import cv2
import numpy as np

from texelflow.app.frame.refinement.held_motion import GRID_COLUMNS
from texelflow.app.models.decoders.found import Finding
from texelflow.app.picture.preprocess import Floats

GRID = GRID_COLUMNS, 120
FRAME = 4 * GRID[0], 4 * GRID[1]
HAND, THING = (20, 26), (18, 22)  # cells; the thing is on the hand, without a gap


@lru_cache(maxsize=8)
def room_texture(width: int, height: int, seed: int, middle: float) -> Floats:
    """Of waves some cells long, 0 to 255."""
    grain = np.random.default_rng(seed).normal(0, 1, (height, width)).astype(np.float32)
    waves = cv2.GaussianBlur(grain, (0, 0), 2)
    return np.asarray(np.clip(middle + waves / waves.std() * 22, 0, 255), np.float32)


def shown(seed: int, hand: tuple[float, float], thing: tuple[float, float] | None, grain: float = 0) -> Floats:
    """A room with a hand, by its left upper corner in cells, and a thing; between cells they are interpolated."""
    picture = room_texture(*GRID, seed, 100)
    for place, (width, height), middle, own in ((thing, THING, 160, 2), (hand, HAND, 140, 1)):
        if place is not None:
            matrix = np.array([[1, 0, place[0]], [0, 1, place[1]]], np.float32)
            matte = cv2.warpAffine(np.ones((height, width), np.float32), matrix, GRID)
            drawn = cv2.warpAffine(
                room_texture(width, height, seed + own, middle), matrix, GRID, borderMode=cv2.BORDER_REPLICATE
            )
            picture = np.asarray(drawn * matte + picture * (1 - matte), np.float32)
    noise = np.random.default_rng(int(1e6 * hand[0]) % 2**32).normal(0, grain, picture.shape) if grain else 0
    return np.asarray(np.clip(picture + noise, 0, 255), np.float32)


def hand_at(place: tuple[float, float], kind: str = "hand") -> Finding:
    x, y = np.meshgrid(np.linspace(0.1, 0.9, 4), np.linspace(0.1, 0.9, 5))
    points = np.stack([place[0] + x.ravel() * HAND[0], place[1] + y.ravel() * HAND[1], 0 * x.ravel()], axis=1)
    return Finding(kind, 1.0, points=np.asarray(points * 4, np.float32))


@dataclass(frozen=True)
class Way:
    """Where a hand goes: there and back, and how fast."""

    seed: int
    speed: float
    angle: float
    grain: float = 0

    def at(self, number: int) -> tuple[float, float]:
        far = self.speed * 4 * np.sin(number / 4)
        return 70 + far * np.cos(self.angle), 55 + far * np.sin(self.angle)


def above(hand: tuple[float, float]) -> tuple[float, float]:
    return hand[0] + 1, hand[1] - THING[1] + 1
