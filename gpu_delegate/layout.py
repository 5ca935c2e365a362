"""Shapes as kernels use them: a tensor's shape goes in, its BHWC form and its PHWC4 sizes come out.

PHWC4 keeps channels in slices of four: texel ((slice * H) + y) * W + x holds channels 4 * slice ... 4 * slice + 3.
Lanes past the last channel hold zeros. An output of the model with one channel that no kernel reads is stored as a
plain tensor instead, one float per pixel: a quarter of the bytes to write, and to read after the network.

Values are float32, or, on request, halves (fp16) for tensors inside the network: half the bytes to write and to read.
Kernels compute with float32 in both cases, see shaders/halves.glsl.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from .errors import UnsupportedError
from .graph import Shape, Tensor

TEXEL_BYTES = 16  # one vec4 of float32

Precision = Literal["fp32", "fp16"]  # of what kernels store for other kernels


def ceil_div(a: int, b: int) -> int:
    """a / b, rounded up."""
    return -(-a // b)


def aligned_channels(count: int) -> int:
    """The number of channels, rounded up to whole slices."""
    return 4 * ceil_div(count, 4)


@dataclass(frozen=True)
class MapShape:
    """A tensor of batch 1 as height x width x channels."""

    height: int
    width: int
    channels: int

    @property
    def slices(self) -> int:
        return ceil_div(self.channels, 4)

    @property
    def pixels(self) -> int:
        return self.height * self.width

    @property
    def texels(self) -> int:
        return self.pixels * self.slices

    @property
    def is_vector(self) -> bool:
        return self.pixels == 1


@lru_cache(maxsize=1024)  # called very often, for few shapes
def map_shape(shape: Shape) -> MapShape:
    """[] -> 1x1x1, [c] -> 1x1xc, [1, c] -> 1x1xc, [1, w, c] -> 1xwxc, [1, h, w, c] as it is.

    Raises UnsupportedError for rank above 4 and batch above 1.
    """
    if len(shape) <= 1:
        return MapShape(1, 1, shape[0] if shape else 1)
    if len(shape) > 4 or shape[0] != 1:
        raise UnsupportedError(f"tensor of shape {list(shape)}: the GPU path takes batch 1 and at most 4 dimensions")
    height, width, channels = ((1,) * (4 - len(shape)) + shape[1:])[-3:]
    return MapShape(height, width, channels)


def shape_of(tensor: Tensor) -> MapShape:
    """map_shape of a tensor; its UnsupportedError names the tensor."""
    try:
        return map_shape(tensor.shape)
    except UnsupportedError as error:
        raise UnsupportedError(f"{tensor.name}: {error}") from None


@dataclass(frozen=True)
class Storage:
    """How a tensor is stored in memory: PHWC4 or plain, as float32 or as halves."""

    lanes: Literal[1, 4] = 4  # values of a texel
    value_bytes: Literal[2, 4] = 4

    @property
    def is_halves(self) -> bool:
        return self.value_bytes == 2

    @property
    def texel_bytes(self) -> int:
        return self.lanes * self.value_bytes

    def size_bytes(self, shape: MapShape) -> int:
        """The size of a tensor of this shape."""
        return self.texel_bytes * (shape.texels if self.lanes == 4 else shape.pixels)


PHWC4 = Storage()
PHWC4_HALVES = Storage(value_bytes=2)
PLAIN = Storage(lanes=1)

Storages = Mapping[int, Storage]  # of each tensor of a graph
