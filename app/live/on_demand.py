"""Opens the camera only while a program reads the virtual camera.

While nobody reads it the camera is closed, and its last picture is shown again now and then: systems list a virtual
camera only while something writes to it. Where the driver does not tell who reads, the camera stays open.
"""

from collections.abc import Callable
from dataclasses import replace

from ..capture.capture import Capture
from ..capture.supervise import CaptureState
from ..picture.video_frame import VideoFrame
from ..session.clock import LIVE, Due, NewestWins

_LOOK_NS = 500_000_000  # between two questions to the driver
_IDLE_NS = 5_000_000_000  # without a reader before the camera is closed: programs open and close while they look around
_REPEAT_NS = 1_000_000_000  # between two pictures meanwhile


class OnDemand(NewestWins):
    """The newest picture of a camera that is open while somebody wants it."""

    def __init__(
        self,
        capture: Capture,
        first: VideoFrame,
        reopen: Callable[[], Capture],
        readers: Callable[[], int | None],
    ) -> None:
        """`reopen` opens the camera again, for frames of the same format; `readers` asks the driver, None: unknown."""
        super().__init__(capture, first)
        self._reopen, self._readers = reopen, readers
        self._asked_ns = self._read_ns = self._shown_ns = -1  # when that was last; before anything: -1
        self._shown = first
        self.closed = self._reopened = False

    @property
    def state(self) -> CaptureState:
        """That of the camera; while it is closed all is well."""
        return LIVE if self.closed else self.capture.state

    @property
    def ended(self) -> bool:
        """Whether the source has no more pictures."""
        return not self.closed and super().ended

    def due(self, now_ns: int) -> Due | None:
        """The newest picture; while the camera is closed the last one again, once a second."""
        self._look(now_ns)
        if self.closed:
            if now_ns - self._shown_ns < _REPEAT_NS:
                return None
            self._shown_ns = now_ns
            return Due(self._shown)
        due = super().due(now_ns)
        if due is None:
            return None
        self._shown, self._shown_ns = due.ahead or due.frame, now_ns
        cut, self._reopened = self._reopened, False
        return replace(due, cut=cut)

    def wait_s(self, now_ns: int) -> float | None:
        """Not longer than until the next question."""
        waited = super().wait_s(now_ns)
        return _LOOK_NS / 1e9 if waited is None else waited

    def close(self) -> None:
        """Close the camera; harmless when repeated."""
        self.capture.close()

    def _look(self, now_ns: int) -> None:
        """Ask who reads, and close or open the camera by that."""
        if self._asked_ns >= 0 and now_ns - self._asked_ns < _LOOK_NS:
            return
        self._asked_ns = now_ns
        if self._readers() != 0 or self._read_ns < 0:
            self._read_ns = now_ns
            if self.closed:
                self.capture, self.closed, self._reopened = self._reopen(), False, True
                self.begin_anew()
        elif not self.closed and now_ns - self._read_ns >= _IDLE_NS:
            self.capture.close()
            self.closed = True
