"""Live for a long time with everything happening to it: what it takes of the device and of memory levels off.

`make soak` runs 10,000 frames, the suite some hundred. A camera in the network is cut off, stalls and comes back;
models and effects are switched, the window is resized, minimized, and fills the screen.
"""

import gc
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from tests.helpers.display import Display
from tests.helpers.living import living
from tests.helpers.markers import exhaustive
from tests.helpers.mjpeg_server import MjpegServer, Rgb
from texelflow.app.console import Console
from texelflow.app.frame.looks.effects import EFFECTS
from texelflow.app.frame.stages.frame_pipeline import FrameRecord
from texelflow.app.live.sourcing import Waker, open_source
from texelflow.app.models.model_loading import load_segmentation
from texelflow.app.session.session import Session
from texelflow.app.session.session_opening import open_host_with_window, open_session
from texelflow.app.settings.config_watch import ConfigWatch
from texelflow.app.window.glfw_window import Window

LONG = "SOAK_FRAMES" in os.environ
FRAMES = int(os.environ.get("SOAK_FRAMES", "150"))
SIZE, RATE = (160, 120), 100.0
WARM_UP = min(500, FRAMES // 2)  # frames after which memory is compared
MOST_GROWTH_BYTES = 20 << 20
_FEW, _MANY = 4, 15  # frames

Script = Iterator[None]


def moving(index: int, size: tuple[int, int]) -> Rgb:
    """Noise with a bright bar that moves."""
    picture = np.random.default_rng(index).integers(0, 90, (size[1], size[0], 3), np.uint8)
    picture[:, index * 3 % size[0] :][:, :20] = 230
    return picture


class Soak:
    """What happens to a session; each method is a script that yields whenever the session shall go on."""

    def __init__(self, session: Session, window: Window, display: Display, server: MjpegServer, folder: Path) -> None:
        self._session, self._window, self._display, self._server = session, window, display, server
        self._folder = folder
        self._number = display.window("texelflow")
        self.records = 0
        self.resident_bytes: list[int] = []  # after each round, and the frames by then
        self.rounds: list[int] = []
        self.objects: list[dict[str, int]] = []

    def run(self) -> Script:
        """Round after round until there were enough frames: two at least, to be compared."""
        acts = [self.effects, self.masks, self.models, self.sizes, self.loss, self.outputs]
        while self.records < FRAMES or len(self.rounds) < 2:
            for act in acts:
                yield from act()
            self._session.controller.change(effect="blur", model="selfie", overlay=False)
            yield from self.until(lambda: self._session.model == "selfie")
            yield from self.frames(_FEW)
            self.objects.append({kind: len(names) for kind, names in living(self._window.context).items()})
            self._window.context.check_errors("a round of the soak")
            self.resident_bytes.append(resident_bytes())
            self.rounds.append(self.records)

    def effects(self) -> Script:
        for effect in EFFECTS:
            self._session.controller.change(effect=effect, overlay=EFFECTS.index(effect) % 2 == 0)
            yield from self.frames(_FEW)
        self._session.controller.change(effect="replace", light_wrap=0.6, mirror=True, side_by_side=True, gamma=2.0)
        yield from self.frames(_FEW)
        self._session.controller.change(light_wrap=0.0, mirror=False, side_by_side=False, gamma=1.0)

    def masks(self) -> Script:
        for values in ({"edges": False}, {"smooth": 0.0}, {"delay_video": True}, {"every": 3}):
            before = {name: getattr(self._session.controller.settings, name) for name in values}
            self._session.controller.change(**values)
            yield from self.frames(_FEW)
            self._session.controller.change(**before)
        self._session.controller.change(panel=True)
        gallery = self._session.parts.gallery
        assert gallery is not None
        yield from self.frames(_FEW)
        yield from self.until(lambda: not gallery.textures.busy)
        self._session.controller.change(panel=False)

    def models(self) -> Script:
        self._session.controller.change(model="selfie-landscape")
        yield from self.until(lambda: self._session.model == "selfie-landscape")
        yield from self.frames(_FEW)

    def sizes(self) -> Script:
        self._display.xdotool("windowsize", self._number, 300, 200)
        yield from self.until(lambda: self._window.size == (300, 200))
        yield from self.frames(_FEW)
        self._display.minimize(self._number)
        yield from self.until(lambda: self._window.minimized)
        self._display.minimize(self._number, minimized=False)
        yield from self.until(lambda: not self._window.minimized)
        self._session.controller.change(fullscreen=True)
        yield from self.frames(_FEW)
        self._session.controller.change(fullscreen=False)
        yield from self.frames(_FEW)

    def loss(self) -> Script:
        """The source is cut off, and every other time stalls as well."""
        self._server.cut()
        yield from self.until(lambda: self._session.phase == "lost")
        yield from self.until(lambda: self._session.phase == "live")
        yield from self.frames(_FEW)
        if len(self.rounds) % 2:
            self._server.mode = "stall"
            yield from self.until(lambda: self._session.phase == "stalled")
            self._server.mode = "live"
            yield from self.until(lambda: self._session.phase == "live")

    def outputs(self) -> Script:
        path = self._folder / f"{len(self.rounds)}.mp4"
        self._session.controller.change(out=str(path), masks=str(path.with_suffix("")))
        yield from self.frames(_MANY)
        self._session.controller.change(out="", masks="")
        yield from self.frames(_FEW)

    def frames(self, count: int) -> Script:
        """So many more."""
        end = self.records + count
        yield from self.until(lambda: self.records >= end)

    def until(self, true: Callable[[], bool]) -> Script:
        while not true():
            yield


def resident_bytes() -> int:
    gc.collect()
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGESIZE")


@exhaustive
@pytest.mark.parametrize("backend", ["gl", "cpu"] if LONG else ["gl"])
def test_live_levels_off(
    backend: str, display: Display, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    soak: Soak

    def observe(record: FrameRecord) -> None:
        soak.records += 1

    config = tmp_path / "live.toml"
    config.write_text(f'[model]\nbackend = "{backend}"\n')
    with MjpegServer(SIZE, RATE, moving) as server:
        watch = ConfigWatch(config, {"camera": server.url})
        wake = Waker()
        source = open_source(watch.settings, wake)
        console, model = Console(quiet=True), load_segmentation("selfie")
        with (
            source.captures[0],
            open_host_with_window(source.for_session(), model, "live", watch, console) as host,
            open_session(host, source.for_session(), model, watch.settings, lambda settings: None) as session,
        ):
            wake.loop = host.wake
            host.observers.append(observe)
            assert host.window
            soak = Soak(session, host.window, display, server, tmp_path)
            acts = soak.run()
            session.run(lambda: next(acts, acts) is acts)
    assert soak.records >= FRAMES
    assert len(soak.rounds) > 1
    assert soak.objects[-1] == soak.objects[0]
    warm = next(size for frames, size in zip(soak.rounds, soak.resident_bytes, strict=True) if frames >= WARM_UP)
    with capsys.disabled():
        if LONG:
            print(f"\n{soak.records} frames, {len(soak.rounds)} rounds; resident MB after each:")
            print(" ".join(f"{size / 1e6:.0f}" for size in soak.resident_bytes))
    assert soak.resident_bytes[-1] - warm < MOST_GROWTH_BYTES
