"""Settings go in; the source that they name comes out, open, with its first picture."""

import contextlib
from collections.abc import Callable, Generator
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from time import perf_counter, perf_counter_ns, sleep

from ..capture.capture import TIME_BASE, Capture
from ..capture.microphone import Microphone
from ..capture.opener import opener
from ..capture.reader import TimeSource
from ..capture.source import SourceError
from ..outputs.file_sinks import Timing, nominal_rate
from ..outputs.outputs import STEM
from ..overlay.gui import Gui
from ..picture.video_frame import VideoFrame
from ..session.clock import NewestWins
from ..session.derived import capture_request_of
from ..session.opening import SessionSource
from ..settings.settings import Settings
from ..window.loading_screen import LoadingScreen
from ..window.window import Window
from .on_demand import OnDemand
from .sound import LiveSound, microphone_of

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
    """A capture, the first picture that was taken from it, and the microphone, if one is wanted."""

    capture: Capture
    first: VideoFrame
    microphone: Microphone | None

    def close(self) -> None:
        """Give all of it back; harmless when repeated."""
        self.capture.close()
        if self.microphone:
            self.microphone.close()

    @property
    def title(self) -> str:
        """Of a window that shows it."""
        return f"{self.capture.description} - texelflow"

    def for_session(self, clock: NewestWins | None = None) -> SessionSource:
        """What a session is made of; once for each capture. Cameras' pixels are square."""
        capture, first = self.capture, self.first
        timing = Timing(TIME_BASE, nominal_rate(capture.nominal_fps or capture.fps))
        clock = clock or NewestWins(capture, first)
        return SessionSource(
            clock, first.picture.format, timing, self.title, Path(STEM), lambda: first,
            sound=LiveSound(clock, self.microphone),
        )  # fmt: skip


def open_source(settings: Settings, wake: Waker, clock: TimeSource = perf_counter_ns) -> OpenSource:
    """The source that is wanted, waited for; `clock` is the capture's. Raises SourceError."""
    with contextlib.ExitStack() as stack:
        capture, microphone = _begun(settings, wake, stack, clock)
        first = capture.first(_PATIENCE_S)
        stack.pop_all()
        return OpenSource(capture, first, microphone)


def on_demand(source: OpenSource, settings: Settings, wake: Waker, readers: Callable[[], int | None]) -> OnDemand:
    """The source's clock, by which its camera is open while `readers` tells of some."""

    def reopen() -> Capture:
        open_camera = opener(settings.camera, capture_request_of(settings))
        return Capture(open_camera, wake, format=source.first.picture.format)

    return OnDemand(source.capture, source.first, reopen, readers)


def open_source_in_sight(settings: Settings, wake: Waker, window: Window, gui: Gui, last: VideoFrame) -> OpenSource:
    """The same while a window shows the last picture there was, and answers. Raises SourceError, WindowClosedError."""
    with contextlib.ExitStack() as stack:
        capture, microphone = _begun(settings, wake, stack)
        aspect = Fraction(*last.picture.format.upright_size)
        with LoadingScreen(window, gui, lambda: last, aspect) as start:
            first = start.run(_waited_for(capture), "opening the camera")
        stack.pop_all()
        return OpenSource(capture, first, microphone)


def _begun(
    settings: Settings, wake: Waker, stack: contextlib.ExitStack, clock: TimeSource = perf_counter_ns
) -> tuple[Capture, Microphone | None]:
    """The source, which is being opened, and the microphone. Raises SourceError: there is no such microphone."""
    capture = stack.enter_context(Capture(opener(settings.camera, capture_request_of(settings)), wake, clock))
    microphone = microphone_of(settings)
    if microphone:
        stack.callback(microphone.close)
    return capture, microphone


def _waited_for(capture: Capture) -> Generator[tuple[int, int], None, VideoFrame]:
    """The first picture, with a pause for each look. Raises SourceError."""
    end = perf_counter() + _PATIENCE_S
    while (frame := capture.take()) is None:
        state = capture.state
        if state.phase in ("lost", "ended") or perf_counter() > end:
            raise SourceError(state.message)
        sleep(_WAIT_S)
        yield 0, 0
    return frame
