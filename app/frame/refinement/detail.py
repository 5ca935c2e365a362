"""Has a network look at people once more, larger, and makes one finer mask of all that it saw.

The network sees a whole frame in its own few pixels. Once it has, the parts of the frame with people in them
(detail_views.py) are cut out and segmented, too, and merged on a grid of FINER as many columns and rows. A person's
outline is found better the larger it is seen, and several looks make up for each other's errors. The definition, which
tests/app/frame/refinement/test_detail.py has in NumPy, with v the masks of all looks, interpolated, 0.001 to 0.999:

    weight  of the whole frame 1, of a part its zoom (how many times larger the network sees it, by areas), times
            smoothstep(x y), where x and y rise from 0 at its sides to 1 at FADE of its width or height, but for sides
            at the edges of what the network sees
    result  sigmoid(sum(weight logit(v)) / sum(weight)): looks that are sure count for more
    trust   what the weight of a part is multiplied by: (1 - smoothstep(0.2, 0.4, -d)) (1 - smoothstep(0.2, 0.5, d)),
            where d, interpolated between CELLS x CELLS cells, is how much more of a person the part shows than the
            result of the looks before it: the mean over the corners of the 6 x 6 cells around each, of nearest pixels

So a look moves outlines, but a whole hat or flower that it alone sees otherwise stays as it was.

Parts are those that the mask of the frame before tells of, so that nothing waits for the device; at a beginning they
are those of the frame itself. What comes back is the profile of a mask, 256 bytes a frame. The network runs up to
MOST_VIEWS times more. Over 81 judged rows (`bench quality --scenes --steps raw,both,detail`) the F-score of outlines is
82.7 %, without 79.8, flicker 7 % less; most where people are small in a large frame (72 to 82 in one at 1080p). Rows
with a larger matte error, flicker or color error than raw masks: 2, 1 and 0, without this 2, 2 and 2. Trusted wholly,
looks gave 82.3 %, 12 % less, and 8, 2 and 4, for caps were cut off; trust costs 0.15 ms of one core. It is not enough
where the first look is of two minds: before a dahlia two people have an F-score of 64 %, without this 69.
"""

from collections.abc import Sequence
from typing import Protocol

import numpy as np

from texelflow.gpu_delegate.targets.gl.opengl import BufferSpan

from ...models.decoders.region import FrameRegion
from ...picture.picture import ImageSize
from ...picture.sampling import Fit, SampledAxis, sampling
from ...picture.video_frame import VideoFrame
from ..inference.frame_segmenter import DrawableMask
from ..stages.frame_pipeline import Stage
from ..textures.picture_device import PictureDevice
from .detail_views import COLUMNS, DetailView, steady_views, wanted_views

__all__ = ["DETAIL", "Detail", "LooksAtRegions", "seen_part"]

DETAIL = "detail"  # the stage

_FINER = 3, 2  # a ratio
_FADE = 0.12
_AT_ONCE = 1e6
_WHOLE = DetailView(0.0, 0.0, 1.0, 1.0)
_CELLS = 32
_TEXELS_UNIT, _BEFORE_UNIT, _DOUBT_UNIT = 3, 4, 5  # of texture units that others use in turn


class LooksAtRegions(DrawableMask, Protocol):
    """A segmenter that makes masks of parts of a frame, too."""

    def mask_of_region(self, frame: VideoFrame, region: FrameRegion) -> BufferSpan:
        """The mask of a part of the frame in the textures, in the layout of masks; it may lie where `mask` did."""


class Detail:
    """The looks at people of one segmenter's frames: `stage` comes after its own. `merged` has the sums of each frame.

    Row 0 is the top row; of `merged` the mask is sigmoid(red / green).
    """

    def __init__(self, pictures: PictureDevice, segmenter: LooksAtRegions, fit: Fit = "stretch") -> None:
        """Raises DeviceError if the shaders do not compile, or for a grid that the device does not draw."""
        layout = segmenter.layout
        self._pictures, self._segmenter, self._calls = pictures, segmenter, pictures.calls()
        self.size: ImageSize = (_finer(layout.size[0]), _finer(layout.size[1]))
        self._seen = seen_part(segmenter.frame.format.upright_size, layout.size, fit)
        self._texels = pictures.texels(layout.texels, layout.stride)
        self.merged, self._other = (pictures.target(self.size, "floats") for _ in range(2))
        wide = -(-layout.size[0] // COLUMNS)
        self._profile = pictures.target((-(-layout.size[0] // wide), 1))
        defines = {**layout.defines(), **self._texels.defines()}
        self._doubt = pictures.target((_CELLS, _CELLS), "floats")
        samplers = {"texels": _TEXELS_UNIT, "before": _BEFORE_UNIT, "doubt": _DOUBT_UNIT}
        grid = dict(zip(("GRID_W", "GRID_H"), self.size, strict=True))
        self._merge = pictures.drawing("detail_merge.frag", {**defines, **grid}, samplers, "detail merge")
        self._compare = pictures.drawing("detail_doubt.frag", {**defines, "CELLS": _CELLS}, samplers, "detail doubt")
        self._columns = pictures.drawing("detail_profile.frag", {**defines, "WIDE": wide}, samplers, "detail profile")
        self._views: tuple[DetailView, ...] = ()
        self._begins = True

    @property
    def stage(self) -> Stage:
        """What runs after the segmenter's stages, where the network sees the frame."""
        return Stage(DETAIL, self.run)

    def run(self, frame: VideoFrame) -> None:
        """Look at the frame that the segmenter has just seen. Raises TexelflowError."""
        whole = self._segmenter.mask
        if self._begins:
            self._views, self._begins = (), False
            self._see(whole)
        wanted = wanted_views(self._read(), self._seen.width / self._seen.height)
        self._views = steady_views(self._views, wanted)
        self._see(whole)  # for the next frame, before a part may lie where this was
        self._add(whole, _WHOLE, first=True)
        for view in self._views:
            self._add(self._segmenter.mask_of_region(frame, self._region(view)), view, first=False)

    def begin_anew(self) -> None:
        """The next frame has nothing to do with those before."""
        self._begins = True

    def prepare(self) -> None:
        """Draw what is there, so that code which is made at its first use is there before the first frame."""
        self._see(self._segmenter.mask)
        for first in (True, False):
            self._add(self._segmenter.mask, _WHOLE, first)

    def _region(self, view: DetailView) -> FrameRegion:
        seen = self._seen
        width, height = (view.right - view.left) * seen.width, (view.bottom - view.top) * seen.height
        left = seen.center_x - seen.width / 2 + view.left * seen.width
        top = seen.center_y - seen.height / 2 + view.top * seen.height
        return FrameRegion(left + width / 2, top + height / 2, width, height)

    def _read(self) -> "np.ndarray[tuple[int, ...], np.dtype[np.float64]]":
        return self._pictures.read(self._profile)[0, :, :3] / 255.0

    def _see(self, mask: BufferSpan) -> None:
        """Draw the profile of a mask."""
        self._texels.show(mask)
        self._calls.run((self._profile, mask.buffer, mask.offset_bytes), lambda: self._draw_profile(mask))

    def _draw_profile(self, mask: BufferSpan) -> None:
        self._texels.bind(_TEXELS_UNIT, mask)
        self._columns.use()
        self._columns.draw(self._profile, self._profile.size)

    def _add(self, mask: BufferSpan, view: DetailView, first: bool) -> None:
        """Add what the network saw of a part to the sums."""
        self.merged, self._other = self._other, self.merged
        self._texels.show(mask)
        depends_on = self.merged, mask.buffer, mask.offset_bytes, view, first
        self._calls.run(depends_on, lambda: self._draw(mask, view, first))

    def _draw(self, mask: BufferSpan, view: DetailView, first: bool) -> None:
        self._texels.bind(_TEXELS_UNIT, mask)
        self._pictures.bind(_BEFORE_UNIT, self._other.texture)
        place = view.left, view.top, 1 / (view.right - view.left), 1 / (view.bottom - view.top)
        if not first:
            self._compare.use()
            self._compare.set_floats("view", *place)
            self._compare.draw(self._doubt, self._doubt.size)
        self._pictures.bind(_DOUBT_UNIT, self._doubt.texture)
        drawing = self._merge
        drawing.use()
        drawing.set_floats("first", float(first))
        drawing.set_floats("view", *place)
        drawing.set_floats("fade", *_fades(view))
        drawing.set_floats("share", view.zoom)
        drawing.draw(self.merged, self.size)

    def release(self) -> None:
        """Delete shaders and sums; the segmenter stays."""
        for part in (self._merge, self._compare, self._columns, self._texels):
            part.release()
        for target in (self.merged, self._other, self._doubt, self._profile):
            target.release()


def _fades(view: DetailView) -> Sequence[float]:
    """By how much weights rise from each side, in parts of the view."""
    ends = (0.0, 0.0, 1.0, 1.0)
    return [_AT_ONCE if side == end else 1 / _FADE for side, end in zip(view.sides, ends, strict=True)]


def _finer(count: int) -> int:
    more, by = _FINER
    return -(-count * more // by)


def seen_part(frame: ImageSize, grid: ImageSize, fit: Fit) -> FrameRegion:
    """What the network sees of a frame, in its pixels."""
    there = sampling(frame, grid, fit)
    (left, width), (top, height) = _span(there.x), _span(there.y)
    return FrameRegion(left + width / 2, top + height / 2, width, height)


def _span(axis: SampledAxis) -> tuple[float, float]:
    """Where the first pixel begins, and how long all are."""
    return (axis.start - axis.step / 2) / axis.den + 0.5, axis.count * axis.step / axis.den
