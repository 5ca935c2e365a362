"""Runs a real replay session in a real window, driven by a script of keys."""

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic

import glfw

from tests.helpers.clocks import PatientClock
from tests.helpers.display import Display
from tests.helpers.waiting import PATIENCE_S
from texelflow.app.console import Console
from texelflow.app.frame.drawing.canvas import Canvas
from texelflow.app.frame.stages.frame_pipeline import FrameRecord
from texelflow.app.media.seeking import SeekableSource
from texelflow.app.models.model_loading import SegmentationModel
from texelflow.app.replay.replay import source_to_watch
from texelflow.app.replay.replay_options import ReplayOptions
from texelflow.app.session.hud import Hud
from texelflow.app.session.playback import Playback
from texelflow.app.session.session import Session
from texelflow.app.session.session_opening import open_host_with_window, open_session
from texelflow.app.session.view import WindowView
from texelflow.app.settings.settings import Settings
from texelflow.app.window.glfw_window import Window

Script = Iterator[None]
FLAGS: dict[str, object] = {
    "backend": "cpu", "delay_video": False, "smooth": 0.0, "overlay": False, "start_hint": False,
}  # fmt: skip


@dataclass
class Played:
    """What came out of a run."""

    records: list[FrameRecord] = field(default_factory=list)

    @property
    def numbers(self) -> list[int]:
        return [record.index for record in self.records]


@dataclass
class Stage:
    """Where a script acts: it yields whenever the session shall go on."""

    display: Display
    session: Session
    source: SeekableSource
    played: Played

    @property
    def playback(self) -> Playback:
        playback = self.session.parts.playback
        assert playback
        return playback

    @property
    def window(self) -> Window:
        assert isinstance(self.session.parts.view, WindowView)
        return self.session.parts.view.window

    @property
    def canvas(self) -> Canvas:
        return self.session.parts.stages.canvas

    @property
    def settings(self) -> Settings:
        return self.session.controller.settings

    @property
    def hud(self) -> Hud:
        return self.session._hud

    @property
    def words(self) -> str:
        return self.hud.toast.words

    @property
    def here(self) -> int:
        """The number of the frame on the screen; -1 before the first one."""
        frame = self.playback.frame
        return -1 if frame is None else frame.index

    def press(self, *keys: str) -> None:
        self.display.press(*keys)

    def until(self, true: Callable[[], bool], what: str = "it") -> Script:
        """Let the session go on until something is true."""
        end = monotonic() + PATIENCE_S
        while not true():
            assert monotonic() < end, f"{what} did not happen"
            yield

    def at(self, index: int) -> Script:
        """Wait for a frame, and for its record."""
        yield from self.until(lambda: self.here == index, f"frame {index}")

    def paused_at(self, index: int) -> Script:
        """Go to a frame of which the number is known, and stay there."""
        yield from self.until(lambda: self.here >= 0)
        self.playback.paused = True
        self.playback.seek(index)
        yield from self.at(index)

    def settled(self) -> Script:
        """Wait until the screen shows what the session shows."""
        yield from self.until(lambda: not (self.session.controller.stale or self.window.damaged))
        for _ in range(2):  # what was drawn leaves for the screen when events are looked for
            glfw.post_empty_event()
            yield
        self.display.xdotool("getmouselocation")  # answered after that


@contextlib.contextmanager
def opened(
    file: Path,
    model: SegmentationModel,
    first: int = 0,
    last: int | None = None,
    speed: float = 1.0,
    loop: bool = False,
    **flags: object,
) -> Iterator[tuple[Session, SeekableSource, Played]]:
    """A session that plays a file in a window, by FLAGS where nothing else is said."""
    options = ReplayOptions(file, FLAGS | flags, first, last, window=True, speed=speed, loop=loop)
    watch, played = options.watch(), Played()
    with contextlib.ExitStack() as stack:
        recording, source = source_to_watch(options, watch.settings, stack)
        host = stack.enter_context(open_host_with_window(source, model, "replay", watch, Console(quiet=True)))
        host.time_ns = PatientClock()
        session = stack.enter_context(open_session(host, source, model, watch.settings, lambda settings: None))
        host.observers.append(played.records.append)
        yield session, recording, played
        assert host.window
        host.window.context.check_errors("playing")


def run(
    display: Display,
    model: SegmentationModel,
    file: Path,
    script: Callable[[Stage], Script],
    last: int | None = None,
    speed: float = 1.0,
    loop: bool = False,
    **flags: object,
) -> Played:
    """Play a file while a script presses keys; the script's end is the session's."""
    with opened(file, model, 0, last, speed, loop, **flags) as (session, recording, played):
        display.window(file.name)
        acts = script(Stage(display, session, recording, played))
        session.run(lambda: next(acts, acts) is acts)
        assert next(acts, acts) is acts, "the session ended before the script did"
    return played
