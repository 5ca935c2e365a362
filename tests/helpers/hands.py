"""Hands as 21 points in space, made of angles: what MediaPipe's network would see of a hand that shows something."""

import math
from collections.abc import Mapping
from types import MappingProxyType

import numpy as np
import numpy.typing as npt

from texelflow.app.models.decoders.found import Finding
from texelflow.app.tracking.gesture_names import Gesture

Points = npt.NDArray[np.float64]
Bends = tuple[float, float, float]  # degrees at knuckle, middle and last joint

_STRAIGHT, _BENT, _HALF = (6.0, 8.0, 5.0), (75.0, 95.0, 50.0), (30.0, 35.0, 20.0)
_KNUCKLES = ((-0.28, 1.0), (-0.06, 1.04), (0.14, 0.97), (0.32, 0.85))  # of a right hand's palm towards the camera
_BONES = ((0.42, 0.26, 0.20), (0.46, 0.30, 0.21), (0.42, 0.28, 0.20), (0.33, 0.20, 0.18))
_SPREAD = (-9.0, -1.0, 7.0, 16.0)  # degrees, of straight fingers
_OUT, _BESIDE = (-66.0, -58.0, -52.0), (-25.0, 15.0, 45.0)  # directions of the thumb's bones, from upwards

# The bends of fingers from the index on, directions of the thumb's bones, and how the whole is turned.
_SHOWN: Mapping[str, tuple[tuple[Bends, ...], tuple[float, float, float], float]] = MappingProxyType(
    {
        "open-palm": ((_STRAIGHT,) * 4, _OUT, 0.0),
        "fist": ((_BENT,) * 4, _BESIDE, 0.0),
        "victory": ((_STRAIGHT, _STRAIGHT, _BENT, _BENT), _BESIDE, 0.0),
        "thumb-up": ((_BENT,) * 4, (-50.0, -62.0, -65.0), 63.0),
        "thumb-down": ((_BENT,) * 4, (-50.0, -62.0, -65.0), 243.0),
        "pointing": ((_STRAIGHT, _BENT, _BENT, _BENT), _BESIDE, 0.0),
        "relaxed": ((_HALF,) * 4, _OUT, 0.0),
        "sideways": ((_BENT,) * 4, (-50.0, -62.0, -65.0), 153.0),
    }
)


def hand_points(
    shows: Gesture | str, turn: float = 0.0, tilt: tuple[float, float] = (0.0, 0.0), left: bool = False
) -> Points:
    """(21, 3) of a palm 1 long with its wrist at 0: y downwards, z away from the camera.

    Turned in the picture by degrees, clockwise, then tilted about the picture's horizontal and vertical axis.
    """
    bends, thumb, upright = _SHOWN[shows]
    points = [np.zeros(3)]
    place = np.array([-0.18, 0.22, 0.0])
    points.append(place)
    for direction, length in zip(thumb, (0.36, 0.30, 0.26), strict=True):
        angle = math.radians(direction)
        place = place + length * np.array([math.sin(angle), math.cos(angle), 0.0])
        points.append(place)
    spreads = (-14.0, 8.0, 7.0, 16.0) if shows == "victory" else _SPREAD
    for base, lengths, turns, spread in zip(_KNUCKLES, _BONES, bends, spreads, strict=True):
        place, bent = np.array([*base, 0.0]), 0.0
        points.append(place)
        side = math.radians(spread if turns == _STRAIGHT else 0.0)
        for length, by in zip(lengths, turns, strict=True):
            bent += math.radians(by)
            up = math.cos(bent)
            place = place + length * np.array([math.sin(side) * up, math.cos(side) * up, -math.sin(bent)])
            points.append(place)
    hand = np.array(points) * (-1.0 if left else 1.0, -1.0, 1.0)
    around = _turned(2, (-1 if left else 1) * upright + turn)
    return np.asarray(hand @ (_turned(0, tilt[0]) @ _turned(1, tilt[1]) @ around).T)


def found_hand(
    points: Points, place: tuple[float, float] = (320, 240), size: float = 80, score: float = 0.9
) -> Finding:
    """A hand with its wrist there in the picture, its palm so many pixels long."""
    there = (points * size + (*place, 0)).astype(np.float32)
    return Finding("hand", score, points=there, skeleton="hand", label="right")


def _turned(axis: int, degrees: float) -> Points:
    cosine, sine = math.cos(math.radians(degrees)), math.sin(math.radians(degrees))
    one, other = [each for each in range(3) if each != axis]
    matrix = np.eye(3)
    matrix[one, one] = matrix[other, other] = cosine
    matrix[one, other], matrix[other, one] = -sine, sine
    return matrix
