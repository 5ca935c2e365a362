"""Clocks for tests: one shows the time that a test sets, one makes little of what a busy machine takes."""

import threading
from time import perf_counter_ns

import pytest

from tests.helpers.waiting import PATIENCE_S
from texelflow.app.capture import supervise
from texelflow.app.capture.capture import Capture

_READING_NS = 100_000  # later than the one before, so that no two are the same
_STEP_S = 0.5
_MOST_NS = 25_000_000  # of a patient clock, between two readings


class ManualClock:
    """Called, it gives nanoseconds. It begins where perf_counter stands, and goes on by readings and `pass_s` alone."""

    def __init__(self) -> None:
        self._now_ns = perf_counter_ns()
        self._lock = threading.Lock()

    def __call__(self) -> int:
        with self._lock:
            self._now_ns += _READING_NS
            return self._now_ns

    def pass_s(self, seconds: float) -> None:
        """So many seconds later."""
        with self._lock:
            self._now_ns += int(seconds * 1e9)

    def pass_while_waiting(self, capture: Capture) -> None:
        """Half a second later, if nothing but time keeps a capture from opening its source again."""
        if "; trying again in " in capture.state.message:
            self.pass_s(_STEP_S)


class PatientClock:
    """Called, it gives nanoseconds, as perf_counter has them on a machine with nothing else to do.

    From a reading to the next one 25 ms pass at most: so a loop that looks at it comes around many times before a
    second is over, however long it is kept from that.
    """

    def __init__(self) -> None:
        self._now_ns = self._read_ns = perf_counter_ns()

    def __call__(self) -> int:
        before_ns, self._read_ns = self._read_ns, perf_counter_ns()
        self._now_ns += min(self._read_ns - before_ns, _MOST_NS)
        return self._now_ns


def wait_for_sources(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sources that are opened from now on are not taken for stalled, however late their pictures come."""
    monkeypatch.setattr(supervise, "patience_ns", lambda fps: round(PATIENCE_S * 1e9))
