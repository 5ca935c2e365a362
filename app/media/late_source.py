"""Reads a range that begins late in a recording, without decoding all that is before it.

Decoding begins at the last key frame that needs none before it, where packets tell which frame of the file that is;
else at the start. A file that is damaged before the range may then have more frames than decode: its packets count.
"""

import math
import os
from bisect import bisect_left
from collections.abc import Callable, Iterator
from fractions import Fraction
from itertools import takewhile

from texelflow.gpu_delegate.base.errors import MediaError

from .frame_decoder import FrameDecoder
from .packet_index import PacketTimes, read_packet_times
from .recording import NumberedFrame, Position

_LATE_FRAMES, _LATE_S = 900, 30  # before that, decoding all is as quick as reading the packets first
_BEHIND = 64  # packets that are read beyond the range's first: those of frames before it are among them


class LateSource(FrameDecoder):
    """A FileSource whose range begins at a frame's number or a time."""

    def __init__(self, path: str | os.PathLike[str], first: Position, last: Position | None = None) -> None:
        super().__init__(path, first, last)

    @staticmethod
    def is_for(first: Position) -> bool:
        """Whether a range begins late."""
        return first > (_LATE_FRAMES if isinstance(first, int) else _LATE_S)

    def _numbered(self) -> Iterator[NumberedFrame]:
        found = self._from_key()
        return super()._numbered() if found is None else found

    def _from_key(self) -> Iterator[NumberedFrame] | None:
        """All frames from a key frame before those that are given; None where that is not to be had."""
        times = self._times_before_range()
        if times is None or not times.sound or times.pts[0] != self.first_pts:
            return None
        begin = self._first_number(times)
        if begin is None:
            return None
        begin -= self._given_before
        keys = [key for key, is_exact in enumerate(times.key_exact) if is_exact and times.key_pts[key] > times.pts[0]]
        before = list(takewhile(lambda key: times.key_pts[key] <= times.pts[max(0, begin)], keys))
        if not before:
            return None
        frames = self.jump(begin, times, before[-1:])
        if frames is None:
            self.begin_again()
            return None
        return ((index, pts, (pts - self.first_pts) * self.info.time_base, frame) for index, pts, frame in frames)

    def _first_number(self, times: PacketTimes) -> int | None:
        """That of the range's first frame; None where it is not among those."""
        first = self._first
        number = first if isinstance(first, int) else bisect_left(times.pts, self._pts_at(first))
        return number if number < len(times.pts) else None

    def _pts_at(self, seconds: Fraction) -> int:
        return self.first_pts + math.ceil(seconds / self.info.time_base)

    def _times_before_range(self) -> PacketTimes | None:
        try:
            return read_packet_times(self._path, self.offset, self._reads_enough())
        except MediaError:  # it vanished since it was opened
            return None

    def _reads_enough(self) -> Callable[[int], bool]:
        """Whether the frames up to the range's first have come, told the pts of one packet after the other."""
        first, count, behind = self._first, 0, 0

        def enough(pts: int) -> bool:
            nonlocal count, behind
            count += 1
            behind += count > first if isinstance(first, int) else pts > self._pts_at(first)
            return behind > _BEHIND

        return enough
