"""Draws a line of figures over each camera's picture. Called within Gui.draw."""

from collections.abc import Iterable

from ..frame.stages.frame_figures import CameraFigures
from ..picture.grid import CellPlace, PictureGrid
from .draw import BACK, BRIGHT, LATE, OPAQUE, PADDING, PLAIN, Painter
from .overlay_placement import ScreenArea
from .overlay_text import plain, wrapped

_SLOW = 0.9  # of the rate that a camera promises
_MARGIN, _THIN = 0.4, 0.3  # em: from the edges of the picture, and above and below the words
_LEAST_LETTERS = 8


def captions(cameras: Iterable[CameraFigures], grid: PictureGrid, area: ScreenArea, with_rates: bool) -> None:
    """At the lower right of each picture of a grid, which fills an area: what is wrong, and its rate where wanted."""
    for camera, place in zip(cameras, grid.places, strict=True):
        if camera.trouble or with_rates:
            _caption(camera, cell_on_screen(place, grid, area))


def caption_of(camera: CameraFigures) -> list[str]:
    """The parts of the line on a camera: what is wrong with it, else who it is and how fast."""
    if camera.trouble:
        return [plain(camera.trouble)]
    lost = [f"lost {camera.lost}"] if camera.lost else []
    name = plain(camera.description).partition(", ")[0]
    name = name if "://" in name else name.rpartition("/")[2]  # of files and devices without their folders
    return [name, f"{camera.frames_per_s:.0f} fps", f"dropped {camera.dropped}", *lost]


def is_slow(camera: CameraFigures) -> bool:
    """Whether it gives fewer pictures than it promises."""
    return 0 < camera.frames_per_s * camera.budget_ms < _SLOW * 1000


def _caption(camera: CameraFigures, area: ScreenArea) -> None:
    painter = Painter()
    em = painter.em
    letters = int((area.width - 2 * (_MARGIN + PADDING) * em) / painter.letter)
    if letters < _LEAST_LETTERS:
        return
    lines = wrapped(caption_of(camera), letters)
    wide, high = max(map(len, lines)) * painter.letter / em, len(lines)
    left, top = area.right / em - _MARGIN - wide - 2 * PADDING, area.bottom / em - _MARGIN - high - 2 * _THIN
    x, y = painter.box(left, top, wide, high, _THIN, OPAQUE if camera.trouble else BACK)
    painter.text(x, y, BRIGHT if camera.trouble else LATE if is_slow(camera) else PLAIN, "\n".join(lines))


def cell_on_screen(place: CellPlace, grid: PictureGrid, area: ScreenArea) -> ScreenArea:
    """Where one of a grid's pictures is, if the grid fills an area."""
    across, down = area.width / grid.size[0], area.height / grid.size[1]
    left, top = area.left + place.left * across, area.top + place.top * down
    return ScreenArea(left, top, left + place.width * across, top + place.height * down)
