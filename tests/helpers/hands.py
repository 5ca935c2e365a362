"""Hands as 21 points in space, made of angles, and pictures of such hands, which MediaPipe's networks know as hands."""

import math
from collections.abc import Mapping
from itertools import pairwise
from types import MappingProxyType

import cv2
import numpy as np
import numpy.typing as npt

from texelflow.app.models.decoders.found import Finding
from texelflow.app.tracking.gesture_names import Gesture

Points = npt.NDArray[np.float64]
Bends = tuple[float, float, float]  # degrees at knuckle, middle and last joint

Image = npt.NDArray[np.uint8]

_SKIN, _WALL = (215.0, 165.0, 130.0), (120.0, 110.0, 95.0)
_FINGERS = ((1, 2, 3, 4), (5, 6, 7, 8), (9, 10, 11, 12), (13, 14, 15, 16), (17, 18, 19, 20))
_RADII = (
    0.19, 0.17, 0.14, 0.12, 0.10, 0.125, 0.11, 0.10, 0.085, 0.13, 0.115, 0.105, 0.09, 0.125, 0.11, 0.10, 0.085, 0.11,
    0.095, 0.085, 0.075,
)  # fmt: skip
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


def drawn_hand(
    shows: Gesture | str, place: tuple[float, float] = (320, 330), turn: float = 0.0, palm: float = 90,
    on: Image | None = None,
) -> Image:  # fmt: skip
    """A picture (480, 640, 3), RGB: a lower arm and a hand with its wrist there, its palm so many pixels long."""
    points = hand_points(shows, turn, (5.0, 10.0)) * palm + (*place, 0.0)
    wall = np.broadcast_to(np.array(_WALL), (480, 640, 3)) if on is None else on
    picture = wall.astype(np.float64)
    arm = points[0] + 2.5 * (points[0] - points[9])
    _lay(picture, points[0], arm, 0.27 * palm, 0.32 * palm)
    bones = [pair for finger in _FINGERS for pair in pairwise(finger)]
    behind = [pair for pair in bones if points[[*pair], 2].mean() > 0.1 * palm]
    for first, last in sorted(behind, key=lambda pair: -points[[*pair], 2].mean()):
        _lay(picture, points[first], points[last], _RADII[first] * palm, _RADII[last] * palm)
    _lay_palm(picture, points[[0, 1, 5, 9, 13, 17], :2], palm)
    for first, last in sorted({*bones} - {*behind}, key=lambda pair: -points[[*pair], 2].mean()):
        _lay(picture, points[first], points[last], _RADII[first] * palm, _RADII[last] * palm)
    soft = cv2.GaussianBlur(picture, (0, 0), 1.0) + np.random.default_rng(0).normal(0, 2, picture.shape)
    return np.clip(soft, 0, 255).astype(np.uint8)


def _lay(picture: Points, begin: Points, end: Points, radius: float, last_radius: float) -> None:
    """A bone with its flesh, lighter in the middle, over a picture."""
    most = math.ceil(max(radius, last_radius)) + 1
    first, last = (corner(begin[:2], end[:2]).astype(int) for corner in (np.minimum, np.maximum))
    columns, rows = (slice(max(0, low - most), high + most + 1) for low, high in zip(first, last, strict=True))
    picture = picture[rows, columns]
    y, x = np.mgrid[rows, columns][:, : picture.shape[0], : picture.shape[1]].astype(np.float64)
    (left, top), (across, down) = begin[:2], end[:2] - begin[:2]
    part = np.clip(((x - left) * across + (y - top) * down) / max(across**2 + down**2, 1e-9), 0, 1)
    there = radius + (last_radius - radius) * part
    apart = np.hypot(x - left - part * across, y - top - part * down) / there
    share = np.clip((1 - apart) * there + 0.5, 0, 1)[..., None]
    light = 0.55 + 0.45 * np.sqrt(np.clip(1 - apart**2, 0, 1))[..., None]
    picture += share * (light * _SKIN - picture)


def _lay_palm(picture: Points, corners: Points, palm: float) -> None:
    mask = np.zeros(picture.shape[:2], np.uint8)
    cv2.fillConvexPoly(mask, cv2.convexHull(corners.astype(np.int32)), (255,))
    side = int(0.26 * palm) | 1
    mask = np.asarray(cv2.dilate(mask, cv2.getStructuringElement(cv2.MORPH_ELLIPSE, (side, side))), np.uint8)
    deep = np.clip(cv2.distanceTransform(mask, cv2.DIST_L2, 5) / (0.25 * palm), 0, 1)[..., None]
    share = cv2.GaussianBlur(mask, (3, 3), 0)[..., None] / 255
    picture += share * ((0.62 + 0.38 * deep**0.6) * _SKIN - picture)


def _turned(axis: int, degrees: float) -> Points:
    cosine, sine = math.cos(math.radians(degrees)), math.sin(math.radians(degrees))
    one, other = [each for each in range(3) if each != axis]
    matrix = np.eye(3)
    matrix[one, one] = matrix[other, other] = cosine
    matrix[one, other], matrix[other, one] = -sine, sine
    return matrix
