"""Makes the pictures to put behind people: background_room.jpg, background_studio.jpg and background_lights.jpg.

    python assets/make_backgrounds.py

All is computed: rooms and lights as a camera sees them that is focused on somebody before them.
"""

from __future__ import annotations

import sys
from pathlib import Path

try:
    import cv2
    import numpy as np
    from numpy.typing import NDArray
except ImportError as missing:
    sys.exit(f"{missing.name} is missing: pip install numpy opencv-python")

Bytes = NDArray[np.uint8]
Floats = NDArray[np.float32]  # linear light, 0 to 1, RGB (H, W, 3)

HERE = Path(__file__).parent
WIDTH, HEIGHT = 1280, 960
QUALITY = 86


def room() -> Floats:
    """Returns a bright room by day, out of focus: a window, a shelf with books, a plant, a lamp."""
    rng = np.random.default_rng(3)
    x, y = _grid()
    picture = _shade((0.58, 0.53, 0.46), 1.15 - 0.5 * x / WIDTH - 0.12 * y / HEIGHT)
    _box(picture, (0, 800, WIDTH, HEIGHT), (0.22, 0.135, 0.08))
    _box(picture, (0, 786, WIDTH, 800), (0.7, 0.66, 0.6))
    _box(picture, (70, 90, 430, 640), (0.85, 0.83, 0.78))
    for left, top in ((90, 110), (258, 110), (90, 382), (258, 382)):
        _box(picture, (left, top, left + 152, top + 256), (2.2, 2.5, 2.8))
    _books(picture, rng)
    for _ in range(46):
        place = rng.normal((560, 560), (58, 84))
        _disc(picture, place, rng.uniform(12, 34), np.array([0.07, 0.16, 0.06]) * rng.uniform(0.5, 1.7))
    _box(picture, (510, 690, 610, 830), (0.42, 0.2, 0.12))
    lit = _defocused(picture, 13)
    glow = np.exp(-(((x - 250) / 420) ** 2 + ((y - 360) / 420) ** 2))[..., None]
    lamp = np.exp(-(((x - 1180) / 200) ** 2 + ((y - 250) / 200) ** 2))[..., None]
    lit += 0.16 * glow * np.array([1, 0.97, 0.9], np.float32)
    lit += 0.22 * lamp * np.array([1, 0.7, 0.36], np.float32)
    return lit


def studio() -> Floats:
    """Returns a photographer's backdrop: blue gray cloth, lit from behind whoever stands before it."""
    x, y = _grid()
    light = np.exp(-(((x - 0.52 * WIDTH) / 520) ** 2 + ((y - 0.42 * HEIGHT) / 430) ** 2))
    cloth = _clouds(np.random.default_rng(5), (5, 7)) + 0.5 * _clouds(np.random.default_rng(6), (14, 19))
    return _shade((0.105, 0.14, 0.19), (0.16 + 1.5 * light) * (1 + 0.1 * cloth))


def lights() -> Floats:
    """Returns a town in the evening, far out of focus: discs of light over dark blue."""
    rng = np.random.default_rng(21)
    _, y = _grid()
    height = (y / HEIGHT)[..., None]
    picture = np.array([0.018, 0.03, 0.085]) * (1 - height) + np.array([0.075, 0.045, 0.06]) * height
    picture = picture.astype(np.float32)
    colors = np.array(
        [[1, 0.55, 0.18], [1, 0.74, 0.42], [1, 0.3, 0.16], [0.35, 0.6, 1], [0.9, 0.9, 1], [0.3, 0.9, 0.6]]
    )
    for _ in range(120):
        place = rng.uniform(0, WIDTH), HEIGHT * (0.3 + 0.62 * rng.beta(2.2, 2.2))
        color = colors[rng.choice(6, p=[0.34, 0.3, 0.12, 0.12, 0.08, 0.04])]
        _disc(picture, place, rng.uniform(16, 58), color * rng.uniform(0.03, 0.34), adds=True)
    return _defocused(picture, 2)


def _grid() -> tuple[Floats, Floats]:
    y, x = np.mgrid[0:HEIGHT, 0:WIDTH].astype(np.float32)
    return x, y


def _shade(color: tuple[float, float, float], light: Floats) -> Floats:
    return np.asarray(light[..., None] * np.array(color), np.float32)


def _box(picture: Floats, corners: tuple[int, int, int, int], color: object) -> None:
    left, top, right, bottom = corners
    picture[top:bottom, left:right] = color


def _disc(picture: Floats, place: object, radius: float, color: object, adds: bool = False) -> None:
    """Paints a disc with an edge a few pixels soft, or adds its light to what is there."""
    (x0, y0), (x, y) = np.asarray(place), _grid()
    inside = np.clip((radius - np.hypot(x - x0, y - y0)) / 3 + 0.5, 0, 1)[..., None]
    picture += inside * (np.asarray(color) - (0 if adds else picture))


def _books(picture: Floats, rng: np.random.Generator) -> None:
    """Paints a shelf of three boards with books on them."""
    colors = [
        (0.3, 0.08, 0.06),
        (0.08, 0.16, 0.22),
        (0.5, 0.42, 0.3),
        (0.12, 0.2, 0.12),
        (0.6, 0.58, 0.52),
        (0.4, 0.24, 0.08),
    ]
    _box(picture, (760, 150, 1120, 800), (0.3, 0.19, 0.11))
    for top in (168, 378, 588):
        _box(picture, (778, top, 1102, top + 192), (0.13, 0.085, 0.055))
        left = 784
        while (right := left + int(rng.uniform(16, 38))) < 1080 and rng.uniform() > 0.06:
            _box(picture, (left, top + int(rng.uniform(24, 80)), right - 3, top + 192), colors[rng.integers(6)])
            left = right


def _clouds(rng: np.random.Generator, cells: tuple[int, int]) -> Floats:
    noise = rng.standard_normal(cells).astype(np.float32)
    return np.asarray(cv2.resize(noise, (WIDTH, HEIGHT), interpolation=cv2.INTER_CUBIC), np.float32)


def _defocused(picture: Floats, radius: float) -> Floats:
    """Returns what a lens out of focus shows: each point a disc, and that a little soft."""
    side = 2 * round(radius) + 1
    disc = cv2.getStructuringElement(cv2.MORPH_ELLIPSE, (side, side)).astype(np.float32)
    spread = cv2.filter2D(picture, -1, disc / disc.sum(), borderType=cv2.BORDER_REFLECT)
    return np.asarray(cv2.GaussianBlur(spread, (0, 0), radius / 3), np.float32)


def as_bytes(light: Floats) -> Bytes:
    """Returns linear light as sRGB (H, W, 3); what is brighter than white is, softly, white."""
    toned = np.where(light < 0.6, light, 0.6 + 0.4 * (1 - np.exp(-(light - 0.6) / 0.4)))
    coded = np.where(toned < 0.0031308, 12.92 * toned, 1.055 * np.maximum(toned, 0.0031308) ** (1 / 2.4) - 0.055)
    dither = np.random.default_rng(1).uniform(0, 1, coded.shape)
    return np.asarray(np.clip(coded * 255 + dither, 0, 255), np.uint8)


def main() -> None:
    """Writes all of them beside this script."""
    for make in (room, studio, lights):
        path = HERE / f"background_{make.__name__}.jpg"
        if not cv2.imwrite(str(path), as_bytes(make())[..., ::-1], [cv2.IMWRITE_JPEG_QUALITY, QUALITY]):
            sys.exit(f"no image can be written to {path}")


if __name__ == "__main__":
    main()
