"""Threads beside the pipeline: order, errors and early ends are as promised."""

import threading
import time
from collections.abc import Iterator

import pytest

from tests.helpers.waiting import PATIENCE_S
from texelflow.app.threads import Worker, ahead


def test_a_worker_keeps_the_order() -> None:
    seen: list[int] = []
    worker = Worker(seen.append, depth=2)
    for number in range(100):
        worker.put(number)
    worker.finish()
    worker.drop()
    assert seen == list(range(100))


def test_a_worker_raises_what_the_work_raised() -> None:
    seen: list[int] = []

    def work(number: int) -> None:
        if number == 3:
            raise ValueError("three")
        seen.append(number)

    worker = Worker(work, depth=2)
    with pytest.raises(ValueError, match="three"):  # noqa: PT012 - one of these puts, who knows which
        for number in range(1000):
            worker.put(number)
    with pytest.raises(ValueError, match="three"):
        worker.finish()
    worker.drop()
    assert seen == [0, 1, 2]


class Held:
    """Work that begins, and goes on only when it is let go."""

    def __init__(self) -> None:
        self.begun, self.go_on = threading.Event(), threading.Event()
        self.seen: list[int] = []

    def work(self, number: int) -> None:
        self.begun.set()
        self.go_on.wait()
        self.seen.append(number)


def test_a_dropped_worker_ends_before_the_rest() -> None:
    held = Held()
    worker = Worker(held.work, depth=8)
    for number in range(8):
        worker.put(number)
    held.begun.wait()
    threading.Timer(0.05, held.go_on.set).start()
    worker.drop()
    assert held.seen == [0]


def test_the_newest_item_takes_the_place_of_those_that_wait() -> None:
    held = Held()
    worker = Worker(held.work, depth=2)
    worker.put(0)
    held.begun.wait()
    assert [worker.put_newest(number) for number in range(1, 6)] == [0, 1, 1, 1, 1]
    assert worker.waiting == 1
    held.go_on.set()
    worker.finish()
    assert held.seen == [0, 5]


def test_an_end_is_not_waited_for_and_closes_after_the_last_item() -> None:
    go_on = threading.Event()
    seen: list[str] = []

    def work(name: str) -> None:
        go_on.wait()
        seen.append(name)

    worker = Worker(work, close=lambda: seen.append("closed"))
    worker.put("first")
    worker.put("second")
    worker.end()
    assert not worker.join(0.01)
    assert not worker.ended
    go_on.set()
    assert worker.join(PATIENCE_S)
    assert seen == ["first", "second", "closed"]
    worker.check()


def test_what_closing_raises_is_raised_unless_the_work_failed_before() -> None:
    def fail(text: str) -> None:
        raise ValueError(text)

    worker: Worker[str] = Worker(lambda item: None, close=lambda: fail("close"))
    with pytest.raises(ValueError, match="close"):
        worker.finish()
    worker = Worker(fail, close=lambda: fail("close"))
    worker.put("work")
    with pytest.raises(ValueError, match="work"):
        worker.finish()


def test_an_observer_is_told_what_each_item_took() -> None:
    spans: list[tuple[int, float]] = []
    before_ns = time.perf_counter_ns()
    worker: Worker[float] = Worker(time.sleep, observe=lambda start_ns, took_ms: spans.append((start_ns, took_ms)))
    for _ in range(3):
        worker.put(0.002)
    worker.finish()
    after_ns = time.perf_counter_ns()
    assert len(spans) == 3
    assert all(took_ms >= 2 for _, took_ms in spans)
    times = [before_ns, *(t for start, took in spans for t in (start, start + round(took * 1e6))), after_ns]
    assert times == sorted(times)


def test_items_made_ahead_are_the_same() -> None:
    assert list(ahead(iter(range(100)))) == list(range(100))


def test_items_are_made_no_further_ahead_than_asked() -> None:
    made: list[int] = []

    def items() -> Iterator[int]:
        for number in range(100):
            made.append(number)
            yield number

    threads = {*threading.enumerate()}
    early = ahead(items(), depth=2)
    assert next(early) == 0
    time.sleep(0.2)
    assert len(made) <= 4
    early.close()
    assert len(made) < 100
    assert {*threading.enumerate()} <= threads


def test_what_making_raises_comes_after_the_items_before() -> None:
    def items() -> Iterator[int]:
        yield 1
        raise ValueError("broken")

    early = ahead(items())
    assert next(early) == 1
    with pytest.raises(ValueError, match="broken"):
        next(early)
