"""Opens the cameras that settings name, and waits for their first pictures."""

import contextlib
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from time import perf_counter, perf_counter_ns, sleep

from ..capture.capture import TIME_BASE, Capture
from ..capture.capture_reader import TimeSource
from ..capture.microphone import Microphone
from ..capture.opener import opener
from ..capture.source import SourceError
from ..outputs.file_sinks import Timing, nominal_rate
from ..outputs.frame_outputs import STEM
from ..overlay.gui import Gui
from ..picture.grid import PictureGrid, picture_grid
from ..picture.grid_frame import CameraFrame, grid_frame
from ..picture.picture import rgba_format
from ..picture.video_frame import VideoFrame
from ..session.clock import NewestWins
from ..session.derived import capture_request_of
from ..session.grid_clock import GridClock
from ..session.session_opening import SessionSource
from ..settings.settings import Settings
from ..window.glfw_window import Window
from ..window.loading_screen import LoadingScreen
from .on_demand import OnDemand
from .recorded_sound import LiveSound, microphone_of

_PATIENCE_S = 20.0  # for the first picture: some cameras take 12 s to open
_WAIT_S = 0.005


class Waker:
    """Wakes a loop that waits for events, from any thread, once there is one."""

    loop: Callable[[], None] | None = None

    def __call__(self) -> None:
        if self.loop:
            self.loop()


@dataclass(frozen=True)
class OpenSource:
    """A capture of each camera, the first pictures that were taken from them, and the microphone, if one is wanted."""

    captures: tuple[Capture, ...]
    firsts: tuple[VideoFrame, ...]
    microphone: Microphone | None

    def close(self) -> None:
        """Give all of it back; harmless when repeated."""
        for capture in self.captures:
            capture.close()
        if self.microphone:
            self.microphone.close()

    @property
    def grid(self) -> PictureGrid | None:
        """Where the pictures are, if there are several cameras."""
        return picture_grid([frame.size for frame in self.firsts]) if len(self.firsts) > 1 else None

    @property
    def first(self) -> VideoFrame:
        """What is to be seen before anything is computed."""
        grid = self.grid
        return grid_frame(0, 0, tuple(map(CameraFrame, self.firsts)), self.firsts, grid) if grid else self.firsts[0]

    @property
    def description(self) -> str:
        """All cameras, for a person."""
        names = [capture.description for capture in self.captures]
        return names[0] if len(names) == 1 else " + ".join(name.partition(", ")[0] for name in names)

    @property
    def title(self) -> str:
        """Of a window that shows it."""
        return f"{self.description} - texelflow"

    def for_session(self, clock: NewestWins | None = None) -> SessionSource:
        """What a session is made of; once for each source. Cameras' pixels are square."""
        grid, first, formats = self.grid, self.first, tuple(frame.picture.format for frame in self.firsts)
        timing = Timing(TIME_BASE, nominal_rate(max(each.nominal_fps or each.fps for each in self.captures)))
        live = GridClock(self.captures, self.firsts, grid) if grid else clock or NewestWins(self.captures[0], first)
        return SessionSource(
            live, rgba_format(grid.size) if grid else formats[0], timing, self.title, Path(STEM), lambda: first,
            sound=LiveSound(live, self.microphone), grid=grid, cameras=formats if grid else (),
        )  # fmt: skip


def open_source(settings: Settings, wake: Waker, clock: TimeSource = perf_counter_ns) -> OpenSource:
    """The source that is wanted, waited for; `clock` is the capture's. Raises SourceError."""
    with contextlib.ExitStack() as stack:
        captures, microphone = _begun(settings, wake, stack, clock)
        end = perf_counter() + _PATIENCE_S
        firsts = tuple(capture.first(max(0.0, end - perf_counter())) for capture in captures)
        stack.pop_all()
        return OpenSource(captures, firsts, microphone)


def on_demand(source: OpenSource, settings: Settings, wake: Waker, readers: Callable[[], int | None]) -> OnDemand:
    """The clock of a source of one camera, by which that is open while `readers` tells of some."""

    def reopen() -> Capture:
        open_camera = opener(settings.cameras[0], capture_request_of(settings))
        return Capture(open_camera, wake, format=source.first.picture.format)

    return OnDemand(source.captures[0], source.first, reopen, readers)


def open_source_in_sight(settings: Settings, wake: Waker, window: Window, gui: Gui, last: VideoFrame) -> OpenSource:
    """The same while a window shows the last picture there was, and answers. Raises SourceError, WindowClosedError."""
    with contextlib.ExitStack() as stack:
        captures, microphone = _begun(settings, wake, stack)
        with LoadingScreen(window, gui, lambda: last, Fraction(*last.size)) as start:
            title = "opening the camera" if len(captures) == 1 else "opening the cameras"
            firsts = start.run(_waited_for(captures), title)
        stack.pop_all()
        return OpenSource(captures, firsts, microphone)


def _begun(
    settings: Settings, wake: Waker, stack: contextlib.ExitStack, clock: TimeSource = perf_counter_ns
) -> tuple[tuple[Capture, ...], Microphone | None]:
    """The cameras, which are being opened, and the microphone. Raises SourceError: there is no such microphone."""
    request = capture_request_of(settings)
    openers = [opener(camera, request) for camera in settings.cameras]
    captures = tuple(stack.enter_context(Capture(open_camera, wake, clock)) for open_camera in openers)
    microphone = microphone_of(settings)
    if microphone:
        stack.callback(microphone.close)
    return captures, microphone


def _waited_for(captures: Sequence[Capture]) -> Generator[tuple[int, int], None, tuple[VideoFrame, ...]]:
    """The first picture of each, with a pause for each look. Raises SourceError."""
    end, firsts = perf_counter() + _PATIENCE_S, dict[Capture, VideoFrame]()
    while True:
        for capture in captures:
            if capture not in firsts and (frame := capture.take()):
                firsts[capture] = frame
            state = capture.state
            if capture not in firsts and (state.phase in ("lost", "ended") or perf_counter() > end):
                raise SourceError(state.message)
        if len(firsts) == len(captures):
            return tuple(firsts[capture] for capture in captures)
        sleep(_WAIT_S)
        yield 0, 0
