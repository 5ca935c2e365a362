"""The frame clock of several cameras: one frame of their newest pictures, as often as the fastest gives one.

It is due once every camera that is well has a new picture, or when the fastest could have given another one since the
frame before: cameras in step come together, and one that is slow or gone keeps no other waiting. A camera that is
in trouble keeps its last picture, and begins anew when it is back.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from ..capture.capture import Capture
from ..capture.stamps import Timeline
from ..capture.supervise import CaptureState
from ..frame.stages.frame_figures import CameraFigures
from ..picture.grid import PictureGrid
from ..picture.grid_frame import CameraFrame, grid_frame
from ..picture.video_frame import VideoFrame
from .clock import Due, NewestWins

_EARLY = 0.9  # of the time between two pictures, after which no other is waited for: cameras are not that exact


@dataclass(frozen=True)
class GridState(CaptureState):
    """The state of all cameras together, live as long as one of them is, and that of each."""

    cameras: tuple[CaptureState, ...] = ()

    @property
    def troubles(self) -> tuple[str, ...]:
        """What is wrong, a line for each camera that is in trouble."""
        return tuple(trouble for state in self.cameras for trouble in state.troubles)


def grid_state(cameras: Sequence[CaptureState]) -> GridState:
    """That of several; its message are the news of those that are live, or of what is wrong if none is."""
    phases = [state.phase for state in cameras]
    going = [phase for phase in phases if phase != "ended"]
    phase = "live" if "live" in phases else going[0] if going else "ended"
    messages = (state.message for state in cameras if phase != "live" or state.phase == "live")
    return GridState(phase, "; ".join(dict.fromkeys(filter(None, messages))), tuple(cameras))


def wait_ns_of(new: Sequence[bool], well: Sequence[bool], since_ns: int, period_ns: float) -> int | None:
    """How long until a frame of all is due, by which cameras have something new and are well; None: not before one has.

    since_ns: after the last one; period_ns: between two pictures of the fastest camera, 0 if nobody knows.
    """
    if not any(new):
        return None
    if all(is_new for is_new, is_well in zip(new, well, strict=True) if is_well):
        return 0
    return max(0, int(_EARLY * period_ns) - since_ns)


class GridClock:
    """The newest pictures of several cameras. Looking ahead shows each camera's picture when its next one comes."""

    keeps_all = False
    complete = True
    sound = None  # of several nobody knows whose
    reach = 0  # none is held

    def __init__(self, captures: Sequence[Capture], firsts: Sequence[VideoFrame], grid: PictureGrid) -> None:
        """`firsts` were taken from the captures before, one of each."""
        self.grid = grid
        self._cameras = tuple(NewestWins(*pair) for pair in zip(captures, firsts, strict=True))
        self._shown = tuple(CameraFrame(first) for first in firsts)
        self._timeline = Timeline()
        self._last_ns = 0
        self._was_gone = [False] * len(self._cameras)

    @property
    def looks_ahead(self) -> bool:
        """Whether each camera's picture waits for its next one."""
        return self._cameras[0].looks_ahead

    @looks_ahead.setter
    def looks_ahead(self, looks_ahead: bool) -> None:
        for camera in self._cameras:
            camera.looks_ahead = looks_ahead

    @property
    def ended(self) -> bool:
        """Whether no camera has any more pictures."""
        return all(camera.ended for camera in self._cameras)

    @property
    def state(self) -> GridState:
        """Of all of them."""
        return grid_state([camera.state for camera in self._cameras])

    @property
    def budget_ms(self) -> float:
        """That of the fastest camera."""
        return min((budget for camera in self._cameras if (budget := camera.budget_ms)), default=0.0)

    @property
    def start_ns(self) -> int:
        """When the first picture of all was taken."""
        return self._timeline.start_ns or min(camera.start_ns for camera in self._cameras)

    def due(self, now_ns: int) -> Due | None:
        """A frame of all cameras, if one is due."""
        self._note_troubles()
        if self._wait_ns(now_ns) != 0:
            return None
        self._last_ns = now_ns
        taken = {place: due for place, camera in enumerate(self._cameras) if (due := camera.due(now_ns))}
        before = enumerate(self._shown)
        self._shown = tuple(self._frame_of(place, taken[place]) if place in taken else one for place, one in before)
        new = [due.frame for due in taken.values()]
        number, time_us = self._timeline.place(max(frame.captured_ns or now_ns for frame in new))
        dropped, repeated = sum(due.dropped for due in taken.values()), sum(due.repeated for due in taken.values())
        return Due(grid_frame(number, time_us, self._shown, new, self.grid), None, dropped, repeated)

    def wait_s(self, now_ns: int) -> float | None:
        """Until the next frame is due; a picture that comes wakes the loop."""
        wait_ns = self._wait_ns(now_ns)
        return None if wait_ns is None else wait_ns / 1e9

    def camera(self, work: str) -> CameraFigures:
        """Of all together, and of each."""
        each = [
            replace(camera.camera(""), trouble="; ".join(camera.state.troubles), budget_ms=camera.budget_ms)
            for camera in self._cameras
        ]
        used, dropped, repeated, lost = (
            sum(getattr(one, name) for one in each) for name in ("used", "dropped", "repeated", "lost")
        )
        stamps = ", ".join(dict.fromkeys(one.stamps for one in each))
        fastest = max(one.frames_per_s for one in each)
        return CameraFigures(
            f"{len(each)} cameras", stamps, fastest, used, dropped, repeated, lost, work, cameras=tuple(each)
        )

    def begin_anew(self) -> None:
        """What came before has nothing to do with what comes."""
        for camera in self._cameras:
            camera.begin_anew()

    def _wait_ns(self, now_ns: int) -> int | None:
        new = [camera.has_new for camera in self._cameras]
        well = [camera.state.phase == "live" for camera in self._cameras]
        return wait_ns_of(new, well, now_ns - self._last_ns, self.budget_ms * 1e6)

    def _note_troubles(self) -> None:
        """Of a camera that is gone: what it gives once it is back has nothing to do with what it gave before."""
        for place, camera in enumerate(self._cameras):
            if camera.state.phase != "live" and not self._was_gone[place]:
                self._was_gone[place] = True
                camera.begin_anew()

    def _frame_of(self, place: int, due: Due) -> CameraFrame:
        """What is new of a camera."""
        cut, self._was_gone[place] = self._was_gone[place], False
        return CameraFrame(due.ahead or due.frame, int(due.ahead is not None), cut)
