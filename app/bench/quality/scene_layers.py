"""Prepares what a scene is composed of, from photographs and mattes of people, in the size of the frame.

A person's own color at the edge, without the background that shines through, is estimated by the two steps of Forte,
"Approximate Fast Foreground Color Estimation", ICIP 2021: colors of the person and of the background nearby are
averaged, and what the averages leave unexplained of the picture is added.
"""

from dataclasses import dataclass
from pathlib import Path

import cv2
import numpy as np

from texelflow.gpu_delegate.base.errors import MediaError

from ...picture.preprocess import Floats, ImageSize
from .scene_data import Background, Levels, Person
from .scene_photos import ScenePixels, read_photo, read_pixels

__all__ = ["Portrait", "background_layer", "estimate_foreground", "read_portrait"]

_FAR, _NEAR = 90, 6  # pixels: sides of the squares that the two steps average over
_SHADE_BLUR = 2.0  # pixels: a dark background has little detail
_LEAST = 1e-5


@dataclass(frozen=True)
class Portrait:
    """A person's picture: RGB (h, w, 3) and gray (h, w), uint8."""

    photo: ScenePixels
    color: ScenePixels  # the person's own, everywhere
    matte: ScenePixels
    ignored: ScenePixels | None  # 255 where nothing is judged
    thing: ScenePixels | None = None  # 255 where it is something that a person holds or wears (scene_things.py)

    def scaled(self, scale: float) -> "Portrait":
        """By averaging where it becomes smaller."""
        height, width = self.matte.shape
        to = round(width * scale), round(height * scale)
        ignored, thing = (None if each is None else _scaled(each, to) for each in (self.ignored, self.thing))
        return Portrait(_scaled(self.photo, to), _scaled(self.color, to), _scaled(self.matte, to), ignored, thing)


def read_portrait(person: Person, folder: Path) -> Portrait:
    """A person's picture as the matte was made for it.

    Raises MediaError for a missing file, CatalogueError for a photograph that has to be fetched first.
    """
    x, y, width, height = person.crop
    matte = read_pixels(folder / "mattes" / f"{person.name}.png", cv2.IMREAD_GRAYSCALE)
    size = matte.shape[1], matte.shape[0]
    if size != (round(width * person.scale), round(height * person.scale)):
        raise MediaError(f"the matte of {person.name} has not the size of its photo; take both from the repository")
    photo = _scaled(read_photo(person, folder)[y : y + height, x : x + width], size)
    path = folder / "mattes" / f"{person.name}_ignore.png"
    ignored = read_pixels(path, cv2.IMREAD_GRAYSCALE) if path.is_file() else None
    return Portrait(photo, estimate_foreground(photo, matte), matte, ignored)


def background_layer(
    background: Background, folder: Path, size: ImageSize, shade: tuple[Levels, Levels] | None
) -> Floats:
    """A picture that covers a frame (h, w, 3), its gain and offset changed for a low contrast. Raises MediaError."""
    picture = read_pixels(folder / "backgrounds" / background.file)
    if background.crop:
        x, y, wide, high = background.crop
        picture = picture[y : y + high, x : x + wide]
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
    """The colors (h, w, 3) of what the matte (h, w) cuts out of a photo (h, w, 3), everywhere."""
    picture, alpha = photo.astype(np.float32), matte[..., None] / np.float32(255)
    person = behind = picture
    for side in (_FAR, _NEAR):
        share = cv2.blur(alpha, (side, side))[..., None]
        near = cv2.blur(person * alpha, (side, side)) / (share + _LEAST)
        behind = cv2.blur(behind * (1 - alpha), (side, side)) / (1 - share + _LEAST)
        person = np.clip(near + alpha * (picture - alpha * near - (1 - alpha) * behind), 0, 255)
    return np.asarray(np.rint(person), np.uint8)


def _scaled(pixels: ScenePixels, size: ImageSize) -> ScenePixels:
    smaller = size[0] < pixels.shape[1]
    way = cv2.INTER_AREA if smaller else cv2.INTER_CUBIC
    return np.asarray(cv2.resize(np.ascontiguousarray(pixels), size, interpolation=way), np.uint8)
