"""The watch on a process' memory."""

import time

import pytest

from texelflow.app.bench.measuring import memory_watch
from texelflow.app.bench.measuring.memory_watch import MemoryWatch
from texelflow.app.process_usage import ProcessUsage


def test_the_most_of_all_looks_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = iter([5, 9, 3, None])
    asked = list[int | None]()

    def usage(process_id: int | None) -> ProcessUsage:
        asked.append(process_id)
        return ProcessUsage(next(sizes, 4), None, None)

    monkeypatch.setattr(memory_watch, "process_usage", usage)
    with MemoryWatch(1, lambda: 7) as watch:
        while watch.looks < 4:
            time.sleep(0.001)
    assert watch.most_bytes == 9
    assert {*asked} == {7}
    assert watch.looks >= 5, "also when it ends"


def test_nothing_is_known_where_the_system_tells_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory_watch, "process_usage", lambda _: ProcessUsage(None, None, None))
    with MemoryWatch(50) as watch:
        pass
    assert watch.most_bytes is None
