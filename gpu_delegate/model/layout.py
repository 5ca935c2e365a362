"""How tensors lie in memory: four dimensions (BHWC), in slices of four channels (PHWC4), as floats, halves or bytes.

PHWC4 keeps channels in slices of four: texel ((slice * B + b) * H + y) * W + x holds channels 4 * slice to
4 * slice + 3 of batch b, so that a slice is one map of B * H rows. Lanes past the last channel hold zeros. An output of
the model with one channel that no kernel reads is stored as a plain tensor instead, one float per pixel: a quarter of
the bytes to write, and to read after the network.

Values are float32, or, on request, halves (fp16) for tensors inside the network: half the bytes to write and to read.
Tensors there that hold at most 256 different whole numbers are stored as bytes, a quarter of float32, without loss
(storages.py). Kernels compute with float32 in all cases (shaders/halves.glsl, shaders/stored_bytes.glsl), unless
products are asked for in halves, too (half_products.py).
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, get_args

from .graph import Shape, Tensor

RANK = 4  # BHWC
TEXEL_BYTES = 16  # one vec4 of float32

# Of what kernels store for others; and of products, which bf16 is about alone, in the code of CPUs
Precision = Literal["fp32", "fp16", "fp16-arithmetic", "bf16"]
PRECISIONS: tuple[Precision, ...] = get_args(Precision)
Fetch = Literal["texture", "uniform", "storage"]  # kernels read a buffer texture, a uniform block or a storage block


def stores_halves(precision: Precision) -> bool:
    """Whether kernels store what lies between them as halves."""
    return precision in ("fp16", "fp16-arithmetic")


def ceil_div(a: int, b: int) -> int:
    """a / b, rounded up."""
    return -(-a // b)


def aligned(size: int, alignment: int) -> int:
    """The next multiple of an alignment."""
    return ceil_div(size, alignment) * alignment


def aligned_channels(count: int) -> int:
    """The number of channels, rounded up to whole slices."""
    return 4 * ceil_div(count, 4)


@dataclass(frozen=True)
class MapShape:
    """A tensor as batch x height x width x channels."""

    batch: int
    height: int
    width: int
    channels: int

    @property
    def slices(self) -> int:
        return ceil_div(self.channels, 4)

    @property
    def rows(self) -> int:
        """Rows of the whole batch."""
        return self.batch * self.height

    @property
    def pixels(self) -> int:
        """Pixels of the whole batch."""
        return self.rows * self.width

    @property
    def texels(self) -> int:
        return self.pixels * self.slices

    @property
    def is_vector(self) -> bool:
        return self.pixels == 1


def aligned_shape(shape: Shape) -> Shape:
    """The shape with four dimensions, BHWC: after leading ones, or without the first of too many dimensions of size 1.

    [] -> 1x1x1x1, [c] -> 1x1x1xc, [n, c] -> 1x1xnxc, [h, w, c] -> 1xhxwxc, [a, 1, h, w, c] -> axhxwxc. Where more than
    four have other sizes than 1, the first ones become one: [a, b, h, w, c] -> abxhxwxc.
    """
    surplus = len(shape) - RANK
    if surplus <= 0:
        return (1,) * -surplus + shape
    dropped = [k for k, size in enumerate(shape) if size == 1][:surplus]
    first, *others = (size for k, size in enumerate(shape) if k not in dropped)
    more = surplus - len(dropped)
    return (math.prod((first, *others[:more])), *others[more:])


@lru_cache(maxsize=1024)  # called very often, for few shapes
def map_shape(shape: Shape) -> MapShape:
    """aligned_shape as a MapShape."""
    return MapShape(*aligned_shape(shape))


def shape_of(tensor: Tensor) -> MapShape:
    """map_shape of a tensor; its UnsupportedError names the tensor."""
    return map_shape(tensor.shape)


@dataclass(frozen=True)
class Storage:
    """How a tensor is stored in memory: PHWC4 or plain, as float32, as halves or as bytes."""

    lanes: Literal[1, 4] = 4  # values of a texel
    value_bytes: Literal[1, 2, 4] = 4
    low: int = 0  # the whole number whose byte is 0

    @property
    def is_halves(self) -> bool:
        return self.value_bytes == 2

    @property
    def is_bytes(self) -> bool:
        return self.value_bytes == 1

    @property
    def kind(self) -> str:
        """What values are stored as, for people."""
        return {1: "bytes", 2: "halves", 4: "float32"}[self.value_bytes]

    @property
    def is_packed(self) -> bool:
        """Whether values have fewer bytes than floats."""
        return self.value_bytes < 4

    @property
    def texel_bytes(self) -> int:
        return self.lanes * self.value_bytes

    def size_bytes(self, shape: MapShape) -> int:
        """The size of a tensor of this shape."""
        return self.texel_bytes * (shape.texels if self.lanes == 4 else shape.pixels)


PHWC4 = Storage()
PHWC4_HALVES = Storage(value_bytes=2)
PLAIN = Storage(lanes=1)
BYTE_VALUES = 256  # that a byte can have


Storages = Mapping[int, Storage]  # of each tensor of a graph


# Planes: how CPUs store maps

FLOAT_BYTES = 4
LINE_FLOATS = 16  # of a cache line, and of the widest vector


def plane_floats(shape: MapShape) -> int:
    """Floats from one plane of a map to the next; 1 for vectors, whose channels are neighbors."""
    return 1 if shape.is_vector else LINE_FLOATS * (ceil_div(shape.pixels, LINE_FLOATS) | 1)
