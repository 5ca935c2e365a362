"""Single dispatches are repeated until they can be timed, by the GPU's clock where it can be trusted."""

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.model_files.sketch import Sketch
from texelflow.gpu_delegate.reading.reader import read_model
from texelflow.gpu_delegate.targets.gl.context import Context
from texelflow.gpu_delegate.targets.gl.dispatch_times import measure, time_dispatches
from texelflow.gpu_delegate.targets.gl.runtime import Program, device_of
from texelflow.gpu_delegate.targets.gl.span_clock import (
    ClockChoice,
    ClockKind,
    DriverSigns,
    SpanClock,
    Trial,
    choose_clock,
    mean_seconds,
    next_repeats,
)
from texelflow.gpu_delegate.targets.glsl.compiled_graph import compile_graph

GOOD, ZERO, SILENT = Trial(0.0095, 0.01), Trial(0.0, 0.01), Trial(None, 0.01)


@given(st.integers(1, 2000), st.floats(0, 1))
def test_repeats_grow_until_the_span_is_long_enough(count: int, took_s: float) -> None:
    more = next_repeats(count, took_s, 0.002)
    assert count <= more <= max(count, min(2000, 8 * count + 1))
    assert (more > count) is (took_s < 0.002 and count < 2000)


@pytest.mark.parametrize(
    ("stamped_s", "wall_s", "said"), [(9.5, 10, True), (5, 10, True), (0.001, 10, False), (12, 10, False)]
)
def test_time_stamps_are_held_against_the_cpu(stamped_s: float, wall_s: float, said: bool) -> None:
    assert Trial(stamped_s, wall_s).is_plausible is said


@pytest.mark.parametrize(
    ("signs", "kind", "reason"),
    [
        (DriverSigns(is_software=True, trials=[GOOD]), "glFinish", "software renderer"),
        (DriverSigns(False, computes=False, trials=[GOOD]), "none", "executes no shaders"),
        (DriverSigns(False, counter_bits=0), "glFinish", "0 bits"),
        (DriverSigns(False, trials=[ZERO, SILENT]), "glFinish", "do not come"),
        (DriverSigns(False, trials=[SILENT, ZERO]), "glFinish", "say 0 ms for what takes 10 ms"),
        (DriverSigns(False, trials=[ZERO, GOOD]), "time stamps", ""),
    ],
)
def test_the_clock_is_chosen_by_what_the_driver_shows(signs: DriverSigns, kind: ClockKind, reason: str) -> None:
    choice = choose_clock(signs)
    assert choice.kind == kind
    assert reason in choice.reason
    assert choice.reason in choice.line


@pytest.mark.parametrize("kind", ["time stamps", "glFinish", "none"])
def test_each_dispatch_is_timed_by_any_clock(
    kind: ClockKind, context: Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Time stamps of a software renderer come, too, whatever they tell."""
    monkeypatch.setattr(
        "texelflow.gpu_delegate.targets.gl.span_clock.choose_clock", lambda signs: ClockChoice(kind, "of the test")
    )
    sketch = Sketch(1)
    x = sketch.conv(sketch.image(9, 13, 3), 7, (3, 3))
    sketch.output(sketch.resize(sketch.depthwise(x), (17, 21)), sketch.mean(x))
    compiled = compile_graph(read_model(sketch.build()), device_of(context))
    with Program(context, compiled) as program:
        times = time_dispatches(program, rounds=3)
        one_s = measure(SpanClock(context), program, 0, 5)
    assert times.clock == ClockChoice(kind, "of the test").line
    rows = 0 if kind == "none" else len(compiled.kernels)
    assert len(times.least_ms) == len(times.median_ms) == len(times.repeats) == rows
    assert all(0 < least <= middle for least, middle in zip(times.least_ms, times.median_ms, strict=True))
    assert all(1 <= count <= 2000 for count in times.repeats)
    assert (one_s is None) is (kind == "none")
    assert kind == "none" or max(times.repeats) > 1, "what takes microseconds is repeated"


@pytest.mark.parametrize(("each_s", "count"), [(0.01, 1), (1e-5, 240), (1e-9, 2000)])
def test_what_is_short_is_repeated_until_a_span_is_long(
    each_s: float, count: int, context: Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock, issued = SpanClock(context, ClockChoice("time stamps")), list[int]()

    def seconds(commands: Callable[[], None]) -> float:
        commands()
        return issued[-1] * each_s

    monkeypatch.setattr(clock, "seconds", seconds)
    repeats, mean_s = mean_seconds(clock, issued.append, 0.002)
    assert repeats == count
    assert mean_s == pytest.approx(each_s)
    assert issued[::2] == [1] * (len(issued) // 2), "one in front of each span does not count"


def test_a_gpus_time_stamps_are_tried_before_they_are_believed(
    context: Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Here the renderer is a software one, whose stamps may tell nothing: what matters is that it computes."""
    monkeypatch.setattr(Context, "is_software", False)
    assert SpanClock(context).choice.kind != "none"
    monkeypatch.setattr("texelflow.gpu_delegate.targets.gl.span_clock._WRITTEN", 4.0)
    assert SpanClock(context).choice == ClockChoice("none", "the driver executes no shaders")
