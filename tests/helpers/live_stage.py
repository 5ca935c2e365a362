"""Runs a real live session in a real window, driven by a script of keys, files and waits.

A script is a generator: the session takes one step of its loop at each yield, and ends with the script.
"""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import cache, lru_cache
from pathlib import Path
from time import monotonic, perf_counter_ns

import numpy as np
import numpy.typing as npt
import pytest

from tests.helpers.clips import Recipe, write_clip
from tests.helpers.clocks import ManualClock, PatientClock, wait_for_sources
from tests.helpers.display import Display, ManagedDisplay
from tests.helpers.time_codes import read_time_code
from tests.helpers.waiting import PATIENCE_S
from texelflow import assets
from texelflow.app.capture.capture import Capture
from texelflow.app.capture.capture_reader import TimeSource
from texelflow.app.console import Console
from texelflow.app.frame.drawing.canvas import Canvas
from texelflow.app.frame.refinement.refine import Refinement
from texelflow.app.frame.stages.frame_pipeline import FrameRecord
from texelflow.app.frame.textures.offscreen_target import on_opengl
from texelflow.app.live.sourcing import Waker, open_source
from texelflow.app.media.sources import FileSource
from texelflow.app.models.catalogue import CATALOGUE
from texelflow.app.models.finding_loading import ShownModel, load_shown_model
from texelflow.app.models.model_loading import load_segmentation
from texelflow.app.session.clock import NewestWins
from texelflow.app.session.hud import Hud
from texelflow.app.session.parts import SessionParts
from texelflow.app.session.session import Session
from texelflow.app.session.session_opening import open_host_with_window, open_session
from texelflow.app.session.view import WindowView
from texelflow.app.settings.config_watch import ConfigWatch
from texelflow.app.settings.settings import Settings
from texelflow.app.verbs.live import check_files
from texelflow.app.window.glfw_window import Window
from texelflow.gpu_delegate.targets.gl import opengl

SIZE = (160, 120)

Script = Iterator[None]
Picture = npt.NDArray[np.uint8]
QUICK: dict[str, object] = {
    "camera": "pattern", "size": "160x120", "fps": 60.0, "backend": "cpu", "effect": "tint", "start_hint": False,
}  # fmt: skip


@dataclass
class Stage:
    """Where a script acts, and what it sees there."""

    display: Display
    session: Session
    config: Path
    clock: TimeSource  # of the capture
    records: list[FrameRecord] = field(default_factory=list)

    @property
    def parts(self) -> SessionParts:
        """What the session is made of."""
        return self.session.parts

    @property
    def hud(self) -> Hud:
        """Everything that is written over the picture."""
        return self.session._hud

    @property
    def settings(self) -> Settings:
        """As they are now."""
        return self.session.controller.settings

    @property
    def words(self) -> str:
        """What was said last, if it still stands there."""
        return self.hud.toast.words

    @property
    def canvas(self) -> Canvas:
        """That of the model at work."""
        return self.parts.stages.canvas

    @property
    def window(self) -> Window:
        """The one in which it runs."""
        assert isinstance(self.parts.view, WindowView)
        return self.parts.view.window

    @property
    def capture(self) -> Capture:
        """What reads the source."""
        assert isinstance(self.parts.clock, NewestWins)
        return self.parts.clock.capture

    @property
    def refinement(self) -> Refinement:
        """What is done to masks at the moment."""
        refiner = self.parts.stages.current.refiner
        assert refiner is not None
        return refiner.refinement

    def press(self, *keys: str) -> None:
        """Press and release keys, by X's names."""
        self.display.press(*keys)

    def save(self, text: str) -> None:
        """Write the file of settings anew, as an editor does it."""
        draft = self.config.with_suffix(".new")
        draft.write_text(text)
        draft.replace(self.config)

    def until(self, true: Callable[[], bool], what: str = "it", pass_s: float = 0.0) -> Script:
        """Let the session go on until something is true; on a clock that stands, so much time passes at each step."""
        end = monotonic() + PATIENCE_S
        while not true():
            assert monotonic() < end, f"{what} did not happen; the screen says: {self.words or self.hud.signal!r}"
            if isinstance(self.clock, ManualClock):
                self.clock.pass_s(pass_s)
                self.clock.pass_while_waiting(self.capture)
            yield

    def frames(self, count: int) -> Script:
        """Let so many more frames be shown."""
        last = len(self.records) + count
        yield from self.until(lambda: len(self.records) >= last, f"{count} more frames")

    def pressed(self, key: str, true: Callable[[], bool]) -> Script:
        """Press a key, wait for what it does, and for a frame after that."""
        self.press(key)
        yield from self.until(true, f"what {key} is for")
        yield from self.frames(1)

    def on_screen(self) -> Picture:
        """What the screen shows of the window: RGB (H, W, 3)."""
        width, height = self.window.size
        return self.display.picture()[:height, :width]

    def drawn(self) -> Picture:
        """The last picture, without words: RGBA (H, W, 4). It is read back, which counts."""
        gl, target = self.window.context.gl, on_opengl(self.parts.stages.target)
        pixels = np.empty((target.size[1], target.size[0], 4), np.uint8)
        gl.glBindFramebuffer(opengl.READ_FRAMEBUFFER, target.framebuffer)
        gl.glReadPixels(0, 0, *target.size, opengl.RGBA, opengl.UNSIGNED_BYTE, pixels.ctypes.data)
        return pixels[::-1].copy()

    def code(self) -> int | None:
        """The number that the test pattern wrote into the last picture."""
        return read_time_code(self.drawn())


class Theatre:
    """Opens sessions on a display, in a folder of their own, with a file of settings there."""

    def __init__(self, display: Display, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.display, self.folder, self._monkeypatch = display, folder, monkeypatch
        self.clock: TimeSource = perf_counter_ns  # of captures; by this one no source stalls
        self.config = folder / "live.toml"
        self.config.touch()

    @contextmanager
    def opened(self, **flags: object) -> Iterator[Stage]:
        """A session by these flags, where nothing is said by those of QUICK. GL errors fail the test."""
        watch, wake = ConfigWatch(self.config, QUICK | flags), Waker()
        settings = watch.settings
        if self.clock is perf_counter_ns:
            wait_for_sources(self._monkeypatch)
        with ExitStack() as stack:
            source = open_source(settings, wake, self.clock)
            stack.callback(source.close)
            console, model = Console(quiet=True), first_model(settings.model)
            host = stack.enter_context(open_host_with_window(source.for_session(), model, "live", watch, console))
            wake.loop, host.time_ns = host.wake, PatientClock()

            def check(changed: Settings) -> None:
                check_files(changed, self.config)

            with open_session(host, source.for_session(), model, settings, check) as session:
                self.display.window("texelflow")
                stage = Stage(self.display, session, self.config, self.clock)
                host.observers.append(stage.records.append)
                yield stage
                stage.window.context.check_errors("the session")

    def run(self, script: Callable[[Stage], Script], **flags: object) -> list[FrameRecord]:
        """Play a script to its end; the records of all frames."""
        with self.opened(**flags) as stage:
            acts = script(stage)
            stage.session.run(lambda: next(acts, acts) is acts)
            assert next(acts, acts) is acts, "the session ended before the script did"
        return stage.records


def first_model(name: str) -> ShownModel:
    """That with which a session begins; one of the catalogue, which is always the same, is read once."""
    return _catalogued(name) if name in CATALOGUE else load_segmentation(name)


_catalogued = cache(load_shown_model)


@pytest.fixture
def theatre(display: Display, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Theatre:
    """On the suite's screen; files without a folder go to the test's."""
    monkeypatch.chdir(tmp_path)
    return Theatre(display, tmp_path, monkeypatch)


@pytest.fixture
def managed_theatre(managed: ManagedDisplay, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Theatre:
    """On the screen with a window manager."""
    monkeypatch.chdir(tmp_path)
    return Theatre(managed, tmp_path, monkeypatch)


@pytest.fixture(scope="session")
def people(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Half a second of two people at 160x120, whose mask is another one in each frame.

    Whichever frames a busy machine drops, and where the clip begins again, no two are so different that it is a cut.
    """
    return write_clip(tmp_path_factory.mktemp("people") / "people.mp4", [demo_frame(60 + k) for k in range(15)])


@pytest.fixture(scope="session")
def still(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two people who do not move, to the last bit: all frames are coded by themselves."""
    recipe = Recipe(codec_options={"crf": "4", "preset": "ultrafast", "g": "1"})
    return write_clip(tmp_path_factory.mktemp("still") / "still.mp4", [demo_frame(60)] * 6, recipe)


@lru_cache(maxsize=1)
def _demo_frames() -> list[Picture]:
    with FileSource(Path(assets.__file__).parent / "people.mp4", last=90) as source:
        return [np.ascontiguousarray(frame.rgba[..., :3]) for frame in source]


def demo_frame(number: int, step: int = 4) -> Picture:
    """A frame of the demo clip, RGB: every `step`-th pixel of 640x480."""
    return np.ascontiguousarray(_demo_frames()[number][step // 2 :: step, step // 2 :: step])
