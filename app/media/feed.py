"""Decodes a seekable recording a few frames ahead of where it is played.

Nothing here blocks the caller, which draws: a frame that is not decoded yet is reported as such.
"""

import threading
from collections import deque
from types import TracebackType
from typing import TypeAlias

from .seeking import DecodingCancelled, SeekableSource
from .sources import VideoFrame

Loop: TypeAlias = tuple[int, int | None]
"""Number of the first frame and of the last one, both included; None: the last of the range."""


def following(index: int, loop: Loop | None) -> int:
    """The number of the frame that is shown after a frame."""
    return loop[0] if loop and loop[1] is not None and index >= loop[1] else index + 1


class Feed:
    """Decodes a source on a thread of its own, from its first frame on, at most `depth` frames ahead.

    All methods are for one thread, and none of them waits for decoding but `wait` and `close`. The source is used by
    the feed alone until it is closed; whoever opened it closes it after that.
    """

    def __init__(self, source: SeekableSource, depth: int = 3) -> None:
        self._source, self._depth, self._usual_depth = source, depth, depth
        self._frames: deque[VideoFrame] = deque()
        self._next: int | None = None  # to be decoded; None: the first of the range
        self._given: int | None = None  # the last that was taken out, since the last seek
        self._turn = 0  # incremented when the current decoding is no longer needed
        self._loop: Loop | None = None
        self._at_end = self._closed = False
        self._error: BaseException | None = None
        self._changed = threading.Condition()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def __enter__(self) -> "Feed":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __len__(self) -> int:
        """How many frames wait to be taken."""
        return len(self._frames)

    def seek(self, index: int) -> None:
        """Go on at a frame; what was decoded ahead is dropped. Where the range has no such frame the feed ends."""
        with self._changed:
            self._given = None
            self._restart(index)

    @property
    def loop(self) -> Loop | None:
        """What is repeated: after its last frame, or one beyond, comes its first."""
        return self._loop

    @loop.setter
    def loop(self, loop: Loop | None) -> None:
        with self._changed:
            self._loop = loop
            if self._given is not None:
                self._restart(following(self._given, loop))

    def peek(self) -> VideoFrame | None:
        """The next frame; None while it is not decoded yet, or there is none. Raises what decoding raised."""
        with self._changed:
            if self._frames:
                return self._frames[0]
            if self._error is not None:
                raise self._error
            return None

    def waiting(self) -> tuple[VideoFrame, ...]:
        """Those that are decoded and not taken out yet, in their order."""
        with self._changed:
            return tuple(self._frames)

    def reach(self, depth: int) -> None:
        """Decode at least so many ahead from now on."""
        with self._changed:
            self._depth = max(self._usual_depth, depth)
            self._changed.notify_all()

    def knows_following(self, count: int = 1) -> bool:
        """Whether so many frames after the one that peek shows are decoded, or there are no more."""
        with self._changed:
            return len(self._frames) > count or self._at_end or self._error is not None

    def pop(self) -> VideoFrame | None:
        """Take the next frame out, as peek shows it."""
        frame = self.peek()
        if frame is not None:
            with self._changed:
                self._frames.popleft()
                self._given = frame.index
                self._changed.notify_all()
        return frame

    @property
    def ended(self) -> bool:
        """Whether all frames were taken, and no loop begins again."""
        with self._changed:
            return self._at_end and not self._frames

    def wait(self, timeout_s: float) -> None:
        """Until peek shows or raises something, the feed has ended, or the time is over."""
        with self._changed:
            self._changed.wait_for(lambda: self._frames or self._error or self._at_end, timeout_s)

    def close(self) -> None:
        """End the thread after what it is doing at the moment; harmless when repeated."""
        with self._changed:
            self._closed = True
            self._restart(0)
        self._thread.join()

    def _restart(self, index: int) -> None:
        self._frames.clear()
        self._next, self._error, self._at_end = index, None, False
        self._turn += 1
        self._changed.notify_all()

    def _run(self) -> None:
        while not self._closed:
            index, turn = self._task()
            try:
                self._deliver(turn, self._decode(index, turn))
            except DecodingCancelled:
                pass
            except IndexError:
                self._turn_around(turn)
            except BaseException as error:
                self._fail(turn, error)

    def _task(self) -> tuple[int | None, int]:
        """What to decode next, once there is room for it."""
        with self._changed:
            self._changed.wait_for(
                lambda: self._closed or not (len(self._frames) >= self._depth or self._at_end or self._error)
            )
            return self._next, self._turn

    def _decode(self, index: int | None, turn: int) -> VideoFrame:
        def unwanted() -> bool:
            return self._turn != turn

        if index is None:
            index = self._source.first_index(unwanted)
        return self._source.frame(index, unwanted)

    def _deliver(self, turn: int, frame: VideoFrame) -> None:
        with self._changed:
            if self._turn == turn:
                self._frames.append(frame)
                self._next = following(frame.index, self._loop)
                self._changed.notify_all()

    def _turn_around(self, turn: int) -> None:
        """After the last frame of the range: begin again, or end."""
        with self._changed:
            if self._turn == turn:
                again = self._loop[0] if self._loop else None
                self._at_end = again is None or self._next == again
                self._next = again if again is not None else self._next
                self._changed.notify_all()

    def _fail(self, turn: int, error: BaseException) -> None:
        with self._changed:
            if self._turn == turn:
                self._error = error
                self._changed.notify_all()
