"""The stage at which a finder sees each frame, and what it found in the last ones."""

from collections import deque
from collections.abc import Callable

from ...models.decoders.found import Finding
from ...picture.brightness_grid import brightness_grid
from ...picture.video_frame import VideoFrame
from ...tracking.edge_motion import GRID_COLUMNS, EdgeMotion
from ...tracking.face_covers import FaceCover, FaceCovers, sure_covers
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

    def __init__(
        self, finder: FrameFinder, kept: int = 1, free: Callable[[], None] = lambda: None, guards: bool = False
    ) -> None:
        """`free` frees the finder's networks. guards: faces are hidden by what is found, and so is what moves in at the
        frame's edges until its face is known, of frames in RAM.
        """
        self._finder, self._free = finder, free
        self._missed_ms: float | None = None  # since when nothing is seen
        self.note = ""  # on what is missed, in place of it
        self._found: deque[tuple[Finding, ...]] = deque(maxlen=kept)
        self._covers = FaceCovers(kept)
        self._edges = EdgeMotion() if guards else None
        self._at_edges: deque[tuple[FaceCover, ...]] = deque(maxlen=kept)
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
        self._cover(found, frame)

    def hold(self, frame: VideoFrame) -> None:
        """A frame comes that the finder does not see: it has what was in the one before it."""
        self._found.appendleft(self.found())
        self._cover(self.found(), frame)

    def _cover(self, found: tuple[Finding, ...], frame: VideoFrame) -> None:
        self._covers.see(found, frame.time_ms, frame.size)
        if self._edges and frame.picture.planes:
            known, grid = sure_covers(found, frame.size), brightness_grid(frame.picture, GRID_COLUMNS)
            self._at_edges.appendleft(self._edges.covers(grid, frame.time_ms, frame.size, known))

    def found(self, age: int = 0) -> tuple[Finding, ...]:
        """What was in the newest frame, or in one that came so many frames before it."""
        return self._found[age] if age < len(self._found) else ()

    def covers(self, age: int = 0) -> tuple[FaceCover, ...]:
        """What covers the faces of that frame."""
        at_edges = self._at_edges[age] if age < len(self._at_edges) else ()
        return (*self._covers.covers(age, self.open_tracks), *at_edges)

    def begin_anew(self) -> None:
        """The next frame has nothing to do with those before."""
        self._found.clear()
        self._missed_ms, self.note = None, ""
        self._covers.begin_anew()
        self._at_edges.clear()
        if self._edges:
            self._edges.begin_anew()
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
