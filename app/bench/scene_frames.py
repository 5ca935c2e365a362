"""A row of the scenes goes in; its frames come out as a camera would give them, with the truth about each.

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

from ..picture.preprocess import Floats, ImageSize
from .mask_quality import Truth
from .scene_data import Person, Pose, SceneRow
from .scene_layers import Layer, ScenePixels, background_layer, person_layer

__all__ = ["SceneFrame", "scene_frames"]

_COLOUR_NOISE = 0.4  # of that of luma
_MOST_OFFSET = 64  # pixels by which the field of noise is moved from frame to frame
_IGNORED_MARGIN = 4  # pixels around what is not judged
_Homography = npt.NDArray[np.float64]


@dataclass(frozen=True)
class SceneFrame:
    """One frame, RGBA (h, w, 4); the person's light in it, RGB (h, w, 3) of 0 to 255 times the matte; and its truth."""

    rgba: ScenePixels
    light: Floats
    truth: Truth

    @cached_property
    def size(self) -> ImageSize:
        return self.rgba.shape[1], self.rgba.shape[0]


def scene_frames(row: SceneRow, folder: Path, photo_of: Callable[[Person], ScenePixels]) -> Iterator[SceneFrame]:
    """The frames of a row. Raises MediaError where a picture is missing."""
    layers = [person_layer(placed, folder, photo_of(placed.person)) for placed in row.people]
    behind = row.background and background_layer(folder / "backgrounds" / f"{row.background}.jpg", row.size, row.shade)
    condition = row.condition
    rng = np.random.default_rng(zlib.crc32(row.name.encode()))
    noise = _noise(rng, row.size, condition.noise)
    for number in range(condition.frames):
        poses = condition.path[number], condition.path[-1 - number]  # the second person goes it backwards
        places = [_place(layer, poses[index % 2], row.size) for index, layer in enumerate(layers)]
        light, matte, ignored = _people(layers, places, row.size, isinstance(behind, np.ndarray))
        if isinstance(behind, np.ndarray):
            picture = light + behind * (1 - matte[..., None])
        else:
            picture = _warped(layers[0].photo, places[0], row.size, whole=False).astype(np.float32)
        x, y = rng.integers(0, _MOST_OFFSET, 2)
        picture = picture * condition.gain + noise[y : y + row.size[1], x : x + row.size[0]]
        yield SceneFrame(_through_camera(picture), light * condition.gain, Truth(matte, ignored))


def _people(
    layers: Sequence[Layer], places: Sequence[_Homography], size: ImageSize, cut_out: bool
) -> tuple[Floats, Floats, npt.NDArray[np.bool_]]:
    """Light (h, w, 3), matte (h, w) and what is not judged, of all people of a scene, one before the other."""
    light, matte = np.zeros((size[1], size[0], 3), np.float32), np.zeros((size[1], size[0]), np.float32)
    ignored = np.zeros(matte.shape, bool)
    for layer, place in zip(layers, places, strict=True):
        alpha = _warped(layer.matte, place, size, whole=cut_out) / np.float32(255)
        light *= 1 - alpha[..., None]
        light += _warped(layer.colour, place, size, whole=False) * alpha[..., None]
        matte = alpha + matte * (1 - alpha)
        ignored &= alpha < 0.5  # somebody stands before it
        if layer.ignored is not None:
            found = _warped(layer.ignored, place, size, whole=cut_out)
            ignored |= cv2.dilate(found, np.ones((2 * _IGNORED_MARGIN + 1,) * 2, np.uint8)) > 127
    return light, matte, ignored


def _place(layer: Layer, pose: Pose, size: ImageSize) -> _Homography:
    """From a layer's pixels to those of the frame."""
    width, height = size
    middle, unit = np.array([[1, 0, width / 2], [0, 1, height], [0, 0, 1]]), width / 640
    lean = np.array([[pose.zoom, 0, 0], [0, pose.zoom, 0], [pose.lean_x / width, pose.lean_y / width, 1]])
    shift = np.array([[1, 0, pose.x * unit], [0, 1, pose.y * unit], [0, 0, 1]])
    start = np.array([[1, 0, layer.x], [0, 1, layer.y], [0, 0, 1]])
    return np.asarray(shift @ middle @ lean @ np.linalg.inv(middle) @ start, np.float64)


def _warped(pixels: ScenePixels, place: _Homography, size: ImageSize, whole: bool) -> ScenePixels:
    """A layer in the frame; beyond it there is nothing if it is `whole`, else its edge repeated."""
    border = cv2.BORDER_CONSTANT if whole else cv2.BORDER_REPLICATE
    return np.asarray(cv2.warpPerspective(pixels, place, size, flags=cv2.INTER_LINEAR, borderMode=border), np.uint8)


def _noise(rng: np.random.Generator, size: ImageSize, sigma: float) -> Floats:
    """A field (h, w, 3) of sensor noise, larger than the frame, from which each frame gets another part."""
    width, height = size[0] + _MOST_OFFSET, size[1] + _MOST_OFFSET
    luma = rng.standard_normal((height, width, 1), np.float32)
    colour = rng.standard_normal((height, width, 3), np.float32)
    return np.asarray((luma + _COLOUR_NOISE * colour) * np.float32(sigma), np.float32)


def _through_camera(picture: Floats) -> ScenePixels:
    """Levels (h, w, 3) as RGBA, by way of 4:2:0, which cameras and recordings have."""
    rgb = np.asarray(np.rint(np.clip(picture, 0, 255)), np.uint8)
    return np.asarray(cv2.cvtColor(cv2.cvtColor(rgb, cv2.COLOR_RGB2YUV_I420), cv2.COLOR_YUV2RGBA_I420), np.uint8)
