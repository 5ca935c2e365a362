"""Draws what a network has put out over the frame, its mask, its classes or its picture, by the compositor for each."""

from collections.abc import Sequence
from dataclasses import replace

from ...models.decoders.region import FrameRegion
from ...picture.preprocess import Fit, ImageSize
from ..inference.frame_segmenter import DrawableOutput
from ..looks.effects import (
    FOUND_EFFECTS,
    HIDING_FACES,
    MASK_EFFECTS,
    Effect,
    found_effects,
    mask_effects,
    nearest_effect,
    with_hidden_faces,
)
from ..looks.looks import Look
from ..refinement.refine import Refiner
from ..textures.picture_device import PictureDevice, ReadablePlanes, Target
from .backdrop import Backdrop
from .classes import ClassesCompositor
from .cropped_frame import CroppedFrame
from .found_picture import FoundCompositor, FoundFrames, FoundThings
from .network_picture import PictureCompositor
from .render import Compositor


class OutputDrawing:
    """Chooses the compositor for each picture. `look` may be set between any two.

    An effect that the network is not able to have is drawn as its usual one, and `look` says so.
    """

    def __init__(
        self,
        pictures: PictureDevice,
        segmenter: DrawableOutput | FoundFrames,
        fit: Fit,
        look: Look,
        backdrop: Backdrop,
        refiner: Refiner | None = None,
        things: FoundThings | None = None,
    ) -> None:
        """`things` are what a finder finds in the frames, if one sees them. Raises DeviceError if the shaders do not
        compile.
        """
        self.effects = _effects_of(segmenter, things)
        self._crop: FrameRegion | None = None
        self._device, self._frame, self._fit = pictures, segmenter.frame, fit
        self._output = None if isinstance(segmenter, FoundFrames) else segmenter
        self._backdrop, self._refiner, self._things = backdrop, refiner, things
        self._look = look = self._able(look)
        self._whole = self._compositors(self._frame, None)
        self._cropped: _Compositors | None = None  # of the part, once there is one
        self._part: CroppedFrame | None = None

    @property
    def look(self) -> Look:
        """What the next pictures look like."""
        return self._look

    @look.setter
    def look(self, look: Look) -> None:
        self._look = look = self._able(look)
        for compositors in (self._whole, self._cropped):
            if compositors:
                compositors.set_look(look)

    @property
    def frame_sizes(self) -> tuple[ImageSize, ...]:
        """(width, height) of frames, one."""
        return (self._frame.format.upright_size,)

    def show_parts(self, crops: Sequence[FrameRegion | None]) -> None:
        """Have the next pictures show that part of the frame, of its aspect and without an angle; None: all of it."""
        (self._crop,) = crops

    def draw(
        self, target: Target, effect: Effect | None = None, size: ImageSize | None = None, whole: bool = False
    ) -> None:
        """Draw the last frame; with another effect than the look's, or to (width, height) at the lower left alone, or
        all of it, whatever the crop.

        Raises ValueError if the effect needs a background and there is none.
        """
        effect = nearest_effect(effect or self._look.effect, self.effects)
        aged = self._refiner or self._things
        age, crop, output = aged.age if aged else 0, None if whole else self._crop, self._output
        drawn = self._taken(crop, age) if crop else self._whole
        if output is None or effect in FOUND_EFFECTS:
            drawn.found.draw(target, effect, age, size)
        elif drawn.classes and effect == "classes":
            drawn.classes.draw(target, self._look, age, size)
        elif drawn.masks and output:
            drawn.masks.draw(output.mask, target, effect, size)
        elif drawn.pictures and output and output.picture:
            drawn.pictures.draw(output.picture.span(), target, effect, size)
        if self._look.hides_faces and effect not in (*HIDING_FACES, "mask"):
            drawn.found.cover(target, self._look.effect, age, size or target.size)

    def _taken(self, crop: FrameRegion, age: int) -> "_Compositors":
        """What draws a part of the frame of that age, which it has then."""
        self._part = self._part or CroppedFrame(self._device, self._frame)
        self._part.take(crop, age)
        self._cropped = self._cropped or self._compositors(self._part, crop)
        self._cropped.set_crop(crop)
        return self._cropped

    def _compositors(self, frame: ReadablePlanes, crop: FrameRegion | None) -> "_Compositors":
        output, look, common = self._output, self._look, (self._device, frame)
        made = _Compositors(FoundCompositor(*common, self._things, look, crop))
        if output is None:
            return made
        if output.picture:
            layout = output.picture.layout
            made.pictures = PictureCompositor(*common, layout, self._fit, look, self._backdrop, crop)
        else:
            made.masks = Compositor(
                *common, output.layout, self._fit, _of_masks(look), self._backdrop, self._refiner, crop
            )
        if output.classes:
            made.classes = ClassesCompositor(*common, output.classes, self._fit, crop)
        return made

    def _able(self, look: Look) -> Look:
        return look if look.effect in self.effects else replace(look, effect=self.effects[0])

    def release(self) -> None:
        """Delete what was made here; what the segmenter has, targets and the backdrop stay."""
        for part in (self._whole, self._cropped, self._part):
            if part:
                part.release()


class _Compositors:
    """Those of one frame, or of a part: of what was found, and if there are of masks, a network's picture, classes."""

    def __init__(self, found: FoundCompositor) -> None:
        self.found = found

    masks: Compositor | None = None
    pictures: PictureCompositor | None = None
    classes: ClassesCompositor | None = None

    def set_look(self, look: Look) -> None:
        self.found.look = look
        if self.masks:
            self.masks.look = _of_masks(look)
        if self.pictures:
            self.pictures.look = look

    def set_crop(self, crop: FrameRegion) -> None:
        for part in (self.masks, self.pictures, self.classes, self.found):
            if part:
                part.crop = crop

    def release(self) -> None:
        for part in (self.masks, self.pictures, self.classes, self.found):
            if part:
                part.release()


def _effects_of(segmenter: DrawableOutput | FoundFrames, things: FoundThings | None) -> tuple[Effect, ...]:
    """What can be drawn, the usual effect first."""
    if isinstance(segmenter, FoundFrames):
        return found_effects()
    picture, has_classes = segmenter.picture, segmenter.classes is not None
    effects = picture.layout.effects if picture else mask_effects(has_classes)
    return with_hidden_faces(found_effects(effects) if things else effects)


def _of_masks(look: Look) -> Look:
    """What the compositor of masks is to be ready for: it does not draw classes."""
    return replace(look, effect=nearest_effect(look.effect, MASK_EFFECTS))
