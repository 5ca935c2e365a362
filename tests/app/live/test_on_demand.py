"""A camera that nobody reads is closed after a while, and opened again for the first who does; time is the test's."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.helpers.clicks import write_clicks
from tests.helpers.waiting import PATIENCE_S, until
from texelflow.app.capture.capture import Capture
from texelflow.app.capture.opener import opener
from texelflow.app.capture.source import CaptureRequest
from texelflow.app.live.on_demand import OnDemand
from texelflow.app.live.recorded_sound import LiveSound
from texelflow.app.session.clock import Due

SECOND = 1_000_000_000
PATTERN = opener("pattern", CaptureRequest((160, 120), 60.0))


class Readers:
    """What the driver tells; `reopened` are the captures that were opened for it."""

    def __init__(self) -> None:
        self.count: int | None = 0
        self.questions = 0
        self.reopened: list[Capture] = []

    def __call__(self) -> int | None:
        self.questions += 1
        return self.count


@pytest.fixture
def readers() -> Readers:
    return Readers()


@pytest.fixture
def clock(readers: Readers) -> Iterator[OnDemand]:
    first = Capture(PATTERN)
    frame = first.first(PATIENCE_S)

    def reopen() -> Capture:
        readers.reopened.append(Capture(PATTERN, format=frame.picture.format))
        return readers.reopened[-1]

    demand = OnDemand(first, frame, reopen, readers)
    yield demand
    demand.close()
    first.close()


def next_of(clock: OnDemand) -> Due:
    """The next frame that comes, 20 s after the beginning."""
    found: list[Due] = []
    until(lambda: found, lambda: found.extend(due for due in [clock.due(20 * SECOND)] if due))
    return found[0]


def test_it_is_closed_while_nobody_reads_and_opened_for_the_first(clock: OnDemand, readers: Readers) -> None:
    camera = clock.capture
    assert clock.due(0), "the picture that was taken before"
    clock.due(4 * SECOND)
    assert not clock.closed, "programs open and close it while they look around"
    clock.due(5 * SECOND)
    assert clock.closed
    until(lambda: not camera._reader.alive)
    assert (clock.state.phase, clock.ended) == ("live", False)
    shown = [due.frame.index for at in range(50) if (due := clock.due((60 + at) * SECOND // 10 + SECOND))]
    assert 4 <= len(shown) <= 6, "its last picture, once a second"
    assert len(set(shown)) == 1
    readers.count = 1
    found = next_of(clock)
    assert len(readers.reopened) == 1
    assert found.cut
    assert found.frame.picture.format == camera.format
    assert not next_of(clock).cut


def test_it_stays_open_where_the_driver_tells_nothing(clock: OnDemand, readers: Readers) -> None:
    readers.count = None
    for second in range(60):
        clock.due(second * SECOND)
    assert not clock.closed
    assert readers.questions == 60


def test_the_driver_is_asked_twice_a_second(clock: OnDemand, readers: Readers) -> None:
    for step in range(100):
        clock.due(step * SECOND // 50)
    assert readers.questions == 4


def test_a_recording_that_begins_after_that_has_the_sound_of_the_open_camera(
    clock: OnDemand, readers: Readers, tmp_path: Path
) -> None:
    sound = LiveSound(clock, None)
    clock.due(0)
    clock.due(6 * SECOND)
    readers.count = 1
    next_of(clock)
    assert clock.capture is readers.reopened[0]
    assert sound.track() is None, "the pattern has none"
    clip = write_clicks(tmp_path / "clicks.mp4", 1)
    with Capture(opener(str(clip), CaptureRequest(loop=True, sound=True))) as heard:
        heard.first(PATIENCE_S)
        clock.capture.close()
        clock.capture = heard
        assert sound.track(), "that of the capture that is open now"
