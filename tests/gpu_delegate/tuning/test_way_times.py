"""What is measured of ways to run a model, and what is kept of it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.model_files.sketch import Sketch
from texelflow.gpu_delegate.base.errors import InferenceError, UnsupportedError
from texelflow.gpu_delegate.model.graph import Graph
from texelflow.gpu_delegate.reading.reader import read_model
from texelflow.gpu_delegate.tuning.way_costs import WAYS, RunChoice, WayName
from texelflow.gpu_delegate.tuning.way_decision import OpenWay, decide_way
from texelflow.gpu_delegate.tuning.way_times import (
    MeasuredWays,
    WayRuns,
    choice_key,
    keep_ways,
    kept_ways,
    measured_ms,
    parse_ways,
)

CHOICES = st.builds(RunChoice, st.sampled_from(WAYS), st.sampled_from([None, 1, 2]))
NEARLY = (b'{"taken": ["native", 0], "ms": [], "starts": 1}', b'{"taken": 1, "ms": [[1]], "starts": 1}')
FOUND = st.builds(MeasuredWays, CHOICES, st.dictionaries(CHOICES, st.floats(0, 1e6)))


def graph_of(channels: int = 3) -> Graph:
    m = Sketch(1)
    m.output(m.conv(m.image(40, 50, 3), channels, (3, 3)))
    return read_model(m.build())


def test_what_was_kept_is_found_again() -> None:
    found = MeasuredWays(RunChoice("native"), {RunChoice("native"): 0.5, RunChoice("tflite", 2): 0.75})
    key = choice_key(graph_of(), {"test": "kept"})
    assert kept_ways(key) is None
    keep_ways(key, found)
    assert kept_ways(key) == found
    assert choice_key(graph_of(4), {"test": "kept"}) != key
    assert choice_key(graph_of(), {"test": "other"}) != key


@given(
    st.binary(max_size=60)
    | st.sampled_from([b'{"taken": ["native", 0], "ms": [], "starts": 1}', b'{"taken": 1, "ms": [[1]]}'])
)
def test_anything_else_counts_as_nothing(data: bytes) -> None:
    assert parse_ways(data) is None


def test_a_way_that_fails_is_left_out() -> None:
    def fails() -> None:
        raise InferenceError("no\nnumber")

    times, failures = measured_ms({RunChoice("tflite", 1): lambda: None, RunChoice("native"): fails}, 0.0)
    assert {*times} == {RunChoice("tflite", 1)}
    assert failures == {RunChoice("native"): "no number"}


def test_a_decision_is_made_once() -> None:
    opened = list[str]()

    def way(name: str, choice: RunChoice, count: int) -> OpenWay:
        def open_way(_: tuple[int, ...]) -> WayRuns:
            opened.append(name)
            return {choice: lambda: sum(range(count))}

        return open_way

    ways: dict[WayName, OpenWay] = {
        "tflite": way("tflite", RunChoice("tflite", 1), 200_000),
        "native": way("native", RunChoice("native"), 10),
        "gl": way("gl", RunChoice("gl"), 10),
    }
    first = decide_way(graph_of(5), ways, "software", 1, 2, facts={"test": "once"})
    assert first.taken == RunChoice("native")
    assert opened == ["tflite", "native"], "a software renderer is not opened"
    assert {*first.times_ms} == {"tflite, 1 thread", "native"}
    again = decide_way(graph_of(5), ways, "software", 1, 2, facts={"test": "once"})
    assert opened == ["tflite", "native"], "nothing is measured again"
    assert (again.taken, again.times_ms) == (first.taken, first.times_ms)
    assert "an earlier start has measured" in again.reasons[0]


def test_what_is_close_is_measured_in_three_starts() -> None:
    """And the least of all counts: other work on the machine may have disturbed one."""
    opened = list[str]()
    ways: dict[WayName, OpenWay] = {
        "tflite": lambda _: {RunChoice("tflite", 1): lambda: opened.append("run")},
        "native": lambda _: {RunChoice("native"): lambda: opened.append("run")},
    }
    graph, facts = graph_of(8), {"test": "close"}
    key = ""
    for start in range(5):
        before = len(opened)
        found = decide_way(graph, ways, "software", 1, 2, facts=facts)
        key = choice_key(graph, {**facts, "tried": ("tflite", "native"), "threads": (1,), "exact": True})
        kept = kept_ways(key)
        assert kept is not None
        if kept.starts < 3:
            assert kept.starts == start + 1 or kept.is_settled
        if kept.starts == 3 and start > 2:
            assert len(opened) == before
        assert found.taken == kept.taken


@given(FOUND)
def test_any_finding_is_read_as_it_was_written(found: MeasuredWays) -> None:
    keep_ways("any finding", found)
    assert kept_ways("any finding") == found


def test_no_way_is_left() -> None:
    def refuses(_: tuple[int, ...]) -> WayRuns:
        raise UnsupportedError("not this one")

    with pytest.raises(UnsupportedError, match=r"nothing here runs this model: .*not this one"):
        decide_way(graph_of(6), {"tflite": refuses, "native": refuses}, "software", 1, 2)
