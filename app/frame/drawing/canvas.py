"""The stage that draws the picture: a frame with an effect, into a target."""

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from ...media.sources import VideoFrame
from ...models.decoders.region import FrameRegion
from ...picture.preprocess import Fit, ImageSize
from ..inference.frame_segmenter import DrawableOutput
from ..looks.effects import Effect
from ..looks.looks import WHOLE, ChosenLook, Look
from ..refinement.refine import Refiner
from ..stages.frame_pipeline import Stage
from ..textures.picture_device import PictureDevice, Target
from .backdrop import Backdrop
from .found_picture import FoundFrames, FoundThings
from .output_drawing import OutputDrawing


class PictureDrawing(Protocol):
    """What draws the picture of the last frame, as OutputDrawing does it."""

    look: Look

    @property
    def effects(self) -> tuple[Effect, ...]: ...
    @property
    def frame_sizes(self) -> tuple[ImageSize, ...]: ...
    def show_parts(self, crops: Sequence[FrameRegion | None]) -> None: ...
    def draw(
        self, target: Target, effect: Effect | None = None, size: ImageSize | None = None, whole: bool = False
    ) -> None: ...
    def release(self) -> None: ...


class ChangingBackground(Protocol):
    """What is behind the person, as Backdrop has it."""

    @property
    def message(self) -> str: ...
    @property
    def uploaded_bytes(self) -> int: ...
    def prepare(self) -> None: ...
    def change(self, background: Path | None) -> None: ...
    def update(self, time_ms: float) -> None: ...


class Canvas:
    """Draws what a segmenter made of the last frame into a target. `look` may be set between any two frames.

    `drawing` is what does it, for other targets, too.
    """

    def __init__(
        self,
        pictures: PictureDevice,
        segmenter: DrawableOutput | FoundFrames,
        target: Target,
        fit: Fit,
        choice: ChosenLook,
        *,
        backdrop: Backdrop | None = None,
        refiner: Refiner | None = None,
        things: FoundThings | None = None,
    ) -> None:
        """`things` are what a finder finds in the frames, if one sees them; alone where there are only FoundFrames.

        `backdrop` is not released here; without one the chosen background is opened, and waited for in each frame.

        Raises DeviceError if the shaders do not compile, MediaError for a background that cannot be shown.
        """
        behind = backdrop or Backdrop(pictures, segmenter.frame.format.upright_size, choice.background)
        drawing = OutputDrawing(pictures, segmenter, fit, choice.look, behind, refiner, things)
        self._begin(pictures, target, drawing, behind, None if backdrop else behind)
        self._framing = choice.framing

    def _begin(
        self, pictures: PictureDevice, target: Target, drawing: PictureDrawing, backdrop: ChangingBackground,
        own_backdrop: Backdrop | None = None,
    ) -> None:  # fmt: skip
        """The drawing, and a backdrop of one's own, are released here."""
        self.target = target
        self._pictures, self.drawing, self._backdrop, self._own_backdrop = pictures, drawing, backdrop, own_backdrop
        self._drawn: dict[Effect, Target] = {}
        self._wide: Target | None = None
        self._framing = WHOLE  # in the beginning

    @property
    def stage(self) -> Stage:
        """What draws each frame. Not kept here: what refers to itself waits for Python's garbage collection."""
        return Stage("composite", self._draw, lambda: self._pictures.gathers)

    @property
    def look(self) -> Look:
        """What the next pictures look like; its effect is one that the network is able to have."""
        return self.drawing.look

    @look.setter
    def look(self, look: Look) -> None:
        self.drawing.look = look

    @property
    def frame_sizes(self) -> tuple[ImageSize, ...]:
        """(width, height) of each camera's frames."""
        return self.drawing.frame_sizes

    def show_parts(self, crops: Sequence[FrameRegion | None]) -> None:
        """Have the next pictures show a part of each camera's frame, masks and cutouts like the others; None: all."""
        self.drawing.show_parts(crops)

    @property
    def effects(self) -> tuple[Effect, ...]:
        """Those that the network is able to have, its usual one first."""
        return self.drawing.effects

    @property
    def message(self) -> str:
        """One line about the background for the user; '' if there is nothing to say."""
        return self._backdrop.message

    @property
    def uploaded_bytes(self) -> int:
        """Of backgrounds, so far."""
        return self._backdrop.uploaded_bytes

    def set_background(self, background: Path | None) -> None:
        """Show another file behind the person as soon as it is read; errors will be in `message`.

        None is the picture of the package.
        """
        self._backdrop.change(background)

    def prepare(self) -> None:
        """Draw what is there, so that code which is made at its first use is there before the first frame."""
        if self.look.effect == "replace":
            self._backdrop.prepare()
        unseen = self._pictures.target(self.target.size)
        self.drawing.draw(unseen)
        if not self._framing.shows_all:
            self.show_parts([FrameRegion(w / 2, h / 2, w / 2, h / 2) for w, h in self.frame_sizes])
            self.drawing.draw(unseen)
            self.show_parts([None] * len(self.frame_sizes))
        self._pictures.finish()
        unseen.release()

    def drawn(self, effect: Effect) -> Target:
        """The last frame with another effect, in a target of that effect's own, drawn now.

        Raises ValueError for `replace` before a background has been shown.
        """
        if effect not in self._drawn:
            self._drawn[effect] = self._pictures.target(self.target.size)
        self.drawing.draw(self._drawn[effect], effect)
        return self._drawn[effect]

    def shown(self) -> Target:
        """The last picture as a screen shows it: the target, or for `cutout` a copy over a checkerboard.

        Side by side it is twice as wide: the frame as it is, all of it, and that.
        """
        result = self.drawn("checker") if self.look.effect == "cutout" else self.target
        return self._beside(result) if self.look.side_by_side else result

    def _beside(self, result: Target) -> Target:
        width, height = result.size
        if self._wide is None:
            self._wide = self._pictures.target((2 * width, height))
        self.drawing.draw(self._wide, "none", result.size, whole=True)
        self._pictures.copy(result, self._wide, (width, 0, width, height))
        return self._wide

    def _draw(self, frame: VideoFrame) -> None:
        if self.look.effect == "replace":
            self._backdrop.update(frame.time_ms)
        self.drawing.draw(self.target)

    def release(self) -> None:
        """Free all but the target, and a backdrop that was passed in."""
        for part in (self.drawing, *self._drawn.values(), self._wide, self._own_backdrop):
            if part:
                part.release()
