"""Which ways of running a model are tried, and which one is taken: pure decisions, for all costs and times."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.model_files.quantized_models import small_quantized
from tests.model_files.sketch import Sketch
from texelflow.gpu_delegate.reading.reader import read_model
from texelflow.gpu_delegate.tuning.way_costs import (
    GAIN,
    GL_WAYS,
    WAYS,
    CountedMs,
    ModelWork,
    Renderer,
    RunChoice,
    WayName,
    computes_bytes,
    counted_ms,
    eligible_ways,
    model_work,
    quickest,
    still_close,
    thread_candidates,
    worth_measuring,
)

MS = st.floats(1e-3, 1e4)
BOUNDS = st.tuples(MS, MS).map(lambda pair: CountedMs(min(pair), max(pair)))
CHOICES = st.builds(RunChoice, st.sampled_from(WAYS), st.sampled_from([None, 1, 2]))
COUNTS = st.integers(0, 1 << 40)
WORK = st.builds(ModelWork, st.integers(1, 5000), COUNTS, COUNTS, COUNTS)
TINY, LARGE = ModelWork(2, 100, 400, 100), ModelWork(100, 10**9, 10**8, 10**6)


@given(st.dictionaries(st.sampled_from(WAYS), BOUNDS, min_size=1))
def test_what_is_left_out_cannot_win(counted: dict[WayName, CountedMs]) -> None:
    tried = worth_measuring(counted)
    assert tried
    for way in counted.keys() - {*tried}:
        assert any(counted[other].most < counted[way].least for other in tried)
    assert min(counted, key=lambda way: counted[way].least) in tried


@given(st.dictionaries(CHOICES, MS, min_size=1))
def test_what_is_taken_is_nearly_the_quickest(times: dict[RunChoice, float]) -> None:
    taken = quickest(times)
    least = min(times.values())
    assert least >= GAIN * times[taken] * (1 - 1e-9)
    plainer = [each for each in times if WAYS.index(each.way) < WAYS.index(taken.way)]
    assert all(times[each] > times[taken] for each in plainer)


def test_equal_ways_leave_it_to_tensorflow_lite() -> None:
    same = {RunChoice(way): 1.0 for way in WAYS} | {RunChoice("tflite", 1): 1.0, RunChoice("tflite", 2): 1.0}
    assert quickest(same).way == "tflite"
    assert quickest({RunChoice("tflite", 1): 1.0, RunChoice("tflite", 2): 0.98}).threads == 1


@settings(max_examples=50)
@given(WORK, WORK, st.sampled_from(WAYS), st.integers(1, 64))
def test_bounds_are_ordered_and_grow_with_work(one: ModelWork, other: ModelWork, way: WayName, threads: int) -> None:
    both = ModelWork(*(a + b for a, b in zip(vars(one).values(), vars(other).values(), strict=True)))
    counted, more = counted_ms(way, one, threads), counted_ms(way, both, threads)
    assert 0 < counted.least <= counted.most
    assert more.least >= counted.least
    assert more.most >= counted.most


def test_a_gpu_is_not_opened_for_a_tiny_model() -> None:
    def tried(work: ModelWork) -> tuple[WayName, ...]:
        return worth_measuring({way: counted_ms(way, work, 2) for way in ("tflite", "native", "gl")})

    assert tried(TINY) == ("tflite", "native")
    assert tried(LARGE) == ("tflite", "native", "gl")


@given(
    st.sets(st.sampled_from(WAYS), min_size=1),
    st.sampled_from(["none", "software", "hardware"]),
    st.booleans(),
    st.booleans(),
)
def test_one_way_is_always_left_and_the_others_have_reasons(
    can: set[WayName], renderer: Renderer, has_bytes: bool, exact: bool
) -> None:
    left, reasons = eligible_ways(can, renderer, has_bytes, exact)
    assert left
    assert {*left, *reasons} == can
    others = can - {*GL_WAYS}
    if renderer != "hardware" and others:
        assert not {*left} & {*GL_WAYS}
    if has_bytes and exact and {*left} != {"tflite"}:
        assert "tflite" not in left


def test_threads_that_are_asked_for_are_the_only_ones() -> None:
    assert thread_candidates(LARGE, 3, 2) == (3,)
    assert thread_candidates(TINY, None, 2) == (1,)
    assert thread_candidates(ModelWork(9, 10**8, 10**7, 10**5), None, 2) == (1, 2)
    assert thread_candidates(ModelWork(9, 10**8, 10**7, 10**5), None, 1) == (1,)


@given(st.dictionaries(CHOICES, st.floats(1e-6, 10), min_size=1))
def test_the_quickest_first_run_is_followed_by_others(first: dict[RunChoice, float]) -> None:
    close = still_close(first, 0.03, 1.6)
    assert min(first, key=lambda each: first[each]) in close
    assert all(first[each] <= max(0.03, 4 * min(first.values())) for each in close)


def test_what_a_graph_has_to_do() -> None:
    m = Sketch(1)
    m.output(m.conv(m.image(4, 5, 3), 6, (3, 3)))
    graph = read_model(m.build())
    work = model_work(graph)
    assert (work.operators, work.macs) == (1, 4 * 5 * 6 * 9 * 3)
    assert work.border_bytes == 4 * (4 * 5 * 3 + 4 * 5 * 6)
    assert not computes_bytes(graph)
    assert computes_bytes(read_model(small_quantized()))


def test_ways_without_any_to_choose_from() -> None:
    with pytest.raises(ValueError, match="not enough values"):
        quickest({})
