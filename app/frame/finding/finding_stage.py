"""The stage at which a finder sees each frame, and what it found in the last ones."""

from collections import deque
from collections.abc import Callable

from ...models.decoders.found import Finding
from ...picture.video_frame import VideoFrame
from ...tracking.finder import FrameFinder
from ..stages.frame_pipeline import Stage

__all__ = ["FIND", "FindingStage"]

FIND = "find"  # the stage's name


class FindingStage:
    """Has a finder see frames, and keeps what it found in the last `kept` ones."""

    def __init__(self, finder: FrameFinder, kept: int = 1, free: Callable[[], None] = lambda: None) -> None:
        """`free` frees the finder's networks."""
        self._finder, self._free = finder, free
        self._found: deque[tuple[Finding, ...]] = deque(maxlen=kept)

    @property
    def stage(self) -> Stage:
        """Not kept here: what refers to itself waits for Python's garbage collection."""
        return Stage(FIND, self.run)

    def run(self, frame: VideoFrame) -> None:
        """See a frame. Raises TexelflowError."""
        self._found.appendleft(self._finder.find(frame))

    def hold(self) -> None:
        """A frame comes that the finder does not see: it has what was in the one before it."""
        self._found.appendleft(self.found())

    def found(self, age: int = 0) -> tuple[Finding, ...]:
        """What was in the newest frame, or in one that came so many frames before it."""
        return self._found[age] if age < len(self._found) else ()

    def begin_anew(self) -> None:
        """The next frame has nothing to do with those before."""
        self._found.clear()
        self._finder.begin_anew()

    def release(self) -> None:
        """Free the finder's networks."""
        self._free()
