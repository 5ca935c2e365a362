"""A capture delivers the newest picture, says what is wrong, opens its source again, and can always be closed."""

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from time import perf_counter_ns, sleep

import numpy as np
import pytest

from tests.helpers.clips import number_of, numbered, write_clip
from tests.helpers.clocks import ManualClock, wait_for_sources
from tests.helpers.mjpeg_server import MjpegServer
from tests.helpers.time_codes import read_time_code
from tests.helpers.waiting import PATIENCE_S, until
from texelflow.app.capture.capture import TIME_BASE, Capture
from texelflow.app.capture.mailbox import Mailbox
from texelflow.app.capture.opener import opener
from texelflow.app.capture.pattern import open_pattern
from texelflow.app.capture.source import CapturedFrame, CaptureRequest, Source, SourceError, SourceLostError
from texelflow.app.capture.supervise import CaptureState
from texelflow.app.picture.picture import Picture, PictureFormat
from texelflow.app.picture.video_frame import VideoFrame
from texelflow.gpu_delegate.base.errors import UsageError

QUICK = CaptureRequest((64, 48), fps=200)


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


def taken(capture: Capture) -> VideoFrame:
    """The next picture, waited for."""
    found: list[VideoFrame] = []

    def took() -> bool:
        if frame := capture.take():
            found.append(frame)
        return bool(found)

    until(took)
    return found[0]


class Pipe:
    """A camera whose driver blocks for ever: one byte in a pipe is one picture. Implements Source."""

    format = PictureFormat((4, 4), "gray")
    description = "pipe, GREY 4x4"
    stamps = "driver"
    fps = 30.0
    may_stand_still = False

    def __init__(self) -> None:
        self._reading, self.writing = os.pipe()
        self.closed = False
        self.captured_ns: Callable[[], int | None] = perf_counter_ns

    def send(self, value: int) -> None:
        os.write(self.writing, bytes([value]))

    def read(self) -> CapturedFrame:
        data = os.read(self._reading, 1)
        if not data:
            raise SourceLostError("the pipe was closed")
        return CapturedFrame(Picture(self.format, (np.full((4, 4), data[0], np.uint8),)), self.captured_ns())

    def close(self) -> None:
        self.closed = True
        os.close(self._reading)


def piped(stack: ExitStack, clock: Callable[[], int] = perf_counter_ns) -> tuple[Capture, list[Pipe]]:
    """A capture of pipes, and all that it has opened so far: one. In the end nothing is stuck any more."""
    opened: list[Pipe] = []

    def open_next() -> Source:
        opened.append(Pipe())
        return opened[-1]

    def let_go() -> None:
        for pipe in opened:
            os.close(pipe.writing)

    capture = stack.enter_context(Capture(open_next, clock=clock))
    stack.callback(let_go)
    until(lambda: capture.description)
    return capture, opened


def test_the_newest_is_taken_once() -> None:
    box: Mailbox[int] = Mailbox()
    assert box.take() is None
    assert not box.put(1)
    assert box.put(2)
    assert (box.take(), box.take()) == (2, None)


def test_every_picture_is_counted(stack: ExitStack, monkeypatch: pytest.MonkeyPatch) -> None:
    wait_for_sources(monkeypatch)
    called = threading.Event()
    capture = stack.enter_context(Capture(opener("pattern", QUICK), called.set))
    frames = [capture.first(PATIENCE_S)] + [taken(capture) for _ in range(20)]
    assert called.is_set()
    for frame in frames:
        assert read_time_code(frame.rgba) == frame.index
        assert frame.captured_ns is not None
        assert frame.time_ms == float(frame.pts * TIME_BASE * 1000)
        assert frame.picture.format == capture.format
    until(lambda: capture.counts.captured > frames[-1].index + 5)
    capture.close()
    counts = capture.counts
    waiting = capture.take() is not None
    assert counts.captured == counts.used + counts.dropped + waiting
    assert (counts.used, counts.repeated, counts.lost) == (21, 0, 0)
    assert capture.description == "test pattern, I420 64x48, 200 fps"
    assert (capture.stamps, capture.state.phase) == ("made", "live")


def test_counts_since_the_last_time(stack: ExitStack, monkeypatch: pytest.MonkeyPatch) -> None:
    wait_for_sources(monkeypatch)
    capture, opened = piped(stack)
    total = 0
    for count in (1, 3, 2):
        for value in range(count):
            opened[0].send(10 * count + value)
        total += count
        until(lambda total=total: capture.counts.captured == total)  # type: ignore[misc]
        frame = taken(capture)
        assert frame.index == total - 1
        assert frame.picture.planes[0][0, 0] == 10 * count + count - 1
        fresh = capture.take_counts()
        assert (fresh.captured, fresh.used, fresh.dropped) == (count, 1, count - 1)
    assert capture.take() is None


@pytest.mark.parametrize(
    ("stamp", "label"),
    [(lambda: None, "arrival"), (lambda: perf_counter_ns() + 10**12, "arrival"), (lambda: 0, "arrival")],
    ids=["missing", "of the future", "of old"],
)
def test_stamps_that_cannot_be_are_not_believed(
    stack: ExitStack, stamp: Callable[[], int | None], label: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    wait_for_sources(monkeypatch)
    capture, opened = piped(stack)
    opened[0].captured_ns = stamp
    before_ns = perf_counter_ns()
    opened[0].send(1)
    frame = capture.first(PATIENCE_S)
    assert frame.captured_ns is not None
    assert before_ns <= frame.captured_ns <= perf_counter_ns()
    assert capture.stamps == label
    opened[0].captured_ns = perf_counter_ns
    opened[0].send(2)
    taken(capture)
    assert capture.stamps == "driver"


@pytest.mark.parametrize(
    ("camera", "message"),
    [
        ("missing.mp4", "'missing.mp4' does not exist"),
        ("http://127.0.0.1:9/", "127.0.0.1:9/ cannot be opened: the connection is refused"),
        (str(Path(__file__)), "is not a video"),
    ],
)
def test_what_cannot_be_opened_is_said_at_once(camera: str, message: str, stack: ExitStack) -> None:
    capture = stack.enter_context(Capture(opener(camera, CaptureRequest())))
    with pytest.raises(SourceError, match=message) as caught:
        capture.first(PATIENCE_S)
    assert capture.state.phase == "lost"
    assert capture.state.message == str(caught.value)
    assert "\n" not in str(caught.value)
    with pytest.raises(SourceError, match="not delivered a picture yet"):
        _ = capture.format


def test_unknown_kinds_of_cameras_are_refused() -> None:
    with pytest.raises(UsageError, match="file:// is not an address"):
        opener("file:///etc/passwd", CaptureRequest())
    with pytest.raises(UsageError, match="no camera is named"):
        opener("  ", CaptureRequest())


def test_a_driver_s_strangest_error_is_one_line(stack: ExitStack) -> None:
    def fail() -> Source:
        raise RuntimeError("OpenCV(4.9)\n  assertion failed")

    capture = stack.enter_context(Capture(fail))
    with pytest.raises(SourceError, match=r"RuntimeError OpenCV\(4.9\) assertion failed"):
        capture.first(PATIENCE_S)


def test_waiting_for_the_first_picture_ends(stack: ExitStack) -> None:
    capture, _ = piped(stack)
    with pytest.raises(SourceError, match=r"no picture came from pipe within 0.01 s"):
        capture.first(0.01)
    assert capture.state.message == "waiting for the first picture of pipe"


def test_a_driver_that_never_comes_back_is_given_up(stack: ExitStack) -> None:
    clock = ManualClock()
    capture, opened = piped(stack, clock)
    opened[0].send(1)
    capture.first(PATIENCE_S)
    clock.pass_s(1.4)
    assert capture.state == CaptureState("live")
    clock.pass_s(0.2)
    assert capture.state == CaptureState("stalled", "no picture from pipe for 2 s; trying again in 1 s")
    assert len(opened) == 1
    clock.pass_s(0.5)
    until(lambda: len(opened) == 2)
    opened[1].send(2)
    assert taken(capture).picture.planes[0][0, 0] == 2
    assert capture.state.phase == "live"
    assert (capture.counts.lost, opened[0].closed) == (1, False)
    opened[0].send(3)  # the driver comes back after all
    until(lambda: opened[0].closed)
    assert capture.take() is None
    capture.close()  # while the second one is stuck
    assert not opened[1].closed
    opened[1].send(4)
    until(lambda: opened[1].closed)
    assert capture.take() is None


def test_a_source_that_is_lost_comes_back(stack: ExitStack) -> None:
    server = stack.enter_context(MjpegServer())
    watched: list[Capture] = []  # it may call before it is known here
    states: list[CaptureState] = []
    clock = ManualClock()
    capture = Capture(opener(server.url, CaptureRequest()), lambda: states.extend(one.state for one in watched), clock)
    watched.append(stack.enter_context(capture))
    capture.first(PATIENCE_S)
    server.refuse()
    until(lambda: capture.state.phase == "lost")
    assert capture.state.message.startswith(f"{server.url} cut the connection")
    until(lambda: "connection is refused" in capture.state.message, lambda: clock.pass_while_waiting(capture))
    server.come_back()
    until(lambda: capture.state.phase == "live", lambda: clock.pass_while_waiting(capture))
    before = capture.counts.captured
    until(lambda: capture.counts.captured > before + 5)
    assert capture.counts.lost == 1
    assert {"lost", "live"} <= {state.phase for state in states}


def test_a_frozen_picture_is_noticed(stack: ExitStack) -> None:
    server = stack.enter_context(MjpegServer())
    clock = ManualClock()
    capture = stack.enter_context(Capture(opener(server.url, CaptureRequest()), clock=clock))
    capture.first(PATIENCE_S)
    server.mode = "still"
    repeated = capture.counts.repeated
    until(lambda: capture.counts.repeated > repeated + 2)
    assert capture.state == CaptureState("live")
    clock.pass_s(1.6)
    before = capture.counts.captured
    until(lambda: capture.counts.captured > before + 1)
    state = capture.state
    assert state.phase == "frozen"
    assert f"the picture from {server.url} has not changed for 2 s" in state.message
    server.mode = "live"
    until(lambda: capture.state.phase == "live")


def test_another_size_is_fitted_into_the_first(stack: ExitStack) -> None:
    server = stack.enter_context(MjpegServer((64, 48)))
    capture = stack.enter_context(Capture(opener(server.url, CaptureRequest())))
    capture.first(PATIENCE_S)
    server.size = (48, 96)
    until(lambda: capture.state.message)
    assert capture.state.message == f"{server.url} now sends 48x96, fitted into 64x48"
    frame = taken(capture)
    assert frame.picture.format == capture.format
    assert tuple(plane.shape for plane in frame.picture.planes) == capture.format.plane_shapes
    bars = frame.rgba[:, [0, 1, -2, -1], :3]
    assert not bars.any()
    assert frame.rgba[:, 32, :3].min() > 30
    server.size = (64, 48)
    until(lambda: capture.state.message.endswith("sends 64x48 again"))


def test_a_clip_plays_at_its_own_pace(tmp_path: Path, stack: ExitStack) -> None:
    path = write_clip(tmp_path / "a.mp4", numbered(8))
    capture = stack.enter_context(Capture(opener(str(path), CaptureRequest())))
    frames = [capture.first(PATIENCE_S)]
    while capture.state.phase != "ended":
        sleep(0.001)
        if frame := capture.take():
            frames.append(frame)
    assert [number_of(frame.rgba) for frame in frames] == [frame.index for frame in frames]
    due = [frame.captured_ns for frame in frames if frame.captured_ns is not None]
    for frame, due_ns in zip(frames, due, strict=True):
        assert due_ns - due[0] >= (frame.index - frames[0].index) * 33_000_000
    assert capture.state.message == f"{path} has come to its end"
    assert capture.stamps == "made"


def test_a_clip_that_is_looped_goes_on(tmp_path: Path, stack: ExitStack) -> None:
    path = write_clip(tmp_path / "a.mp4", numbered(3))
    capture = stack.enter_context(Capture(opener(str(path), CaptureRequest(loop=True))))
    capture.first(PATIENCE_S)
    frame = taken(capture)
    while frame.index < 9:
        frame = taken(capture)
        assert number_of(frame.rgba) == frame.index % 3
    os.unlink(path)
    until(lambda: capture.state.phase == "lost")
    assert "does not exist" in capture.state.message


def test_pictures_stay_as_they_were(stack: ExitStack) -> None:
    server = stack.enter_context(MjpegServer(fps=200))
    capture = stack.enter_context(Capture(opener(server.url, CaptureRequest())))
    frames = [capture.first(PATIENCE_S)] + [taken(capture) for _ in range(8)]
    before = [frame.picture.planes[0].tobytes() for frame in frames]
    until(lambda: capture.counts.captured > frames[-1].index + 20)
    assert [frame.picture.planes[0].tobytes() for frame in frames] == before


def test_the_pattern_leaves_out_what_is_too_late() -> None:
    source = open_pattern(CaptureRequest((64, 48), fps=100))
    source.read()
    sleep(0.1)
    shot = source.read()
    assert shot.convert is not None
    assert shot.skipped > 3
    assert read_time_code(shot.convert()) == shot.skipped + 1
