"""Frames as NumPy arrays: which are taken, and how RGB becomes RGBA and back."""

from typing import Any

import cv2
import numpy as np
import numpy.typing as npt

from .app.media.sources import MAX_PIXELS, MAX_SIDE
from .gpu_delegate.base.errors import UsageError
from .mistake_hints import frame_hint

__all__ = ["Frame", "Mask", "RgbaCopies", "check_frame", "rgb_of"]

Frame = npt.NDArray[np.uint8]
Mask = npt.NDArray[np.float32]

_FRAME = "uint8 (H, W, 3) RGB or (H, W, 4) RGBA"


class RgbaCopies:
    """Frames as RGBA in memory that is used again; the last `kept` copies stay as they are."""

    def __init__(self, kept: int = 1) -> None:
        self._rooms: list[Frame | None] = [None] * kept
        self._last = 0

    def of(self, frame: Frame, copies: bool = False) -> Frame:
        """A checked frame as RGBA; with `copies` also one that is RGBA is copied, to stay when it changes."""
        if frame.shape[2] == 4 and not copies:
            return frame
        self._last = (self._last + 1) % len(self._rooms)
        room = self._rooms[self._last]
        if room is None or room.shape[:2] != frame.shape[:2]:
            room = self._rooms[self._last] = np.empty((*frame.shape[:2], 4), np.uint8)
        if frame.shape[2] == 4:
            np.copyto(room, frame)
        else:
            cv2.cvtColor(frame, cv2.COLOR_RGB2RGBA, dst=room)
        return room


def rgb_of(rgba: Frame) -> Frame:
    """A picture (H, W, 4) without its alpha, in memory of its own."""
    return np.asarray(cv2.cvtColor(rgba, cv2.COLOR_RGBA2RGB), np.uint8)


def check_frame(frame: Any) -> None:
    """Raise UsageError for what is no frame."""
    if not isinstance(frame, np.ndarray):
        raise UsageError(f"a frame is a NumPy array of {_FRAME}, not {type(frame).__name__}{frame_hint(frame)}")
    if frame.dtype != np.uint8 or frame.ndim != 3 or frame.shape[2] not in (3, 4):
        raise UsageError(f"a frame is {_FRAME}, not {frame.dtype} {frame.shape}{frame_hint(frame)}")
    height, width = frame.shape[:2]
    if min(width, height) < 1 or max(width, height) > MAX_SIDE or width * height > MAX_PIXELS:
        limits = f"1 to {MAX_SIDE} pixels a side and at most {MAX_PIXELS >> 20} million in all"
        raise UsageError(f"a frame has {limits}, not {width}x{height}")
