"""Decodes a recording from its start or from a key frame on, with the number of each frame."""

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TypeAlias

import av

from .packet_index import PacketTimes
from .sources import FileSource, VideoFrame

DecodedFrame: TypeAlias = tuple[int, int, av.VideoFrame]
"""A decoded frame with its number in the file and its pts."""


@dataclass
class DecodedRun:
    """Frames in the order of display, from somewhere on: `position` is the number of the last one that came."""

    frames: Iterator[DecodedFrame]
    position: int = -1
    from_start: bool = False


class FrameDecoder(FileSource):
    """A FileSource whose decoding may also begin at a key frame."""

    @property
    def offset(self) -> int:
        """The offset that is subtracted from time stamps of packets."""
        return (self._first_frame.dts or 0) if self._container.format.name == "avi" else 0

    def from_start(self) -> DecodedRun:
        """All frames, counted; once, and before any jump."""
        timed = ((index, pts, frame) for index, (pts, _, frame) in enumerate(self._timed()))
        return DecodedRun(timed, from_start=True)

    def from_key(self, key_pts: int, seek: int, known: Sequence[int]) -> DecodedRun:
        """Those from a key frame on, as long as each is the next of the pts that are known of the file's frames."""
        return DecodedRun(self._known_from(key_pts, seek, known))

    def _known_from(self, key_pts: int, seek: int, known: Sequence[int]) -> Iterator[DecodedFrame]:
        index: int | None = None
        for pts, frame in self.decoded_from(key_pts, seek):
            found = bisect_left(known, pts)
            if found == len(known) or known[found] != pts or (index is not None and found != index + 1):
                return
            index = found
            yield index, pts, frame

    def decoded_from(self, key_pts: int, seek: int) -> Iterator[tuple[int, av.VideoFrame]]:
        """Each frame from a key frame on with its pts; none where the file does not allow to go there."""
        try:
            self._container.seek(seek, stream=self._stream)
        except (av.FFmpegError, OverflowError):
            return
        pts: int | None = None
        for frame in self._decode():
            stamp = self._stamp(frame)
            if pts is None and (stamp is None or stamp < key_pts):
                continue  # leading pictures, whose references are not there
            pts = self._pts_after(pts, frame)
            yield pts, frame

    def shown(self, index: int, pts: int, frame: av.VideoFrame, start_ns: int) -> VideoFrame:
        """What FileSource gives for a frame; its decoding began at start_ns."""
        time_ms = float((pts - self.first_pts) * self.info.time_base * 1000)
        return self.maker.make(index, pts, time_ms, frame, start_ns)

    @property
    def first_pts(self) -> int:
        """Of frame 0."""
        return self._pts_after(None, self._first_frame)

    def jump(self, begin: int, times: PacketTimes, keys: Iterable[int]) -> Iterator[DecodedFrame] | None:
        """Frames from one up to `begin` on, as the first of the key frames `keys` gives them; None if none does."""
        for key in keys:
            self._packets = 0
            decoded = self.decoded_from(times.key_pts[key], times.key_seeks[key])
            first = next(decoded, None)
            index = bisect_left(times.pts, first[0]) if first else begin + 1
            if first and index <= begin and times.pts[index] == first[0]:
                self._packets += times.key_packets[key]
                return ((number, *each) for number, each in enumerate(chain([first], decoded), index))
        return None

    def begin_again(self) -> None:
        """Back to the start, wherever decoding is. Raises MediaError."""
        self._container.close()
        self._begin()
