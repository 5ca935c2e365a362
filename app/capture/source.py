"""The interface of live sources: what is asked of one, what it delivers, and how it fails.

A source is one opened camera, network stream, clip or test pattern. One thread opens, reads and closes it.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

from texelflow.gpu_delegate.base.errors import MediaError

from ..media.sound_blocks import SoundBlock
from ..picture.convert import Rgba
from ..picture.picture import ImageSize, Picture, PictureFormat


class SourceError(MediaError):
    """A source cannot be opened: it is missing, busy, or refuses."""


class SourceLostError(MediaError):
    """A source was open and is lost: unplugged, cut off, or sending data that is not a picture."""


@dataclass(frozen=True)
class CapturedFrame:
    """What a source delivers: a picture whose memory nobody writes to again, and when it was taken.

    captured_ns is of perf_counter's clock; None if unknown; then the time of arrival is used.
    decode_start_ns and decode_ms tell what making the picture took. convert makes upright RGBA of it where its planes
    are not that already. `skipped` pictures before it were passed over by the source, since this one was there already.
    `sound` is what was heard since the frame before.
    """

    picture: Picture = field(repr=False)
    captured_ns: int | None = None
    decode_start_ns: int = 0
    decode_ms: float = 0.0
    convert: Callable[[], Rgba] | None = field(default=None, repr=False, compare=False)
    skipped: int = 0
    sound: tuple[SoundBlock, ...] = field(default=(), repr=False, compare=False)


class Source(Protocol):
    """One that is open. description is for a person: "V4L2 /dev/video0, MJPG 1280x720, 30 fps".

    stamps says where captured_ns comes from: "driver", "arrival", "stream" or "made". fps is the nominal rate, 0 where
    unknown. may_stand_still: whether successive pictures may be identical without a fault.
    """

    @property
    def format(self) -> PictureFormat:
        """Of all its pictures, but where a stream changes in the middle."""
        ...

    @property
    def description(self) -> str: ...

    @property
    def stamps(self) -> str: ...

    @property
    def fps(self) -> float: ...

    @property
    def may_stand_still(self) -> bool: ...

    def read(self) -> CapturedFrame | None:
        """The next picture, waited for about a second at most; None at the end of what has an end.

        Raises SourceLostError, and when called again after that may do so again.
        """
        ...

    def close(self) -> None:
        """Give the device back; harmless when repeated."""
        ...


@dataclass(frozen=True)
class CaptureRequest:
    """What is asked of a source; it may deliver something else, and says so in its description.

    size is (width, height), fps 0 means any. pixels ("auto", "yuyv", "nv12", "mjpg") and api ("auto", "v4l2", "dshow",
    "msmf", "avfoundation") are for cameras; loop for what has an end; sound for what has some.
    """

    size: ImageSize = (640, 480)
    fps: float = 30.0
    pixels: str = "auto"
    api: str = "auto"
    loop: bool = False
    sound: bool = False


Opener = Callable[[], Source]
"""Opens the source, as often as it is lost. Raises SourceError."""
