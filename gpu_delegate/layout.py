"""Shapes as the kernels see them: a tensor's shape goes in, its BHWC form and its PHWC4 sizes come out.

PHWC4 keeps channels in slices of four: texel ((slice * H) + y) * W + x holds channels 4 * slice ... 4 * slice + 3.
Lanes past the last channel hold zeros. An output of the model with one channel that no kernel reads is stored plainly
instead, one float for each pixel: a quarter of the bytes to write, and to read in what comes after the network.
"""

from dataclasses import dataclass

from gpu_delegate.errors import UnsupportedError
from gpu_delegate.graph import Shape, Tensor

TEXEL_BYTES = 16  # one vec4 of float32


def ceil_div(a: int, b: int) -> int:
    return -(-a // b)


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
    def size_bytes(self) -> int:
        return self.texels * TEXEL_BYTES

    def stored_bytes(self, plain: bool) -> int:
        """Size in memory, as PHWC4 or plainly (one channel alone)."""
        return self.pixels * 4 if plain else self.size_bytes

    @property
    def is_vector(self) -> bool:
        return self.pixels == 1


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
    try:
        return map_shape(tensor.shape)
    except UnsupportedError as error:
        raise UnsupportedError(f"{tensor.name}: {error}") from None
