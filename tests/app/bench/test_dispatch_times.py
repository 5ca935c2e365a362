"""Single dispatches are repeated until a span tells how long one takes, by the GPU's clock where that can be."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.sketch import Sketch
from texelflow.app.bench import dispatch_times
from texelflow.app.bench.dispatch_times import TIME_STAMPS, is_plausible, next_repeats, time_dispatches
from texelflow.gpu_delegate.context import Context
from texelflow.gpu_delegate.program import compile_graph
from texelflow.gpu_delegate.reading.reader import read_model
from texelflow.gpu_delegate.runtime import Program, device_of

LIES = [(-9.0, 0.0), (2.0, 3.0)]  # parts of the CPU's time between which no clock is


@given(st.integers(1, 2000), st.floats(0, 1))
def test_repeats_grow_until_the_span_is_long_enough(count: int, took_s: float) -> None:
    more = next_repeats(count, took_s)
    assert count <= more <= max(count, min(2000, 8 * count + 1))
    assert (more > count) is (took_s < 0.002 and count < 2000)


@pytest.mark.parametrize(
    ("stamped_ms", "wall_ms", "said"), [(9.5, 10, True), (5, 10, True), (0.001, 10, False), (12, 10, False)]
)
def test_time_stamps_are_held_against_the_cpu(stamped_ms: float, wall_ms: float, said: bool) -> None:
    assert is_plausible(stamped_ms, wall_ms) is said


@pytest.mark.parametrize("plausible", [(0.0, 9.0), *LIES])
def test_each_dispatch_is_timed_by_either_clock(
    plausible: tuple[float, float], context: Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dispatch_times, "_PLAUSIBLE", plausible)
    sketch = Sketch(1)
    x = sketch.conv(sketch.image(9, 13, 3), 7, (3, 3))
    sketch.output(sketch.resize(sketch.depthwise(x), (17, 21)), sketch.mean(x))
    compiled = compile_graph(read_model(sketch.build()), device_of(context))
    with Program(context, compiled) as program:
        times = time_dispatches(program, rounds=3)
    assert (times.clock == TIME_STAMPS) is (plausible not in LIES)
    assert plausible not in LIES or ("two glFinish" in times.clock and "time stamps say" in times.clock)
    assert len(times.least_ms) == len(times.median_ms) == len(times.repeats) == len(compiled.kernels)
    pairs = zip(times.least_ms, times.median_ms, strict=True)
    assert all(0 < least <= middle for least, middle in pairs)
    assert all(1 <= count <= 2000 for count in times.repeats)
    assert max(times.repeats) > 1, "what takes microseconds is repeated"
