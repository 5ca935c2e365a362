"""Makes the frames of a row of the scenes as a camera would give them, with the truth about each.

The same row gives the same frames. A few frames are in RAM, and what does not change is made once.
"""

import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import cv2
import numpy as np
import numpy.typing as npt

from ...picture.preprocess import Floats, ImageSize
from .mask_quality import Truth, outline
from .scene_data import Attached, Person, Placed, Pose, SceneRow
from .scene_layers import Portrait, background_layer
from .scene_photos import ScenePixels
from .scene_things import CANVAS, drawn_thing

__all__ = ["FAR", "PIXELS", "SceneFrame", "scene_frames"]

PIXELS = 640 * 480  # where lengths and areas are stated
FAR = 12  # pixels there

_COLOR_NOISE = 0.4  # of that of luma
_MOST_OFFSET = 64  # pixels by which the field of noise is moved from frame to frame
_IGNORED_MARGIN = 4  # pixels around what is not judged
SWING_FRAMES = 16  # in which what is held goes to and fro
_Homography = npt.NDArray[np.float64]


@dataclass(frozen=True)
class SceneFrame:
    """One frame, RGBA (h, w, 4); the person's light in it, RGB (h, w, 3) of 0 to 255 times the matte; and its truth.

    things: where something is held or worn, (h, w), 0 to 1, a part of the truth; None where nothing is.
    """

    rgba: ScenePixels
    light: Floats
    truth: Truth
    things: Floats | None = None

    @cached_property
    def far(self) -> npt.NDArray[np.bool_]:
        """Where the true outline is further away than FAR, scaled by the frame's size; everywhere if there is none."""
        line = outline(self.truth.matte)
        if not line.any():
            return np.ones(line.shape, bool)
        away = cv2.distanceTransform(1 - line, cv2.DIST_L2, cv2.DIST_MASK_PRECISE)
        return np.asarray(away > FAR * np.sqrt(line.size / PIXELS), bool)

    @cached_property
    def at_outline(self) -> tuple[npt.NDArray[np.intp], Floats, Floats]:
        """The pixels of the truth's band, counted row by row: their numbers (n,), light (n, 3) and matte (n, 1)."""
        band = np.flatnonzero(self.truth.band)
        return band, self.light.reshape(-1, 3)[band], self.truth.matte.reshape(-1, 1)[band]


def scene_frames(row: SceneRow, folder: Path, portrait_of: Callable[[Person], Portrait]) -> Iterator[SceneFrame]:
    """The frames of a row. Raises MediaError where a picture is missing."""
    shown = _shown(row, portrait_of)
    behind = background_layer(row.background, folder, row.size, row.shade) if row.background else None
    condition = row.condition
    rng = np.random.default_rng(zlib.crc32(row.name.encode()))
    noise = _noise(rng, row.size, condition.noise)
    for number in range(condition.frames):
        poses = condition.path[number], condition.path[-1 - number]  # the second person goes it backwards
        homes = [_place(placed, poses[index % 2], row.size) for index, placed in enumerate(row.people)]
        places = [
            homes[index] if thing is None else _held(thing, row.people[index], homes[index], number, row.size)
            for index, thing, _ in shown
        ]
        layers = [layer for _, _, layer in shown]
        light, matte, ignored, things = _people(layers, places, row.size, behind is not None)
        if behind is not None:
            picture = light + behind * (1 - matte[..., None])
        else:
            picture = _warped(layers[0].photo, places[0], row.size, whole=False).astype(np.float32)
        x, y = rng.integers(0, _MOST_OFFSET, 2)
        picture = picture * condition.gain + noise[y : y + row.size[1], x : x + row.size[0]]
        held = things if row.things else None
        yield SceneFrame(_through_camera(picture), light * condition.gain, Truth(matte, ignored), held)


def _shown(row: SceneRow, portrait_of: Callable[[Person], Portrait]) -> Sequence[tuple[int, Attached | None, Portrait]]:
    """What is shown, the first ones behind the others: each person, by number, and then that person's things."""
    shown = list[tuple[int, Attached | None, Portrait]]()
    for index, placed in enumerate(row.people):
        shown.append((index, None, portrait_of(placed.person).scaled(placed.scale)))
        for thing in row.things:
            if thing.person == index:
                shown.append((index, thing, drawn_thing(thing.thing).scaled(placed.scale * thing.scale)))
    return shown


def _people(
    layers: Sequence[Portrait], places: Sequence[_Homography], size: ImageSize, cut_out: bool
) -> tuple[Floats, Floats, npt.NDArray[np.bool_], Floats]:
    """Light (h, w, 3), matte (h, w), what is not judged, and the matte of things alone, one layer before the other."""
    light: Floats = np.zeros(3, np.float32)
    matte: Floats = np.zeros(1, np.float32)
    things: Floats = np.zeros((size[1], size[0]), np.float32)
    ignored: npt.NDArray[np.bool_] = np.zeros((size[1], size[0]), bool)
    for layer, place in zip(layers, places, strict=True):
        alpha = _warped(layer.matte, place, size, whole=cut_out) / np.float32(255)
        own = _warped(layer.color, place, size, whole=False)
        colored: Floats = np.multiply(own, alpha[..., None], dtype=np.float32)
        through = 1 - alpha
        light, matte = colored + light * through[..., None], alpha + matte * through
        things = things * through
        ignored = ignored & (alpha < 0.5)  # somebody stands before it
        if layer.thing is not None:
            things = things + _warped(layer.thing, place, size, whole=True) / np.float32(255)
        if layer.ignored is not None:
            found = _warped(layer.ignored, place, size, whole=cut_out)
            ignored = ignored | (cv2.dilate(found, np.ones((2 * _IGNORED_MARGIN + 1,) * 2, np.uint8)) > 127)
    return light, matte, ignored, things


def _held(thing: Attached, placed: Placed, home: _Homography, number: int, size: ImageSize) -> _Homography:
    """From the pixels of a scaled thing to those of the frame, in which the person is at home."""
    turn, phase = np.deg2rad(thing.degrees), 2 * np.pi * number / SWING_FRAMES
    cosine, sine, scale = np.cos(turn), np.sin(turn), placed.scale * thing.scale
    x, y = thing.x * placed.scale, thing.y * placed.scale
    turned = np.array([[cosine, -sine, x], [sine, cosine, y], [0, 0, 1]])
    middle = np.array([[1, 0, -CANVAS[0] * scale / 2], [0, 1, -CANVAS[1] * scale / 2], [0, 0, 1]])
    far = thing.swing * size[0] / 640
    swung = np.array([[1, 0, far * np.sin(phase)], [0, 1, far * np.cos(phase) / 2], [0, 0, 1]])
    return np.asarray(swung @ home @ turned @ middle, np.float64)


def _place(placed: Placed, pose: Pose, size: ImageSize) -> _Homography:
    """From the pixels of a scaled portrait to those of the frame."""
    width, height = size
    middle, unit = np.array([[1, 0, width / 2], [0, 1, height], [0, 0, 1]]), width / 640
    lean = np.array([[pose.zoom, 0, 0], [0, pose.zoom, 0], [pose.lean_x / width, pose.lean_y / width, 1]])
    shift = np.array([[1, 0, pose.x * unit], [0, 1, pose.y * unit], [0, 0, 1]])
    start = np.array([[1, 0, placed.x], [0, 1, placed.y], [0, 0, 1]])
    return np.asarray(shift @ middle @ lean @ np.linalg.inv(middle) @ start, np.float64)


def _warped(pixels: ScenePixels, place: _Homography, size: ImageSize, whole: bool) -> ScenePixels:
    """A portrait in the frame; beyond it there is nothing if it is `whole`, else its edge repeated."""
    border = cv2.BORDER_CONSTANT if whole else cv2.BORDER_REPLICATE
    return np.asarray(cv2.warpPerspective(pixels, place, size, flags=cv2.INTER_LINEAR, borderMode=border), np.uint8)


def _noise(rng: np.random.Generator, size: ImageSize, sigma: float) -> Floats:
    """A field (h, w, 3) of sensor noise, larger than the frame, from which each frame gets another part."""
    width, height = size[0] + _MOST_OFFSET, size[1] + _MOST_OFFSET
    luma = rng.standard_normal((height, width, 1), np.float32)
    color = rng.standard_normal((height, width, 3), np.float32)
    return np.asarray((luma + _COLOR_NOISE * color) * np.float32(sigma), np.float32)


def _through_camera(picture: Floats) -> ScenePixels:
    """Levels (h, w, 3) as RGBA, by way of 4:2:0, which cameras and recordings have."""
    rgb = np.asarray(np.rint(np.clip(picture, 0, 255)), np.uint8)
    return np.asarray(cv2.cvtColor(cv2.cvtColor(rgb, cv2.COLOR_RGB2YUV_I420), cv2.COLOR_YUV2RGBA_I420), np.uint8)
