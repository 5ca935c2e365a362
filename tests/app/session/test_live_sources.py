"""Streams that misbehave, in a real window: the last picture stays, a message says why, and they come back alone.

The capture's time is the tests' own: a source is in trouble when they say so, and not when the machine is busy. The
reader of a silent stream itself gives up after two seconds of real time, and then it is lost, not stalled.
"""

from collections.abc import Iterator
from itertools import pairwise
from time import sleep

import pytest

from tests.helpers.clips import number_of, numbered, write_clip
from tests.helpers.clocks import ManualClock
from tests.helpers.live_stage import SIZE, Script, Stage, Theatre
from tests.helpers.mjpeg_server import MjpegServer
from tests.helpers.running import times_of
from texelflow.app.outputs.output_worker import OutputCounts


@pytest.fixture
def server() -> Iterator[MjpegServer]:
    with MjpegServer(SIZE) as server:
        yield server


@pytest.fixture
def theatre(theatre: Theatre) -> Theatre:
    theatre.clock = ManualClock()
    return theatre


def lost_and_found(stage: Stage, server: MjpegServer, phases: set[str], message: str) -> Script:
    """Wait for a trouble that has begun, look at what is shown meanwhile, and for the server's good behavior again."""
    yield from stage.until(lambda: message in stage.hud.signal, message, 0.3 if "stalled" in phases else 0.0)
    assert stage.session.phase in phases
    picture, shown = stage.drawn(), len(stage.records)
    stage.press("o")
    yield from stage.until(lambda: stage.settings.overlay, "an answer to a key")
    yield from stage.until(lambda: not stage.session.controller.stale)
    assert len(stage.records) == shown
    assert (stage.drawn() == picture).all(), "the last picture stays"
    assert (stage.on_screen()[: SIZE[1] // 8] != 0).any()
    server.mode = "live"
    if server._listener is None:
        server.come_back()
    yield from stage.until(lambda: stage.session.phase == "live", "its return")
    yield from stage.frames(3)
    assert stage.hud.signal == ""


def test_it_stalls(theatre: Theatre, server: MjpegServer) -> None:
    def script(stage: Stage) -> Script:
        yield from stage.frames(3)
        server.mode = "stall"
        yield from lost_and_found(stage, server, {"stalled", "lost"}, "no picture from http://127.0.0.1:")

    theatre.run(script, camera=server.url, effect="none")


def test_its_picture_freezes(theatre: Theatre, server: MjpegServer) -> None:
    def script(stage: Stage) -> Script:
        yield from stage.frames(3)
        server.mode = "still"
        yield from stage.until(lambda: "has not changed for" in stage.hud.signal, pass_s=0.3)
        assert stage.session.phase == "frozen"
        server.mode = "live"
        yield from stage.until(lambda: stage.session.phase == "live")
        assert stage.hud.signal == ""

    theatre.run(script, camera=server.url)


def test_it_sends_garbage(theatre: Theatre, server: MjpegServer) -> None:
    def script(stage: Stage) -> Script:
        yield from stage.frames(3)
        server.mode = "garbage"
        yield from lost_and_found(stage, server, {"stalled", "lost"}, "trying again")

    theatre.run(script, camera=server.url, effect="none")


def test_it_is_gone_and_returns_and_a_recording_goes_on(theatre: Theatre, server: MjpegServer) -> None:
    def script(stage: Stage) -> Script:
        yield from stage.frames(5)
        server.refuse()
        yield from stage.until(lambda: "; trying again" in stage.hud.signal, "its loss")
        sleep(0.5)  # pictures have stamps of the machine's clock
        yield from lost_and_found(stage, server, {"lost"}, "; trying again")
        assert stage.capture.counts.lost == 1
        yield from stage.frames(5)

        counts.append(stage.parts.outputs.counts["recording"])

    counts: list[OutputCounts] = []
    records = theatre.run(script, camera=server.url, out="out.mp4", effect="none")
    times = times_of(theatre.folder / "out.mp4")
    assert len(times) >= len(records) - counts[0].dropped - 3
    assert times == sorted(set(times))
    assert max(later - time for time, later in pairwise(times)) > 0.4, "the gap is in it"


def test_the_line_is_cut(theatre: Theatre, server: MjpegServer) -> None:
    def script(stage: Stage) -> Script:
        yield from stage.frames(3)
        server.cut()
        yield from stage.until(lambda: server.connections == 2)
        yield from stage.frames(3)

    theatre.run(script, camera=server.url)


def test_its_pictures_get_another_size(theatre: Theatre, server: MjpegServer) -> None:
    def script(stage: Stage) -> Script:
        yield from stage.frames(3)
        server.size = (320, 120)
        yield from stage.until(lambda: "now sends 320x120, fitted into 160x120" in stage.words)
        yield from stage.frames(1)
        picture = stage.drawn()
        assert picture.shape[:2] == SIZE[::-1]
        assert picture[:25, :, :3].max() < 30, "a black bar"
        assert picture[40:80, 60:, :3].min() > 30
        server.size = SIZE
        yield from stage.until(lambda: "sends 160x120 again" in stage.words)

    theatre.run(script, camera=server.url, effect="none")


def test_one_that_is_gone_for_good_can_be_left(theatre: Theatre, server: MjpegServer) -> None:
    with theatre.opened(camera=server.url) as stage:

        def script() -> Script:
            yield from stage.frames(2)
            server.refuse()
            yield from stage.until(lambda: stage.session.phase == "lost")
            stage.press("q")
            yield from stage.until(lambda: False, "the end")

        acts = script()
        stage.session.run(lambda: next(acts, acts) is acts)
        assert stage.session.controller.left


def test_a_clip_begins_again_and_may_be_gone_then(theatre: Theatre) -> None:
    def script(stage: Stage) -> Script:
        seen = [0]
        while seen == sorted(seen):
            yield from stage.frames(1)
            seen.append(number_of(stage.drawn()))
        clip.rename(away)
        yield from stage.until(lambda: str(clip) in stage.hud.signal)
        assert stage.session.phase == "lost"
        away.rename(clip)
        yield from stage.until(lambda: stage.session.phase == "live")
        yield from stage.frames(2)

    clip = write_clip(theatre.folder / "short.mp4", numbered(10, *SIZE))
    away = clip.with_suffix(".away")
    records = theatre.run(script, camera=str(clip), effect="none")
    assert all(one.time_ms < other.time_ms for one, other in pairwise(records))
