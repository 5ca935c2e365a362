"""Reads the pictures of frames for outputs; those on the device come some frames later."""

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
import numpy.typing as npt

from texelflow.gpu_delegate.base.errors import DeviceError
from texelflow.gpu_delegate.targets.gl.context import Context

from ..frame.drawing.mask_edge import edged
from ..frame.looks.effects import Effect
from ..frame.looks.looks import Look
from ..frame.textures.offscreen_target import OffscreenTarget, on_opengl
from ..frame.textures.picture_device import Target
from ..frame.textures.readback import ReadbackRing, ReadBytes
from ..frame.textures.yuv import YuvPicture, size_bytes
from ..models.decoders.found import Finding
from ..picture.picture import PictureFormat
from ..picture.preprocess import Floats, ImageSize

RING = 3  # frames on their way from the device


@dataclass(frozen=True)
class FrameStamp:
    """Which frame: the number that its source gave it, and when it is shown, in units of the source's time base, and in
    milliseconds since its first frame; and what was found in it."""

    index: int
    pts: int
    time_ms: float = 0.0
    findings: tuple[Finding, ...] = field(default=(), compare=False)


StampedBytes = tuple[FrameStamp, ReadBytes]


class Pictures(Protocol):
    """What outputs show: the picture as it is composited, and the same frame with another effect."""

    @property
    def target(self) -> Target: ...

    def drawn(self, effect: Effect) -> Target: ...


class FrameReader(Protocol):
    """Reads the pictures of one output, each `frame_bytes` bytes. Belongs to the context's thread."""

    size: ImageSize
    frame_bytes: int

    def request(self, stamp: FrameStamp) -> None:
        """Begin to read the last frame's picture. Raises DeviceError."""

    def collect(self) -> Iterator[StampedBytes]:
        """What has arrived, oldest first."""

    def drain(self) -> Iterator[StampedBytes]:
        """Everything that is still under way, oldest first, waiting for it. Raises DeviceError."""

    def release(self) -> None:
        """Free what it holds; what was not collected is lost."""


class FrameReaders(Protocol):
    """Makes readers of the same pictures."""

    @property
    def size(self) -> ImageSize:
        """Of the pictures, now."""

    def takes(self, format: PictureFormat) -> bool:
        """Whether pictures should be read in this format; all can be read as RGBA."""

    def open(self, effect: Effect | None, format: PictureFormat | None) -> FrameReader:
        """Of the frame with an effect, None for the picture as it is; in a format, None: RGBA. Raises DeviceError."""

    def release(self) -> None:
        """Free what readers have in common, after them."""


class DeviceReaders:
    """Of pictures on the device."""

    def __init__(self, context: Context, pictures: Pictures, converts: bool = True) -> None:
        """`converts`: whether colors are better converted here than by those who get RGBA."""
        self._context, self._pictures, self._converts = context, pictures, converts
        self._yuv: dict[PictureFormat, YuvPicture] = {}  # kept, for making one takes time

    @property
    def size(self) -> ImageSize:
        """Of the picture as it is composited."""
        return self._pictures.target.size

    def takes(self, format: PictureFormat) -> bool:
        """Whether that is worth it, and the device draws pictures as high as all planes are together."""
        if not (self._converts or format.layout == "gray"):
            return False
        limits, width = self._context.limits, format.size[0]
        widest, highest = (min(side, limits.texture_size) for side in limits.viewport_size)
        return width <= widest and size_bytes(format) // width <= highest

    def open(self, effect: Effect | None, format: PictureFormat | None) -> "DeviceReader":
        """Raises DeviceError for want of memory."""
        if format and format not in self._yuv:
            self._yuv[format] = YuvPicture(self._context, format)

        def picture() -> OffscreenTarget:
            return on_opengl(self._pictures.drawn(effect) if effect else self._pictures.target)

        return DeviceReader(self._context, self.size, picture, self._yuv[format] if format else None)

    def release(self) -> None:
        """Delete what converts pictures."""
        for yuv in self._yuv.values():
            yuv.release()
        self._yuv.clear()


class DeviceReader:
    """Reads pictures from the device through a ring, without waiting for them."""

    def __init__(
        self, context: Context, size: ImageSize, picture: Callable[[], OffscreenTarget], yuv: YuvPicture | None
    ) -> None:
        """`picture` draws or finds what is read, in the format of `yuv`, which stays its maker's; None for RGBA.

        Raises DeviceError for want of memory.
        """
        self.size = size
        self.frame_bytes = size[0] * size[1] * 4 if yuv is None else size_bytes(yuv.format)
        self._picture, self._yuv = picture, yuv
        self._ring: ReadbackRing[FrameStamp] = ReadbackRing(context, self.frame_bytes, RING)

    def request(self, stamp: FrameStamp) -> None:
        """Draw it, and begin to read it."""
        picture = self._picture()
        if self._yuv is None:
            self._ring.request_picture(stamp, picture.framebuffer, picture.size)
        else:
            self._yuv.draw(picture)
            self._ring.request_codes(stamp, self._yuv.framebuffer, self._yuv.size)

    def collect(self) -> Iterator[StampedBytes]:
        """Never the newest, which the device may still work on."""
        return self._ring.collect()

    def drain(self) -> Iterator[StampedBytes]:
        """All of them, waiting for the device."""
        return self._ring.drain()

    def release(self) -> None:
        """Delete the ring."""
        self._ring.release()


class RamMasks:
    """Of masks in RAM, where nothing is drawn: as gray, or as RGBA."""

    def __init__(self, size: ImageSize, mask: Callable[[], Floats]) -> None:
        """`mask` gives the last frame's mask (H, W) of (width, height) pixels, from 0 to 1."""
        self.size, self._mask = size, mask

    def takes(self, format: PictureFormat) -> bool:
        """Whether it is gray."""
        return format.layout == "gray"

    def open(self, effect: Effect | None, format: PictureFormat | None) -> "RamMaskReader":
        """Raises DeviceError for everything but the mask."""
        if effect != "mask" or (format and not self.takes(format)):
            raise DeviceError("without OpenGL nothing is drawn: masks alone can be written")
        return RamMaskReader(self.size, self._mask, channels=1 if format else 4)

    def release(self) -> None:
        """Nothing to free."""


class ReadyReader:
    """What has been read as soon as it is asked for: `ready` has it."""

    def __init__(self) -> None:
        self.ready: deque[StampedBytes] = deque()

    def collect(self) -> Iterator[StampedBytes]:
        """All of them."""
        while self.ready:
            yield self.ready.popleft()

    def drain(self) -> Iterator[StampedBytes]:
        """All of them."""
        return self.collect()

    def release(self) -> None:
        """Forget what was not collected."""
        self.ready.clear()


class RamMaskReader(ReadyReader):
    """Rounds masks to bytes, at once."""

    def __init__(self, size: ImageSize, mask: Callable[[], Floats], channels: int) -> None:
        super().__init__()
        self.size = size
        self.frame_bytes = size[0] * size[1] * channels
        self._mask, self._channels = mask, channels

    def request(self, stamp: FrameStamp) -> None:
        """Take the mask as it is now."""
        with np.errstate(invalid="ignore"):  # networks may put out what is no number
            gray = np.rint(np.clip(self._mask(), 0, 1) * 255).astype(np.uint8)
        if self._channels == 4:
            gray = np.dstack([gray, gray, gray, np.full_like(gray, 255)])
        self.ready.append((stamp, gray.reshape(-1)))


def look_at_mask(mask: Floats, look: Look) -> npt.NDArray[np.float32]:
    """A mask (H, W) as the effect `mask` draws it: with the look's curve and edge, and mirrored if the look is."""
    if look.curves_mask:
        mask = np.clip(mask - look.threshold + 0.5, 0, 1, dtype=np.float32) ** np.float32(look.gamma)
    mask = edged(mask, look.grow, look.feather)
    return mask[:, ::-1] if look.mirror else mask
