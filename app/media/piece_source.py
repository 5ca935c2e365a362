"""Reads a range of a recording's frames, decoded from a key frame before them.

Their numbers, times and pictures are those of decoding from the start, as far as packets tell. What they cannot tell
(open groups of pictures, gradual refresh, damage) shows where pieces meet: the frames before a piece have to be those
that the piece before it ended with.
"""

import os
from bisect import bisect_left, bisect_right
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from texelflow.gpu_delegate.base.errors import MediaError

from ..picture.video_frame import VideoFrame
from .decoded_index import checksum
from .frame_decoder import DecodedFrame, FrameDecoder
from .packet_index import MOST_FRAMES, PacketTimes, read_packet_times
from .recording import NumberedFrame

OVERLAP = 16  # frames that are compared where pieces meet: H.264 and HEVC keep no more to decode others from
_EARLIER = (2, 4, 8)  # key frames before the nearest, that are tried in turn
_FAR = 900  # frames that are decoded in advance, at most, so as to begin at a key frame that needs none before it


class UnfitPieceError(MediaError):
    """What was decoded is not what packets promised: such a recording has to be rendered in one go."""


@dataclass(frozen=True)
class FrameIndex:
    """What the packets of a recording say of its frames. `obstacle` is why they cannot be counted on; None: they can.

    frames is 0 where there is an obstacle.
    """

    frames: int
    times: PacketTimes
    obstacle: str | None


def index_frames(path: str | os.PathLike[str]) -> FrameIndex:
    """Read all packets of a recording, and decode its first frame. Raises MediaError for what cannot be played."""
    name = os.fspath(path)
    with FrameDecoder(name) as decoder:
        times, first_pts = read_packet_times(name), decoder.first_pts
    obstacle = None
    if len(times.pts) >= MOST_FRAMES:
        obstacle = f"it has more than {MOST_FRAMES} frames"
    elif not times.sound:
        obstacle = "its packets do not say when each frame is shown"
    elif times.pts[0] != first_pts:
        obstacle = "its first packets are no frames"
    return FrameIndex(0 if obstacle else len(times.pts), times, obstacle)


def keys_to_begin_at(begin: int, times: PacketTimes) -> Sequence[int]:
    """Which of the key frames up to frame `begin` decoding is to begin at, the best first.

    The nearest that needs none before it, if it is near enough. Else there is no certainty: some before the nearest,
    for pictures that are refreshed bit by bit, are whole only then.
    """
    last = bisect_right(times.key_pts, times.pts[begin]) - 1
    near = bisect_left(times.key_pts, times.pts[max(0, begin - _FAR)])
    exact = next((key for key in range(last, near - 1, -1) if times.key_exact[key]), None)
    earlier = [last - step for step in _EARLIER if last >= step]
    return earlier if exact is None else [exact, *(key for key in earlier if key < exact)]


class PieceSource(FrameDecoder):
    """The frames first to last of a recording, both included; of a file whose frames can be counted on.

    `lead`, and `trail`, may be set before iteration: so many frames before the range and after it are given, too, and
    marked as of the lead. Iteration raises UnfitPieceError where frames are not those that packets promised. After it
    `decoded_head` and `decoded_tail` are checksums of the OVERLAP frames before the range, and of its own last ones;
    `damaged_frames` is of the range alone, `truncated` is told by the recording's last piece.
    """

    def __init__(self, path: str | os.PathLike[str], first: int, last: int, index: FrameIndex | None = None) -> None:
        """`index` is that of the same file, if it has been read already. Raises MediaError, UnfitPieceError."""
        index = index or index_frames(path)
        if index.obstacle or not 0 <= first <= last < index.frames:
            raise UnfitPieceError(f"frames {first} to {last} are not there: {index.obstacle or index.frames}")
        self._times = index.times
        self._range = first, last
        self._head, self._tail = deque[int](maxlen=OVERLAP), deque[int](maxlen=OVERLAP)
        super().__init__(path, first, last)

    @property
    def decoded_head(self) -> tuple[int, ...]:
        """Of the frames before the range, in their order."""
        return tuple(self._head)

    @property
    def decoded_tail(self) -> tuple[int, ...]:
        """Of the last frames of the range."""
        return tuple(self._tail)

    def __iter__(self) -> Iterator[VideoFrame]:
        """Yield the frames. Raises UnfitPieceError, and MediaError where one cannot be converted to RGB."""
        first, last = self._range
        for frame in super().__iter__():
            if frame.index < first:
                self._head.append(checksum(frame))
            elif frame.index <= last:
                self._tail.append(checksum(frame))
            if frame.index >= first - self.lead:
                yield frame

    @property
    def _given_before(self) -> int:
        return max(self.lead, OVERLAP)

    def _numbered(self) -> Iterator[NumberedFrame]:
        known, index = self._times.pts, -1
        for index, pts, frame in self._decoded_before(self._range[0] - self._given_before):
            if index >= len(known) or pts != known[index]:
                raise UnfitPieceError(f"'{self._path}': frame {index} is not where its packet says")
            yield index, pts, (pts - known[0]) * self.info.time_base, frame
        if index + 1 != len(known):
            raise UnfitPieceError(f"'{self._path}': {index + 1} of the {len(known)} frames of its packets are there")

    def _decoded_before(self, begin: int) -> Iterator[DecodedFrame]:
        """All frames from some frame up to `begin` on."""
        if begin <= 0 or not (keys := keys_to_begin_at(begin, self._times)):
            return ((index, pts, frame) for index, (pts, _, frame) in enumerate(self._timed()))
        found = self.jump(begin, self._times, keys)
        if found is None:
            raise UnfitPieceError(f"'{self._path}': no key frame before frame {begin} can be found")
        return found

    def _count_damage(self, pts: int | None) -> None:
        first, last = self._range
        known = self._times.pts
        if pts is not None and known[first] <= pts <= known[last]:
            super()._count_damage(pts)
