"""What is drawn of things that were found, as marks: lines and dots, plates, and letters; in pixels of the picture.

A mark is twelve numbers, three texels of marks.frag. Of a line: both ends (x, y, x, y), half its width, the width of
the dark rim around it, 0, and 1 / length^2, which is 0 for a dot; of a plate: its middle, half its size without the
round corners, their radius, 0, 1, 0; of a letter: its left, top, left and top in the picture of letters, width, height,
2, 0. Then red, green, blue and alpha, 0 to 1. Later marks lie over earlier ones; rims lie below all.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from ...models.decoders.found import Finding, SkeletonName
from ...models.decoders.skeletons import SKELETONS
from ...picture.preprocess import ImageSize
from .letters import Letters

Marks = npt.NDArray[np.float32]  # (N, 12)
LINE, PLATE, LETTER = 0, 1, 2

_Box = tuple[float, float, float, float]  # left, top, right, bottom
_Color = tuple[float, float, float]
_PALETTE: tuple[_Color, ...] = (  # as light as the overlay's colors; its own come first
    (0.47, 0.78, 0.95), (0.56, 0.85, 0.54), (0.96, 0.78, 0.43), (0.73, 0.63, 1.0), (0.41, 0.84, 0.81),
    (0.96, 0.59, 0.74), (0.77, 0.84, 0.41), (1.0, 0.56, 0.48),
)  # fmt: skip
_FIRST_COLOR = {"face": 0, "hand": 1, "person": 2, "object": 3, "eye": 4}  # of a kind, before tracks shift it
_WHITE, _PLAIN, _DIM, _BACK, _BAR = (
    (1.0, 1.0, 1.0),
    (0.84, 0.86, 0.89),
    (0.7, 0.73, 0.77),
    (0.07, 0.08, 0.1),
    _PALETTE[0],
)
_BACK_ALPHA, _BAR_ALPHA = 0.78, 0.19
_USUAL_HEIGHT = 480  # of frames in which a unit is a pixel
_LEAST_SEEN = 0.2  # the certainty below which a point is not drawn
_ARC = np.deg2rad(np.array([0.0, 30.0, 60.0, 90.0]))
_MOST_LETTERS, _MOST_CLASSES = 28, 5
_BOXED = ("", "face-keypoints", "palm", "body-keypoints")  # skeletons that do not say how large a thing is
_DENSE = 60  # points, from which on they are small


@dataclass(frozen=True)
class MarkSize:
    """How large marks are in a picture of (width, height)."""

    picture: ImageSize
    letters: Letters

    @property
    def unit(self) -> float:
        """By which all lengths grow with the picture."""
        return max(0.75, min(self.picture) / _USUAL_HEIGHT)


def marks_of(findings: Sequence[Finding], size: MarkSize, mirror: bool = False, note: str = "") -> Marks:
    """All marks of what was found in a frame, whose picture is mirrored or not, and a note in its lower left corner."""
    placed = [each for each in findings if each.region or len(each.points)]
    classes = [each for each in findings if each.kind == "class"]
    parts = [part for finding in placed for part in _shape(finding, size, mirror)]
    taken: list[_Box] = []
    if classes:
        parts += _class_list(classes[:_MOST_CLASSES], size, taken)
    if note:
        parts += _corner_note(note, size, taken)
    for finding in placed:
        parts += _label(finding, size, mirror, taken)
    return np.concatenate(parts).astype(np.float32) if parts else np.zeros((0, 12), np.float32)


def color_of(finding: Finding) -> _Color:
    """Its color, by its kind, its track and, for objects, their label."""
    number = _FIRST_COLOR.get(finding.kind, 3) + max(0, finding.track - 1)
    if finding.kind == "object":
        number += sum(finding.label.encode()) if not finding.track else 0
    return _PALETTE[number % len(_PALETTE)]


def name_of(finding: Finding) -> str:
    """What it is called: its label alone where that says all."""
    if finding.kind in ("object", "class"):
        return finding.label or finding.kind
    return f"{finding.label} {finding.kind}".strip()


# Shapes ---------------------------------------------------------------------------------------------------------------


def _shape(finding: Finding, size: MarkSize, mirror: bool) -> list[Marks]:
    """The box of what has no skeleton, and points with the lines that join them."""
    unit, color = size.unit, color_of(finding)
    lines, parts = _pairs(finding.skeleton), list[Marks]()
    if finding.region and finding.skeleton in _BOXED:
        corners = finding.region.points_to_frame(np.array([[0, 0], [1, 0], [1, 1], [0, 1]], np.float32))
        outline = _rounded(_turned(corners, size, mirror), 7 * unit)
        parts.append(_lines(np.concatenate([outline[:-1], outline[1:]], 1), unit, unit, color))
    if not len(finding.points):
        return parts
    points = _turned(finding.points, size, mirror)
    seen: npt.NDArray[np.float32] = np.ones(len(points), np.float32)
    if finding.certainty is not None:
        seen = np.clip(finding.certainty, 0, 1)
    seen = np.where((seen >= _LEAST_SEEN) & np.isfinite(points).all(1), seen, np.float32(0))
    dense = len(points) > _DENSE
    if dense:
        parts.append(_dots(points, 0.75 * unit, 0.0, _lighter(color), 0.65 * seen))
    if len(lines):
        sure = np.minimum(seen[lines[:, 0]], seen[lines[:, 1]])
        ends = np.concatenate([points[lines[:, 0]], points[lines[:, 1]]], 1)
        parts.append(_lines(ends, (0.6 if dense else 1.0) * unit, (0.6 if dense else 1.0) * unit, color, sure))
    if not dense:
        radius = (1.2 if finding.kind == "eye" else 2.2) * unit
        parts.append(_dots(points, radius, unit, _lighter(color), seen))
    return parts


@lru_cache(maxsize=len(SKELETONS))
def _pairs(skeleton: SkeletonName) -> npt.NDArray[np.int64]:
    """Points that are joined, (N, 2)."""
    return np.array(SKELETONS[skeleton].pairs, np.int64).reshape(-1, 2)


def _lighter(color: _Color) -> _Color:
    red, green, blue = (0.45 * part + 0.55 for part in color)
    return red, green, blue


def _turned(points: npt.NDArray[np.float32], size: MarkSize, mirror: bool) -> npt.NDArray[np.float32]:
    """(N, 2) as the picture shows them."""
    if not mirror:
        return points[:, :2]
    return np.stack([size.picture[0] - points[:, 0], points[:, 1]], 1)


def _rounded(corners: npt.NDArray[np.float32], radius: float) -> npt.NDArray[np.float32]:
    """The closed outline of a rectangle with round corners, (17, 2)."""
    back, ahead = np.roll(corners, 1, 0) - corners, np.roll(corners, -1, 0) - corners
    far_back, far_ahead = (np.maximum(np.linalg.norm(each, axis=1), 1e-6)[:, None] for each in (back, ahead))
    radius = min(radius, 0.3 * float(min(far_back.min(), far_ahead.min())))
    back, ahead = radius * back / far_back, radius * ahead / far_ahead
    middle = corners + back + ahead
    cosine, sine = np.cos(_ARC)[:, None], np.sin(_ARC)[:, None]
    points = (middle[:, None] - cosine * ahead[:, None] - sine * back[:, None]).reshape(-1, 2)
    return np.concatenate([points, points[:1]])


def _lines(
    ends: npt.NDArray[np.float32], half_width: float, rim: float, color: Sequence[float],
    alpha: npt.NDArray[np.float32] | float = 1.0,
) -> Marks:  # fmt: skip
    """Lines with round ends, (N, 4) of both ends; those that are not seen are left out."""
    made = np.empty((len(ends), 12), np.float32)
    made[:, :4], made[:, 4], made[:, 5], made[:, 6] = ends, half_width, rim, LINE
    length = (made[:, 2] - made[:, 0]) ** 2 + (made[:, 3] - made[:, 1]) ** 2
    made[:, 7] = np.where(length > 1e-6, 1 / np.maximum(length, 1e-6), 0)
    made[:, 8:11], made[:, 11] = color, alpha
    return made[made[:, 11] > 0]


def _dots(
    points: npt.NDArray[np.float32], radius: float, rim: float, color: Sequence[float],
    alpha: npt.NDArray[np.float32] | float = 1.0,
) -> Marks:  # fmt: skip
    return _lines(np.concatenate([points, points], 1), radius, rim, color, alpha)


# Labels ---------------------------------------------------------------------------------------------------------------


def _plate(box: _Box, radius: float, color: _Color, alpha: float) -> Marks:
    left, top, right, bottom = box
    middle, half = ((left + right) / 2, (top + bottom) / 2), ((right - left) / 2 - radius, (bottom - top) / 2 - radius)
    return np.array([[*middle, *half, radius, 0, PLATE, 0, *color, alpha]], np.float32)


def _text(text: str, x: int, y: int, color: _Color, letters: Letters) -> Marks:
    """A line of text from its upper left corner."""
    made = np.zeros((len(text), 12), np.float32)
    made[:, 0], made[:, 1] = x + letters.width * np.arange(len(text)), y
    made[:, 2:4] = letters.places(text)
    made[:, 4:7], made[:, 8:11], made[:, 11] = (letters.width, letters.height, LETTER), color, 1
    return made[[each != " " for each in text]] if text else made


def _short(text: str) -> str:
    return text if len(text) <= _MOST_LETTERS else f"{text[: _MOST_LETTERS - 2]}.."


def _label(finding: Finding, size: MarkSize, mirror: bool, taken: list[_Box]) -> list[Marks]:
    """What it is called, its score and its track, at the upper left of it or where there is room."""
    if finding.kind == "eye":
        return []
    letters, (width, height) = size.letters, size.picture
    left, top, right, bottom = finding.box
    if not np.isfinite([left, top, right, bottom]).all():
        return []
    if mirror:
        left, right = width - right, width - left
    name = _short(name_of(finding))
    further = f" {100 * finding.score:.0f}%" + (f" #{finding.track}" if finding.track else "")
    pad = max(2, letters.height // 4)
    wide, high = letters.width * len(name + further) + 3 * pad, letters.height + pad
    x = round(min(max(left, 0), max(0, width - wide)))
    places = [top - high - 2 * size.unit, top + 2 * size.unit, bottom + 2 * size.unit, bottom - high - 2 * size.unit]
    boxes = [(x, round(min(max(y, 0), max(0, height - high)))) for y in places]
    free = [(x, y) for x, y in boxes if not any(_meet((x, y, x + wide, y + high), other) for other in taken)]
    x, y = (free or boxes)[0]
    taken.append((x, y, x + wide, y + high))
    plate = _plate((x, y, x + wide, y + high), 0.25 * high, _BACK, _BACK_ALPHA)
    bar = np.array([[x + pad, y + pad, x + pad, y + high - pad]], np.float32)
    begin, line = x + 2 * pad, y + pad // 2
    return [
        plate,
        _lines(bar, 0.12 * letters.height, 0, color_of(finding)),
        _text(name, begin, line, _PLAIN, letters),
        _text(further, begin + letters.width * len(name), line, _DIM, letters),
    ]


def _corner_note(note: str, size: MarkSize, taken: list[_Box]) -> list[Marks]:
    """A line in the lower left corner."""
    letters, pad = size.letters, size.letters.height // 2
    text = _short(note)
    top = size.picture[1] - pad - letters.height - pad
    taken.append((pad, top, pad + letters.width * len(text) + 2 * pad, top + letters.height + pad))
    return [
        _plate(taken[-1], 0.25 * letters.height, _BACK, _BACK_ALPHA),
        _text(text, 2 * pad, top + pad // 2, _DIM, letters),
    ]


def _meet(one: _Box, other: _Box) -> bool:
    return one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]


def _class_list(classes: Sequence[Finding], size: MarkSize, taken: list[_Box]) -> list[Marks]:
    """Names with bars as long as their scores, best first, in the upper left corner."""
    letters = size.letters
    names = [_short(name_of(each)) for each in classes]
    pad, row, bar = letters.height // 2, round(1.5 * letters.height), 7 * letters.height
    gap, columns = letters.height, letters.width * max(map(len, names))
    right = 2 * pad + pad + columns + gap + bar + gap // 2 + 4 * letters.width
    taken.append((pad, pad, right, 2 * pad + row * len(names)))
    parts = [_plate(taken[-1], pad, _BACK, _BACK_ALPHA)]
    for nth, (name, each) in enumerate(zip(names, classes, strict=True)):
        top = pad + pad // 2 + nth * row + (row - letters.height) // 2
        middle, start = top + letters.height / 2, 2 * pad + columns + gap
        half = 0.18 * letters.height
        ends = np.array([[start + half, middle, start + bar - half, middle]], np.float32)
        parts.append(_lines(ends, half, 0, _WHITE, _BAR_ALPHA))
        ends[0, 2] = start + half + (bar - 2 * half) * min(1.0, max(0.0, each.score))
        parts.append(_lines(ends, half, 0, _BAR if not nth else _DIM))
        score = f"{100 * each.score:.0f}%".rjust(4)
        parts.append(_text(name, 2 * pad, top, _PLAIN if not nth else _DIM, letters))
        parts.append(_text(score, start + bar + gap // 2, top, _PLAIN if not nth else _DIM, letters))
    return parts
