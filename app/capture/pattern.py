"""The test pattern: moving pictures that carry their own number, which can be read from any later copy.

The number stands in a strip of black and white cells along the top: two rows of 16, each beginning with two cells of
known color. Its 24 bits and 4 for checking survive H.264, scaling to half and conversion between YUV and RGB.
"""

import time
from functools import partial
from time import perf_counter_ns

import numpy as np
import numpy.typing as npt

from ..media.frames import check_size
from ..picture.picture import Matrix, Picture, PictureFormat, Plane
from .raw import rgba_of
from .source import CapturedFrame, CaptureRequest

_COLUMNS, _ROWS = 16, 2
_SYNC = ((1, 0), (0, 1))  # how each row begins: white is 1
_STRIP = 8  # the strip is an eighth of the picture's height
_BITS, _CHECK = 24, 0b1010
_BLACK, _WHITE = 16, 235
_LEAST_CONTRAST = 60
_LUMA = np.array([0.299, 0.587, 0.114], np.float32)


def time_code_of(index: int) -> int:
    """The number that the picture of this index carries: its lowest 24 bits."""
    return index & ((1 << _BITS) - 1)


def cells_of(code: int) -> npt.NDArray[np.uint8]:
    """The strip's cells (2, 16) of 0 and 1 for a number of 24 bits."""
    word = code << 4 | _check(code)
    bits = [word >> place & 1 for place in reversed(range(_BITS + 4))]
    return np.array([[*_SYNC[0], *bits[:14]], [*_SYNC[1], *bits[14:]]], np.uint8)


def read_time_code(pixels: npt.NDArray[np.uint8]) -> int | None:
    """The number that a picture (H, W, 3 or 4) of RGB carries along its top; None where it cannot be read for certain.

    The picture may have been scaled, but neither cropped nor mirrored.
    """
    height, width = pixels.shape[:2]
    if width < 2 * _COLUMNS or height < 2 * _ROWS * _STRIP:
        return None
    cells = _cell_means(pixels[: height // _STRIP, :, :3].astype(np.float32) @ _LUMA)
    white, black = (np.mean([cells[0][0 if bit else 1], cells[1][1 if bit else 0]]) for bit in (1, 0))
    middle, contrast = (white + black) / 2, white - black
    if contrast < _LEAST_CONTRAST or np.abs(cells - middle).min() < contrast / 5:
        return None
    bits = (cells > middle).astype(int)
    if tuple(map(tuple, bits[:, :2].tolist())) != _SYNC:
        return None
    word = int("".join(map(str, bits[:, 2:].ravel())), 2)
    code = word >> 4
    return code if word & 15 == _check(code) else None


def _cell_means(luma: npt.NDArray[np.float32]) -> npt.NDArray[np.float64]:
    """Of the middle of each cell of a strip (h, w): (2, 16)."""
    height, width = luma.shape
    means = np.empty((_ROWS, _COLUMNS))
    for row in range(_ROWS):
        rows = _middle(row, _ROWS, height)
        for column in range(_COLUMNS):
            means[row, column] = luma[rows, _middle(column, _COLUMNS, width)].mean()
    return means


def _middle(cell: int, cells: int, length: int) -> slice:
    """The middle half of a cell, one pixel at least."""
    start = int((cell + 0.25) * length / cells)
    return slice(start, max(start + 1, int((cell + 0.75) * length / cells)))


def _check(code: int) -> int:
    check = _CHECK
    for place in range(0, _BITS, 4):
        check ^= code >> place & 15
    return check


class PatternSource:
    """A still background with a disc that moves across it, under the strip, as I420. Implements Source."""

    stamps = "made"
    may_stand_still = True

    def __init__(self, requested: CaptureRequest) -> None:
        width, height = requested.size
        self.fps = requested.fps if requested.fps > 0 else 30.0
        matrix: Matrix = "bt709" if width >= 1280 or height >= 720 else "bt601"
        self.format = PictureFormat(requested.size, "yuv", 8, (1, 1), matrix, full_range=False, siting="left")
        self.description = f"test pattern, I420 {width}x{height}, {self.fps:g} fps"
        self._luma, self._chroma = _background(self.format)
        self._disc = _disc(min(width, height) // 6)
        self._cell_of_column = np.arange(width) * _COLUMNS // width
        self._index = 0
        self._start_ns = perf_counter_ns()

    def read(self) -> CapturedFrame:
        """The next picture, when it is due; pictures whose time is over are left out."""
        period_ns = 1e9 / self.fps
        behind = int((perf_counter_ns() - self._start_ns) / period_ns) - self._index
        skipped = max(0, behind)
        self._index += skipped
        time.sleep(max(0.0, (self._start_ns + self._index * period_ns - perf_counter_ns()) / 1e9))
        made_ns = perf_counter_ns()
        picture = self._draw(self._index)
        self._index += 1
        made_ms = (perf_counter_ns() - made_ns) / 1e6
        return CapturedFrame(picture, made_ns, made_ns, made_ms, partial(rgba_of, picture), skipped)

    def close(self) -> None:
        """There is nothing to release."""

    def _draw(self, index: int) -> Picture:
        luma = self._luma.copy()
        height, width = luma.shape
        side = len(self._disc)
        left, top = index * max(1, width // 90) % (width - side + 1), (height - side) // 2
        luma[top : top + side, left : left + side][self._disc] = _WHITE
        rows = np.where(cells_of(time_code_of(index))[:, self._cell_of_column], _WHITE, _BLACK)
        strip = height // _STRIP
        luma[: strip // 2], luma[strip // 2 : strip] = rows
        return Picture(self.format, (luma, *self._chroma))


def open_pattern(requested: CaptureRequest) -> PatternSource:
    """Of the wanted size and rate, 30 a second if none is wanted. Raises UsageError for an invalid size."""
    check_size(requested.size, "the test pattern")
    return PatternSource(requested)


def _background(format: PictureFormat) -> tuple[Plane, tuple[Plane, Plane]]:
    """Luma that grows to the right, chroma that turns with x and y; gray under the strip, so that it stays readable."""
    width, height = format.size
    luma = np.broadcast_to(np.linspace(40, 180, width, dtype=np.uint8), (height, width)).copy()
    chroma_width, chroma_height = format.chroma_size
    across = np.broadcast_to(np.linspace(90, 166, chroma_width, dtype=np.uint8), (chroma_height, chroma_width)).copy()
    down = np.broadcast_to(np.linspace(166, 90, chroma_height, dtype=np.uint8)[:, None], across.shape).copy()
    for plane in (across, down):
        plane[: -(-height // _STRIP // 2)] = 128
        plane.flags.writeable = False
    return luma, (across, down)


def _disc(side: int) -> npt.NDArray[np.bool_]:
    """Which pixels of a square belong to a disc in it."""
    steps = np.arange(side) - (side - 1) / 2
    return steps[:, None] ** 2 + steps**2 <= (side / 2) ** 2
