"""Decides when each frame of a playback is due, and whether it is shown or dropped.

The policy. A frame is due when the one before it has been on the screen for the time between their stamps, divided by
the speed. A frame is dropped when the next one, decoded already, is due too, but never more than MOST_DROPPED in a row,
so that the picture lives on slow machines. A frame that comes late is shown at once. Up to LONGEST_LAG_MS the frames
after it catch up, which keeps time; beyond (a stall, a suspended machine, a decoder that is too slow) the clock is set
back instead and nothing is dropped for it: there is no burst of frames. Where every frame counts, as in a recording,
nothing is dropped and the clock waits for each frame. All times come from outside; a clock that stands still makes
nothing due, and one that runs backwards counts as standing still.
"""

from dataclasses import dataclass

MOST_DROPPED = 8  # in a row
LONGEST_LAG_MS = 500.0
SPEEDS = (0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 4.0)
SLOWEST, FASTEST = 0.01, 100.0
_LONGEST_GAP_MS = 10_000.0  # a gap in a file's time stamps longer than this is no picture but damage
_USUAL_GAP_MS = 40.0  # until two frames are known


def next_speed(speed: float, direction: int) -> float:
    """The neighbor of a speed among SPEEDS: the next faster for 1, the next slower for -1, and 1 for 0."""
    if direction == 0:
        return 1.0
    further = [s for s in SPEEDS if (s - speed) * direction > 1e-9]
    return min(further, key=lambda s: abs(s - speed), default=speed)


@dataclass(frozen=True)
class DueFrame:
    """A frame to be shown: how many before it were dropped, and for how many frame times it came too late."""

    dropped: int
    repeated: int


class Pacer:
    """Paces one playback. Times of frames are milliseconds of the recording, `now_ns` is any monotonic clock."""

    def __init__(self, speed: float = 1.0, keeps_all: bool = False) -> None:
        """`keeps_all`: nothing is ever dropped, the clock waits."""
        self.speed = speed
        self.keeps_all = keeps_all
        self._before_ms: float | None = None  # of the frame before, shown or dropped
        self._due_ns = 0  # when that frame was due
        self._gap_ms = _USUAL_GAP_MS
        self._now_ns = 0
        self._dropped = 0

    def restart(self, now_ns: int) -> None:
        """The picture on the screen counts as shown just now: after a pause, a stall, a change of speed."""
        self._due_ns = self._forward(now_ns)
        self._dropped = 0

    def wait_ns(self, time_ms: float, now_ns: int) -> int:
        """How long until the next frame is due; 0 if it is. The first frame is due at once."""
        return max(0, self._due(time_ms) - self._forward(now_ns))

    def take(self, time_ms: float, next_ms: float | None, now_ns: int) -> DueFrame | None:
        """What becomes of a frame that is due: None if it is dropped. `next_ms` is the one after it, if it is there."""
        now_ns, due_ns = self._forward(now_ns), self._due(time_ms)
        lag_ms = (now_ns - due_ns) / 1e6
        gap_ms = self._gap(time_ms)
        self._before_ms, self._gap_ms = time_ms, gap_ms
        self._due_ns = now_ns if self.keeps_all or lag_ms > LONGEST_LAG_MS else due_ns
        if next_ms is not None and self._may_drop(next_ms, now_ns):
            self._dropped += 1
            return None
        dropped, self._dropped = self._dropped, 0
        return DueFrame(dropped, max(0, int(lag_ms * self.speed / gap_ms)))

    def show_now(self, time_ms: float, now_ns: int) -> DueFrame:
        """The same for a frame that is shown at once whatever is due: one that was asked for."""
        self._before_ms, self._dropped = time_ms, 0
        self._due_ns = self._forward(now_ns)
        return DueFrame(0, 0)

    def _may_drop(self, next_ms: float, now_ns: int) -> bool:
        return not self.keeps_all and self._dropped < MOST_DROPPED and self._due(next_ms) <= now_ns

    def _due(self, time_ms: float) -> int:
        if self._before_ms is None:
            return self._now_ns
        return self._due_ns + int(self._gap(time_ms) / self.speed * 1e6)

    def _gap(self, time_ms: float) -> float:
        """Between a frame and the one before; where time goes back (a loop begins again), the gap before that."""
        gap_ms = _USUAL_GAP_MS if self._before_ms is None else time_ms - self._before_ms
        return gap_ms if 0 < gap_ms <= _LONGEST_GAP_MS else self._gap_ms

    def _forward(self, now_ns: int) -> int:
        self._now_ns = max(self._now_ns, now_ns)
        return self._now_ns
