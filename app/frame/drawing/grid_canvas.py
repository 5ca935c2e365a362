"""The stage that draws the pictures of several cameras side by side into one target.

A picture that is drawn in a target already is not drawn there again: cameras do not give their pictures at once.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from ...models.decoders.region import FrameRegion
from ...picture.grid import CellPlace, PictureGrid
from ...picture.preprocess import ImageSize
from ..looks.effects import Effect
from ..looks.looks import Look
from ..textures.picture_device import PictureDevice, Target
from .backdrop import Backdrop
from .canvas import Canvas, PictureDrawing


class Backdrops:
    """The backgrounds of several cameras, one for each size of pictures, changed together."""

    def __init__(self, backdrops: Sequence[Backdrop]) -> None:
        """Those that differ; they are not released here."""
        self._all = tuple(backdrops)

    @property
    def message(self) -> str:
        """One line for the user, or ''."""
        return next((each.message for each in self._all if each.message), "")

    @property
    def uploaded_bytes(self) -> int:
        """Of all, so far."""
        return sum(each.uploaded_bytes for each in self._all)

    def prepare(self) -> None:
        """As Backdrop.prepare."""
        for each in self._all:
            each.prepare()

    def change(self, background: Path | None) -> None:
        """As Backdrop.change."""
        for each in self._all:
            each.change(background)

    def update(self, time_ms: float) -> None:
        """As Backdrop.update."""
        for each in self._all:
            each.update(time_ms)


@dataclass(frozen=True)
class DrawnCamera:
    """One camera's picture. `scratch` is of its size, and may be others' as well; `version` is that of the picture."""

    drawing: PictureDrawing
    scratch: Target
    backdrop: Backdrop
    version: Callable[[], int]


class GridDrawing:
    """Draws all pictures, each with the same look, at their places; nothing is drawn around them."""

    def __init__(self, pictures: PictureDevice, cameras: Sequence[DrawnCamera], grid: PictureGrid) -> None:
        """Nothing of the cameras is released here."""
        self._pictures, self._cameras, self._grid = pictures, tuple(cameras), grid
        self._crops: tuple[FrameRegion | None, ...] = (None,) * len(self._cameras)
        self._there: dict[Target, list[tuple[object, ...]]] = {}  # what is drawn at each place

    @property
    def look(self) -> Look:
        """What the next pictures look like."""
        return self._cameras[0].drawing.look

    @look.setter
    def look(self, look: Look) -> None:
        for camera in self._cameras:
            camera.drawing.look = look

    @property
    def effects(self) -> tuple[Effect, ...]:
        """Those that the network is able to have, its usual one first."""
        return self._cameras[0].drawing.effects

    @property
    def frame_sizes(self) -> tuple[ImageSize, ...]:
        """Of each camera."""
        return tuple(size for camera in self._cameras for size in camera.drawing.frame_sizes)

    def show_parts(self, crops: Sequence[FrameRegion | None]) -> None:
        """As Canvas.show_parts has it."""
        for camera, crop in zip(self._cameras, crops, strict=True):
            camera.drawing.show_parts((crop,))
        self._crops = tuple(crops)

    def draw(
        self, target: Target, effect: Effect | None = None, size: ImageSize | None = None, whole: bool = False
    ) -> None:
        """As OutputDrawing has it; a (width, height) other than the target's is the grid's."""
        if target not in self._there:
            self._pictures.clear(target)
            self._there[target] = [()] * len(self._cameras)
        there = self._there[target]
        cameras = zip(self._cameras, self._crops, self._grid.places, strict=True)
        for number, (camera, crop, place) in enumerate(cameras):
            drawing, background, crop = camera.drawing, camera.backdrop.uploaded_bytes, None if whole else crop
            wanted = camera.version(), drawing.look, effect, crop, background, target.overdrawn
            if wanted != there[number]:
                drawing.draw(camera.scratch, effect, whole=whole)
                self._copy(camera.scratch, target, place)
                there[number] = wanted

    def _copy(self, picture: Target, target: Target, place: CellPlace) -> None:
        """To its place, whose rows count from the top of the grid, and a target's from the bottom."""
        bottom = self._grid.size[1] - place.top - place.height
        self._pictures.copy(picture, target, (place.left, bottom, *place.size))

    def release(self) -> None:
        """Nothing was made here."""


class GridCanvas(Canvas):
    """Draws what the segmenters of several cameras made of their last frames into one target."""

    def __init__(
        self, pictures: PictureDevice, cameras: Sequence[DrawnCamera], target: Target, grid: PictureGrid
    ) -> None:
        """The target is of the grid's size."""
        backdrops = {id(camera.backdrop): camera.backdrop for camera in cameras}
        self._begin(pictures, target, GridDrawing(pictures, cameras, grid), Backdrops([*backdrops.values()]))
