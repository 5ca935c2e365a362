"""Frames of pictures in RAM, at 30 a second, for what finds things in them."""

from functools import lru_cache

import numpy as np

from texelflow.app.picture.convert import Rgba
from texelflow.app.picture.picture import ImageSize, rgba_picture
from texelflow.app.picture.video_frame import VideoFrame

__all__ = ["STEP_MS", "frame_of", "still_frame"]

STEP_MS = 1000 / 30


def frame_of(rgb: Rgba, index: int = 0) -> VideoFrame:
    """The frame of a number in a clip, of a picture uint8 (H, W, 3 or 4)."""
    if rgb.shape[2] == 3:
        rgb = np.dstack([rgb, np.full(rgb.shape[:2], 255, np.uint8)])
    return VideoFrame(index, index, index * STEP_MS, rgba_picture(np.ascontiguousarray(rgb)))


def still_frame(size: ImageSize, index: int = 0) -> VideoFrame:
    """A black one of a size (width, height)."""
    return frame_of(_black(size), index)


@lru_cache(maxsize=4)
def _black(size: ImageSize) -> Rgba:
    return np.zeros((size[1], size[0], 4), np.uint8)
