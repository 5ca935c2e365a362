"""The test pattern: moving pictures that carry their own number, which can be read from any later copy.

The number stands in a strip of black and white cells along the top: two rows of 16, each beginning with two cells of
known color. Its 24 bits and 4 for checking survive H.264, scaling to half and conversion between YUV and RGB
(tests/helpers/time_codes.py reads them).
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

COLUMNS, ROWS = 16, 2
SYNC = ((1, 0), (0, 1))  # how each row begins: white is 1
STRIP = 8  # the strip is an eighth of the picture's height
_BITS, _CHECK = 24, 0b1010
_BLACK, _WHITE = 16, 235


def time_code_of(index: int) -> int:
    """The number that the picture of this index carries: its lowest 24 bits."""
    return index & ((1 << _BITS) - 1)


def cells_of(code: int) -> npt.NDArray[np.uint8]:
    """The strip's cells (2, 16) of 0 and 1 for a number of 24 bits."""
    word = code << 4 | check_of(code)
    bits = [word >> place & 1 for place in reversed(range(_BITS + 4))]
    return np.array([[*SYNC[0], *bits[:14]], [*SYNC[1], *bits[14:]]], np.uint8)


def check_of(code: int) -> int:
    """The four bits by which a number is known to have been read right."""
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
        self._cell_of_column = np.arange(width) * COLUMNS // width
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
        strip = height // STRIP
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
        plane[: -(-height // STRIP // 2)] = 128
        plane.flags.writeable = False
    return luma, (across, down)


def _disc(side: int) -> npt.NDArray[np.bool_]:
    """Which pixels of a square belong to a disc in it."""
    steps = np.arange(side) - (side - 1) / 2
    return steps[:, None] ** 2 + steps**2 <= (side / 2) ** 2
