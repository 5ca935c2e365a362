"""The loop of window and camera: simulated cameras of known delay, and one that sees the real window on its screen."""

import json
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, replace
from time import perf_counter_ns

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.helpers.clocks import ManualClock
from tests.helpers.display import SCREEN, Display
from tests.helpers.markers import exhaustive
from tests.helpers.mjpeg_server import MjpegServer
from texelflow.app.bench.latency.flashes import Change, delays_ms, period_ms
from texelflow.app.bench.latency.latency import FlashPlan, Latency, latency_test
from texelflow.app.bench.latency.latency_test import measure_latency, show_latency, summarize_latency
from texelflow.app.console import Console
from texelflow.app.picture.picture import rgba_picture
from texelflow.app.picture.video_frame import VideoFrame
from texelflow.app.settings.settings import Settings
from texelflow.app.window.glfw_window import Window
from texelflow.gpu_delegate.base.errors import MediaError
from texelflow.gpu_delegate.targets.gl.context import DRAWING

PLAN = FlashPlan()
Times = npt.NDArray[np.float64]


def changes_of(plan: FlashPlan) -> list[Change]:
    """Those of a window that swaps without any delay."""
    return [Change(due_ns / 1e6, place % 2 == 0) for place, due_ns in enumerate(plan.due_ns()[:-1])]


@dataclass(frozen=True)
class Simulated:
    """A camera. The share of the window in its picture, and its noise, are of 255."""

    delay_ms: float = 100.0
    fps: float = 30.0
    phase: float = 0.3
    share: float = 0.3
    noise: float = 0.5
    exposure_ms: float = 5.0  # light is gathered so long: of a rolling shutter, over all rows
    adapts_ms: float = 0.0  # how fast exposure follows the light; 0: not
    dropped: float = 0.0
    drift: float = 0.0  # of other light, over the whole test
    seed: int = 1

    def pictures(self, changes: list[Change]) -> tuple[Times, Times]:
        """Times and luma. A picture that arrives now shows what was there delay_ms ago, amid its exposure."""
        random, period = np.random.default_rng(self.seed), 1000 / self.fps
        end_ms = changes[-1].at_ms + 3000
        times: Times = np.arange(self.phase * period, end_ms, period, np.float64)
        times = times[random.random(len(times)) >= self.dropped]
        fine = np.arange(-self.exposure_ms / 2, self.exposure_ms / 2 + 0.01, 0.5)
        at = (times - self.delay_ms)[:, None] + fine
        on = np.searchsorted([change.at_ms for change in changes], at.ravel(), side="right") % 2
        light = self.share * 255 * on.reshape(at.shape).mean(1)
        if self.adapts_ms:
            slow, part = np.empty_like(light), 1 - np.exp(-period / self.adapts_ms)
            slow[0] = light[0]
            for place in range(1, len(light)):
                slow[place] = slow[place - 1] + part * (light[place] - slow[place - 1])
            light = light - 0.6 * slow
        luma: Times = light + 40 + self.drift * times / end_ms + random.normal(0, self.noise, len(times))
        return times, luma


def seen(camera: Simulated, plan: FlashPlan = PLAN) -> list[float]:
    """The delays of what that camera sees."""
    changes = changes_of(plan)
    found = delays_ms(changes, *camera.pictures(changes))
    return [] if found is None else [delay for delay in found if delay is not None]


cameras = st.builds(
    Simulated,
    delay_ms=st.floats(0, 2500),
    fps=st.floats(12, 120),
    phase=st.floats(0, 1),
    share=st.floats(0.05, 1),
    noise=st.floats(0, 1),
    exposure_ms=st.floats(0.5, 30),
    adapts_ms=st.sampled_from([0.0, 250.0, 1000.0]),
    dropped=st.floats(0, 0.1),
    drift=st.floats(-60, 60),
    seed=st.integers(0, 1000),
)


@exhaustive
@settings(deadline=None, max_examples=40)
@given(cameras)
def test_the_delay_of_any_camera_is_found_within_half_a_frame(camera: Simulated) -> None:
    found = seen(camera)
    assert len(found) >= PLAN.changes / 2
    assert abs(float(np.median(found)) - camera.delay_ms) <= 500 / camera.fps
    assert max(abs(delay - camera.delay_ms) for delay in found) <= 1000 / camera.fps + camera.exposure_ms


def test_a_good_camera_loses_nothing_and_its_mean_is_exact() -> None:
    found = seen(Simulated(noise=0))
    assert len(found) == PLAN.changes
    assert np.mean(found) == pytest.approx(100, abs=5)


@settings(deadline=None, max_examples=25)
@given(st.integers(0, 10_000), st.sampled_from([0.0, 0.5, 1.1, 2.3]), st.floats(5, 120))
def test_a_camera_that_looks_elsewhere_sees_nothing(seed: int, blinking_hz: float, fps: float) -> None:
    times, luma = replace(Simulated(share=0, noise=2, drift=50, seed=seed), fps=fps).pictures(changes_of(PLAN))
    blinking = 20 * (np.sin(times / 1000 * 2 * np.pi * blinking_hz + seed) > 0)
    assert delays_ms(changes_of(PLAN), times, luma + blinking) is None


def test_nor_does_one_that_is_like_the_flashes_by_chance() -> None:
    times, luma = replace(Simulated(share=0, noise=2, drift=50, seed=125), fps=5.0).pictures(changes_of(PLAN))
    assert delays_ms(changes_of(PLAN), times, luma) is None


def test_a_flash_behind_a_hand_is_lost_and_the_others_are_not() -> None:
    changes = changes_of(PLAN)
    times, luma = Simulated(noise=0).pictures(changes)
    hidden = (times > changes[9].at_ms) & (times < changes[11].at_ms + 250)
    found = delays_ms(changes, times, np.where(hidden, 60, luma))
    assert found
    assert found[9:11] == [None, None]
    others = found[:9] + found[12:]
    assert all(delay is not None and abs(delay - 100) < 40 for delay in others)


@pytest.mark.parametrize("pictures", [0, 1, 2, 7, 40])
def test_few_pictures_and_those_of_one_moment_are_no_sight(pictures: int) -> None:
    changes = changes_of(PLAN)
    assert delays_ms(changes, np.zeros(pictures), np.arange(pictures, dtype=np.float64)) is None
    assert delays_ms(changes, np.arange(pictures, dtype=np.float64), np.zeros(pictures)) is None
    assert period_ms(np.zeros(pictures)) == 0


def test_it_never_flashes_faster_than_is_safe() -> None:
    white_s = [due_ns / 1e9 for due_ns in PLAN.due_ns()[:-1:2]]
    assert min(np.diff(white_s)) > 0.66
    assert PLAN.due_ns() == sorted(PLAN.due_ns())
    assert PLAN.due_ns()[-1] < 20e9


def test_what_nobody_saw_is_said_in_one_line() -> None:
    with pytest.raises(MediaError, match=r"^the camera does not see the flashes: point it at the window"):
        summarize_latency(Latency((), 24, 500, 33.3), "a camera")
    with pytest.raises(MediaError, match=r"^no picture came from a camera"):
        summarize_latency(Latency((), 24, 0, 0.0), "a camera")
    with pytest.raises(ValueError, match="no flash was seen"):
        _ = Latency((), 24, 0, 0.0).median_ms


class Mirror:
    """Sees a screen, and shows each picture some time after it saw it; delays_ms says how long each was kept."""

    def __init__(self, display: Display, delay_s: float) -> None:
        self._display, self._delay_ns = display, int(delay_s * 1e9)
        self._under_way: deque[tuple[int, npt.NDArray[np.uint8]]] = deque()
        self.delays_ms: list[float] = []

    def look(self) -> None:
        """See what is on the screen now."""
        self._under_way.append((perf_counter_ns(), self._display.picture()[::4, ::4]))

    @property
    def due(self) -> bool:
        """Whether a picture has been kept for long enough."""
        return perf_counter_ns() - self._under_way[0][0] >= self._delay_ns

    def show(self) -> tuple[int, npt.NDArray[np.uint8]]:
        """When the oldest picture was seen, and RGB (H, W, 3)."""
        seen_ns, rgb = self._under_way.popleft() if len(self._under_way) > 1 else self._under_way[0]
        self.delays_ms.append((perf_counter_ns() - seen_ns) / 1e6)
        return seen_ns, rgb


class ScreenCamera:
    """A camera that is pointed at a screen, by a clock on which each look for a picture takes 5 ms. Implements Camera.

    It looks 30 times a second, and hands each picture over some time after it saw it; delays_ms says how long.
    """

    stamps = "driver"

    def __init__(self, display: Display, clock: ManualClock, delay_s: float) -> None:
        self._display, self._clock, self._delay_ns = display, clock, int(delay_s * 1e9)
        self._due_ns = clock()
        self._under_way: deque[tuple[int, npt.NDArray[np.uint8]]] = deque()
        self.delays_ms: list[float] = []

    def take(self) -> VideoFrame | None:
        self._clock.pass_s(0.005)
        now_ns = self._clock()
        if now_ns >= self._due_ns:
            self._due_ns += int(1e9 / 30)
            self._under_way.append((now_ns, self._display.picture()[::4, ::4]))
        if not self._under_way or now_ns - self._under_way[0][0] < self._delay_ns:
            return None
        seen_ns, rgb = self._under_way.popleft()
        self.delays_ms.append((now_ns - seen_ns) / 1e6)
        rgba = np.dstack([rgb, np.full(rgb.shape[:2], 255, np.uint8)])
        return VideoFrame(0, 0, 0.0, rgba_picture(rgba), captured_ns=seen_ns)


@pytest.fixture
def quick() -> FlashPlan:
    return FlashPlan(7, 0.25, 0.4, 0.2, 0.4)


@pytest.fixture
def window(display: Display) -> Iterator[Window]:
    with Window((320, 240), "flashing", DRAWING) as window:
        yield window


def test_a_real_window_seen_through_a_known_delay(window: Window, display: Display, quick: FlashPlan) -> None:
    clock = ManualClock()
    camera = ScreenCamera(display, clock, 0.25)
    latency = latency_test(window, camera, quick, clock=clock)
    assert latency
    true_ms = float(np.median(camera.delays_ms))
    assert true_ms >= 250
    assert latency.lost < quick.changes / 2
    assert abs(latency.median_ms - true_ms) <= latency.period_ms
    assert latency.to_stamp_ms is not None
    assert abs(latency.to_stamp_ms) <= latency.period_ms
    assert window.context.readback.bytes == 0


def test_q_ends_it(window: Window, display: Display, quick: FlashPlan) -> None:
    clock = ManualClock()
    camera = ScreenCamera(display, clock, 0.0)
    display.window("flashing")
    display.press("q")
    assert latency_test(window, camera, quick, clock=clock) is None


@exhaustive
def test_the_verb_measures_a_camera_in_the_network(display: Display, quick: FlashPlan) -> None:
    mirror = Mirror(display, 0.1)

    def picture(index: int, size: tuple[int, int]) -> npt.NDArray[np.uint8]:
        mirror.look()
        rgb = mirror.show()[1] if mirror.due else np.zeros((SCREEN[1] // 4, SCREEN[0] // 4, 3), np.uint8)
        return np.ascontiguousarray(rgb[:, ::-1])  # mirrors do that

    with MjpegServer(fps=30, picture=picture) as server:
        summary, code = measure_latency(Settings(camera=server.url), Console(quiet=True), quick)
    assert code == 0
    true_ms = float(np.median(mirror.delays_ms))
    assert abs(summary["loop_ms"]["median"] - true_ms) <= summary["period_ms"]
    assert summary["stamps"] == "arrival"
    assert summary["to_stamp_ms"] is None
    assert json.loads(json.dumps(summary)) == summary


def test_the_verb_says_that_the_camera_looks_elsewhere(display: Display) -> None:
    with pytest.raises(MediaError, match=r"^the camera does not see the flashes: point it at the window"):
        measure_latency(Settings(camera="pattern"), Console(quiet=True), FlashPlan(4, 0.1, 0.3, 0.1, 0.3))


def test_a_person_reads_what_it_is_and_what_it_includes(capsys: pytest.CaptureFixture[str]) -> None:
    delays_ms = tuple(float(80 + place) for place in range(9))
    show_latency(summarize_latency(Latency(delays_ms, 24, 500, 40.0, "driver", 60.0), "a camera"), Console())
    said = capsys.readouterr()
    assert "loop 84.0 ms, 2.1 frames of 40.0 ms" in said.out
    assert "9 of 24 flashes seen" in said.out
    assert "screen, camera, cable and decoding, which this cannot distinguish" in said.out
    assert "60.0 ms of it are before the stamp, 24.0 ms after" in said.out
    assert said.err.startswith("texelflow: few flashes were seen")
    show_latency({}, Console())
    assert capsys.readouterr().out == ""
