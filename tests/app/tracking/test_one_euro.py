"""The one-euro filter: what it holds still, what it follows, and by which times."""

import math

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from texelflow.app.tracking.one_euro import OneEuro, OneEuroFilter, VisibilityFilter

_STEADY = OneEuro(0.05, 80.0)


def _textbook(values: list[float], times: list[float], form: OneEuro, size: float) -> list[float]:
    """The paper's appendix, a number at a time, with MediaPipe's speed between values as they came."""

    def alpha(cutoff: float, rate: float) -> float:
        tau = 1 / (2 * math.pi * cutoff)
        return 1 / (1 + tau * rate)

    filtered, speed = [values[0]], 0.0
    for k in range(1, len(values)):
        rate = 1 / (times[k] - times[k - 1])
        share = alpha(form.speed_cutoff, rate)
        speed = share * (values[k] - values[k - 1]) / size * rate + (1 - share) * speed
        share = alpha(form.least_cutoff + form.beta * abs(speed), rate)
        filtered.append(share * values[k] + (1 - share) * filtered[-1])
    return filtered


@given(
    st.lists(st.tuples(st.floats(0, 640, width=32), st.floats(0.001, 0.5)), min_size=1, max_size=20),
    st.floats(1, 500),
)
def test_it_is_the_papers_filter_with_uneven_times(steps: list[tuple[float, float]], size: float) -> None:
    values, times = [value for value, _ in steps], list(np.cumsum([step for _, step in steps]))
    held = OneEuroFilter(_STEADY)
    found = [
        float(held.smoothed(np.array([[v, 7]], np.float32), t, size)[0, 0]) for v, t in zip(values, times, strict=True)
    ]
    assert np.allclose(found, _textbook(values, times, _STEADY, size), rtol=1e-4, atol=1e-3)


@given(st.lists(st.floats(0, 640, width=32), min_size=1, max_size=20))
def test_what_it_gives_lies_among_what_it_got(values: list[float]) -> None:
    held = OneEuroFilter(_STEADY)
    for k, value in enumerate(values):
        found = float(held.smoothed(np.array([[value, 0]], np.float32), k / 30, 100)[0, 0])
        assert min(values) - 1e-3 <= found <= max(values) + 1e-3


def test_noise_becomes_still_and_motion_is_followed() -> None:
    generator = np.random.default_rng(1)
    held, still = OneEuroFilter(_STEADY), []
    for k in range(90):
        noisy = (generator.normal(0, 0.3, (5, 3)) + 100).astype(np.float32)
        still.append(held.smoothed(noisy, k / 30, 200))
    assert np.std(still[30:], axis=0).max() < 0.18  # of 0.3
    for k in range(90, 120):
        moving = np.full((5, 3), 100 + 10 * (k - 89), np.float32)
        followed = held.smoothed(moving, k / 30, 200)
    assert np.abs(followed - moving).max() < 1.5  # pixels, at 10 a frame


def test_times_that_do_not_go_on_and_things_without_a_size_are_left_as_they_are() -> None:
    held = OneEuroFilter(_STEADY)
    first, other = np.zeros((2, 2), np.float32), np.full((2, 2), 50, np.float32)
    held.smoothed(first, 1.0, 100)
    assert held.smoothed(other, 1.0, 100) is other
    assert held.smoothed(other, 0.5, 100) is other
    assert held.smoothed(other, 1.5, 0.0) is other
    assert held.smoothed(other, 1.5, math.nan) is other
    assert (held.smoothed(other, 1.5, 100) < 50).all()  # the others left nothing behind


def test_other_points_begin_anew() -> None:
    held = OneEuroFilter(_STEADY)
    held.smoothed(np.zeros((2, 2), np.float32), 0.0, 100)
    points = np.full((3, 2), 9, np.float32)
    assert held.smoothed(points, 0.1, 100) is points


def test_certainty_goes_slowly() -> None:
    held = VisibilityFilter(0.1)
    assert held.smoothed(np.ones(2, np.float32)).tolist() == [1, 1]
    assert np.allclose(held.smoothed(np.array([0, 1], np.float32)), [0.9, 1])
