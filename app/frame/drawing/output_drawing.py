"""Draws what a network has put out over the frame, its mask, its classes or its picture, by the compositor for each."""

from dataclasses import replace

from ...picture.preprocess import Fit, ImageSize
from ..inference.frame_segmenter import DrawableOutput
from ..looks.effects import MASK_EFFECTS, Effect, mask_effects, nearest_effect
from ..looks.looks import Look
from ..refinement.refine import Refiner
from ..textures.picture_device import PictureDevice, Target
from .backdrop import Backdrop
from .classes import ClassesCompositor
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
        self._segmenter, self._refiner = segmenter, refiner
        self._look = look = self._able(look)
        frame = segmenter.frame
        self._masks: Compositor | None = None
        self._pictures: PictureCompositor | None = None
        if segmenter.picture:
            self._pictures = PictureCompositor(pictures, frame, segmenter.picture.layout, fit, look, backdrop)
        else:
            self._masks = Compositor(pictures, frame, segmenter.layout, fit, _of_masks(look), backdrop, refiner)
        self._classes = ClassesCompositor(pictures, frame, segmenter.classes, fit) if segmenter.classes else None

    @property
    def look(self) -> Look:
        """What the next pictures look like."""
        return self._look

    @look.setter
    def look(self, look: Look) -> None:
        self._look = look = self._able(look)
        if self._masks:
            self._masks.look = _of_masks(look)
        if self._pictures:
            self._pictures.look = look

    def draw(self, target: Target, effect: Effect | None = None, size: ImageSize | None = None) -> None:
        """Draw the last frame; with another effect than the look's, or to (width, height) at the lower left alone.

        Raises ValueError if the effect needs a background and there is none.
        """
        effect = nearest_effect(effect or self._look.effect, self.effects)
        if self._classes and effect == "classes":
            self._classes.draw(target, self._look, self._refiner.age if self._refiner else 0, size)
        elif self._masks:
            self._masks.draw(self._segmenter.mask, target, effect, size)
        elif self._pictures and self._segmenter.picture:
            self._pictures.draw(self._segmenter.picture.span(), target, effect, size)

    def _able(self, look: Look) -> Look:
        return look if look.effect in self.effects else replace(look, effect=self.effects[0])

    def release(self) -> None:
        """Delete what was made here; what the segmenter has, targets and the backdrop stay."""
        for part in (self._masks, self._pictures, self._classes):
            if part:
                part.release()


def _of_masks(look: Look) -> Look:
    """What the compositor of masks is to be ready for: it does not draw classes."""
    return replace(look, effect=nearest_effect(look.effect, MASK_EFFECTS))
