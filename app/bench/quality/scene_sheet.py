"""Draws one picture with the frames of all rows, their true outlines, and what each way makes of them.

It shows people whose photographs may not be shown to others: it is for the eyes of whoever measures.
"""

from pathlib import Path

import cv2
import numpy as np

from ...frame.inference.masks import labeled
from ...media.recorder import write_png
from .mask_quality import THRESHOLD
from .scene_frames import SceneFrame
from .scene_photos import ScenePixels

__all__ = ["BEHIND", "MOST_LINES", "SceneSheet"]

MOST_LINES = 24
BEHIND = (90, 190, 90)  # the color before which people are shown
_WIDTH = 400  # pixels of one picture
_OUTLINE = (255, 0, 255)
_IGNORED = np.array((128, 128, 128), np.uint8)


class SceneSheet:
    """Collects one line of pictures for each row: the frame with the true outline, and what each way draws."""

    def __init__(self, path: Path, rows: int) -> None:
        """Of more than MOST_LINES rows, as many are shown, evenly spread."""
        self._path = path
        self._shown = {round(line) for line in np.linspace(0, rows - 1, min(rows, MOST_LINES))}
        self._lines: list[ScenePixels] = []

    def shows(self, row: int) -> bool:
        """Whether a row has a line, by its number."""
        return row in self._shown

    def add(self, name: str, frame: SceneFrame, drawn: dict[str, ScenePixels]) -> None:
        """A line; `drawn` are RGBA (h, w, 4), by the names of their ways."""
        pictures = {f"{name}: true outline": _outlined(frame), **{way: each[..., :3] for way, each in drawn.items()}}
        self._lines.append(np.hstack([labeled(text, _small(picture)) for text, picture in pictures.items()]))

    def write(self) -> None:
        """Write the PNG file. Raises MediaError."""
        if self._lines:
            write_png(self._path, np.vstack(self._lines))


def _outlined(frame: SceneFrame) -> ScenePixels:
    picture = np.ascontiguousarray(frame.rgba[..., :3])
    person = (frame.truth.matte >= THRESHOLD).astype(np.uint8)
    lines, _ = cv2.findContours(person, cv2.RETR_LIST, cv2.CHAIN_APPROX_NONE)
    cv2.drawContours(picture, lines, -1, _OUTLINE, max(1, picture.shape[1] // 640))
    if frame.truth.ignored is not None:
        picture[frame.truth.ignored] = picture[frame.truth.ignored] // 2 + _IGNORED // 2
    return picture


def _small(picture: ScenePixels) -> ScenePixels:
    height = round(picture.shape[0] * _WIDTH / picture.shape[1])
    return np.asarray(
        cv2.resize(np.ascontiguousarray(picture), (_WIDTH, height), interpolation=cv2.INTER_AREA), np.uint8
    )
