"""Draws what a network has put out over the frame, its mask, its classes or its picture, by the compositor for each."""

from collections.abc import Sequence
from dataclasses import replace

from ...models.decoders.region import FrameRegion
from ...picture.preprocess import Fit, ImageSize
from ..inference.frame_segmenter import DrawableOutput
from ..looks.effects import MASK_EFFECTS, Effect, mask_effects, nearest_effect
from ..looks.looks import Look
from ..refinement.refine import Refiner
from ..textures.picture_device import PictureDevice, ReadablePlanes, Target
from .backdrop import Backdrop
from .classes import ClassesCompositor
from .cropped_frame import CroppedFrame
from .network_picture import PictureCompositor
from .render import Compositor


class OutputDrawing:
    """Chooses the compositor for each picture. `look` may be set between any two.

    An effect that the network is not able to have is drawn as its usual one, and `look` says so.
    """

    def __init__(
        self,
        pictures: PictureDevice,
        segmenter: DrawableOutput,
        fit: Fit,
        look: Look,
        backdrop: Backdrop,
        refiner: Refiner | None = None,
    ) -> None:
        """Raises DeviceError if the shaders do not compile."""
        of_masks = mask_effects(segmenter.classes is not None)
        self.effects = segmenter.picture.layout.effects if segmenter.picture else of_masks
        self._crop: FrameRegion | None = None
        self._device, self._segmenter, self._fit = pictures, segmenter, fit
        self._backdrop, self._refiner = backdrop, refiner
        self._look = look = self._able(look)
        self._whole = self._compositors(segmenter.frame, None)
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
        return (self._segmenter.frame.format.upright_size,)

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
        age, crop = self._refiner.age if self._refiner else 0, None if whole else self._crop
        drawn = self._taken(crop, age) if crop else self._whole
        if drawn.classes and effect == "classes":
            drawn.classes.draw(target, self._look, age, size)
        elif drawn.masks:
            drawn.masks.draw(self._segmenter.mask, target, effect, size)
        elif drawn.pictures and self._segmenter.picture:
            drawn.pictures.draw(self._segmenter.picture.span(), target, effect, size)

    def _taken(self, crop: FrameRegion, age: int) -> "_Compositors":
        """What draws a part of the frame of that age, which it has then."""
        self._part = self._part or CroppedFrame(self._device, self._segmenter.frame)
        self._part.take(crop, age)
        self._cropped = self._cropped or self._compositors(self._part, crop)
        self._cropped.set_crop(crop)
        return self._cropped

    def _compositors(self, frame: ReadablePlanes, crop: FrameRegion | None) -> "_Compositors":
        segmenter, look, common = self._segmenter, self._look, (self._device, frame)
        made = _Compositors()
        if segmenter.picture:
            layout = segmenter.picture.layout
            made.pictures = PictureCompositor(*common, layout, self._fit, look, self._backdrop, crop)
        else:
            made.masks = Compositor(
                *common, segmenter.layout, self._fit, _of_masks(look), self._backdrop, self._refiner, crop
            )
        if segmenter.classes:
            made.classes = ClassesCompositor(*common, segmenter.classes, self._fit, crop)
        return made

    def _able(self, look: Look) -> Look:
        return look if look.effect in self.effects else replace(look, effect=self.effects[0])

    def release(self) -> None:
        """Delete what was made here; what the segmenter has, targets and the backdrop stay."""
        for part in (self._whole, self._cropped, self._part):
            if part:
                part.release()


class _Compositors:
    """Those of one frame, or of a part of it: of masks or of the network's picture, and of classes, if there are."""

    masks: Compositor | None = None
    pictures: PictureCompositor | None = None
    classes: ClassesCompositor | None = None

    def set_look(self, look: Look) -> None:
        if self.masks:
            self.masks.look = _of_masks(look)
        if self.pictures:
            self.pictures.look = look

    def set_crop(self, crop: FrameRegion) -> None:
        for part in (self.masks, self.pictures, self.classes):
            if part:
                part.crop = crop

    def release(self) -> None:
        for part in (self.masks, self.pictures, self.classes):
            if part:
                part.release()


def _of_masks(look: Look) -> Look:
    """What the compositor of masks is to be ready for: it does not draw classes."""
    return replace(look, effect=nearest_effect(look.effect, MASK_EFFECTS))
