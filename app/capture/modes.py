"""Chooses which mode to ask a camera for, by what it can do and what is wanted.

Frames per second come first: uncompressed 1920x1080 is five pictures a second over USB 2, JPEG thirty. Where both are
fast enough, uncompressed wins: it goes up as it is, and nothing is decoded.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from ..picture.picture import ImageSize
from .raw import ALIASES, PIXELS

REACHED = 0.95  # of the requested rate is as good as all of it: 29.97 for 30
_RAW_BYTES_PER_S = 22e6  # what USB 2 can transport uncompressed


@dataclass(frozen=True)
class Mode:
    """Pictures of one kind and size; rates are frames per second, fastest first, empty where nobody knows."""

    pixels: str
    size: ImageSize
    rates: tuple[float, ...] = ()

    def rate_for(self, fps: float) -> float:
        """The slowest rate that reaches what is wanted, else the fastest; 0 where nobody knows."""
        if fps <= 0:
            return max(self.rates, default=0.0)
        return min((rate for rate in self.rates if rate >= REACHED * fps), default=max(self.rates, default=0.0))


@dataclass(frozen=True)
class ModeChoice:
    """What to ask a camera for; fps 0 leaves the rate to it."""

    pixels: str
    size: ImageSize
    fps: float


def requested_pixels(name: str) -> str:
    """V4L2's name for "mjpg", "yuy2" or "i420" as users write it; "" for auto."""
    name = name.upper()
    return "" if name == "AUTO" else ALIASES.get(name, name)


def choose(modes: Sequence[Mode], size: ImageSize, fps: float, pixels: str = "auto") -> ModeChoice | None:
    """The mode nearest to the size, then of enough frames per second, then the one that costs least to take in.

    None if the camera has no mode of these pixels, or none that can be read.
    """
    only = requested_pixels(pixels)
    usable = [m for m in modes if m.pixels in PIXELS and only in ("", m.pixels)]
    if not usable:
        return None

    def rank(mode: Mode) -> tuple[float, ...]:
        rate = mode.rate_for(fps)
        enough = fps if 0 < REACHED * fps <= rate else rate
        return _distance(mode.size, size), -enough, PIXELS.index(mode.pixels)

    best = min(usable, key=rank)
    return ModeChoice(best.pixels, best.size, best.rate_for(fps) or fps)


def guess(size: ImageSize, fps: float, pixels: str = "auto") -> ModeChoice:
    """What to ask for where cameras do not tell their modes: uncompressed as long as that is likely to be fast."""
    fast = size[0] * size[1] * 2 * (fps or 30) <= _RAW_BYTES_PER_S
    return ModeChoice(requested_pixels(pixels) or ("YUYV" if fast else "MJPG"), size, fps)


def _distance(size: ImageSize, requested: ImageSize) -> float:
    """How much is to be scaled, as the logarithm of both sides' ratios: half the size is as far as double."""
    return sum(abs(math.log(max(1, side) / max(1, goal))) for side, goal in zip(size, requested, strict=True))
