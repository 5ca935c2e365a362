"""Photographs and mattes of people go in; what a scene is put together from comes out, in the size of the frame.

A person's own colour at the edge, without the background that shines through, is estimated by the two steps of Forte,
"Approximate Fast Foreground Colour Estimation", ICIP 2021: colours of the person and of the background nearby are
averaged, and what the averages leave unexplained of the picture is added.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import cv2
import numpy as np
import numpy.typing as npt

from texelflow.gpu_delegate.errors import MediaError

from ..picture.preprocess import Floats, ImageSize
from .scene_data import Levels, Person, Placed

__all__ = ["Layer", "ScenePixels", "background_layer", "estimate_foreground", "person_layer"]

ScenePixels = npt.NDArray[np.uint8]
PhotoOf = Callable[[Person], ScenePixels]

_FAR, _NEAR = 90, 6  # pixels: sides of the squares that the two steps average over
_SHADE_BLUR = 2.0  # pixels: a dark background has little detail
_LEAST = 1e-5


@dataclass(frozen=True)
class Layer:
    """One person in the scale of a scene: RGB (h, w, 3) and grey (h, w), uint8; and where the left upper corner is."""

    photo: ScenePixels
    colour: ScenePixels  # the person's own, everywhere
    matte: ScenePixels
    ignored: ScenePixels | None  # 255 where nothing is judged
    x: int
    y: int


def person_layer(placed: Placed, folder: Path, photo: ScenePixels) -> Layer:
    """A person as placed; `photo` is the whole picture as its file has it. Raises MediaError for a missing matte."""
    person = placed.person
    x, y, width, height = person.crop
    matte = read_pixels(folder / "mattes" / f"{person.name}.png", cv2.IMREAD_GRAYSCALE)
    size = matte.shape[1], matte.shape[0]
    if size != (round(width * person.scale), round(height * person.scale)):
        raise MediaError(f"the matte of {person.name} has not the size of its photo; take both from the repository")
    working = _scaled(photo[y : y + height, x : x + width], size)
    path = folder / "mattes" / f"{person.name}_ignore.png"
    ignored = read_pixels(path, cv2.IMREAD_GRAYSCALE) if path.is_file() else None
    to = round(size[0] * placed.scale), round(size[1] * placed.scale)
    colour = estimate_foreground(working, matte)
    return Layer(
        _scaled(working, to),
        _scaled(colour, to),
        _scaled(matte, to),
        None if ignored is None else _scaled(ignored, to),
        placed.x,
        placed.y,
    )


def background_layer(path: Path, size: ImageSize, shade: tuple[Levels, Levels] | None) -> Floats:
    """A picture that covers a frame (h, w, 3), its gain and offset changed for a low contrast. Raises MediaError."""
    picture = read_pixels(path)
    height, width = picture.shape[:2]
    scale = max(size[0] / width, size[1] / height)
    wide, high = max(size[0], round(width * scale)), max(size[1], round(height * scale))
    left, top = (wide - size[0]) // 2, (high - size[1]) // 2
    covering = _scaled(picture, (wide, high))[top : top + size[1], left : left + size[0]].astype(np.float32)
    if shade is None:
        return covering
    gain, offset = (np.asarray(each, np.float32) for each in shade)
    return np.asarray(cv2.GaussianBlur(covering, (0, 0), _SHADE_BLUR * size[0] / 640) * gain + offset, np.float32)


def estimate_foreground(photo: ScenePixels, matte: ScenePixels) -> ScenePixels:
    """The colours (h, w, 3) of what the matte (h, w) cuts out of a photo (h, w, 3), everywhere."""
    picture, alpha = photo.astype(np.float32), matte[..., None] / np.float32(255)
    person = behind = picture
    for side in (_FAR, _NEAR):
        share = cv2.blur(alpha, (side, side))[..., None]
        near = cv2.blur(person * alpha, (side, side)) / (share + _LEAST)
        behind = cv2.blur(behind * (1 - alpha), (side, side)) / (1 - share + _LEAST)
        person = np.clip(near + alpha * (picture - alpha * near - (1 - alpha) * behind), 0, 255)
    return np.asarray(np.rint(person), np.uint8)


def read_pixels(path: Path, kind: int = cv2.IMREAD_COLOR) -> ScenePixels:
    """A picture's pixels, RGB or grey. Raises MediaError if there is none."""
    pixels = cv2.imread(str(path), kind) if path.is_file() else None
    if pixels is None:
        raise MediaError(f"'{path}' is no picture; take it from the repository")
    return np.asarray(pixels[..., ::-1] if pixels.ndim == 3 else pixels, np.uint8)


def _scaled(pixels: ScenePixels, size: ImageSize) -> ScenePixels:
    """By averaging where it becomes smaller."""
    smaller = size[0] < pixels.shape[1]
    way = cv2.INTER_AREA if smaller else cv2.INTER_CUBIC
    return np.asarray(cv2.resize(np.ascontiguousarray(pixels), size, interpolation=way), np.uint8)
