"""The stage that draws the pictures of several cameras side by side into one target.

A picture that is drawn in a target already is not drawn there again: cameras do not give their pictures at once.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from texelflow.gpu_delegate.targets.gl import opengl
from texelflow.gpu_delegate.targets.gl.context import Context

from ...picture.grid import CellPlace, PictureGrid
from ...picture.preprocess import ImageSize
from ..looks.effects import Effect
from ..looks.looks import Look
from ..textures.offscreen_target import OffscreenTarget
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
    scratch: OffscreenTarget
    backdrop: Backdrop
    version: Callable[[], int]


class GridDrawing:
    """Draws all pictures, each with the same look, at their places; nothing is drawn around them."""

    def __init__(self, context: Context, cameras: Sequence[DrawnCamera], grid: PictureGrid) -> None:
        """Nothing of the cameras is released here."""
        self._gl, self._cameras, self._grid = context.gl, tuple(cameras), grid
        self._there: dict[int, list[tuple[object, ...]]] = {}  # by framebuffer: what is drawn at each place

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

    def draw(self, target: OffscreenTarget, effect: Effect | None = None, size: ImageSize | None = None) -> None:
        """As OutputDrawing has it; a (width, height) other than the target's is the grid's."""
        if target.framebuffer not in self._there:
            self._clear(target)
            self._there[target.framebuffer] = [()] * len(self._cameras)
        there = self._there[target.framebuffer]
        for number, (camera, place) in enumerate(zip(self._cameras, self._grid.places, strict=True)):
            wanted = camera.version(), camera.drawing.look, effect, camera.backdrop.uploaded_bytes, target.overdrawn
            if wanted != there[number]:
                camera.drawing.draw(camera.scratch, effect)
                self._copy(camera.scratch, target, place)
                there[number] = wanted

    def _clear(self, target: OffscreenTarget) -> None:
        self._gl.glBindFramebuffer(opengl.DRAW_FRAMEBUFFER, target.framebuffer)
        self._gl.glClearColor(0.0, 0.0, 0.0, 0.0)
        self._gl.glClear(opengl.COLOR_BUFFER_BIT)

    def _copy(self, picture: OffscreenTarget, target: OffscreenTarget, place: CellPlace) -> None:
        """To its place, whose rows count from the top of the grid, and OpenGL's from the bottom."""
        gl, (width, height) = self._gl, picture.size
        left, bottom = place.left, self._grid.size[1] - place.top - place.height
        filtered = opengl.NEAREST if place.size == picture.size else opengl.LINEAR
        gl.glBindFramebuffer(opengl.READ_FRAMEBUFFER, picture.framebuffer)
        gl.glBindFramebuffer(opengl.DRAW_FRAMEBUFFER, target.framebuffer)
        gl.glBlitFramebuffer(
            0, 0, width, height, left, bottom, left + place.width, bottom + place.height,
            opengl.COLOR_BUFFER_BIT, filtered,
        )  # fmt: skip

    def release(self) -> None:
        """Nothing was made here."""


class GridCanvas(Canvas):
    """Draws what the segmenters of several cameras made of their last frames into one target."""

    def __init__(
        self, context: Context, cameras: Sequence[DrawnCamera], target: OffscreenTarget, grid: PictureGrid
    ) -> None:
        """The target is of the grid's size."""
        backdrops = {id(camera.backdrop): camera.backdrop for camera in cameras}
        self._begin(context, target, GridDrawing(context, cameras, grid), Backdrops([*backdrops.values()]))
