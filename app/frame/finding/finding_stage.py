"""The stage at which finders see each frame, and what they found in the last ones."""

from collections import deque
from collections.abc import Callable, Collection
from dataclasses import replace

from ...models.decoders.found import Finding
from ...picture.brightness_grid import brightness_grid
from ...picture.picture import Picture
from ...picture.video_frame import VideoFrame
from ...tracking.edge_motion import GRID_COLUMNS, EdgeMotion
from ...tracking.face_covers import HELD_MS, FaceCover, FaceCovers, sure_covers
from ...tracking.finder import FrameFinder
from ..stages.frame_pipeline import Stage

__all__ = ["FIND", "MOST_AHEAD", "FindingStage", "absence_note"]

FIND = "find"  # the stage's name
MOST_AHEAD = 30  # frames that are seen before they are drawn
_PATIENCE_MS = 1000.0


class FindingStage:
    """Has finders see frames, and keeps what they found in the last `kept` ones: FoundThings.

    A guard finds faces that are to be hidden; it sees frames that are `upcoming`, too, which its networks must be able
    to see whenever they come: set these before run(). `age` may be set to that of the frame that is drawn.
    """

    looks_for = ""  # what is missed where nothing is found: hand

    def __init__(
        self,
        finder: FrameFinder | None,
        kept: int = 1,
        free: Callable[[], None] = lambda: None,
        guard: FrameFinder | None = None,
    ) -> None:
        """`free` frees the networks. What moves in at the frame's edges is hidden, too, until its face is known, of
        frames in RAM.
        """
        self._finder, self._free, self._guard = finder, free, guard
        self._missed_ms: float | None = None  # since when nothing is seen
        self.note = ""  # on what is missed, in place of it
        self._found: deque[tuple[Finding, ...]] = deque(maxlen=kept)
        self._guarded: deque[tuple[Finding, ...]] = deque(maxlen=kept + MOST_AHEAD)
        self._covers = FaceCovers(kept + MOST_AHEAD)
        self._edges = EdgeMotion() if guard else None
        self._at_edges: deque[tuple[FaceCover, ...]] = deque(maxlen=kept + MOST_AHEAD)
        self._ahead: deque[Picture] = deque()  # what the guard has seen, and nobody else
        self._carried: tuple[FaceCover, ...] = ()  # from before a cut, which may be none
        self._carried_until_ms: float | None = None  # None: the next frame's time tells
        self.upcoming: tuple[VideoFrame, ...] = ()
        self.age = 0

    @property
    def stage(self) -> Stage:
        """Not kept here: what refers to itself waits for Python's garbage collection."""
        return Stage(FIND, self.run)

    @property
    def guards(self) -> bool:
        """Whether faces may be shown by what covers() says."""
        return self._guard is not None

    def run(self, frame: VideoFrame) -> None:
        """See a frame. Raises TexelflowError."""
        found = self._finder.find(frame) if self._finder else ()
        self._found.appendleft(found)
        if self._guard:
            self._guard_with(self._guard, frame)
            found += self.found()
        self._missed_ms = None if found else frame.time_ms if self._missed_ms is None else self._missed_ms
        self.note = absence_note(self.looks_for, self._missed_ms, frame.time_ms)

    def hold(self, frame: VideoFrame) -> None:
        """A frame comes that the finder does not see: it has what was in the one before it."""
        self._found.appendleft(self._found[0] if self._found else ())

    def _guard_with(self, guard: FrameFinder, frame: VideoFrame) -> None:
        """Have it see the frame, unless it has, and those that come."""
        was_seen = any(picture is frame.picture for picture in self._ahead)
        while self._ahead and self._ahead.popleft() is not frame.picture:
            pass  # the clock left it out
        if not was_seen:
            self._look(guard, frame)
        pictures = [one.picture for one in self.upcoming]
        first = next((place for place, one in enumerate(pictures, 1) if one is frame.picture), 0)
        for coming in self.upcoming[first:][:MOST_AHEAD]:
            if all(picture is not coming.picture for picture in self._ahead):
                self._look(guard, coming)
                self._ahead.append(coming.picture)
        if self._carried and self._carried_until_ms is None:
            self._carried_until_ms = frame.time_ms + HELD_MS
        if self._carried_until_ms is not None and frame.time_ms > self._carried_until_ms:
            self._carried, self._carried_until_ms = (), None

    def _look(self, guard: FrameFinder, frame: VideoFrame) -> None:
        found = guard.find(frame)
        self._guarded.appendleft(self._covers.see(found, frame.time_ms, frame.size))
        at_edges: tuple[FaceCover, ...] = ()
        if self._edges and frame.picture.planes:
            known, grid = sure_covers(found, frame.size), brightness_grid(frame.picture, GRID_COLUMNS)
            at_edges = self._edges.covers(grid, frame.time_ms, frame.size, known)
        self._at_edges.appendleft(at_edges)

    def found(self, age: int = 0) -> tuple[Finding, ...]:
        """What was in the newest frame, or in one that came so many frames before it."""
        found = self._found[age] if age < len(self._found) else ()
        return (*found, *self.faces(age)) if self._guard else found

    def faces(self, age: int = 0) -> tuple[Finding, ...]:
        """The faces of that frame that are hidden, with the numbers by which they may be left open."""
        place = age + len(self._ahead)
        return self._guarded[place] if place < len(self._guarded) else ()

    def covers(self, age: int = 0, open_faces: Collection[int] = ()) -> tuple[FaceCover, ...]:
        """What covers the faces of that frame, but for those of some numbers."""
        age += len(self._ahead)
        at_edges = self._at_edges[age] if age < len(self._at_edges) else ()
        return (*self._covers.covers(age, open_faces), *at_edges, *self._carried)

    def begin_anew(self) -> None:
        """The next frame has nothing to do with those before; what was covered stays so for a while."""
        covered = self.covers() if self._guarded else ()
        self._carried, self._carried_until_ms = tuple(replace(cover, track=0) for cover in covered), None
        self._found.clear()
        self._guarded.clear()
        self._missed_ms, self.note = None, ""
        self._covers.begin_anew()
        self._at_edges.clear()
        self._ahead.clear()
        if self._edges:
            self._edges.begin_anew()
        for each in (self._finder, self._guard):
            if each:
                each.begin_anew()

    def release(self) -> None:
        """Free the networks."""
        self._free()


def absence_note(what: str, since_ms: float | None, now_ms: float) -> str:
    """What is said where nothing has been seen for a second, since a time; None: something is seen.

    >>> absence_note("hand", 500.0, 1500.0)
    'no hand is seen'
    """
    missed = bool(what) and since_ms is not None and now_ms - since_ms >= _PATIENCE_MS
    return f"no {what} is seen" if missed else ""
