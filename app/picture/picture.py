"""The format of pictures (layout, size, range and matrix), and what follows from it: shapes and conversion to RGB.

A picture is what the decoder or the camera left in RAM: one plane of RGBA, of gray, or YUV in planes or packed.
Its format says how upright pixels with red, green and blue come out of that, and is the same for a whole recording.
"""

import struct
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

ImageSize = tuple[int, int]  # (width, height)
Plane = npt.NDArray[Any]  # of uint8 or uint16
Layout = Literal["rgba", "gray", "yuv", "nv12", "yuyv", "uyvy"]
Matrix = Literal["bt601", "bt709", "bt2020", "smpte240m", "fcc"]
Siting = Literal["left", "center", "topleft"]
Doubles = npt.NDArray[np.float64]

_KR_KB: dict[Matrix, tuple[float, float]] = {  # the shares of red and of blue in luma
    "bt601": (0.299, 0.114),
    "bt709": (0.2126, 0.0722),
    "bt2020": (0.2627, 0.0593),
    "smpte240m": (0.212, 0.087),
    "fcc": (0.30, 0.11),
}


@dataclass(frozen=True)
class Orientation:
    """How stored pixels become upright ones: transpose first, then mirror along x, then along y."""

    transpose: bool = False
    flip_x: bool = False
    flip_y: bool = False

    @staticmethod
    def from_matrix(matrix: bytes) -> "Orientation":
        """Read a display matrix: nine native int32, of which a, b, c, d map (x, y) to (ax + cy, bx + dy).

        Angles between quarter turns go to the nearest one; a matrix of another length means upright.
        """
        if len(matrix) != 36:
            return Orientation()
        a, b, _, c, d, *_ = struct.unpack("=9i", matrix)
        if abs(a) + abs(d) >= abs(b) + abs(c):
            return Orientation(False, a < 0, d < 0)
        return Orientation(True, c < 0, b < 0)

    @property
    def clockwise_degrees(self) -> int:
        """The quarter turns in it; what is left besides is a mirroring."""
        return {(False, True, True): 180, (True, True, False): 90, (True, False, True): 270}.get(
            (self.transpose, self.flip_x, self.flip_y), 0
        )

    def apply(self, pixels: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint8]:
        """Turn (H, W, C) pixels upright; the result is C-contiguous."""
        if self.transpose:
            pixels = pixels.transpose(1, 0, 2)
        if self.flip_x:
            pixels = pixels[:, ::-1]
        if self.flip_y:
            pixels = pixels[::-1]
        return np.ascontiguousarray(pixels)


@dataclass(frozen=True)
class PictureFormat:
    """What is the same for all pictures of a source.

    size is that of the stored picture; samples have `bits` bits, in uint8 where they fit, else in uint16. Chroma is
    halved chroma_shift times along (x, y), and lies where `siting` says. RGBA has no matrix, range and siting. Packed
    4:2:2 has chroma_shift (1, 0) and an even width, and raises ValueError otherwise.
    """

    size: ImageSize
    layout: Layout = "rgba"
    bits: int = 8
    chroma_shift: tuple[int, int] = (0, 0)
    matrix: Matrix = "bt601"
    full_range: bool = True
    siting: Siting = "center"
    orientation: Orientation = Orientation()

    def __post_init__(self) -> None:
        if self.packed and (self.chroma_shift != (1, 0) or self.size[0] % 2 or self.bits != 8):
            raise ValueError(f"{self.layout} holds whole pairs of pixels with 8 bits a sample, not {self}")

    @property
    def packed(self) -> bool:
        """Whether it is 4:2:2 in one plane: a luma for each pixel, and beside it Cb, then Cr of a pair in turn."""
        return self.layout in ("yuyv", "uyvy")

    @property
    def upright_size(self) -> ImageSize:
        """(width, height) as displayed."""
        width, height = self.size
        return (height, width) if self.orientation.transpose else (width, height)

    @property
    def chroma_size(self) -> ImageSize:
        """(width, height) of the planes of chroma, of the one that holds both, or of what is packed beside luma."""
        width, height = (-(-side >> shift) for side, shift in zip(self.size, self.chroma_shift, strict=True))
        return width, height

    @property
    def plane_shapes(self) -> tuple[tuple[int, ...], ...]:
        """Of the arrays: (H, W, 4) of RGBA; else (H, W) of luma, then twice (h, w) of chroma, or for nv12 (h, w, 2).

        Packed 4:2:2 is (H, W, 2): luma and chroma of each pixel, in this order for yuyv, chroma first for uyvy.
        """
        (width, height), (chroma_width, chroma_height) = self.size, self.chroma_size
        luma, chroma = (height, width), (chroma_height, chroma_width)
        layouts: dict[Layout, tuple[tuple[int, ...], ...]] = {
            "rgba": ((*luma, 4),),
            "gray": (luma,),
            "yuv": (luma, chroma, chroma),
            "nv12": (luma, (*chroma, 2)),
            "yuyv": ((*luma, 2),),
            "uyvy": ((*luma, 2),),
        }
        return layouts[self.layout]

    @property
    def sample_bytes(self) -> int:
        """1 for uint8, 2 for uint16."""
        return 1 if self.bits <= 8 else 2

    @property
    def mirrored(self) -> tuple[bool, bool]:
        """Which of the stored axes (x, y) run against the upright picture's."""
        flips = self.orientation.flip_x, self.orientation.flip_y
        return (flips[1], flips[0]) if self.orientation.transpose else flips

    def chroma_axis(self, axis: Literal[0, 1]) -> tuple[int, int, int]:
        """(mul, add, div): what lies at luma's coordinate i along x (0) or y (1) is at (i * mul + add) / div of chroma.

        Coordinates are those of pixels' centers. A pixel of chroma lies on the first of luma's 2, or amid them.
        """
        factor = 1 << self.chroma_shift[axis]
        if self.siting == "topleft" or (self.siting == "left" and axis == 0):
            return 1, 0, factor
        return 2, 1 - factor, 2 * factor

    def to_rgb(self) -> tuple[Doubles, Doubles]:
        """A matrix (3, 3) and an offset (3,) that make red, green and blue of luma, Cb and Cr, all codes from 0 to 1.

        Gray is used for all three.
        """
        steps, least = (1 << self.bits) - 1, 1 << (self.bits - 8)
        luma, chroma = (1.0, 1.0) if self.full_range else (steps / (219 * least), steps / (224 * least))
        black = 0.0 if self.full_range else 16 * least / steps
        if self.layout == "gray":
            return luma * np.eye(3), np.full(3, -luma * black)
        red, blue = _KR_KB[self.matrix]
        green = 1 - red - blue
        cr = np.array([1 - red, -red * (1 - red) / green, 0]) * 2 * chroma
        cb = np.array([0, -blue * (1 - blue) / green, 1 - blue]) * 2 * chroma
        middle = (1 << (self.bits - 1)) / steps
        return np.stack([np.full(3, luma), cb, cr], 1), -luma * black - middle * (cb + cr)


@dataclass(frozen=True, eq=False)
class Picture:
    """One picture: planes of its format's shapes, which may be views of the decoder's memory with longer rows."""

    format: PictureFormat
    planes: tuple[Plane, ...]


def rgba_format(size: ImageSize) -> PictureFormat:
    """Of upright RGBA."""
    return PictureFormat(size)


def rgba_picture(rgba: npt.NDArray[np.uint8]) -> Picture:
    """A picture of upright RGBA (H, W, 4)."""
    return Picture(rgba_format((rgba.shape[1], rgba.shape[0])), (rgba,))


def whole_rows(picture: Picture, format: PictureFormat) -> tuple[Plane, ...]:
    """A picture's planes, each row's samples side by side in memory. Raises ValueError for one of another format."""
    dtype = np.dtype(f"u{format.sample_bytes}")
    if tuple((plane.shape, plane.dtype) for plane in picture.planes) != tuple((s, dtype) for s in format.plane_shapes):
        raise ValueError(f"a picture of {picture.format} instead of {format}")
    return tuple(p if p[:1].flags.c_contiguous else np.ascontiguousarray(p) for p in picture.planes)
