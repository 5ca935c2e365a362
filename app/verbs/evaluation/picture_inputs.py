"""Makes a picture a network's input, as TensorFlow Lite's evaluation tasks do.

For classification the square in the middle is taken, 0.875 of the shorter side; else the whole picture. It is resized
with bilinear interpolation, as RESIZE_BILINEAR does it without options. 8-bit inputs get its bytes, less 128 where
they are signed; other inputs get the range that is given, or that metadata say, or -1 to 1.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from texelflow.gpu_delegate.base.errors import UsageError
from texelflow.gpu_delegate.model.graph import Graph, Tensor
from texelflow.gpu_delegate.model.quantization import quantized

from ...media.image_file import read_image_file
from ...picture.convert import ToRgba

CROP = 0.875
USUAL_RANGE = (-1.0, 1.0)
_MOST_PIXELS = 1 << 26
FloatPicture = npt.NDArray[np.float32]
Rgb = npt.NDArray[np.uint8]


@dataclass(frozen=True)
class PictureInput:
    """How a picture becomes the one input of a network."""

    tensor: Tensor
    crop: float  # of the shorter side, for the square in the middle; 0: the whole picture
    value_range: tuple[float, float] | None  # of black and white; None for bytes as they are

    def values(self, rgb: Rgb) -> npt.NDArray[Any]:
        """Of the tensor's shape and type."""
        _, height, width, _ = self.tensor.shape
        picture = resized(cropped(rgb, self.crop) if self.crop else rgb, height, width)
        if self.value_range is None:
            whole = np.rint(picture).astype(np.int16) - (128 if self.tensor.dtype == "int8" else 0)
            return whole.astype(self.tensor.dtype)[None]
        low, high = self.value_range
        return quantized(np.asarray(low + picture * np.float32((high - low) / 255), np.float32)[None], self.tensor)

    def facts(self) -> dict[str, Any]:
        """For JSON."""
        return {"central_square": self.crop or None, "size": list(self.tensor.shape[1:3]), "range": self.value_range}


def picture_input(graph: Graph, crop: float, value_range: tuple[float, float] | None, said: bool) -> PictureInput:
    """Of a network that takes one picture; `said` tells that the user has given the range. Raises UsageError."""
    tensor = graph.tensors[graph.inputs[0]]
    is_picture = len(graph.inputs) == 1 and len(tensor.shape) == 4 and tensor.shape[0] == 1 and tensor.shape[3] == 3
    if not is_picture or min(tensor.shape) < 1:
        shapes = ", ".join(str(list(graph.tensors[each].shape)) for each in graph.inputs)
        raise UsageError(f"{graph.name} takes {shapes}; one picture of the shape [1, height, width, 3] is needed")
    if tensor.dtype not in ("uint8", "int8", "float32", "float16"):
        raise UsageError(f"{graph.name} takes {tensor.dtype}; pictures are made bytes or floats")
    is_bytes = tensor.dtype in ("uint8", "int8")
    return PictureInput(tensor, crop, None if is_bytes and not said else value_range or USUAL_RANGE)


def read_rgb(path: Path) -> Rgb:
    """(H, W, 3). Raises MediaError."""
    frame = read_image_file(path, _MOST_PIXELS)
    return ToRgba(frame.width, frame.height)(frame)[..., :3]


def cropped(rgb: Rgb, fraction: float) -> Rgb:
    """The square in the middle, whose side is that fraction of the shorter side."""
    height, width = rgb.shape[:2]
    side = max(1, round(min(height, width) * fraction))
    top, left = (height - side) // 2, (width - side) // 2
    return rgb[top : top + side, left : left + side]


def resized(rgb: Rgb, height: int, width: int) -> FloatPicture:
    """Bilinear, where a pixel's place is its number times the ratio of the sizes."""
    rows, down = _taps(rgb.shape[0], height)
    columns, across = _taps(rgb.shape[1], width)
    top, bottom = (rgb[each].astype(np.float32) for each in rows)
    lines = top + (bottom - top) * down[:, None, None]
    left, right = (lines[:, each] for each in columns)
    return np.asarray(left + (right - left) * across[:, None], np.float32)


def _taps(size: int, wanted: int) -> tuple[tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]], FloatPicture]:
    places = np.arange(wanted) * (size / wanted)
    first = np.minimum(np.floor(places).astype(np.int64), size - 1)
    return (first, np.minimum(first + 1, size - 1)), (places - first).astype(np.float32)
