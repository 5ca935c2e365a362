"""A GPU that is reset under a session: all is built anew, no frame is lost, and the window stays where it was."""

import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.app.frame.inference.test_native_path import segmenting
from tests.helpers.clips import moving, write_clip
from tests.helpers.commands import Command
from tests.helpers.gpu_resets import GpuResets
from tests.helpers.live_stage import Script, Stage, Theatre
from tests.helpers.markers import exhaustive
from tests.helpers.running import pictures_of, rows_of, times_of
from tests.model_files.frame_models import class_network
from texelflow.app.capture.pattern import time_code_of
from texelflow.app.console import Console
from texelflow.app.media.sources import VideoFrame
from texelflow.app.outputs.frame_outputs import Outputs
from texelflow.app.session.session_opening import open_host_without_window
from texelflow.app.settings.config_watch import ConfigWatch
from texelflow.app.settings.settings import Settings
from texelflow.gpu_delegate.targets.llvm import compiler

pytestmark = pytest.mark.gl

FRAMES = 14


@pytest.fixture
def texelflow(capsys: pytest.CaptureFixture[str]) -> Command:
    return Command(capsys)


def at_frames(monkeypatch: pytest.MonkeyPatch, act: Callable[[], None], *numbers: int) -> None:
    """Do something once while each of these frames is recorded."""
    take, left = Outputs._take, [*numbers]

    def taking(outputs: Outputs, frame: VideoFrame) -> None:
        take(outputs, frame)
        if left and frame.index == left[0]:
            left.pop(0)
            act()

    monkeypatch.setattr(Outputs, "_take", taking)


class TestReplay:
    @pytest.fixture
    def command(self, tmp_path: Path) -> tuple[object, ...]:
        clip = write_clip(tmp_path / "clip.mp4", moving(FRAMES, 160, 120))
        model = tmp_path / "classes.tflite"
        model.write_bytes(class_network((48, 32)))
        look = ("--effect", "replace", "--overlay", "--no-refine", "--backend", "gl")
        return ("replay", clip, "--model", model, *look)

    @exhaustive
    def test_no_frame_is_lost(
        self,
        texelflow: Command,
        command: tuple[object, ...],
        gpu: GpuResets,
        tmp_path: Path,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        def files(name: str) -> tuple[object, ...]:
            return ("--cutouts", tmp_path / name, "--out", f"{tmp_path / name}.mkv", "--log", f"{tmp_path / name}.csv")

        assert texelflow(*command, *files("whole")).code == 0
        at_frames(monkeypatch, gpu.reset, 4, FRAMES - 1)
        result = texelflow(*command, *files("reset"))
        assert result.code == 0
        assert result.err.count("the GPU was reset: this program's work hung it; all is built anew\n") == 2
        assert gpu.opened == 4
        assert len(pictures_of(tmp_path / "whole")) == FRAMES
        for name in pictures_of(tmp_path / "whole"):
            assert (tmp_path / "reset" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes(), name
        assert times_of(tmp_path / "reset.mkv") == times_of(tmp_path / "whole.mkv")
        numbers = [row["index"] for row in rows_of(tmp_path / "reset.csv")]
        assert numbers == [row["index"] for row in rows_of(tmp_path / "whole.csv")]

    def test_a_gpu_that_does_not_get_well_ends_it_and_keeps_the_recording(
        self,
        texelflow: Command,
        command: tuple[object, ...],
        gpu: GpuResets,
        tmp_path: Path,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        at_frames(monkeypatch, gpu.reset, 4, 5, 9)
        result = texelflow(*command, "--out", tmp_path / "out.mkv")
        assert result.code == 2
        assert result.err.splitlines()[-1] == "texelflow: the GPU was reset: this program's work hung it"
        assert 0 < len(times_of(tmp_path / "out.mkv")) < FRAMES


class TestLive:
    def test_the_window_goes_on(self, theatre: Theatre, gpu: GpuResets) -> None:
        def script(stage: Stage) -> Script:
            yield from stage.frames(2)
            stage.press("r")
            yield from stage.until(lambda: "recording" in stage.parts.outputs.active)
            stage.press("o", "p")
            yield from stage.until(lambda: stage.settings.overlay and stage.settings.panel)
            stage.window._glfw.set_window_pos(stage.window._handle, 40, 30)
            yield from stage.frames(3)
            before, handle, seen = stage.window.context, stage.window._handle, stage.parts.gallery
            gpu.reset()
            yield from stage.until(lambda: stage.window.context is not before)
            yield from stage.until(lambda: "the GPU was reset" in stage.words)
            yield from stage.frames(6)
            assert stage.window._handle is not handle
            assert stage.window._glfw.get_window_pos(stage.window._handle) == (40, 30)
            assert stage.parts.gallery is seen
            assert stage.code() == time_code_of(stage.records[-1].index)
            assert stage.settings.overlay
            assert stage.settings.panel
            stage.press("o")  # keys reach the new window
            yield from stage.until(lambda: stage.settings.overlay_style == "full")
            yield from stage.frames(2)

        records = theatre.run(script, effect="none")
        assert gpu.opened == 2
        times = times_of(theatre.folder / "texelflow-1.mp4")
        assert len(times) > 6
        numbers = [record.index for record in records]
        assert numbers == sorted(set(numbers))


@pytest.mark.skipif(bool(compiler.available()), reason="there is no code for this CPU")
def test_threads_that_draw_for_a_context_end_with_it() -> None:
    before, model = set(threading.enumerate()), segmenting("sigmoid", 2)
    watch = ConfigWatch(verb="replay", given=Settings(backend="cpu", threads=2, overlay=True))
    with open_host_without_window(True, model, "replay", watch, Console(quiet=True)) as host:
        lost = host.compute.native
        host.renew()
        assert host.compute.native is not lost
        assert len(set(threading.enumerate()) - before) == 1
    assert set(threading.enumerate()) == before
