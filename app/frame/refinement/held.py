"""Lets what moves with hands join the masks of one segmenter: the stage, and the texture that masks are joined with.

What is held is found in RAM, on a coarse grid (held_motion.py), and goes up as one byte for each value of the mask,
which is the larger of both before it is refined. Frames that are not in RAM have nothing.

Of 9 judged rows with phones and cups (`bench quality --scenes --groups held --steps raw,both,held`) the error of those
things is 250 thousandths, without this 644, the matte error 19 and 30, the F-score 72.6 and 69.8 %; rows with people
alone are as without. It takes 6.6 ms of one core more a frame in native code, most of it the networks of hands. A hand
that they do not find holds nothing, and what is moved by nothing but the whole person, as hats are, is not looked for.
"""

from collections.abc import Sequence
from typing import Protocol

import cv2
import numpy as np
import numpy.typing as npt

from ...models.decoders.found import Finding
from ...picture.brightness_grid import brightness_grid
from ...picture.color_planes import Floats
from ...picture.picture import ImageSize, Picture, PictureFormat
from ...picture.sampling import Fit
from ...picture.video_frame import VideoFrame
from ..stages.frame_pipeline import Stage
from ..textures.picture_device import PictureDevice
from .detail import seen_part
from .held_motion import GRID_COLUMNS, HeldMotion

__all__ = ["HELD", "FindsHands", "HeldThings"]

HELD = "held"  # the stage


class FindsHands(Protocol):
    """What found hands in the newest frame, before this sees it."""

    def found(self, age: int = 0) -> tuple[Finding, ...]: ...


class HeldThings:
    """What is held in each frame: `stage` comes after that of the finder. Row 0 of the texture is the top row."""

    def __init__(
        self, pictures: PictureDevice, finder: FindsHands, frame: ImageSize, size: ImageSize, fit: Fit = "stretch"
    ) -> None:
        """`frame` is the size of upright frames, `size` that of the grid of masks. Raises DeviceError."""
        self._finder, self._frame, self.size = finder, frame, size
        self._seen = seen_part(frame, size, fit)
        self._motion = HeldMotion()
        self._format = PictureFormat(size, "gray")
        self._plane = pictures.planes(self._format)
        self.begin_anew()

    @property
    def stage(self) -> Stage:
        """What runs after the finder's."""
        return Stage(HELD, self.run)

    @property
    def texture(self) -> int:
        """The name of the texture of what is held, in red."""
        return self._plane.textures[0]

    def run(self, frame: VideoFrame) -> None:
        """See the frame in which hands were found last."""
        if not frame.picture.planes:
            return
        grid = brightness_grid(frame.picture, GRID_COLUMNS)
        self._show(self._motion.held(grid, self._finder.found(), self._frame))

    def begin_anew(self) -> None:
        """The next frame has nothing to do with those before."""
        self._motion.begin_anew()
        self._is_empty = False
        self._show(None)

    def _show(self, held: Floats | None) -> None:
        is_empty = held is None or not held.any()
        if is_empty and self._is_empty:
            return
        self._is_empty = is_empty
        values: npt.NDArray[np.uint8] = np.zeros(self.size[::-1], np.uint8)
        if held is not None and not is_empty:
            values = np.asarray(np.rint(self._on_mask(held) * 255), np.uint8)
        self._plane.upload(Picture(self._format, (values,)))

    def _on_mask(self, held: Floats) -> Floats:
        """From the grid of the frame to that of masks, which may see a part of the frame, or more."""
        seen, (width, height) = self._seen, self.size
        across = _axis(seen.center_x, seen.width, width, self._frame[0], held.shape[1])
        down = _axis(seen.center_y, seen.height, height, self._frame[1], held.shape[0])
        there = np.array([[across[0], 0, across[1]], [0, down[0], down[1]]], np.float64)
        flags = cv2.INTER_LINEAR | cv2.WARP_INVERSE_MAP
        return np.asarray(cv2.warpAffine(held, there, self.size, flags=flags), np.float32)

    def release(self) -> None:
        """Free the texture."""
        self._plane.release()


def _axis(middle: float, length: float, values: int, frame: int, cells: int) -> Sequence[float]:
    """The factor and the offset from values of the mask to cells, both counted from the middle of the first one."""
    by, first = length / values, middle - length / 2
    return by * cells / frame, (first + by / 2) * cells / frame - 0.5
