"""A session without a window tells in lines what a window would show, and records what settings ask for meanwhile."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from tests.helpers.markers import exhaustive
from tests.helpers.mjpeg_server import MjpegServer
from tests.helpers.waiting import until
from texelflow.app.console import Console
from texelflow.app.live.sourcing import Waker, open_source
from texelflow.app.media.sources import FileSource
from texelflow.app.models.model_loading import load_segmentation
from texelflow.app.session.session import Session
from texelflow.app.session.session_opening import open_host_without_window, open_session
from texelflow.app.settings.config_watch import ConfigWatch

pytestmark = pytest.mark.gl

FLAGS: dict[str, object] = {"camera": "pattern", "size": "160x120", "backend": "cpu"}


@contextmanager
def opened(config: Path, note: Callable[[str], None], **flags: object) -> Iterator[Session]:
    """A session of the test pattern, or of others, with a file of settings."""
    watch, wake = ConfigWatch(config, {**FLAGS, "out": str(config.with_name("out.mkv")), **flags}), Waker()
    with ExitStack() as stack:
        source = open_source(watch.settings, wake)
        stack.callback(source.close)
        model, opened = load_segmentation(watch.settings.model), open_host_without_window
        host = replace(stack.enter_context(opened(True, model, "live", watch, Console(quiet=True))), note=note)
        wake.loop = host.wake
        yield stack.enter_context(open_session(host, source.for_session(), model, watch.settings, lambda _: None))


@exhaustive
def test_what_is_wrong_with_the_file_of_settings_and_the_background_is_told(tmp_path: Path) -> None:
    config, lines = tmp_path / "live.toml", list[str]()
    config.touch()
    with opened(config, lines.append) as session:
        config.write_text("[mask]\nsmooth = 9\n")
        until(lambda: any("line 2: [mask] smooth = 9" in line for line in lines), session.step)
        config.write_text('[picture]\neffect = "replace"\nbackground = "gone.png"\n')
        until(lambda: any("gone.png" in line for line in lines), session.step)
        session.controller.change(model="gone.tflite")
        until(lambda: any("gone.tflite" in line for line in lines), session.step)
        assert session.model == session.controller.settings.model == "selfie"


def bright(number: int, size: tuple[int, int]) -> npt.NDArray[np.uint8]:
    """A picture without anything dark."""
    return np.full((*size[::-1], 3), 180 + number % 50, np.uint8)


def test_of_several_cameras_those_that_are_gone_are_told_of(tmp_path: Path) -> None:
    config, lines = tmp_path / "live.toml", list[str]()
    config.touch()
    with ExitStack() as stack:
        server = stack.enter_context(MjpegServer((160, 120), picture=bright))
        session = stack.enter_context(opened(config, lines.append, camera=["pattern", server.url], overlay=True))
        until(lambda: session.parts.outputs.counts["recording"].taken > 0, session.step)
        server.refuse()
        until(lambda: any("; trying again" in line for line in lines), session.step)
        assert session.phase == "live"
    with FileSource(tmp_path / "out.mkv") as recording:
        *_, last = recording
    assert last.size == (324, 120)
    assert last.rgba[100:, 164:].min() < 60, "its line is in the recording"


def test_an_overlay_that_is_asked_for_later_waits_for_a_host_that_can_draw_it(tmp_path: Path) -> None:
    """As where the file of settings asks for it, and the camera's pictures get another size then."""
    watch, wake = ConfigWatch(None, {**FLAGS, "out": str(tmp_path / "out.mkv"), "overlay": False}), Waker()
    with ExitStack() as stack:
        source = open_source(watch.settings, wake)
        stack.callback(source.close)
        model = load_segmentation(watch.settings.model)
        host = stack.enter_context(open_host_without_window(True, model, "live", watch, Console(quiet=True)))
        asked = replace(watch.settings, overlay=True)
        session = stack.enter_context(open_session(host, source.for_session(), model, asked, lambda _: None))
        until(lambda: session.parts.outputs.counts["recording"].taken > 0, session.step)
        assert (session.parts.overlay is None) == (host.compute.context is None)
