"""Refines a network's masks frame by frame: steady over time, and fitted to the picture's edges.

Two steps, each on or off at any time: temporal.py makes the mask steady on the network's grid, guided.py fits it to the
colors of the frame. The result is a texture of coefficients: the mask at a pixel is dot(rgb, color) + alpha, both
interpolated, clamped to 0..1 and softened (mask_over.glsl). Without the guided step they are (0, 0, 0, mask).

A frame that the network does not see keeps the coefficients of the last one that it saw: they are of colors, so that
the edge still follows the picture.

With a delay of one frame the previous frame is shown, and its mask is computed from the masks before and after it.
Where the network saw that frame, the next one decides uncertain pixels; where it did not, the mask is interpolated
between its neighbors, if the newest frame has one.
"""

from dataclasses import dataclass

from texelflow.gpu_delegate.targets.glsl.shader import ParameterValue

from ...picture.preprocess import Fit
from ..inference.frame_segmenter import DrawableMask
from ..textures.picture_device import PictureDevice, Target
from .detail import Detail
from .guided import GuidedFilter
from .held import HeldThings
from .own_colors import KeptColors
from .temporal import CELL, TemporalBlend

MOST_DELAY = 1  # frames


@dataclass(frozen=True)
class Refinement:
    """What is done to masks: fitted to the picture's edges, smoothed over time by 0 to 1, delayed by frames."""

    edges: bool = True
    smooth: float = 0.5
    delay: int = 0

    @property
    def least(self) -> float:
        """The least weight of a new mask."""
        return (1 - min(max(self.smooth, 0.0), 1.0)) ** 3


class Refiner:
    """Refines the masks of one segmenter. `refinement` may be replaced between any two frames.

    `age` is that of the frame that the coefficients are for, among those which its textures keep.
    """

    def __init__(
        self,
        pictures: PictureDevice,
        segmenter: DrawableMask,
        fit: Fit,
        refinement: Refinement = Refinement(),
        detail: Detail | None = None,
        held: HeldThings | None = None,
    ) -> None:
        """With `detail`, which runs before this does, masks are what that has merged; what is `held` joins them.

        Raises DeviceError if the shaders do not compile.
        """
        self.refinement = refinement
        self.age = 0
        self._pictures, self._segmenter = pictures, segmenter
        self.size = detail.size if detail else segmenter.layout.size  # of the grid of masks
        self._blend = TemporalBlend(pictures, segmenter.layout, detail, held)
        self._guided = GuidedFilter(pictures, segmenter.frame, self.size, fit)
        layout = segmenter.layout
        self._colors = KeptColors(pictures, layout) if layout.has_own_colors else None
        self.colors: int | None = None  # the texture of the person's own colors, where the network has them
        self._mask = self._shown = self._blend.steady
        self._fitted = False  # whether what is shown was fitted to edges
        self._frames = 0  # since the last reset
        self._unseen = 0  # frames since the last one that the network saw

    def run(self, fresh: bool = True, age: int | None = None) -> None:
        """Refine the mask of the frame that was uploaded last; `fresh` says whether the network has seen that one.

        With an `age` of 1 the frame before it is the one to be shown; by default the refinement's delay says so.
        Raises ValueError for a delay by more frames than their textures keep.
        """
        wanted, kept = self.refinement, self._segmenter.frame.kept
        delay = wanted.delay if age is None else age
        if not 0 <= delay <= min(MOST_DELAY, kept - 1):
            raise ValueError(f"no delay of {delay} frames: {kept} are kept")
        first, self.age = self._frames == 0, min(delay, self._frames)
        least = 1.0 if first else wanted.least
        self._keep_colors(fresh or first)
        mask = self._next_mask(fresh or first, least)
        if mask or wanted.edges != self._fitted:
            self._mask, self._fitted = mask or self._mask, wanted.edges
            self._shown = self._guided.run(self._mask, self.age, least) if wanted.edges else self._mask
        self._frames += 1

    def prepare(self) -> None:
        """Refine what is there, so that code which is made at its first use is there before the first frame."""
        self.run()
        self.reset()

    def catch_up(self) -> None:
        """Show the frame that was uploaded last itself, as no other one comes after it: by masks up to its own."""
        wanted = self.refinement
        self.colors = self._colors.newest if self._colors else None
        self.age, self._mask, self._fitted = 0, self._blend.steady, wanted.edges
        self._shown = self._guided.run(self._mask, 0, wanted.least) if wanted.edges else self._mask

    def refit(self) -> None:
        """Show the same mask of the same frame with or without the fit to edges, as the refinement is now."""
        if self.refinement.edges != self._fitted:
            self._fitted = self.refinement.edges
            self._shown = self._guided.run(self._mask, self.age, 1.0) if self._fitted else self._mask

    def _keep_colors(self, fresh: bool) -> None:
        """Those of the frame that is shown, or of the last one up to it that the network saw."""
        if self._colors:
            if fresh:
                self._colors.take(self._segmenter.mask)
            self.colors = self._colors.before if fresh and self.age else self._colors.newest

    def _next_mask(self, fresh: bool, least: float) -> Target | None:
        """The mask of the frame that is shown; None where nothing newer than the last one is known."""
        tensor, unseen = self._segmenter.mask, self._unseen
        self._unseen = 0 if fresh else unseen + 1
        if self.age == 0:
            return self._blend.blend(tensor, least) if fresh else None
        if not fresh:
            return None if unseen else self._blend.steady
        seen_later = self._blend.hindsight(tensor, least, passed=unseen / (unseen + 1))
        self._blend.blend(tensor, least)
        return seen_later

    def rest(self) -> None:
        """Nobody needs the mask of the frame that was uploaded last; the next one is the first again."""
        self.age = 0
        self.reset()

    def defines(self) -> dict[str, ParameterValue]:
        """The parameters of mask_over.glsl."""
        grid = dict(zip(("MASK_W", "MASK_H"), self.size, strict=True))
        return {**grid, "REFINED": 1, "CELL": CELL, "FILTERED": int(self._pictures.filters_floats)}

    @property
    def texture(self) -> int:
        """The name of the texture of coefficients."""
        return self._shown.texture

    def bind(self, unit: int) -> None:
        """Bind the coefficients to a texture unit."""
        self._pictures.bind(unit, self.texture)

    def reset(self) -> None:
        """Forget previous masks: after a cut, a seek, or when a source is back."""
        self._frames = 0

    def release(self) -> None:
        """Free all that was made here."""
        for part in (self._blend, self._guided, self._colors):
            if part:
                part.release()
