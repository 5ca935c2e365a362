"""Pictures and noise as inputs of quantized models."""

from collections.abc import Sequence
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import numpy.typing as npt

from tests.model_files.model_builder import Array, Shape
from texelflow.app.media.sources import FileSource

PICTURES, NOISE = 60, 40
FRAMES = 30  # of the clip, evenly spread
PHOTOS = ("scenes/photos", "scenes/backgrounds")  # of tests/data
ASSETS = ("background.jpg", "background_lights.jpg", "background_room.jpg", "background_studio.jpg", "demo.jpg")
CROPS = ((0.0, 0.0, 1.0), (0.2, 0.1, 0.6), (0.0, 0.4, 0.6), (0.4, 0.3, 0.5))  # left, top, share of both sides
Picture = npt.NDArray[np.uint8]


def inputs_of(shape: Shape, dtype: Any, pictures: int = PICTURES, noise: int = NOISE) -> list[Array]:
    """Inputs (B, H, W, C): of 0 to 255 as uint8, less 128 as int8, of 0 to 1 as floats. Noise alone if C is not 3."""
    found = [_fitted(picture, shape) for picture in _pictures()[:pictures]] if shape[3:] == (3,) else []
    rng = np.random.default_rng(0)
    found += [rng.integers(0, 256, shape, np.uint8) for _ in range(noise)]
    return [typed(bytes_of, dtype) for bytes_of in found]


def typed(values: Picture, dtype: Any) -> Array:
    """Bytes as an input's type."""
    kind = np.dtype(dtype)
    if kind == np.int8:
        return np.asarray(values.astype(np.int16) - 128, np.int8)
    return values if kind == np.uint8 else np.asarray(values / np.float32(255), np.float32)


def _fitted(picture: Picture, shape: Sequence[int]) -> Picture:
    small = cv2.resize(picture, (shape[2], shape[1]), interpolation=cv2.INTER_AREA)
    return np.asarray(small, np.uint8)[None].repeat(shape[0], 0)


@cache
def _pictures() -> tuple[Picture, ...]:
    """RGB: whole photographs and parts of them in turn with frames of the clip."""
    data, assets = Path(__file__).parents[1] / "data", resources.files("texelflow.assets")
    files = [path.read_bytes() for folder in PHOTOS for path in sorted((data / folder).glob("*.jpg"))]
    whole = [_decoded(content) for content in (*files, *((assets / name).read_bytes() for name in ASSETS))]
    cropped = [_cropped(picture, *crop) for crop in CROPS for picture in whole]
    with resources.as_file(assets / "people.mp4") as path, FileSource(path) as source:
        frames = [np.asarray(frame.rgba[..., :3]) for frame in source if frame.index % 8 == 0][:FRAMES]
    return (*frames, *cropped[: PICTURES - len(frames)])


def _decoded(content: bytes) -> Picture:
    picture = cv2.imdecode(np.frombuffer(content, np.uint8), cv2.IMREAD_COLOR)
    return np.asarray(cv2.cvtColor(picture, cv2.COLOR_BGR2RGB), np.uint8)


def _cropped(picture: Picture, left: float, top: float, share: float) -> Picture:
    height, width = picture.shape[:2]
    y, x = int(top * height), int(left * width)
    return picture[y : y + int(share * height), x : x + int(share * width)]
