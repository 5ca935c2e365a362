"""Draws pictures and clips of photographs: turned, small, at the edge, side by side, moving."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import cv2
import numpy as np
import numpy.typing as npt

__all__ = ["DrawnClip", "drawn_clips", "drawn_stills", "photo"]

Rgb = npt.NDArray[np.uint8]
_SIDE = 640  # of photographs, at most
_SIZE = (640, 480)


@dataclass(frozen=True)
class DrawnClip:
    """Frames of one scene; a picture is a clip of one."""

    name: str
    frames: Rgb = field(repr=False)  # (T, H, W, 3)


def photo(path: Path, side: int = _SIDE) -> Rgb:
    """A photograph, its longer side at most so many pixels. Raises ValueError for what is no picture."""
    bgr = cv2.imread(str(path))
    if bgr is None:
        raise ValueError(f"{path}: no picture")
    scale = min(1.0, side / max(bgr.shape[:2]))
    if scale < 1:
        bgr = cv2.resize(bgr, None, fx=scale, fy=scale, interpolation=cv2.INTER_AREA)
    return np.ascontiguousarray(bgr[..., ::-1])


def placed(
    picture: Rgb,
    size: tuple[int, int],
    center: tuple[float, float],
    scale: float,
    degrees: float,
    canvas: Rgb | None = None,
) -> Rgb:
    """A picture, scaled and turned clockwise, with its middle at a place of a gray frame or a canvas."""
    height, width = picture.shape[:2]
    matrix = np.array(cv2.getRotationMatrix2D((width / 2, height / 2), -degrees, scale), np.float64)
    matrix[:, 2] += center[0] - width / 2, center[1] - height / 2
    frame = np.full((size[1], size[0], 3), 110, np.uint8) if canvas is None else canvas.copy()
    shrinks = cv2.INTER_AREA if scale < 0.5 else cv2.INTER_LINEAR
    cv2.warpAffine(picture, matrix, size, frame, flags=shrinks, borderMode=cv2.BORDER_TRANSPARENT)
    return frame


def drawn_stills(name: str, picture: Rgb, other: Rgb) -> Iterator[DrawnClip]:
    """A photograph as it is, and what is made of it and another one."""
    (width, height), (x, y) = _SIZE, (_SIZE[0] / 2, _SIZE[1] / 2)
    fit = min(width / picture.shape[1], height / picture.shape[0])
    half = min(width / 2 / other.shape[1], height / other.shape[0])
    own_half = min(width / 2 / picture.shape[1], height / picture.shape[0])
    yield DrawnClip(f"{name} as it is", picture[None])
    for degrees in (-35, 20, 60):
        yield DrawnClip(f"{name} turned by {degrees}", placed(picture, _SIZE, (x, y), fit, degrees)[None])
    yield DrawnClip(f"{name} small", placed(picture, _SIZE, (180, 300), fit / 2.5, 5)[None])
    yield DrawnClip(f"{name} large", placed(picture, _SIZE, (x, y + 60), fit * 1.7, 0)[None])
    yield DrawnClip(f"{name} at the edge", placed(picture, _SIZE, (40, y + 40), fit, 0)[None])
    pair = placed(other, _SIZE, (width * 0.75, y), half, 0, placed(picture, _SIZE, (width / 4, y), own_half, 0))
    yield DrawnClip(f"{name} and another", pair[None])


def drawn_clips(name: str, picture: Rgb, other: Rgb, frames: int = 24) -> Iterator[DrawnClip]:
    """Clips in which photographs move, turn and grow."""
    (width, height) = _SIZE
    fit = min(width / picture.shape[1], height / picture.shape[0])
    half = min(width / 2 / other.shape[1], height / other.shape[0])
    own_half = min(width / 2 / picture.shape[1], height / picture.shape[0])

    def moving(k: int) -> Rgb:
        angle = 2 * math.pi * k / frames
        at = width / 2 + 60 * math.sin(angle), height / 2 + 25 * math.sin(2 * angle)
        return placed(picture, _SIZE, at, fit * (1 + 0.15 * math.sin(angle)), 15 * math.sin(angle))

    def pair(k: int) -> Rgb:
        angle = 2 * math.pi * k / frames
        first = placed(picture, _SIZE, (width / 4 + 15 * math.sin(angle), height / 2), own_half, 8 * math.sin(angle))
        return placed(
            other, _SIZE, (width * 0.75, height / 2 + 20 * math.sin(angle)), half, -8 * math.sin(angle), first
        )

    yield DrawnClip(f"{name} moving", np.stack([moving(k) for k in range(frames)]))
    yield DrawnClip(f"{name} and another, moving", np.stack([pair(k) for k in range(frames)]))


def with_others(photos: Sequence[tuple[str, Rgb]]) -> Iterator[tuple[str, Rgb, Rgb]]:
    """Each photograph with the next one."""
    for place, (name, picture) in enumerate(photos):
        yield name, picture, photos[(place + 1) % len(photos)][1]
