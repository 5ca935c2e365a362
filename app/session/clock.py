"""Frame clocks: choose which frame of a source is drawn now, and how long to wait until the next look.

Three policies drive one loop: the newest picture of a camera wins (NewestWins), every frame of a recording counts
(EveryFrame), and a window plays a recording at its pace (app/session/playback.py). A clock that looks ahead gives a
frame together with the one after it, whose mask tells more of it.
"""

from collections import deque
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
    """A frame to be drawn now. `ahead` is the one after it, where the clock looks ahead and there is one;
    `upcoming` are all after it that the clock holds, in their order.

    `dropped` frames before it are not drawn, and the one before was shown `repeated` times more. cut: those before have
    nothing to do with it. lead: it is not drawn, only its mask is made, which those after it need.
    """

    frame: VideoFrame
    ahead: VideoFrame | None = None
    dropped: int = 0
    repeated: int = 0
    cut: bool = False
    lead: bool = False
    upcoming: tuple[VideoFrame, ...] = ()


class FrameClock(Protocol):
    """Chooses the frames of a source. keeps_all: every frame counts, none may be dropped.

    `reach` is how many frames after the one that is due it holds, for those who see them before they are drawn.
    """

    looks_ahead: bool
    reach: int

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
        self.looks_ahead, self.reach = False, 0
        self.capture, self._first = capture, first
        self._waiting: VideoFrame | None = first
        self._held: deque[VideoFrame] = deque()  # the last one that was drawn, while looking ahead, and those after it

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
        """The newest picture; while looking ahead, or with a reach, one that came before it."""
        frame, self._waiting = self._waiting or self.capture.take(), None
        if frame is None:
            return None
        held, later = self._held, max(self.reach, int(self.looks_ahead))
        held.append(frame)
        if self.reach and len(held) <= self.reach:
            return None  # its counts are those of the next one
        while len(held) > later + 1:
            held.popleft()
        counts, upcoming = self.capture.take_counts(), tuple(held)[1:]
        ahead = upcoming[0] if upcoming and self.looks_ahead else None
        return Due(held[0], ahead, counts.dropped, counts.repeated, upcoming=upcoming)

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
        self._held.clear()


class EveryFrame:
    """All frames of a recording, one after the other, as fast as they are taken."""

    keeps_all = True
    state = LIVE

    def __init__(self, frames: Iterator[VideoFrame], budget_ms: float, name: str) -> None:
        """The first ones may be of the lead: those before the range. `name` is what complaints call the recording."""
        self.looks_ahead, self.reach = False, 0
        self.budget_ms = budget_ms
        self.complete = False
        self._frames, self._name = frames, name
        self._next: deque[VideoFrame] = deque()
        self._error: TexelflowError | None = None  # of reading one, raised when that is due
        self._begun = self._is_over = False

    @property
    def ended(self) -> bool:
        """Whether all were taken."""
        return self.complete

    def due(self, now_ns: int) -> Due | None:
        """The next frame; None after the last one. Raises MediaError for one that cannot be decoded, or for none."""
        self._pull(1)
        if not self._next:
            if self._error:
                raise self._error
            self.complete = True
            if not self._begun:
                raise MediaError(f"'{self._name}' has no frame in the range asked for; give another one")
            return None
        frame, first, self._begun = self._next.popleft(), not self._begun, True
        self._pull(max(1, self.reach))
        upcoming = tuple(self._next)
        ahead = upcoming[0] if upcoming and self.looks_ahead else None
        return Due(frame, ahead, cut=first, lead=frame.lead, upcoming=upcoming)

    def _pull(self, count: int) -> None:
        """Have so many frames, if there are."""
        try:
            while len(self._next) < count and not self._is_over:
                if (frame := next(self._frames, None)) is None:
                    self._is_over = True
                else:
                    self._next.append(frame)
        except TexelflowError as error:
            self._error, self._is_over = error, True

    def wait_s(self, now_ns: int) -> float | None:
        """There is always one, until there is none."""
        return 0.0

    def camera(self, work: str) -> None:
        """There is none."""
