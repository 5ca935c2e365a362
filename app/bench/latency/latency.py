"""Measures the latency of the loop of a window and a camera that is pointed at it.

The window turns white and black at irregular times, and the camera's pictures follow. From the swap to the decoded
picture it is the whole loop: screen, camera, cable and decoding. Their shares cannot be told apart, except
by the time stamps of a camera whose driver gives any. What live does from there to its own swap is not included.

It flashes at most 1.5 times a second, below the three that are held to be safe (WCAG 2.2, success criterion 2.3.1).
"""

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import accumulate
from time import perf_counter_ns
from typing import Protocol

import numpy as np

from texelflow.gpu_delegate.targets.gl import opengl

from ...capture.capture_reader import TimeSource
from ...picture.video_frame import VideoFrame
from ...session.motion import luma
from ...window.glfw_window import Window
from .flashes import LONGEST_MS, Change, delays_ms, period_ms

_PATIENCE_S = 0.005  # between two polls for a picture
_SEED = 20110316


class TimedCamera(Protocol):
    """The part of a Capture that is needed here."""

    @property
    def stamps(self) -> str: ...

    def take(self) -> VideoFrame | None: ...


@dataclass(frozen=True)
class FlashPlan:
    """When the window changes: after it was black for a while, so many times; then late pictures are waited for."""

    changes: int = 24
    shortest_s: float = 0.34
    longest_s: float = 0.8
    before_s: float = 1.0
    after_s: float = LONGEST_MS / 1e3

    @property
    def seconds(self) -> float:
        """How long it takes."""
        return self.due_ns()[-1] / 1e9

    def due_ns(self) -> list[int]:
        """From the start to each change, and to the end."""
        gaps = random.Random(_SEED)
        gaps_s = (gaps.uniform(self.shortest_s, self.longest_s) for _ in range(self.changes - 1))
        at_s = list(accumulate(gaps_s, initial=self.before_s))
        return [int(1e9 * seconds) for seconds in (*at_s, at_s[-1] + self.after_s)]


USUAL = FlashPlan()


@dataclass(frozen=True)
class Latency:
    """What came out. delays_ms has a time for each change that the camera saw, and is empty if it does not see any."""

    delays_ms: tuple[float, ...]
    changes: int
    pictures: int
    period_ms: float  # between two pictures; 0 for fewer than two
    stamps: str = "arrival"
    to_stamp_ms: float | None = None  # median from the swap to the camera's own time stamp, if it makes any

    @property
    def lost(self) -> int:
        """Changes that the camera did not see."""
        return self.changes - len(self.delays_ms)

    @property
    def median_ms(self) -> float:
        """Raises ValueError if none was seen."""
        return self.percentile_ms(50)

    def percentile_ms(self, percent: float) -> float:
        """Of the changes that were seen. Raises ValueError for none."""
        if not self.delays_ms:
            raise ValueError("no flash was seen")
        return float(np.percentile(self.delays_ms, percent))


@dataclass
class SeenPictures:
    """Pictures: when each was decoded, when it says that it was taken, and how bright it is."""

    arrived_ns: list[int] = field(default_factory=list)
    stamped_ns: list[int | None] = field(default_factory=list)
    luma: list[float] = field(default_factory=list)

    def add(self, frame: VideoFrame, now_ns: int) -> None:
        """One more; it arrived when it was decoded, or now where that was not measured."""
        decoded_ns = frame.decode_start_ns + int(frame.decode_ms * 1e6)
        self.arrived_ns.append(decoded_ns if frame.decode_start_ns else now_ns)
        self.stamped_ns.append(frame.captured_ns)
        self.luma.append(float(luma(frame.picture).mean()))


def latency_test(
    window: Window,
    camera: TimedCamera,
    plan: FlashPlan = USUAL,
    stopped: Callable[[], bool] = lambda: False,
    clock: TimeSource = perf_counter_ns,
) -> Latency | None:
    """Flash the window and watch the camera; None if the user closes the window or presses q.

    The clock is that of the camera's stamps. Raises what taking a picture raises.
    """
    start_ns, white = clock(), False
    *due_ns, end_ns = plan.due_ns()
    changes: list[Change] = []
    seen = SeenPictures()
    _show(window, white)
    while (now_ns := clock() - start_ns) < end_ns:
        if len(changes) < len(due_ns) and now_ns >= due_ns[len(changes)]:
            white = not white
            _show(window, white)
            changes.append(Change(clock() / 1e6, white))
        elif window.damaged and not window.minimized:
            _show(window, white)
        keys = window.events(_PATIENCE_S)
        if window.closed or stopped() or any({"q", "escape"} & {*key.names} for key in keys):
            return None
        while frame := camera.take():
            seen.add(frame, clock())
    return latency_of(changes, seen, camera.stamps)


def latency_of(changes: list[Change], seen: SeenPictures, stamps: str) -> Latency:
    """What changes of the window and pictures of it come to; `stamps` says where their stamps are from."""
    arrived_ms, brightness = np.array(seen.arrived_ns) / 1e6, np.array(seen.luma, np.float64)
    found = _known(delays_ms(changes, arrived_ms, brightness))
    to_stamp: list[float] = []
    stamped_ns = [time_ns for time_ns in seen.stamped_ns if time_ns is not None]
    if found and stamps != "arrival" and len(stamped_ns) == len(brightness) and min(np.diff(stamped_ns)) > 0:
        to_stamp = _known(delays_ms(changes, np.array(stamped_ns) / 1e6, brightness))
    own_ms = float(np.median(to_stamp)) if to_stamp else None
    return Latency(tuple(found), len(changes), len(brightness), period_ms(arrived_ms), stamps, own_ms)


def _known(delays: list[float | None] | None) -> list[float]:
    return [delay for delay in delays or () if delay is not None]


def _show(window: Window, white: bool) -> None:
    """Fill the window, and have it shown."""
    gl, level = window.context.gl, 1.0 if white else 0.0
    gl.glBindFramebuffer(opengl.DRAW_FRAMEBUFFER, window.framebuffer)
    gl.glClearColor(level, level, level, 1)
    gl.glClear(opengl.COLOR_BUFFER_BIT)
    window.swap()
