"""The seek bar: shows and hides it as the mouse moves, and seeks when it is dragged.

What can be seen at once follows the mouse: a frame near a key frame, else that key frame, and the next one is asked for
only when the last one is there. Where the mouse rests, or lets go, the frame is the exact one.
"""

from collections.abc import Callable
from time import perf_counter_ns

from ..overlay.overlay_placement import ScreenArea
from ..overlay.timeline import BarState, Pointing, timeline
from ..window.fading import Fading
from .playback import Playback

_SHOWN_S = 2.5  # after the mouse has moved
_STEP_S = 1 / 60  # between two pictures of a bar that is dragged
_RESTS_S = 0.15
_NEAR = 24  # frames that are decoded in no time


def frame_to_preview(target: int, key_frame: int | None, rests: bool) -> int:
    """The frame to be shown while the mouse is over another one."""
    return target if rests or key_frame is None or target - key_frame <= _NEAR else key_frame


class SeekBar:
    """The bar of one playback. `alpha`: how much of it is to be seen; `held`: whether the mouse drags it."""

    def __init__(self, playback: Playback, time_ns: Callable[[], int] = perf_counter_ns) -> None:
        """`time_ns` tells how long it has been seen, and how long the mouse has rested."""
        self._playback, self._time_ns = playback, time_ns
        self._fading = Fading(_SHOWN_S, time_ns)
        self._stirred = False  # whether the mouse has moved since it was drawn
        self._over = False
        self._held: float | None = None  # share of the whole
        self._moved_ns = 0  # when it was dragged to there
        self._target: int | None = None  # the frame there
        self._asked: int | None = None  # the frame that was asked for last
        self._plays_on = False

    def stir(self) -> None:
        """The mouse has moved over the picture."""
        self._stirred = True
        self._fading.show()

    @property
    def held(self) -> bool:
        """Whether it is being dragged."""
        return self._held is not None

    @property
    def pointed(self) -> bool:
        """Whether the mouse is over it, or drags it."""
        return self._over or self.held

    @property
    def alpha(self) -> float:
        """From 0 to 1; paused, or under the mouse, it stays."""
        stays = self._playback.paused or self.pointed
        return 1.0 if stays and self._playback.frame else self._fading.alpha

    def changes_s(self, seen_s: float) -> float | None:
        """When it looks different from how it looked at a time, in seconds of its clock; None: it does not change."""
        if self.held or self._stirred:
            return seen_s + _STEP_S
        return None if self._playback.paused or self._over else self._fading.changes_s(seen_s)

    def draw(self, free: ScreenArea) -> None:
        """Within Gui.draw, into what is free of the picture."""
        self._stirred = False
        if self._playback.paused:
            self._fading.show()  # and stays for a while when it is played on
        self._follow(timeline(self._shown(), free, self.alpha))

    def _follow(self, pointing: Pointing) -> None:
        """Seek where the mouse is."""
        playback, before = self._playback, self._held
        self._over, self._held = pointing.over, None if pointing.ends else pointing.held
        if before is None and self._held is not None:
            self._plays_on, playback.paused, self._asked = not playback.paused, True, None
        if pointing.held is not None and pointing.held != before:
            self._moved_ns = self._time_ns()
            self._target = playback.index_at_share(pointing.held)
        if before is not None and self._held is None:
            self._let_go()
        elif self._target is not None and not playback.busy:
            rests = self._time_ns() - self._moved_ns >= _RESTS_S * 1e9
            frame = frame_to_preview(self._target, playback.key_frame_before(self._target), rests)
            if frame != self._asked:
                self._asked = frame
                playback.preview(frame)

    def _let_go(self) -> None:
        if self._target is not None:
            self._playback.seek(self._target)
        if self._plays_on:
            self._playback.play_on(perf_counter_ns())
        self._target = None
        self._fading.show()

    def _shown(self) -> BarState:
        """Of the frame that the mouse has chosen, or of the one on the screen."""
        playback = self._playback
        assert playback.frame is not None
        index, time_ms = playback.frame.index, playback.frame.time_ms
        if self._target is not None:
            index, time_ms = self._target, playback.time_ms_of(self._target) or time_ms
        whole_ms, count = playback.last_ms, playback.count
        left = _clock(time_ms) + ("" if whole_ms is None else f" / {_clock(whole_ms)}")
        speed = "" if playback.pacer.speed == 1 else f"   {playback.pacer.speed:g}x"
        words = f"frame {index}" + ("" if count is None else f" of {count}")
        right = f"{words}{speed}", words, f"frame {index}"
        if whole_ms is None:
            return BarState(None, self._tip, left, right)

        def share(frame: int | None, otherwise: float) -> float:
            at_ms = None if frame is None else playback.time_ms_of(frame)
            return otherwise if at_ms is None else at_ms / max(1e-3, whole_ms)

        begin, end = playback.range
        marks = tuple(share(mark, 0.0) for mark in playback.marks if mark is not None)
        place = self._held if self._held is not None else time_ms / max(1e-3, whole_ms)
        return BarState(place, self._tip, left, right, share(begin, 0.0), share(end, 1.0), marks)

    def _tip(self, share: float) -> str:
        index = self._playback.index_at_share(share)
        return "" if index is None else f"{_clock(self._playback.time_ms_of(index) or 0.0)}   frame {index}"


def _clock(time_ms: float) -> str:
    """1:23.456 for 83456 ms."""
    seconds, ms = divmod(round(time_ms), 1000)
    minutes, seconds = divmod(seconds, 60)
    hours, minutes = divmod(minutes, 60)
    return (f"{hours}:{minutes:02}" if hours else f"{minutes}") + f":{seconds:02}.{ms:03}"
