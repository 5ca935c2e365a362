"""What comes in at the frame's edge is covered until its face is known, beside people whose faces are known, too."""

import numpy as np
import pytest

from texelflow.app.tracking.edge_motion import EdgeMotion
from texelflow.app.tracking.face_covers import FaceCover

FRAME, MS = (640, 480), 1000 / 30
KNOWN = FaceCover(300, 200, 60, 80)
Boxes = tuple[tuple[int, int, int, int], ...]  # left, top, right, bottom, in cells of 10 pixels


def covered(moved: Boxes, known: tuple[FaceCover, ...]) -> tuple[FaceCover, ...]:
    """Of a room in which those cells are brighter in the second frame."""
    room = np.full((48, 64), 100, np.float32)
    grid = room.copy()
    for left, top, right, bottom in moved:
        grid[top:bottom, left:right] = 150
    edges = EdgeMotion()
    assert edges.covers(room, 0, FRAME, known) == ()
    return edges.covers(grid, MS, FRAME, known)


def share_of(covers: tuple[FaceCover, ...]) -> float:
    y, x = np.mgrid[: FRAME[1], : FRAME[0]] + 0.5
    seen = np.zeros(FRAME[::-1], bool)
    for one in covers:
        seen |= abs((x - one.center_x) / one.half_width) ** 3 + abs((y - one.center_y) / one.half_height) ** 3 <= 1
    return float(seen.mean())


def hides(covers: tuple[FaceCover, ...], x: float, y: float) -> bool:
    return any(
        abs((x - one.center_x) / one.half_width) ** 3 + abs((y - one.center_y) / one.half_height) ** 3 <= 1
        for one in covers
    )


BODY, BESIDE = (22, 10, 40, 48), (40, 15, 64, 22)  # of the known one, and what hangs together with it


@pytest.mark.parametrize(
    ("moved", "known", "there"),
    [
        pytest.param((BESIDE,), (), True, id="nobody is known"),
        pytest.param((BODY,), (KNOWN,), False, id="the known one moves"),
        pytest.param((BODY, BESIDE), (KNOWN,), True, id="one beside the known one"),
        pytest.param(((20, 30, 60, 48),), (KNOWN,), False, id="wide below"),
        pytest.param(((0, 0, 64, 22),), (KNOWN,), False, id="much at once, as of the camera"),
        pytest.param(((50, 20, 60, 30),), (), False, id="not from the edge"),
    ],
)
def test_what_is_covered(moved: Boxes, known: tuple[FaceCover, ...], there: bool) -> None:
    covers = covered(moved, known)
    assert bool(covers) == there
    if there:
        assert hides(covers, 600, 185)
        assert share_of(covers) < 0.2


def test_what_is_not_filled_is_covered_in_parts() -> None:
    covers = covered(((0, 0, 64, 4), (0, 0, 4, 48)), ())
    assert hides(covers, 620, 20)
    assert hides(covers, 20, 460)
    assert share_of(covers) < 0.4
