"""Takes pictures of a caller's as arrays of 8-bit colors, and makes of them what outputs take."""

import cv2
import numpy as np
import numpy.typing as npt

from .app.media.sources import MAX_PIXELS, MAX_SIDE
from .gpu_delegate.base.arrays import as_array
from .gpu_delegate.base.errors import UsageError
from .mistake_hints import frame_hint

__all__ = ["Pixels", "check_sides", "over_black", "pixels_of", "rgba_of_pixels"]

Pixels = npt.NDArray[np.uint8]

_PICTURE = "uint8 (H, W, 3) RGB, (H, W, 4) RGBA or (H, W) gray"


def pixels_of(picture: object) -> Pixels:
    """A picture as an array, in any layout: uint8 (H, W), (H, W, 3) or (H, W, 4). Raises UsageError."""
    pixels = as_array(picture, "a picture")
    if pixels.dtype != np.uint8 or not (pixels.ndim == 2 or (pixels.ndim == 3 and pixels.shape[2] in (3, 4))):
        raise UsageError(f"a picture is {_PICTURE}, not {pixels.dtype} {pixels.shape}{frame_hint(pixels)}")
    check_sides(pixels.shape[1], pixels.shape[0])
    return pixels


def check_sides(width: int, height: int, what: str = "a picture") -> None:
    """Raise UsageError for a size that no picture has; `what` it is called."""
    if min(width, height) < 1 or max(width, height) > MAX_SIDE or width * height > MAX_PIXELS:
        limits = f"1 to {MAX_SIDE} pixels a side and at most {MAX_PIXELS >> 20} million in all"
        raise UsageError(f"{what} has {limits}, not {width}x{height}")


def rgba_of_pixels(pixels: Pixels) -> Pixels:
    """A copy as RGBA (H, W, 4), C-contiguous, opaque where there was no alpha."""
    if pixels.ndim == 3 and pixels.shape[2] == 4:
        return np.array(pixels, order="C")
    order = cv2.COLOR_GRAY2RGBA if pixels.ndim == 2 else cv2.COLOR_RGB2RGBA
    return np.asarray(cv2.cvtColor(np.ascontiguousarray(pixels), order), np.uint8)


def over_black(pixels: Pixels) -> Pixels:
    """RGBA laid over black: RGBA, opaque."""
    laid = (pixels[..., :3].astype(np.uint16) * pixels[..., 3:] + 127) // 255
    return np.dstack([laid.astype(np.uint8), np.full(pixels.shape[:2], 255, np.uint8)])
