"""Draws what people of the scenes wear and hold: hats, headphones, phones, cups, and the arms with their hands.

Nothing is read from files: shapes are drawn larger and averaged, so that their mattes are exact. Each is a picture of
CANVAS pixels that is laid over a person as if it were a person, too; what of it is no part of a person is known.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from types import MappingProxyType
from typing import Any

import cv2
import numpy as np
import numpy.typing as npt

from texelflow.gpu_delegate.base.errors import MediaError

from ...picture.preprocess import Floats
from .scene_layers import Portrait
from .scene_photos import ScenePixels

__all__ = ["CANVAS", "THINGS", "drawn_thing"]

CANVAS = 400, 600  # pixels
_FINER = 3  # times, while shapes are drawn
_SKIN, _SHADE = (208, 158, 132), 0.55  # of what is turned away from the light
_ONE = (1.0,)  # what shapes are filled with
_GRAIN = 3.0  # levels of texture

Paint = tuple[int, int, int]
_Point = tuple[float, float]


class _Easel:
    """A picture that shapes are painted into, one over the other; positions are pixels of the canvas."""

    def __init__(self) -> None:
        width, height = CANVAS[0] * _FINER, CANVAS[1] * _FINER
        self.color: Floats = np.zeros((height, width, 3), np.float32)
        self.matte: Floats = np.zeros((height, width), np.float32)
        self.thing: Floats = np.zeros((height, width), np.float32)

    def paint(self, shape: ScenePixels, color: Paint, round_: float = 20, is_thing: bool = False) -> None:
        """A shape (h, w) of 0 and 1 in a color, darker towards its edges by so many pixels, and to the right."""
        inside = cv2.distanceTransform(shape, cv2.DIST_L2, 3) / (round_ * _FINER)
        bulge = np.sqrt(1 - np.square(1 - np.minimum(inside, 1)))
        across = np.linspace(1.06, 0.9, shape.shape[1], dtype=np.float32)
        light = (_SHADE + (1 - _SHADE) * bulge) * across
        painted = shape.astype(bool)
        self.color[painted] = (light[..., None] * np.array(color, np.float32))[painted]
        self.matte[painted], self.thing[painted] = 1, float(is_thing)

    def polygon(self, points: Sequence[_Point], color: Paint, round_: float = 20, is_thing: bool = False) -> None:
        """One with straight sides."""
        shape = self._empty()
        cv2.fillPoly(shape, [np.array([_scaled(point) for point in points], np.int32)], _ONE)
        self.paint(shape, color, round_, is_thing)

    def limbs(self, points: Sequence[_Point], widths: Sequence[float], color: Paint) -> None:
        """A line of round joints, whose width changes from one to the next, of a person."""
        shape = self._empty()
        for (ax, ay), (bx, by), a, b in zip(points, points[1:], widths, widths[1:], strict=False):
            for part in np.linspace(0, 1, 60):
                at = round((ax + part * (bx - ax)) * _FINER), round((ay + part * (by - ay)) * _FINER)
                cv2.circle(shape, at, round((a + part * (b - a)) * _FINER / 2), _ONE, -1)
        self.paint(shape, color, max(widths) / 2)

    def ellipse(self, center: _Point, radii: _Point, color: Paint, round_: float = 20, is_thing: bool = True) -> None:
        """A whole one."""
        shape = self._empty()
        cv2.ellipse(shape, _scaled(center), _scaled(radii), 0, 0, 360, _ONE, -1)
        self.paint(shape, color, round_, is_thing)

    def arc(self, center: _Point, radii: _Point, angles: tuple[float, float], width: float, color: Paint) -> None:
        """A band along an ellipse, of a thing."""
        shape = self._empty()
        cv2.ellipse(shape, _scaled(center), _scaled(radii), 0, *angles, _ONE, round(width * _FINER))
        self.paint(shape, color, width / 2, is_thing=True)

    def card(self, box: tuple[float, float, float, float], corner: float, color: Paint, round_: float = 6) -> None:
        """A rectangle (left, top, right, bottom) with round corners, of a thing."""
        shape = self._empty()
        left, top, right, bottom = (value * _FINER for value in box)
        inset = corner * _FINER
        for x in (left + inset, right - inset):
            for y in (top + inset, bottom - inset):
                cv2.circle(shape, (round(x), round(y)), round(inset), _ONE, -1)
        shape[round(top + inset) : round(bottom - inset), round(left) : round(right)] = 1
        shape[round(top) : round(bottom), round(left + inset) : round(right - inset)] = 1
        self.paint(shape, color, round_, is_thing=True)

    def picture(self) -> Portrait:
        """What was painted, each pixel the mean of those it was drawn with."""
        matte, thing = (cv2.resize(each, CANVAS, interpolation=cv2.INTER_AREA) for each in (self.matte, self.thing))
        light = cv2.resize(self.color, CANVAS, interpolation=cv2.INTER_AREA)
        near, share = cv2.blur(light, (9, 9)), cv2.blur(matte, (9, 9))  # colors reach a little beyond the edge
        own = np.where(
            matte[..., None] > 0.02, light / np.maximum(matte, 0.02)[..., None], near / (share + 1e-3)[..., None]
        )
        grain = np.random.default_rng(0).normal(0, _GRAIN, (*matte.shape, 1))
        color = _bytes(own + cv2.GaussianBlur(grain, (0, 0), 0.8)[..., None])
        return Portrait(color, color, _bytes(matte * 255), None, _bytes(thing * 255))

    def _empty(self) -> ScenePixels:
        return np.zeros(self.matte.shape, np.uint8)


def _scaled(point: _Point) -> tuple[int, int]:
    return round(point[0] * _FINER), round(point[1] * _FINER)


def _bytes(values: npt.NDArray[Any]) -> ScenePixels:
    return np.asarray(np.rint(np.clip(values, 0, 255)), np.uint8)


def _arm(easel: _Easel, cloth: Paint) -> None:
    """A forearm in its sleeve, from below, up to a palm about (200, 250)."""
    easel.limbs([(200, 600), (200, 400)], [112, 84], cloth)
    easel.limbs([(200, 410), (200, 385)], [84, 82], (232, 232, 236))  # the cuff
    easel.limbs([(200, 390), (200, 330)], [58, 54], _SKIN)
    easel.limbs([(200, 320), (200, 255)], [74, 96], _SKIN)


def _fingers(easel: _Easel) -> None:
    """A hand whose fingers close about a thing in front of the palm."""
    for index, (y, length) in enumerate(((215, 58), (243, 64), (271, 60), (297, 50))):
        easel.limbs([(262, y + 8), (262 - length * 0.6, y), (262 - length, y + 3)], [29, 27, 23], _SKIN)
        easel.limbs(
            [(262 - length + 2, y + 3), (262 - length - 1, y + 3)], [13, 11], (226, 186, 170) if index else _SKIN
        )
    easel.limbs([(165, 320), (139, 275), (142, 215)], [40, 34, 27], _SKIN)


def _open_hand(easel: _Easel, cloth: Paint) -> None:
    _arm(easel, cloth)
    for x, tip, top in ((164, 145, 148), (188, 181, 122), (213, 217, 126), (237, 254, 158)):
        easel.limbs([(x, 250), ((x + tip) / 2, (235 + top) / 2), (tip, top)], [29, 27, 20], _SKIN)
    easel.limbs([(228, 310), (268, 275), (285, 232)], [40, 32, 23], _SKIN)


def _phone(easel: _Easel, cloth: Paint) -> None:
    _arm(easel, cloth)
    easel.card((141, 70, 259, 315), 16, (38, 40, 46))
    easel.card((150, 80, 250, 305), 9, (58, 66, 84), 30)
    easel.card((156, 88, 196, 146), 9, (24, 25, 28))
    easel.ellipse((169, 104), (9, 9), (70, 76, 92), 4)
    easel.ellipse((183, 130), (9, 9), (70, 76, 92), 4)
    _fingers(easel)


def _cup(easel: _Easel, cloth: Paint) -> None:
    _arm(easel, cloth)
    easel.arc((128, 235), (42, 48), (70, 290), 17, (208, 62, 48))
    easel.polygon([(128, 160), (274, 160), (264, 308), (138, 308)], (216, 66, 52), 60, is_thing=True)
    easel.ellipse((201, 308), (63, 16), (190, 56, 44), 60)
    easel.ellipse((201, 160), (73, 20), (238, 120, 100), 8)
    easel.ellipse((201, 163), (62, 14), (72, 44, 30), 20)
    _fingers(easel)


def _headphones(easel: _Easel, cloth: Paint) -> None:
    """Worn: the ears are at (85, 330) and (315, 330), the top of the head at (200, 110)."""
    easel.arc((200, 300), (122, 165), (184, 356), 26, (44, 44, 50))
    for x in (76, 324):
        easel.ellipse((x, 335), (34, 62), (34, 35, 40), 22)
        easel.ellipse((x, 335), (20, 44), (96, 98, 108), 16)


def _hat(easel: _Easel, cloth: Paint) -> None:
    """Worn: the forehead is about (200, 420), as wide as from 85 to 315."""
    easel.polygon([(90, 420), (102, 235), (150, 205), (200, 226), (250, 205), (298, 235), (310, 420)], cloth, 60, True)
    easel.polygon([(92, 392), (308, 392), (310, 424), (90, 424)], (30, 28, 28), 40, True)
    easel.ellipse((200, 428), (185, 26), cloth, 16)


# By name: how it is drawn, and the color of the sleeve or of the hat.
THINGS: Mapping[str, tuple[Callable[[_Easel, Paint], None], Paint]] = MappingProxyType(
    {
        "hand": (_open_hand, (34, 38, 56)),
        "phone": (_phone, (34, 38, 56)),
        "cup": (_cup, (34, 38, 56)),
        "orange hand": (_open_hand, (206, 84, 44)),
        "orange phone": (_phone, (206, 84, 44)),
        "orange cup": (_cup, (206, 84, 44)),
        "headphones": (_headphones, (0, 0, 0)),
        "straw hat": (_hat, (214, 182, 120)),
        "felt hat": (_hat, (92, 78, 66)),
    }
)


@lru_cache(maxsize=4)
def drawn_thing(name: str) -> Portrait:
    """A thing by its name. Raises MediaError for one that is not known."""
    if name not in THINGS:
        raise MediaError(f"the table of scenes names a thing '{name}': one of {', '.join(THINGS)} is needed")
    draw, cloth = THINGS[name]
    easel = _Easel()
    draw(easel, cloth)
    return easel.picture()
