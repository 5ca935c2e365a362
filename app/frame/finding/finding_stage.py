"""The stage at which a finder sees each frame, and what it found in the last ones."""

from collections import deque
from collections.abc import Callable

from ...models.decoders.found import Finding
from ...picture.video_frame import VideoFrame
from ...tracking.face_covers import FaceCover, FaceCovers
from ...tracking.finder import FrameFinder
from ..stages.frame_pipeline import Stage

__all__ = ["FIND", "FindingStage", "absence_note"]

FIND = "find"  # the stage's name
_PATIENCE_MS = 1000.0


class FindingStage:
    """Has a finder see frames, and keeps what it found in the last `kept` ones: FoundThings.

    `age` may be set to that of the frame that is drawn, `open_tracks` to faces that are not to be covered.
    """

    looks_for = ""  # what is missed where nothing is found: hand

    def __init__(self, finder: FrameFinder, kept: int = 1, free: Callable[[], None] = lambda: None) -> None:
        """`free` frees the finder's networks."""
        self._finder, self._free = finder, free
        self._missed_ms: float | None = None  # since when nothing is seen
        self.note = ""  # on what is missed, in place of it
        self._found: deque[tuple[Finding, ...]] = deque(maxlen=kept)
        self._covers = FaceCovers(kept)
        self.age = 0
        self.open_tracks: frozenset[int] = frozenset()

    @property
    def stage(self) -> Stage:
        """Not kept here: what refers to itself waits for Python's garbage collection."""
        return Stage(FIND, self.run)

    def run(self, frame: VideoFrame) -> None:
        """See a frame. Raises TexelflowError."""
        found = self._finder.find(frame)
        self._missed_ms = None if found else frame.time_ms if self._missed_ms is None else self._missed_ms
        self.note = absence_note(self.looks_for, self._missed_ms, frame.time_ms)
        self._found.appendleft(found)
        self._covers.see(found, frame.time_ms)

    def hold(self, frame: VideoFrame) -> None:
        """A frame comes that the finder does not see: it has what was in the one before it."""
        self._found.appendleft(self.found())
        self._covers.see(self.found(), frame.time_ms)

    def found(self, age: int = 0) -> tuple[Finding, ...]:
        """What was in the newest frame, or in one that came so many frames before it."""
        return self._found[age] if age < len(self._found) else ()

    def covers(self, age: int = 0) -> tuple[FaceCover, ...]:
        """What covers the faces of that frame."""
        return self._covers.covers(age, self.open_tracks)

    def begin_anew(self) -> None:
        """The next frame has nothing to do with those before."""
        self._found.clear()
        self._missed_ms, self.note = None, ""
        self._covers.begin_anew()
        self._finder.begin_anew()

    def release(self) -> None:
        """Free the finder's networks."""
        self._free()


def absence_note(what: str, since_ms: float | None, now_ms: float) -> str:
    """What is said where nothing has been seen for a second, since a time; None: something is seen.

    >>> absence_note("hand", 500.0, 1500.0)
    'no hand is seen'
    """
    missed = bool(what) and since_ms is not None and now_ms - since_ms >= _PATIENCE_MS
    return f"no {what} is seen" if missed else ""
