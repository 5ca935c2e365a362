"""What Python costs beside OpenGL: counted exactly by a clock of the test's own, and measured once in a real window."""

import json
import os

import pytest

from tests.helpers.display import Display
from tests.helpers.markers import exhaustive
from texelflow.app.bench.live_cost import LiveBench, bench_live, show_bench_live
from texelflow.app.bench.python_cost import PythonCost, PythonCostMeter, another_thread
from texelflow.app.console import Console
from texelflow.app.frame.stages.frame_pipeline import FramePipeline, Stage
from texelflow.app.picture.picture import Picture, PictureFormat
from texelflow.app.picture.video_frame import VideoFrame
from texelflow.gpu_delegate.base.errors import DeviceError, UsageError
from texelflow.gpu_delegate.targets.gl.context import Context

LIVE_STAGES = (
    "upload", "image_to_tensor", "network", "refine", "composite", "record", "blit", "overlay", "swap",
)  # fmt: skip


class Clock:
    """Stands still unless it is moved, but for what a look at it takes."""

    def __init__(self, look_ns: int = 0) -> None:
        self.now_ns, self.look_ns = 0, look_ns

    def __call__(self) -> int:
        self.now_ns += self.look_ns
        return self.now_ns

    def pass_ms(self, time_ms: float) -> None:
        self.now_ns += int(time_ms * 1e6)


def test_what_is_wrapped_is_not_pythons_own() -> None:
    clock = Clock()
    spending = PythonCostMeter(clock)
    inside, waiting = spending.wrap(clock.pass_ms), spending.wrap_waiting(clock.pass_ms)

    def work() -> None:
        clock.pass_ms(2)
        inside(5)
        clock.pass_ms(1)
        waiting(100)
        inside(0.5)

    assert spending.of(work) == PythonCost(8.5, 3, 0, 2)
    assert spending.of(lambda: None) == PythonCost(0, 0, 0, 0)


def test_wrapped_functions_do_what_they_did() -> None:
    spending = PythonCostMeter(Clock())
    assert spending.wrap(divmod)(7, 2) == spending.wrap_waiting(divmod)(7, 2) == (3, 1)
    with pytest.raises(ZeroDivisionError):
        spending.wrap(divmod)(7, 0)


def test_what_measuring_adds_is_taken_off() -> None:
    """A look at this clock takes 10 ns: one of a wrapped call's two is seen as the call's own time, one is not."""
    clock = Clock(look_ns=10)
    spending = PythonCostMeter(clock)
    assert vars(spending.costs) == pytest.approx({"wrapping_ns": 20, "outside_ns": 10, "call_ns": 0}, abs=0.1)
    inside = spending.wrap(clock.pass_ms)

    def work() -> None:
        for _ in range(300):
            inside(1)
            clock.pass_ms(2)

    expected = {"all_ms": 900, "own_ms": 600, "call_ms": 0, "calls": 300, "gathered": 0}
    assert vars(spending.of(work)) == pytest.approx(expected, abs=1e-4)


def test_what_measuring_adds_is_found_amid_the_work(context: Context) -> None:
    """Looks at this clock take four times as long where there is other work."""
    clock = Clock(look_ns=10)
    spending = PythonCostMeter(clock)
    clock.look_ns = 40

    def draw() -> None:
        for _ in range(5):
            context.gl.glFlush()
            clock.pass_ms(2)

    spending.settle(draw, context)
    assert vars(spending.costs) == pytest.approx({"wrapping_ns": 80, "outside_ns": 40, "call_ns": 0}, abs=0.1)
    with spending.watching(context):
        assert spending.of(draw).own_ms == pytest.approx(10, abs=1e-4)


def test_stages_are_told_apart(context: Context) -> None:
    clock = Clock()
    spending = PythonCostMeter(clock)
    sleep = spending.wrap(clock.pass_ms)
    stages = [Stage("first", lambda _: clock.pass_ms(1)), Stage("second", lambda _: sleep(4))]
    pipeline = FramePipeline(stages, context, timing="wall")
    frame = VideoFrame(0, 0, 0.0, Picture(PictureFormat((2, 2)), ()))
    with spending.watching_stages(pipeline, context.calls) as found:
        pipeline.submit(frame)
        pipeline.submit(frame)
    pipeline.submit(frame)
    pipeline.release()
    assert found == {"first": [PythonCost(1, 1, 0, 0)] * 2, "second": [PythonCost(4, 0, 0, 1)] * 2}


def test_all_entry_points_are_watched_and_left_as_they_were(context: Context) -> None:
    import glfw
    from imgui_bundle import imgui

    def functions() -> dict[str, object]:
        of_gl = {name: value for name, value in vars(context.gl).items() if name.startswith("gl")}
        return {
            **of_gl,
            **{name: getattr(glfw, name) for name in watched},
            "draw": imgui.backends.opengl3_render_draw_data,
        }

    watched = ("swap_buffers", "poll_events", "wait_events_timeout")
    spending, before = PythonCostMeter(Clock()), functions()
    with spending.watching(context):
        during = functions()
        assert spending.of(context.gl.glFinish).calls == 1
        assert spending.of(lambda: context.gl.integer(0x821B)).calls == 1
    assert all(during[name] is not before[name] for name in before)
    assert functions() == before
    assert "scope" not in vars(context)
    assert spending.of(context.gl.glFinish).calls == 0


def test_another_thread_runs_and_ends() -> None:
    import threading

    with another_thread():
        assert "another" in {thread.name for thread in threading.enumerate()}
    assert "another" not in {thread.name for thread in threading.enumerate()}


# In a window ---------------------------------------------------------------------------------------------------------


@exhaustive
def test_a_frame_is_measured_stage_by_stage(display: Display) -> None:
    figures = bench_live(LiveBench(model="selfie-landscape", size="64x48", frames=3), Console(quiet=True))
    assert figures == json.loads(json.dumps(figures))
    assert figures["frames"] == 3
    for side, limit_ms in (("off", 1.0), ("on", 2.0)):
        found = figures["overlay"][side]
        assert (found["own_limit_ms"], found["lock_limit_ms"]) == (limit_ms, limit_ms / 2)
        assert 0 < found["own_ms"]["min_ms"] < found["wall_ms"]["max_ms"]
        assert found["own_reached"] == (found["own_ms"]["median_ms"] < limit_ms)
        stages = found["stages"]
        assert [*stages] == [*LIVE_STAGES, "rest"]
        assert all(stages[name]["calls"] > 0 for name in ("upload", "network", "composite", "blit", "swap"))
    assert figures["overlay"]["off"]["stages"]["overlay"]["calls"] == 0
    assert figures["overlay"]["on"]["stages"]["overlay"]["calls"] > 0
    assert figures["reached"] == all(
        side[f"{name}_reached"] for side in figures["overlay"].values() for name in ("own", "lock")
    )


def test_the_tables_say_what_was_measured(display: Display, capsys: pytest.CaptureFixture[str]) -> None:
    spread = dict.fromkeys(("min_ms", "median_ms", "mean_ms", "p95_ms", "p99_ms", "max_ms"), 0.75)
    stages = {"network": {"wall_ms": 7.5, "own_ms": 0.125, "calls": 144}}
    side = {"wall_ms": spread, "own_ms": spread, "lock_ms": spread, "own_limit_ms": 1.0, "lock_limit_ms": 0.5}
    side |= {"own_reached": True, "lock_reached": False, "stages": stages}
    figures = {"overlay": {"off": side, "on": side}, "size": "640x480", "frames": 9, "renderer": "some GPU"}
    show_bench_live(figures, Console())
    shown = capsys.readouterr().out
    assert [word in shown for word in ("640x480, 9 frames", "0.75", "yes", "no", "network", "144", "on some GPU")] == [
        True
    ] * 7


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        (LiveBench(frames=0), "--frames goes from 1"),
        (LiveBench(size="640"), "--size 640: a size such as"),
        (LiveBench(effect="sparkle"), "--effect sparkle: one of"),
    ],
)
def test_what_cannot_be_measured_is_said_in_one_line(options: LiveBench, complaint: str) -> None:
    with pytest.raises(UsageError, match=complaint):
        bench_live(options, Console(quiet=True))


@exhaustive
@pytest.mark.window
def test_without_a_display_it_brings_its_own(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("DISPLAY", "WAYLAND_DISPLAY"):
        monkeypatch.delenv(name, raising=False)
    figures = bench_live(LiveBench(size="64x48", backend="cpu", frames=1), Console(quiet=True))
    assert figures["overlay"]["on"]["wall_ms"]["median_ms"] > 0
    assert "on one that nobody sees (Xvfb)" in capsys.readouterr().err
    assert "DISPLAY" not in os.environ


def test_without_a_display_and_xvfb_one_line_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("DISPLAY", "WAYLAND_DISPLAY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PATH", "")
    with pytest.raises(DeviceError, match=r"there is no display: set DISPLAY, or install Xvfb"):
        bench_live(LiveBench(size="64x48", frames=1), Console(quiet=True))
