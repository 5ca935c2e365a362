"""Draws the legend of a network's classes: a row of color and name for each.

It depends on the model alone, so that no frame waits for what the network has found in it.
"""

from collections.abc import Sequence

import cv2
import numpy as np
import numpy.typing as npt

from ...picture.convert import Rgba
from ...picture.preprocess import ImageSize
from .effects import LegendSide

_USUAL_HEIGHT = 720  # of pictures; in larger ones text grows with them, since people see them as large as these
_ROW, _PADDING, _SWATCH, _TEXT = 15, 5, 10, 0.38  # pixels at the usual height; the text's scale
_FONT = cv2.FONT_HERSHEY_SIMPLEX
_MOST_LETTERS = 20
_MOST_SHARE = 0.5  # of the frame's width
_BOX = (20, 20, 20, 190)  # red, green, blue, alpha


def class_color(number: int) -> tuple[int, int, int]:
    """Red, green and blue of a class, 0 to 255, by the formula of PASCAL VOC's development kit.

    Bits 0, 3, 6 of the number become the highest bits of red, bits 1, 4, 7 those of green, bits 2, 5, 8 of blue.
    """
    red, green, blue = (sum((number >> (3 * i + part) & 1) << (7 - i) for i in range(8)) for part in range(3))
    return red, green, blue


def legend_picture(labels: Sequence[str], classes: int, frame_size: ImageSize) -> Rgba | None:
    """Premultiplied RGBA, which fits into the frame; None where that has no room for a row.

    Classes without a name have their number alone. What has no room is counted in the last row.
    """
    scale = max(1.0, frame_size[1] / _USUAL_HEIGHT)
    row, padding, swatch = (round(each * scale) for each in (_ROW, _PADDING, _SWATCH))
    rows = (frame_size[1] - 4 * padding) // row
    entries: list[tuple[int | None, str]] = [(number, _named(number, labels)) for number in range(classes)]
    texts = [name for _, name in entries] + [f"{classes} more"] * (classes > rows)  # which may be the widest
    wide = max(cv2.getTextSize(text, _FONT, _TEXT * scale, 1)[0][0] for text in texts)
    column = swatch + 3 * padding + wide
    columns = int(_MOST_SHARE * frame_size[0]) // column
    if rows < 1 or columns < 1:
        return None
    if classes > rows * columns:
        shown = rows * columns - 1
        entries = [*entries[:shown], (None, f"{classes - shown} more")]
    columns = -(-len(entries) // rows)
    rows = -(-len(entries) // columns)
    picture = np.full((rows * row + 2 * padding, columns * column + padding, 4), _BOX, np.uint8)
    for place, (number, name) in enumerate(entries):
        x, y = padding + place // rows * column, padding + place % rows * row
        _draw_row(picture, (x, y), name, number, scale)
    return _premultiplied(picture)


def legend_place(size: ImageSize, frame_size: ImageSize, side: LegendSide = "right") -> ImageSize:
    """Where its upper left corner is: on that side, as far from the edges as its rows are from its own."""
    gap = round(_PADDING * max(1.0, frame_size[1] / _USUAL_HEIGHT))
    return (gap if side == "left" else frame_size[0] - size[0] - gap), gap


def _named(number: int, labels: Sequence[str]) -> str:
    """The number and, where the font can show it, the name."""
    label = labels[number] if number < len(labels) else ""
    return f"{number} {label[:_MOST_LETTERS]}".rstrip() if label.isascii() and label.isprintable() else str(number)


def _draw_row(picture: Rgba, at: ImageSize, name: str, number: int | None, scale: float) -> None:
    """A color and a name from a place on; a row without a number has no color."""
    (x, y), (row, padding, swatch) = at, (round(each * scale) for each in (_ROW, _PADDING, _SWATCH))
    if number is not None:
        top = y + (row - swatch) // 2
        picture[top : top + swatch, x : x + swatch] = (*class_color(number), 255)
        cv2.rectangle(picture, (x, top), (x + swatch - 1, top + swatch - 1), (150, 150, 150, 255), 1)
    baseline = y + (row + round(_TEXT * scale * 22)) // 2
    cv2.putText(
        picture, name, (x + swatch + padding, baseline), _FONT, _TEXT * scale, (255, 255, 255, 255), 1, cv2.LINE_AA
    )


def _premultiplied(picture: Rgba) -> Rgba:
    result: npt.NDArray[np.uint8] = picture.copy()
    result[..., :3] = np.rint(picture[..., :3] * (picture[..., 3:] / 255.0))
    return result
