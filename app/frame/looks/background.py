"""Reads background images, and scales them to cover the frame."""

from importlib import resources
from pathlib import Path

import cv2
import numpy as np
import numpy.typing as npt

from texelflow.gpu_delegate.base.errors import MediaError
from texelflow.gpu_delegate.base.wording import meant

from ...media.image_file import image_kind, read_image_file
from ...picture.convert import ToRgba
from ...picture.preprocess import ImageSize
from .color_names import CSS_COLORS
from .effects import BUILT_IN_BACKGROUNDS, DEFAULT_BACKGROUND

Image = npt.NDArray[np.uint8]


def background_file(setting: str) -> Path:
    """The file of a background as a setting names it: by a built-in picture's name, '' for the default, or a path."""
    file = BUILT_IN_BACKGROUNDS.get(setting or DEFAULT_BACKGROUND)
    return Path(str(resources.files("texelflow.assets") / file)) if file else Path(setting)


def is_image(path: Path) -> bool:
    """Whether a file begins as an image file does. Raises MediaError if it is missing or cannot be read."""
    try:
        if path.exists() and not path.is_file():  # a pipe or a device may never end
            raise MediaError(f"cannot read background {path}: not a regular file; use an image or a recording")
        return image_kind(path) == "picture"
    except FileNotFoundError as error:
        near = meant(str(path).lower(), (*BUILT_IN_BACKGROUNDS, *CSS_COLORS))
        raise MediaError(f"cannot read background {path}: {error.strerror}{near}") from None
    except OSError as error:
        raise MediaError(f"cannot read background {path}: {error.strerror}") from None


def read_image(path: Path) -> Image:
    """A picture's file as upright RGBA (H, W, 4), A = 255. Raises MediaError as read_image_file does."""
    frame = read_image_file(path)
    return ToRgba(frame.width, frame.height)(frame)


def cover(rgba: Image, size: ImageSize) -> Image:
    """The middle of a picture (H, W, 4) with the aspect of `size`, scaled to it."""
    (height, width), (to_width, to_height) = rgba.shape[:2], size
    kept_width = max(1, min(width, round(height * to_width / to_height)))
    kept_height = max(1, min(height, round(width * to_height / to_width)))
    left, top = (width - kept_width) // 2, (height - kept_height) // 2
    part = np.ascontiguousarray(rgba[top : top + kept_height, left : left + kept_width])
    shrinks = kept_width > to_width
    return np.asarray(cv2.resize(part, size, interpolation=cv2.INTER_AREA if shrinks else cv2.INTER_LINEAR), np.uint8)
