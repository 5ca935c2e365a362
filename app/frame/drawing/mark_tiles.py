"""Lists of marks by tiles of the picture, so that a pixel looks at those alone that may cover it.

What goes up is texels of four floats: for each tile of a rectangle of tiles, row by row, the first mark of its list and
the one behind its last, counted from the beginning of the texels in threes; then the marks of all lists.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ...picture.preprocess import ImageSize
from .marks import LETTER, PLATE, Marks

_TEXELS = 3  # of a mark
_Whole = npt.NDArray[np.int64]


@dataclass(frozen=True)
class MarkTiles:
    """The texels, (N, 4), and the rectangle of tiles that they are for: left, top, and how many across and down."""

    texels: npt.NDArray[np.float32]
    left: int
    top: int
    across: int
    down: int
    tile: ImageSize


def mark_tiles(marks: Marks, picture: ImageSize, tile: ImageSize, most_texels: int) -> MarkTiles | None:
    """None where no mark is in the picture. Tiles are larger where the lists have no room else.

    If they have none in tiles as large as the picture, the last marks of lower tiles are left out.
    """
    made = _listed(marks, picture, tile, most_texels)
    while made and len(made.texels) > most_texels - _TEXELS and max(tile) < max(picture):
        tile = (2 * tile[0], 2 * tile[1])
        made = _listed(marks, picture, tile, most_texels)
    return made


def _listed(marks: Marks, picture: ImageSize, tile: ImageSize, most_texels: int) -> MarkTiles | None:
    reach = _reach(marks)
    boxes = _boxes(marks, reach)
    (width, height), (wide, high) = picture, tile
    inside = (boxes[:, 2] > 0) & (boxes[:, 3] > 0) & (boxes[:, 0] < width) & (boxes[:, 1] < height)
    if not inside.all():
        marks, boxes, reach = marks[inside], boxes[inside], reach[inside]
    if not len(marks):
        return None
    first = np.clip(boxes[:, 1] // high, 0, (height - 1) // high).astype(np.int64)
    last = np.clip(boxes[:, 3] // high, 0, (height - 1) // high).astype(np.int64)
    mark, row = _each(first, last)
    near, far = _extent(marks[mark], boxes[mark], reach[mark], row * high, (row + 1) * high)
    begin = np.clip(near // wide, 0, (width - 1) // wide).astype(np.int64)
    end = np.clip(far // wide, 0, (width - 1) // wide).astype(np.int64)
    nth, column = _each(begin, end)
    mark, row = mark[nth], row[nth]
    left, top = int(column.min()), int(row.min())
    across, down = int(column.max()) - left + 1, int(row.max()) - top + 1
    tiles = (row - top) * across + column - left
    order = np.argsort(tiles.astype(np.uint16) if across * down <= 1 << 16 else tiles, kind="stable")
    room = max(0, most_texels // _TEXELS - -(-across * down // _TEXELS))
    order = order[:room]
    counts = np.bincount(tiles[order], minlength=across * down)
    behind = np.cumsum(counts)
    start = -(-across * down // _TEXELS)
    texels = np.zeros((_TEXELS * (start + len(order)), 4), np.float32)
    texels[: across * down, 0] = start + behind - counts
    texels[: across * down, 1] = start + behind
    texels[_TEXELS * start :] = marks[mark[order]].reshape(-1, 4)
    return MarkTiles(texels, left, top, across, down, tile)


def _each(first: _Whole, last: _Whole) -> tuple[_Whole, _Whole]:
    """For each whole number from first to last of each range: which range it is of, and the number."""
    counts = np.maximum(last - first + 1, 0)
    nth = np.repeat(np.arange(len(first)), counts)
    starts = np.cumsum(counts) - counts
    return nth, np.arange(len(nth)) - starts[nth] + first[nth]


def _reach(marks: Marks) -> npt.NDArray[np.float32]:
    """How far beyond its places a mark may cover pixels."""
    return np.where(marks[:, 6] == LETTER, 0, marks[:, 4] + marks[:, 5] + 1).astype(np.float32)


def _boxes(marks: Marks, reach: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    """(N, 4): left, top, right, bottom of what each may cover."""
    kinds, one, other = marks[:, 6:7], marks[:, :2], marks[:, 2:4]
    least = np.where(kinds == PLATE, one - other, np.where(kinds == LETTER, one, np.minimum(one, other)))
    most = np.where(kinds == PLATE, one + other, np.where(kinds == LETTER, one + marks[:, 4:6], np.maximum(one, other)))
    return np.concatenate([least - reach[:, None], most + reach[:, None]], 1)


def _extent(
    marks: Marks, boxes: npt.NDArray[np.float32], reach: npt.NDArray[np.float32], top: _Whole, bottom: _Whole
) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.float32]]:
    """The left and right of what marks may cover between two rows each: of slanted lines less than of their boxes."""
    down = marks[:, 3] - marks[:, 1]
    slanted = (marks[:, 6] < PLATE) & (np.abs(down) > 1)
    safe = np.where(slanted, down, 1)
    parts = [np.clip((edge - marks[:, 1]) / safe, 0, 1) for edge in (top - reach, bottom + reach)]
    ends = [marks[:, 0] + part * (marks[:, 2] - marks[:, 0]) for part in parts]
    near = np.where(slanted, np.minimum(*ends) - reach, boxes[:, 0])
    far = np.where(slanted, np.maximum(*ends) + reach, boxes[:, 2])
    return near, far
