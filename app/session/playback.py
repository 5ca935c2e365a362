"""The frame clock of a recording in a window: play, pause, seek, speed and loop.

Nothing is drawn here. Each command answers with a few words for the screen, or with nothing to say. After a seek `lead`
frames before the one that was asked for come first.
"""

from dataclasses import replace

from texelflow.gpu_delegate.base.errors import TexelflowError

from ..media.feed import Feed
from ..media.seeking import SeekableSource
from ..picture.video_frame import VideoFrame
from .clock import LIVE, Due
from .pacing import Pacer, next_speed

_POLL_S = 0.004  # while a frame is being decoded
_WHILE_RECORDING = "not while recording"
_UNKNOWN = "not known yet: the file is still being read"


class Playback:
    """One recording being played: paused or not, at which speed, what is repeated, and what was sought."""

    ended = False  # the user may always go back
    state = LIVE

    def __init__(self, source: SeekableSource, feed: Feed, pacer: Pacer, loop: bool = False) -> None:
        """`pacer.keeps_all` says that it is being recorded: then there is no seeking. `loop`: the whole file, again."""
        self._source, self._feed, self.pacer = source, feed, pacer
        self.looks_ahead, self.lead, self._reach = False, 0, 0
        self.paused = False
        self.frame: VideoFrame | None = None  # the one on the screen
        self.marks: tuple[int | None, int | None] = (None, None)
        self.looped = loop
        self._sought: int | None = None  # asked for, not yet there
        self._sought_ms: float | None = None  # the time that was asked for, if it was one
        self._steps = 0  # frames to show at once, paused or not
        self._first: int | None = None  # the number of the first frame of all, once it has come
        self._from = 0  # where decoding began for what was sought
        self._last: int | None = None  # the number of the frame that the feed gave last
        self._cut = True  # whether the next frame has nothing to do with the one that was given before

    # What is to be shown --------------------------------------------------------------------------------------------

    @property
    def reach(self) -> int:
        """How many frames after the one that is due are decoded before it is given, of those that there are."""
        return self._reach

    @reach.setter
    def reach(self, frames: int) -> None:
        self._reach = frames
        self._feed.reach(frames + 2)

    @property
    def _knows_enough(self) -> bool:
        later = max(self._reach, int(self.looks_ahead))
        return not later or self._feed.knows_following(later)

    @property
    def keeps_all(self) -> bool:
        """Whether it is being recorded."""
        return self.pacer.keeps_all

    @property
    def complete(self) -> bool:
        """Whether it was shown to its end."""
        return self.at_end

    @property
    def budget_ms(self) -> float:
        """Between two frames at this speed."""
        return float(1000 / self._source.info.average_rate) / self.pacer.speed

    def camera(self, work: str) -> None:
        """There is none."""

    def due(self, now_ns: int) -> Due | None:
        """The frame that is to be shown now, if there is one. Raises what decoding raised."""
        while (frame := self._feed.peek()) is not None:
            if not self._knows_enough:
                return None
            due = self._take(frame, now_ns)
            if due is not None:
                self._cut = False
                if not due.lead:
                    self._arrive(frame)
                return due
            if self._feed.peek() is frame:  # neither shown nor dropped: not yet due
                return None
        if self.at_end:
            self.paused, self._steps = True, 0
            self._sought = self._sought_ms = None
        return None

    def wait_s(self, now_ns: int) -> float | None:
        """How long until `due` is worth another call; None if that depends on the user alone."""
        frame = self._feed.peek()
        if frame is None:
            return None if self.at_end or (self.paused and not self.busy) else _POLL_S
        if not self._knows_enough:
            return None if self.paused and not self.busy else _POLL_S
        if self.busy:
            return 0.0
        return None if self.paused else self.pacer.wait_ns(frame.time_ms, now_ns) / 1e9

    @property
    def at_end(self) -> bool:
        """Whether the last frame has been shown, and no other one will be by itself."""
        return self._feed.ended and self._feed.peek() is None

    @property
    def busy(self) -> bool:
        """Whether a frame was asked for that is not there yet."""
        return self._sought is not None or self._steps > 0

    def _arrive(self, frame: VideoFrame) -> None:
        self.frame = frame
        if self._first is None:
            self._first = frame.index
            if self.looped:
                self._set_loop()

    def _take(self, frame: VideoFrame, now_ns: int) -> Due | None:
        """What becomes of the next frame; None if it is dropped, or not yet due and still the next one."""
        if self._sought is not None and self._from <= frame.index < self._sought:
            return self._given(frame, 0, 0, lead=True)
        if self.busy:
            self._sought = self._sought_ms = None
            self._steps = max(0, self._steps - 1)
            shown = self.pacer.show_now(frame.time_ms, now_ns)
            return self._given(frame, shown.dropped, shown.repeated)
        if self.paused or self.pacer.wait_ns(frame.time_ms, now_ns) > 0:
            return None
        due = self._given(frame, 0, 0)
        following = self._following()
        taken = self.pacer.take(frame.time_ms, None if following is None else following.time_ms, now_ns)
        return None if taken is None else replace(due, dropped=taken.dropped, repeated=taken.repeated)

    def _given(self, frame: VideoFrame, dropped: int, repeated: int, lead: bool = False) -> Due:
        """Take the next frame out of the feed."""
        self._feed.pop()
        self._cut |= self._last is None or frame.index != self._last + 1
        self._last = frame.index
        following = self._following() if self.looks_ahead else None
        ahead = following if following and following.index == frame.index + 1 else None
        later = self._feed.waiting() if self._reach else ()
        upcoming = tuple(one for place, one in enumerate(later, 1) if one.index == frame.index + place)
        return Due(frame, ahead, dropped, repeated, self._cut, lead, upcoming)

    def _following(self) -> VideoFrame | None:
        """The frame that comes after the one that was taken, if it is there; what is wrong with it is raised later."""
        try:
            return self._feed.peek()
        except TexelflowError:
            return None

    # Commands of the user --------------------------------------------------------------------------------------------

    def pause(self, now_ns: int) -> str:
        """Pause, or play on; at the end, play again from the start."""
        if self.paused and self.at_end and not self.pacer.keeps_all:
            self.go(0)
        self.paused = not self.paused
        self.pacer.restart(now_ns)
        return "paused" if self.paused else ""

    def step(self, frames: int) -> str:
        """One frame forward or back, and pause there."""
        self.paused = True
        if frames > 0 and self._sought is None:
            self._steps += 1
            return ""
        return self.seek(self._here + frames)

    def seek(self, index: int) -> str:
        """To a frame, exactly; those outside the file become its first and last."""
        if self.pacer.keeps_all:
            return _WHILE_RECORDING
        self._seek(self._within(index), self.lead)
        return ""

    def preview(self, index: int) -> None:
        """To a frame as soon as it can be had: without those before it, by which masks become steady."""
        self._seek(self._within(index), lead=0)

    def play_on(self, now_ns: int) -> None:
        """From the frame on the screen, or the one that was sought."""
        self.paused = False
        self.pacer.restart(now_ns)

    def seek_by(self, seconds: float) -> str:
        """By some time, to the frame that is on the screen then."""
        time_ms = self._here_ms + seconds * 1e3
        return self._seek_time(time_ms, self._source.index_at(time_ms))

    def jump_by(self, seconds: float) -> str:
        """The same to the key frame at or before that time, where decoding begins without delay."""
        time_ms = self._here_ms + seconds * 1e3
        there = self._source.index_at(time_ms)
        key_frame = None if there is None else self._source.keyframe_before(there)
        forward_in_vain = seconds > 0 and key_frame is not None and key_frame <= self._here
        return self._seek_time(time_ms, there if key_frame is None or forward_in_vain else key_frame)

    def _seek_time(self, time_ms: float, index: int | None) -> str:
        if index is None:
            return _UNKNOWN
        answer = self.seek(index)
        self._sought_ms = time_ms if self._sought is not None else None
        return answer

    def go(self, end: int) -> str:
        """To the first frame (0) or to the last one (-1)."""
        if end == 0:
            return self.seek(self._first or 0)
        last = self._source.last_index
        return _UNKNOWN if last is None else self.seek(last)

    def change_speed(self, direction: int, now_ns: int) -> str:
        """To the next slower or faster one; 0: to normal."""
        self.pacer.speed = next_speed(self.pacer.speed, direction)
        self.pacer.restart(now_ns)
        return f"playback speed {self.pacer.speed:g}"

    def mark(self, which: int) -> str:
        """Repeat from here (0) or to here (1); once both are set it is repeated. Again: that mark is taken away."""
        if self.pacer.keeps_all:
            return _WHILE_RECORDING
        name = "ab"[which]
        index = self._here if self.marks[which] is None else None
        self.marks = (index, self.marks[1]) if which == 0 else (self.marks[0], index)
        self._set_loop()
        return f"{name} taken away" if index is None else f"{name}: frame {index}"

    def toggle_loop(self) -> str:
        """Repeat the whole file, or no more."""
        if self.pacer.keeps_all:
            return _WHILE_RECORDING
        self.looped = not self.looped
        self._set_loop()
        return "repeating" if self.looped else "not repeating"

    def describe(self, effect: str) -> str:
        """Where it is and what is set, in one line."""
        if self.frame is None:
            return ""
        count = self._source.count
        words = [
            "paused" if self.paused else f"{self.pacer.speed:g}x",
            f"{self.frame.time_ms / 1e3:.3f} s",
            f"frame {self.frame.index}" + ("" if count is None else f" of {count}"),
            effect,
            *(f"{name} {index}" for name, index in zip("ab", self.marks, strict=True) if index is not None),
        ]
        return " | ".join([*words, "repeating"] if self._feed.loop else words)

    # What is known of the whole ---------------------------------------------------------------------------------------

    @property
    def count(self) -> int | None:
        """How many frames the file has, whatever the range; None while nobody knows."""
        return self._source.count

    @property
    def last_ms(self) -> float | None:
        """When the last frame of the file is to be shown; None while nobody knows."""
        count = self._source.count
        return self._source.time_ms_of(count - 1) if count else None

    @property
    def range(self) -> tuple[int, int | None]:
        """The numbers of the first frame that is played and of the last one; None while nobody knows."""
        return self._first or 0, self._source.last_index

    def time_ms_of(self, index: int) -> float | None:
        """When a frame is to be shown; None while nobody knows."""
        return self._source.time_ms_of(index)

    def index_at_share(self, share: float) -> int | None:
        """The frame of the range that is nearest to a place of the whole file, from 0 to 1; None while unknown."""
        last_ms = self.last_ms
        index = None if last_ms is None else self._source.index_at(share * last_ms)
        return None if index is None else self._within(index)

    def key_frame_before(self, index: int) -> int | None:
        """The last key frame up to a frame; None while nobody knows."""
        return self._source.keyframe_before(index)

    @property
    def _here(self) -> int:
        """The number of the frame that is on the screen, or will be soon."""
        if self._sought is not None:
            return self._sought
        return self.frame.index if self.frame else 0

    @property
    def _here_ms(self) -> float:
        if self._sought_ms is not None:
            return self._sought_ms
        return self.frame.time_ms if self.frame else 0.0

    def _within(self, index: int) -> int:
        """The frame of the range that is nearest, as far as that is known."""
        begin, end = self.range
        return max(begin, index if end is None else min(index, end))

    def _seek(self, index: int, lead: int) -> None:
        self._sought, self._sought_ms, self._steps = index, None, 0
        self._from = self._lead_of(index, lead)
        self._feed.seek(self._from)

    def _lead_of(self, index: int, lead: int) -> int:
        """Where to begin to decode for a frame: some before it, unless the end of a loop lies between."""
        begin, end = max(self._first or 0, index - lead), self._feed.loop[1] if self._feed.loop else None
        return index if end is not None and begin <= end < index else min(begin, index)

    def _set_loop(self) -> None:
        """Between the marks if both are set, in whichever order; else over the whole file, if that is wanted."""
        begin, end = self.marks
        if begin is not None and end is not None:
            self._feed.loop = min(begin, end), max(begin, end)
        else:
            self._feed.loop = (self._first or 0, None) if self.looped else None
        if self._sought is not None:
            self._from = self._lead_of(self._sought, self.lead)
            self._feed.seek(self._from)
