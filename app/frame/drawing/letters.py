"""The letters of labels as a picture that shaders read: printable ASCII, as large as a frame wants them."""

from dataclasses import dataclass
from functools import lru_cache
from importlib import resources
from pathlib import Path

import cv2
import numpy as np
import numpy.typing as npt

from ...media.image_file import read_image_file
from ...picture.convert import Rgba, ToRgba
from ...picture.preprocess import ImageSize

_FILE, _STORED, _COLUMNS = "letters.png", (32, 64), 16  # pixels of a letter, letters in a row: make_letters.py
_FIRST, _LAST, _UNKNOWN = ord(" "), ord("~"), ord("?")
_LINES, _LEAST = 36, 11  # of text in a frame's height, as in the overlay; the fewest pixels of a letter


@dataclass(frozen=True)
class Letters:
    """How large letters are, in pixels; all are equally wide."""

    width: int
    height: int

    def places(self, text: str) -> npt.NDArray[np.float32]:
        """Where each letter of a text is in the picture: (N, 2), its left and top. What is not there is a ?."""
        codes = np.array([ord(each) for each in text], np.int64)
        number = np.where((codes < _FIRST) | (codes > _LAST), _UNKNOWN, codes) - _FIRST
        found = np.stack([number % _COLUMNS * self.width, number // _COLUMNS * self.height], -1)
        return np.asarray(found, np.float32)

    def picture(self) -> Rgba:
        """The letters, (H, W, 4): red is how much of a pixel is covered."""
        stored = _stored()
        rows, columns = stored.shape[0] // _STORED[1], stored.shape[1] // _STORED[0]
        cells = stored.reshape(rows, _STORED[1], columns, _STORED[0]).transpose(0, 2, 1, 3).reshape(-1, *_STORED[::-1])
        shrinks = self.height < _STORED[1]
        way = cv2.INTER_AREA if shrinks else cv2.INTER_LINEAR
        drawn = np.stack([cv2.resize(cell, (self.width, self.height), interpolation=way) for cell in cells])
        whole = drawn.reshape(rows, columns, self.height, self.width).transpose(0, 2, 1, 3)
        gray = whole.reshape(rows * self.height, columns * self.width)
        return np.ascontiguousarray(np.repeat(gray[..., None], 4, -1))


def letters_for(frame: ImageSize) -> Letters:
    """Letters that can be read in a frame of that size (width, height), and leave room for what it shows."""
    height = max(_LEAST, round(min(frame) / _LINES))
    return Letters(-(-height // 2), height)


@lru_cache(maxsize=1)
def _stored() -> npt.NDArray[np.uint8]:
    frame = read_image_file(Path(str(resources.files("texelflow.assets") / _FILE)))
    return np.ascontiguousarray(ToRgba(frame.width, frame.height)(frame)[..., 0])
