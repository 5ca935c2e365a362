"""Blocks of sound with times become samples without gaps: silence, overlaps, drift and jitter, of any kind."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.helpers.markers import one_in
from texelflow.app.media.sound_blocks import RATE_HZ, SoundBlock, SoundHistory, duration_ns
from texelflow.app.media.sound_line import SoundLine, stretched

START_NS = 5_000_000_000
MS = 1_000_000


def block(at_ms: float, samples: int, value: float = 0.5) -> SoundBlock:
    return SoundBlock(START_NS + round(at_ms * MS), np.full((2, samples), value, np.float32))


def placed(line: SoundLine, *blocks: SoundBlock) -> list[float]:
    """The first channel of what comes out."""
    return [float(x) for each in blocks for part in line.place(each) for x in part[0]]


def test_what_begins_before_is_cut_and_a_gap_is_silence() -> None:
    line = SoundLine(START_NS)
    out = placed(line, block(-20, 480, 0.1), block(-5, 480, 0.2), block(5, 480, 0.3), block(115, 480, 0.4))
    values = np.array(out)
    assert len(values) == line.count == 240 + 480 + 4800 + 480
    assert [values[0], values[239], values[240], values[719]] == pytest.approx([0.2, 0.2, 0.3, 0.3])
    assert not values[720:5520].any()
    assert values[5520:] == pytest.approx(0.4)


def test_what_is_there_twice_is_left_out() -> None:
    line = SoundLine(START_NS)
    placed(line, block(0, 48_000))
    assert placed(line, block(200, 9600), block(900, 4800)) == []
    assert len(placed(line, block(920, 9600))) == 9600 - 3840
    assert line.count == RATE_HZ * 112 // 100


def test_silence_that_was_given_is_not_given_again() -> None:
    line = SoundLine(START_NS)
    placed(line, block(0, 480))
    assert sum(part.shape[1] for part in line.silence(3 * RATE_HZ)) == 3 * RATE_HZ
    assert len(placed(line, block(3000, 960))) == 480, "half of it was silence"
    assert list(line.silence(-5)) == []


@one_in(4, "drift", [-0.003, -0.0002, 0.0, 0.0002, 0.003])
@pytest.mark.parametrize("jitter_ms", [0, 8])
def test_a_clock_that_drifts_is_followed(drift: float, jitter_ms: float) -> None:
    line, noise = SoundLine(START_NS), np.random.default_rng(1)
    worst = 0.0
    for number in range(6000):  # a minute
        at_ms = number * 10 * (1 + drift)
        worst = max(worst, abs(at_ms - line.count / RATE_HZ * 1000))
        for _ in line.place(block(at_ms + noise.uniform(-jitter_ms, jitter_ms), 480)):
            pass
    assert worst < 20 + jitter_ms
    assert abs(line.count / RATE_HZ - 60 * (1 + drift)) < 0.025


@given(st.lists(st.tuples(st.integers(-2000, 8000), st.integers(0, 4800)), max_size=30))
def test_whatever_comes_is_placed_near_its_time(blocks: list[tuple[int, int]]) -> None:
    line, total = SoundLine(START_NS), 0
    for at_ms, samples in blocks:
        given_samples = sum(part.shape[1] for part in line.place(block(at_ms, samples)))
        total += given_samples
        assert line.count == total
        if given_samples:
            end_ms = at_ms + samples * 1000 / RATE_HZ
            assert line.count * 1000 / RATE_HZ <= max(end_ms, 0) + 61 + samples / 200 / 48
    most_ms = max((at_ms + samples / 48 for at_ms, samples in blocks), default=0)
    assert line.count <= max(0.0, most_ms + 90) * 48


@given(st.integers(0, 3000), st.sampled_from([-1, 1]))
def test_stretching_changes_the_length_and_not_the_sound(samples: int, sign: int) -> None:
    ramp = np.tile(np.linspace(-1, 1, samples, dtype=np.float32), (2, 1))
    out = stretched(ramp, sign)
    assert out.shape[1] - samples == (sign * max(1, samples // 200) if samples >= 2 else 0)
    if samples > 1:
        assert (np.diff(out[0]) >= 0).all()
        assert out[0, 0] == -1


def test_a_history_keeps_the_last_ten_seconds_and_numbers_what_it_had() -> None:
    history = SoundHistory()
    assert (history.expected, history.end_ns, history.since(0)) == (False, 0, ([], 0))
    for number in range(30):
        history.put([block(1000 * number, RATE_HZ, number)])
    kept, following = history.since(0)
    assert following == 30
    assert [each.samples[0, 0] for each in kept] == list(range(20, 30))
    assert [each.samples[0, 0] for each in history.since(28)[0]] == [28, 29]
    assert history.since(30) == ([], 30)
    assert history.end_ns == START_NS + duration_ns(30 * RATE_HZ)
    assert history.expected
    assert history.wait_until(history.end_ns, 0)
    assert not history.wait_until(history.end_ns + 1, 0.01)
    history.put(block(40_000, 1) for _ in range(10_000))
    assert len(history.since(0)[0]) == 4096
