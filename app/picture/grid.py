"""Lays out several pictures in a grid: its size, and the place of each picture.

There are as many columns as show the pictures largest on a screen of 16:9; of those that do so equally, as leave the
fewest places empty, and rather more than fewer. All cells are as large as the largest picture, or smaller where the
grid would have more pixels than screens and encoders take. The last row, where it is not full, is in the middle.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from .picture import ImageSize

_SCREEN = 16, 9
_MOST = 3840, 2160  # pixels of the grid, without the gaps
_GAP = 4  # pixels between two pictures


@dataclass(frozen=True)
class CellPlace:
    """A rectangle of pixels, its upper left corner counted from that of the grid."""

    left: int
    top: int
    width: int
    height: int

    @property
    def size(self) -> ImageSize:
        """(width, height)."""
        return self.width, self.height


@dataclass(frozen=True)
class PictureGrid:
    """Where pictures are side by side. `places` are those of the pictures, each as large as its cell allows."""

    size: ImageSize
    places: tuple[CellPlace, ...]


def picture_grid(sizes: Sequence[ImageSize]) -> PictureGrid:
    """The grid of pictures of these sizes (width, height), in their order, row by row."""
    count, cell = len(sizes), (max(width for width, _ in sizes), max(height for _, height in sizes))
    columns = columns_of(count, cell)
    rows = -(-count // columns)
    scale = min(Fraction(1), Fraction(_MOST[0], columns * cell[0]), Fraction(_MOST[1], rows * cell[1]))
    width, height = (max(2, int(side * scale) // 2 * 2) for side in cell)  # even, as videos need it
    across, down = width + _GAP, height + _GAP  # from one cell to the next
    cells = [
        (column * across + (columns - in_row(count, columns, row)) * across // 2, row * down)
        for row in range(rows)
        for column in range(in_row(count, columns, row))
    ]
    places = (_within(size, CellPlace(*at, width, height)) for size, at in zip(sizes, cells, strict=True))
    return PictureGrid((columns * across - _GAP, rows * down - _GAP), tuple(places))


def columns_of(count: int, cell: ImageSize) -> int:
    """How many pictures of a size stand beside each other, of so many."""

    def rank(columns: int) -> tuple[Fraction, int, int]:
        rows = -(-count // columns)
        scale = min(Fraction(_SCREEN[0], columns * cell[0]), Fraction(_SCREEN[1], rows * cell[1]))
        return scale, -columns * rows, columns

    return max(range(1, count + 1), key=rank)


def in_row(count: int, columns: int, row: int) -> int:
    """How many pictures that row has."""
    return min(columns, count - row * columns)


def _within(size: ImageSize, cell: CellPlace) -> CellPlace:
    """A picture in the middle of its cell, as large as fits."""
    scale = min(Fraction(most, side) for side, most in zip(size, cell.size, strict=True))
    width, height = (max(1, round(side * scale)) for side in size)
    return CellPlace(cell.left + (cell.width - width) // 2, cell.top + (cell.height - height) // 2, width, height)
