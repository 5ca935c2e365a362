"""The loop of window and camera: simulated cameras of known delay, and one that sees the real window on its screen."""

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, replace
from time import perf_counter_ns, sleep

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.capture.capture import Capture
from app.capture.source import Shot
from app.frame.picture import PictureFormat, rgba_format, rgba_picture
from app.live.flashes import Change, delays_ms, period_ms
from app.live.latency import Latency, Plan, latency_test
from app.verbs.latency_test import summarize
from app.window.window import Window
from gpu_delegate.context import DRAWING
from gpu_delegate.errors import MediaError
from tests.display import SCREEN, Display

PLAN = Plan()
Times = npt.NDArray[np.float64]


def changes_of(plan: Plan) -> list[Change]:
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
        times = np.arange(self.phase * period, end_ms, period)
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
        return times, light + 40 + self.drift * times / end_ms + random.normal(0, self.noise, len(times))


def seen(camera: Simulated, plan: Plan = PLAN) -> list[float]:
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


@settings(deadline=None, max_examples=60)
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


@settings(deadline=None, max_examples=40)
@given(st.integers(0, 10_000), st.sampled_from([0.0, 0.5, 1.1, 2.3]), st.floats(5, 120))
def test_a_camera_that_looks_elsewhere_sees_nothing(seed: int, blinking_hz: float, fps: float) -> None:
    times, luma = replace(Simulated(share=0, noise=2, drift=50, seed=seed), fps=fps).pictures(changes_of(PLAN))
    blinking = 20 * (np.sin(times / 1000 * 2 * np.pi * blinking_hz + seed) > 0)
    assert delays_ms(changes_of(PLAN), times, luma + blinking) is None


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
        summarize(Latency((), 24, 500, 33.3), "a camera")
    with pytest.raises(MediaError, match=r"^no picture came from a camera"):
        summarize(Latency((), 24, 0, 0.0), "a camera")
    with pytest.raises(ValueError, match="no flash was seen"):
        _ = Latency((), 24, 0, 0.0).median_ms


class ScreenCamera:
    """A camera that is pointed at a screen, and delivers each picture some time after it took it.

    It keeps when it took what, and when it delivered that.
    """

    description, stamps, may_stand_still = "a camera at the screen", "driver", True

    def __init__(self, display: Display, delay_s: float, fps: float) -> None:
        self.fps, self._display, self._delay_ns = fps, display, int(delay_s * 1e9)
        self.format: PictureFormat = rgba_format((SCREEN[0] // 4, SCREEN[1] // 4))
        self._under_way: deque[tuple[int, npt.NDArray[np.uint8]]] = deque()
        self.delays_ms: list[float] = []
        self._due_ns = perf_counter_ns()

    def read(self) -> Shot:
        """Take pictures at its pace until one is due to be delivered."""
        while True:
            self._due_ns = max(self._due_ns + int(1e9 / self.fps), perf_counter_ns())
            sleep(max(0.0, (self._due_ns - perf_counter_ns()) / 1e9))
            self._under_way.append((perf_counter_ns(), self._look()))
            if perf_counter_ns() - self._under_way[0][0] >= self._delay_ns:
                break
        taken_ns, rgba = self._under_way.popleft()
        now_ns = perf_counter_ns()
        self.delays_ms.append((now_ns - taken_ns) / 1e6)
        return Shot(rgba_picture(rgba), taken_ns, now_ns, 0.0)

    def _look(self) -> npt.NDArray[np.uint8]:
        rgb = self._display.picture()[::4, ::4]
        return np.dstack([rgb, np.full(rgb.shape[:2], 255, np.uint8)])

    def close(self) -> None:
        """Nothing to give back."""


@pytest.fixture
def quick() -> Plan:
    return Plan(10, 0.2, 0.35, 0.3, 0.6)


@pytest.fixture
def window(display: Display) -> Iterator[Window]:
    with Window((320, 240), "flashing", DRAWING) as window:
        yield window


@pytest.mark.parametrize("delay_s", [0.02, 0.25])
def test_a_real_window_seen_through_a_known_delay(
    window: Window, display: Display, quick: Plan, delay_s: float
) -> None:
    camera = ScreenCamera(display, delay_s, 30)
    with Capture(lambda: camera) as capture:
        capture.first(10)
        latency = latency_test(window, capture, quick)
    assert latency
    true_ms = float(np.median(camera.delays_ms))
    assert true_ms >= 1000 * delay_s
    assert latency.lost <= quick.changes // 3
    assert abs(latency.median_ms - true_ms) <= latency.period_ms
    assert latency.to_stamp_ms is not None
    assert abs(latency.to_stamp_ms) <= latency.period_ms
    assert window.context.readback.bytes == 0


def test_q_ends_it(window: Window, display: Display, quick: Plan) -> None:
    camera = ScreenCamera(display, 0.0, 30)
    display.window("flashing")
    display.press("q")
    with Capture(lambda: camera) as capture:
        assert latency_test(window, capture, quick) is None
