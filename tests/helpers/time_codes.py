"""Reads the number that a picture of the test pattern carries, from copies of any kind."""

import numpy as np
import numpy.typing as npt

from texelflow.app.capture.pattern import COLUMNS, ROWS, STRIP, SYNC, check_of

_LEAST_CONTRAST = 60
_LUMA = np.array([0.299, 0.587, 0.114], np.float32)


def read_time_code(pixels: npt.NDArray[np.uint8]) -> int | None:
    """The number that a picture (H, W, 3 or 4) of RGB carries along its top; None where it cannot be read for certain.

    The picture may have been scaled, but neither cropped nor mirrored.
    """
    height, width = pixels.shape[:2]
    if width < 2 * COLUMNS or height < 2 * ROWS * STRIP:
        return None
    cells = _cell_means(pixels[: height // STRIP, :, :3].astype(np.float32) @ _LUMA)
    white, black = (np.mean([cells[0][0 if bit else 1], cells[1][1 if bit else 0]]) for bit in (1, 0))
    middle, contrast = (white + black) / 2, white - black
    if contrast < _LEAST_CONTRAST or np.abs(cells - middle).min() < contrast / 5:
        return None
    bits = (cells > middle).astype(int)
    if tuple(map(tuple, bits[:, :2].tolist())) != SYNC:
        return None
    word = int("".join(map(str, bits[:, 2:].ravel())), 2)
    code = word >> 4
    return code if word & 15 == check_of(code) else None


def _cell_means(luma: npt.NDArray[np.float32]) -> npt.NDArray[np.float64]:
    """Of the middle of each cell of a strip (h, w): (2, 16)."""
    height, width = luma.shape
    means = np.empty((ROWS, COLUMNS))
    for row in range(ROWS):
        rows = _middle(row, ROWS, height)
        for column in range(COLUMNS):
            means[row, column] = luma[rows, _middle(column, COLUMNS, width)].mean()
    return means


def _middle(cell: int, cells: int, length: int) -> slice:
    """The middle half of a cell, one pixel at least."""
    start = int((cell + 0.25) * length / cells)
    return slice(start, max(start + 1, int((cell + 0.75) * length / cells)))
