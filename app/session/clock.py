"""Frame clocks: choose which frame of a source is drawn now, and how long to wait until the next look.

Three policies drive one loop: the newest picture of a camera wins (NewestWins), every frame of a recording counts
(EveryFrame), and a window plays a recording at its pace (app/session/playback.py). A clock that looks ahead gives a
frame together with the one after it, whose mask tells more of it.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

from texelflow.gpu_delegate.base.errors import MediaError, TexelflowError

from ..capture.capture import Capture
from ..capture.supervise import CaptureState
from ..frame.stages.frame_figures import CameraFigures
from ..media.sound_blocks import SoundHistory
from ..picture.video_frame import VideoFrame

LIVE = CaptureState("live")


@dataclass(frozen=True)
class Due:
    """A frame to be drawn now. `ahead` is the one after it, where the clock looks ahead and there is one.

    `dropped` frames before it are not drawn, and the one before was shown `repeated` times more. cut: those before have
    nothing to do with it. lead: it is not drawn, only its mask is made, which those after it need.
    """

    frame: VideoFrame
    ahead: VideoFrame | None = None
    dropped: int = 0
    repeated: int = 0
    cut: bool = False
    lead: bool = False


class FrameClock(Protocol):
    """Chooses the frames of a source. keeps_all: every frame counts, none may be dropped."""

    looks_ahead: bool

    @property
    def keeps_all(self) -> bool: ...
    @property
    def ended(self) -> bool:
        """Whether no frame comes any more, and nobody can ask for one."""
        ...

    @property
    def complete(self) -> bool:
        """Whether all frames there are have come."""
        ...

    @property
    def state(self) -> CaptureState:
        """Whether the source delivers pictures, and what is wrong if not."""
        ...

    @property
    def budget_ms(self) -> float:
        """How long a frame may take; 0 if nobody knows."""
        ...

    def due(self, now_ns: int) -> Due | None:
        """The frame to be drawn now, if there is one. Raises TexelflowError."""
        ...

    def wait_s(self, now_ns: int) -> float | None:
        """How long until due() is worth another call; None if something wakes the loop."""
        ...

    def camera(self, work: str) -> CameraFigures | None:
        """What the overlay tells of a camera; `work` says for how many frames the network ran."""
        ...


class NewestWins:
    """The newest picture of a capture, whenever there is one. Looking ahead shows each picture when the next comes."""

    keeps_all = False

    def __init__(self, capture: Capture, first: VideoFrame) -> None:
        """`first` was taken from the capture before."""
        self.looks_ahead = False
        self.capture, self._first = capture, first
        self._waiting: VideoFrame | None = first
        self._before: VideoFrame | None = None

    @property
    def ended(self) -> bool:
        """Whether the source has no more pictures."""
        return self.capture.state.phase == "ended"

    @property
    def complete(self) -> bool:
        """A camera's recording is complete whenever it ends."""
        return True

    @property
    def state(self) -> CaptureState:
        """That of the capture."""
        return self.capture.state

    @property
    def budget_ms(self) -> float:
        """By the rate that the source promises, else by that of its pictures."""
        fps = self.capture.nominal_fps or round(self.capture.fps)
        return 1000 / fps if fps else 0.0

    @property
    def has_new(self) -> bool:
        """Whether due() would give a frame."""
        return self._waiting is not None or self.capture.has_new

    @property
    def start_ns(self) -> int:
        """When the capture's first picture was taken."""
        return self.capture.start_ns

    @property
    def sound(self) -> SoundHistory:
        """The capture's."""
        return self.capture.sound

    def due(self, now_ns: int) -> Due | None:
        """The newest picture; while looking ahead the one before it."""
        frame, self._waiting = self._waiting or self.capture.take(), None
        if frame is None:
            return None
        counts = self.capture.take_counts()
        before, self._before = self._before, frame
        if before is None or not self.looks_ahead:
            return Due(frame, None, counts.dropped, counts.repeated)
        return Due(before, frame, counts.dropped, counts.repeated)

    def wait_s(self, now_ns: int) -> float | None:
        """A picture that comes wakes the loop."""
        return 0.0 if self._waiting else None

    def camera(self, work: str) -> CameraFigures:
        """Of the capture."""
        capture, counts = self.capture, self.capture.counts
        return CameraFigures(
            capture.description, capture.stamps, capture.fps, counts.used, counts.dropped, counts.repeated,
            counts.lost, work,
        )  # fmt: skip

    def begin_anew(self) -> None:
        """What came before has nothing to do with what comes."""
        self._before = None


class EveryFrame:
    """All frames of a recording, one after the other, as fast as they are taken."""

    keeps_all = True
    state = LIVE

    def __init__(self, frames: Iterator[VideoFrame], budget_ms: float, name: str) -> None:
        """The first ones may be of the lead: those before the range. `name` is what complaints call the recording."""
        self.looks_ahead = False
        self.budget_ms = budget_ms
        self.complete = False
        self._frames, self._name = frames, name
        self._next: VideoFrame | None = None
        self._error: TexelflowError | None = None  # of reading the next one, raised when that is due
        self._begun = False

    @property
    def ended(self) -> bool:
        """Whether all were taken."""
        return self.complete

    def due(self, now_ns: int) -> Due | None:
        """The next frame; None after the last one. Raises MediaError for one that cannot be decoded, or for none."""
        frame = self._next if self._begun else self._pull()
        if self._error and frame is None:
            raise self._error
        if frame is None:
            self.complete = True
            if not self._begun:
                raise MediaError(f"'{self._name}' has no frame in the range asked for; give another one")
            return None
        first, self._begun, self._next = not self._begun, True, self._pull()
        return Due(frame, self._next if self.looks_ahead else None, cut=first, lead=frame.lead)

    def _pull(self) -> VideoFrame | None:
        try:
            return next(self._frames, None)
        except TexelflowError as error:
            self._error = error
            return None

    def wait_s(self, now_ns: int) -> float | None:
        """There is always one, until there is none."""
        return 0.0

    def camera(self, work: str) -> None:
        """There is none."""
