"""Lists the backgrounds in a folder, and decodes a small picture of each.

Files may be anything and of any size: what is read, decoded and kept of them is bounded.
"""

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import cv2
import numpy as np
import platformdirs

from texelflow.gpu_delegate.base.errors import MediaError

from ...files import ENDINGS
from ...media.image_file import IMAGE_ENDINGS, read_image_file
from ...media.sources import FileSource
from ...picture.convert import ToRgba
from ...picture.preprocess import ImageSize
from .background import Image, background_file, cover, is_image
from .effects import BUILT_IN_BACKGROUNDS

THUMBNAIL_SIZE: ImageSize = (192, 108)
MOST_FOUND = 60  # backgrounds of a folder
VIDEO_ENDINGS = (*ENDINGS["video"], ".avi", ".gif")
_MOST_LISTED = 5000  # entries of a folder
_MOST_PIXELS = 1 << 26  # of an image that nobody has chosen

FileState = tuple[int, int]  # when it was written, and its size


@dataclass(frozen=True)
class Candidate:
    """A file that may be a background. `name` is what the setting `background` calls it.

    `blur_px` is the standard deviation of a blur, in pixels of the thumbnail: then it is a sample of blurs.
    """

    name: str
    state: FileState
    blur_px: float = 0.0


def default_folder() -> Path:
    """Where a user's own backgrounds are looked for unless another folder is named."""
    return platformdirs.user_pictures_path() / "texelflow"


def built_in_candidates() -> list[Candidate]:
    """The pictures of the package."""
    return _candidates_of(BUILT_IN_BACKGROUNDS)


def backgrounds_in(folder: Path) -> list[Candidate]:
    """The built-in pictures, and the images and videos in a folder by their endings, in the order of names.

    A folder that is not there has none.
    """
    return built_in_candidates() + _candidates_of(_listed(folder))


def _candidates_of(names: Iterable[str]) -> list[Candidate]:
    return [candidate for name in names if (candidate := candidate_of(name))]


def candidate_of(name: str) -> Candidate | None:
    """A background by its name in settings; None where no file is to be seen."""
    try:
        found = background_file(name).stat()
    except (OSError, ValueError):
        return None
    return Candidate(name, (found.st_mtime_ns, found.st_size))


def thumbnail(candidate: Candidate) -> Image:
    """A background as RGBA of THUMBNAIL_SIZE (H, W, 4); of a video its first picture. Raises MediaError."""
    file, blur_px = background_file(candidate.name), candidate.blur_px
    picture = cover(_image(file) if is_image(file) else _first_picture(file), THUMBNAIL_SIZE)
    return np.asarray(cv2.GaussianBlur(picture, (0, 0), blur_px), np.uint8) if blur_px else picture


def _listed(folder: Path) -> Iterator[str]:
    try:
        with os.scandir(os.path.abspath(folder)) as entries:
            paths = sorted((entry.path for entry in islice(entries, _MOST_LISTED)), key=str.casefold)
    except (OSError, ValueError):
        return
    endings = (*IMAGE_ENDINGS, *VIDEO_ENDINGS)
    usable = (path for path in paths if path.lower().endswith(endings) and path.isprintable())
    yield from islice(usable, MOST_FOUND)


def _image(file: Path) -> Image:
    """An image, made smaller while it is converted."""
    frame = read_image_file(file, _MOST_PIXELS)
    scale = min(1.0, max(to / of for to, of in zip(THUMBNAIL_SIZE, (frame.width, frame.height), strict=True)))
    return ToRgba(*(max(1, round(side * scale)) for side in (frame.width, frame.height)))(frame)


def _first_picture(file: Path) -> Image:
    with FileSource(file) as source:
        for frame in source:
            return frame.rgba
    raise MediaError(f"'{file}' holds no picture")
