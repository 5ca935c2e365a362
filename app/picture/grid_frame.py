"""Puts the newest frames of several cameras side by side in one frame."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from .convert import Rgba
from .grid import PictureGrid
from .picture import ImageSize, Picture
from .video_frame import VideoFrame

_OPAQUE_BLACK = (0, 0, 0, 255)


@dataclass(frozen=True, eq=False)  # compared by identity: another object is another picture
class CameraFrame:
    """What is to be seen of one camera: its `newest` frame, or with an `age` of 1 the one before that.

    cut: the camera's frames before have nothing to do with it.
    """

    newest: VideoFrame
    age: int = 0
    cut: bool = False


@dataclass(frozen=True)
class GridFrame(VideoFrame):
    """A frame of a grid; what is the same object as in the frame before is nothing new of that camera.

    captured_ns is that of the oldest picture that is new. `picture` is the first camera's.
    """

    cameras: tuple[CameraFrame, ...] = field(default=(), repr=False, compare=False)
    grid: PictureGrid = field(default=PictureGrid((0, 0), ()), repr=False, compare=False)

    @cached_property
    def rgba(self) -> Rgba:
        """All of the grid, uint8 (H, W, 4), made when first asked for: of each picture the nearest pixels.

        Raises MediaError.
        """
        pixels = np.full((*self.size[::-1], 4), _OPAQUE_BLACK, np.uint8)
        for camera, place in zip(self.cameras, self.grid.places, strict=True):
            found = camera.newest.rgba
            rows, columns = (np.arange(n) * of // n for n, of in zip(place.size[::-1], found.shape, strict=False))
            pixels[place.top :, place.left :][: place.height, : place.width] = found[rows[:, None], columns]
        return pixels

    @property
    def size(self) -> ImageSize:
        """(width, height) of the grid."""
        return self.grid.size

    @property
    def pictures(self) -> tuple[Picture, ...]:
        """The newest of each camera."""
        return tuple(camera.newest.picture for camera in self.cameras)


def grid_frame(
    index: int, pts: int, cameras: tuple[CameraFrame, ...], new: Sequence[VideoFrame], grid: PictureGrid
) -> GridFrame:
    """The frame of that number and time (in microseconds), of which those are `new`."""
    stamps = [frame.captured_ns for frame in new if frame.captured_ns is not None]
    return GridFrame(
        index, pts, pts / 1000, cameras[0].newest.picture, min(frame.decode_start_ns for frame in new),
        sum(frame.decode_ms for frame in new), captured_ns=min(stamps, default=None), cameras=cameras, grid=grid,
    )  # fmt: skip
