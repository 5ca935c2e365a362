"""Decodes any frame of a recording by its number, exactly as decoding from the start would give it.

Packets state where frames are, the decoded index verifies it: after a jump to a key frame each frame that is given out
has the time stamp and the checksum that it has when the file is decoded from its start. Where they differ (open GOPs,
gradual refresh, damage), an earlier key frame is tried, and at last the file is decoded from its start and counted.
Only in a part of a long file that the decoded index has not reached yet frames are found by packets alone, if they are
consistent.
"""

import math
import os
import threading
import time
from bisect import bisect_left, bisect_right
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from types import TracebackType

from texelflow.gpu_delegate.base.errors import MediaError

from .decoded_index import DecodedIndex
from .frame_decoder import DecodedRun, FrameDecoder
from .media_inputs import input_kind
from .packet_index import MOST_FRAMES, PacketIndex, PacketTimes
from .sources import Position, VideoFrame

CACHE_BYTES = 128 << 20
_FEWEST_KEPT = 4
_SOON = 600  # frames ahead for which the decoded index is awaited instead of trusting packets
_PATIENCE_S = 3.0
_NEAR = 8  # frames ahead that are decoded rather than jumped to
_EARLIER = (0, 1, 4)  # key frames before the nearest, that are tried in turn
_ROUNDING_S = Fraction(1, 10**9)  # what a frame's own time_ms, as a float, may lack


class DecodingCancelled(Exception):  # noqa: N818 - not an error
    """Raised where a frame was requested and is no longer needed."""


class FrameCache:
    """The frames that were used last, within a number of bytes but at least a few."""

    def __init__(self, most_bytes: int) -> None:
        self._most_bytes = most_bytes
        self._frames: OrderedDict[int, VideoFrame] = OrderedDict()
        self._bytes = 0

    def __len__(self) -> int:
        return len(self._frames)

    def get(self, index: int) -> VideoFrame | None:
        """A frame by its number, which then counts as used last."""
        if index in self._frames:
            self._frames.move_to_end(index)
        return self._frames.get(index)

    def put(self, frame: VideoFrame) -> None:
        """Keep a frame; those that were not used for longest go."""
        self.drop(frame.index)
        self._frames[frame.index] = frame
        self._bytes += held_bytes(frame)
        while self._bytes > self._most_bytes and len(self._frames) > _FEWEST_KEPT:
            self.drop(next(iter(self._frames)))

    def drop(self, index: int) -> None:
        """Forget a frame; harmless when it is not there."""
        if index in self._frames:
            self._bytes -= held_bytes(self._frames.pop(index))

    def room(self, frame_bytes: int) -> int:
        """How many frames of a size it holds."""
        return max(_FEWEST_KEPT, self._most_bytes // max(1, frame_bytes))


def held_bytes(frame: VideoFrame) -> int:
    """What a frame keeps in memory."""
    return sum(plane.nbytes for plane in frame.picture.planes)


class SeekableSource:
    """A recording whose frames are taken by number, those from `first` to `last` as of FileSource, both included.

    `frame` and `first_index` belong to one thread; everything else may be asked by any, and never waits. Raises
    MediaError and UsageError as FileSource does. `info` and `format` are those of FileSource. Frames that were used
    last are kept, up to cache_bytes.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        first: Position = 0,
        last: Position | None = None,
        cache_bytes: int = CACHE_BYTES,
    ) -> None:
        self._path, self._first, self._last = os.fspath(path), first, last
        if input_kind(self._path) != "recording":
            raise MediaError(
                f"'{self._path}' cannot be watched in a window, which goes back and forth; name a recording"
            )
        self._reader = FrameDecoder(self._path, first, last)
        self.info, self.format = self._reader.info, self._reader.format
        self._first_pts = self._reader.first_pts
        self._run = self._reader.from_start()
        self._cache = FrameCache(cache_bytes)
        self._frame_bytes = self.format.sample_bytes * sum(math.prod(shape) for shape in self.format.plane_shapes)
        self._closed = False
        self._decoding = threading.Lock()  # FFmpeg crashes if the file is closed meanwhile
        self._detour = 0  # how many key frames earlier decoding has to begin in this file
        self._index = PacketIndex(self._path, self._reader.offset)
        self._decoded_index = DecodedIndex(self._path)

    def __enter__(self) -> "SeekableSource":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the file and end all threads; what another one is decoding is given up. Harmless when repeated."""
        self._closed = True
        self._index.close()
        self._decoded_index.close()
        with self._decoding:
            self._reader.close()

    def frame(self, index: int, unwanted: Callable[[], bool] = lambda: False) -> VideoFrame:
        """Frame `index` of the file. Raises IndexError where the range has none, MediaError where it cannot be had.

        Raises DecodingCancelled soon after `unwanted` says so, or the source was closed.
        """
        start_ns = time.perf_counter_ns()
        self._check_range(index)
        frame = self._cache.get(index)
        if frame is None or self._decoded_index.confirms(frame) is False:
            self._cache.drop(index)
            with self._decoding:
                frame = self._decode(index, lambda: self._closed or unwanted())
        self._check_range(index, frame.pts)
        return replace(frame, decode_start_ns=start_ns, decode_ms=(time.perf_counter_ns() - start_ns) / 1e6)

    def first_index(self, unwanted: Callable[[], bool] = lambda: False) -> int:
        """The number of the first frame of the range; where that begins at a time, waits until the file is known.

        Raises MediaError where the range has no frame, DecodingCancelled soon after `unwanted` says so.
        """
        if isinstance(self._first, int):
            index = self._first
        else:
            wanted = self._pts_at(self._first, math.ceil)
            self._index.wait(_PATIENCE_S, unwanted)
            while (index := bisect_left(self._pts(), wanted)) == len(self._pts()) and not self._decoded_index.ended:
                self._decoded_index.wait_for(index, _PATIENCE_S, unwanted)
                if unwanted():
                    raise DecodingCancelled
        try:
            self.frame(index, unwanted)
        except IndexError:
            raise MediaError(f"'{self._path}' has no frame in the range asked for; give another one") from None
        return index

    def _check_range(self, index: int, pts: int | None = None) -> None:
        """What is known of a range while the decoded index grows: numbers at once, times once the frame is there."""
        last = self.last_index
        first = self._first if isinstance(self._first, int) else 0
        early = pts is not None and isinstance(self._first, Fraction) and pts < self._pts_at(self._first, math.ceil)
        late = pts is not None and isinstance(self._last, Fraction) and pts > self._pts_at(self._last)
        if early or late or index < first or (last is not None and index > last):
            raise IndexError(f"'{self._path}' has no frame {index} in the range asked for")

    def _decode(self, index: int, unwanted: Callable[[], bool]) -> VideoFrame:
        if self._closed:
            raise DecodingCancelled
        for run in self._runs(index, unwanted):
            self._run = run
            if unwanted():
                raise DecodingCancelled
            frame = self._follow(run, index, unwanted)
            if frame is not None:
                return frame
            if run.from_start:
                break
        raise IndexError(f"'{self._path}' has no frame {index}")

    def _runs(self, index: int, unwanted: Callable[[], bool]) -> Iterator[DecodedRun]:
        """Where to decode from, the quickest first; the last is the file's start."""
        if not (self._run.from_start and 0 < index - self._run.position <= _NEAR):
            self._index.wait(_PATIENCE_S, unwanted)
            if index - len(self._decoded_index.pts) <= _SOON:
                self._decoded_index.wait_for(index, _PATIENCE_S, unwanted)
        if self._leads_to(index):
            yield self._run
        yield from self._jumps(index)
        reader = FrameDecoder(self._path)
        self._reader.close()
        self._reader = reader
        yield self._reader.from_start()

    def _leads_to(self, index: int) -> bool:
        """Whether decoding on is the quickest way to a frame."""
        ahead, key = index - self._run.position, self.keyframe_before(index)
        return 0 < ahead <= _NEAR or (ahead > 0 and (key is None or key <= max(0, self._run.position)))

    def _jumps(self, index: int) -> Iterator[DecodedRun]:
        """From the key frame before it, and from some before that."""
        known, packet_times = self._pts(), self._index.packet_times
        if packet_times is None or index >= len(known):
            return
        keys = bisect_right(packet_times.key_pts, known[index])
        for attempt in range(self._detour, len(_EARLIER)):
            at = keys - 1 - _EARLIER[attempt]
            if at <= 0:  # the start is as near
                break
            self._detour = attempt
            yield self._reader.from_key(packet_times.key_pts[at], packet_times.key_seeks[at], known)
        else:
            self._detour = 0

    def _follow(self, run: DecodedRun, index: int, unwanted: Callable[[], bool]) -> VideoFrame | None:
        """Decode up to a frame, and keep those on the way that there is room for. None where it does not come."""
        keep_from = index + 1 - self._cache.room(self._frame_bytes)
        failed = self._reader.damaged_frames
        start_ns = time.perf_counter_ns()
        for number, pts, decoded in run.frames:
            run.position = number
            if unwanted():
                raise DecodingCancelled
            if number > index:
                break
            if number < keep_from:
                continue
            frame = self._reader.shown(number, pts, decoded, start_ns)
            start_ns = time.perf_counter_ns()
            proven = True if run.from_start else self._decoded_index.confirms(frame)
            if proven or (proven is None and self._reader.damaged_frames == failed):
                self._cache.put(frame)
                if number == index:
                    return frame
            elif number == index:
                break
        return None

    # What is known of the file

    @property
    def position(self) -> int:
        """The number of the frame that was decoded last; -1 before the first."""
        return self._run.position

    @property
    def count(self) -> int | None:
        """How many frames the file has, whatever the range; None while nobody knows."""
        if self._decoded_index.complete:
            return len(self._decoded_index.pts)
        packet_times = self._packet_times()
        return len(packet_times.pts) if packet_times else None

    @property
    def wholly_decoded(self) -> bool:
        """Whether all is known by decoding; until then `count` is a claim of packets."""
        return self._decoded_index.complete

    def wait_wholly_decoded(self, timeout_s: float) -> bool:
        """Until all frames of the file were seen, or the time is over; says which."""
        self._decoded_index.wait_for(MOST_FRAMES, timeout_s)
        return self._decoded_index.complete

    @property
    def last_index(self) -> int | None:
        """The number of the last frame of the range; None while nobody knows."""
        count = self.count
        if isinstance(self._last, int):
            return self._last if count is None else min(self._last, count - 1)
        if count is None:
            return None
        return count - 1 if self._last is None else bisect_right(self._pts(), self._pts_at(self._last)) - 1

    @property
    def truncated(self) -> str | None:
        """What is missing at the end of a range that ends with the file. None: nothing, or unknown yet."""
        at_end = self._decoded_index.complete and self.last_index == len(self._decoded_index.pts) - 1
        return self._decoded_index.truncated if at_end else None

    def index_at(self, time_ms: float) -> int | None:
        """The frame that is on the screen at a time, the first of the file for times before it; None while unknown."""
        pts = self._pts_at(Fraction(time_ms) / 1000 + _ROUNDING_S)
        known = self._pts()
        if not self._decoded_index.complete and (not known or pts > known[-1]):
            return None
        return max(0, bisect_right(known, pts) - 1)

    def time_ms_of(self, index: int) -> float | None:
        """When a frame of the file is to be shown; None while unknown, and where there is no such frame."""
        known = self._pts()
        return float((known[index] - self._first_pts) * self.info.time_base * 1000) if 0 <= index < len(known) else None

    def keyframe_before(self, index: int) -> int | None:
        """The last key frame up to a frame; None while unknown."""
        known, packet_times = self._pts(), self._index.packet_times
        if packet_times is None or not 0 <= index < len(known):
            return None
        keys = bisect_right(packet_times.key_pts, known[index])
        return min(index, bisect_left(known, packet_times.key_pts[keys - 1])) if keys else 0

    def _pts_at(self, seconds: Fraction, round_: Callable[[Fraction], int] = math.floor) -> int:
        return self._first_pts + round_(seconds / self.info.time_base)

    def _pts(self) -> Sequence[int]:
        """Of all frames as far as they are known, by number: by packets or, where those proved wrong, as decoded."""
        packet_times = None if self._decoded_index.complete else self._packet_times()
        return packet_times.pts if packet_times else self._decoded_index.pts

    def _packet_times(self) -> PacketTimes | None:
        """The packets' times, if they are consistent in themselves and with what was decoded."""
        packet_times, seen = self._index.packet_times, len(self._decoded_index.pts)
        if (
            packet_times is None
            or not packet_times.sound
            or packet_times.pts[0] != self._first_pts
            or seen > len(packet_times.pts)
        ):
            return None
        return packet_times if not seen or packet_times.pts[seen - 1] == self._decoded_index.pts[seen - 1] else None
