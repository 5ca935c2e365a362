"""A recording's packets and a range of its frames go in; those frames come out, decoded from a key frame before them.

Their numbers, times and pictures are those of decoding from the start, as far as packets tell. What they cannot tell
(open groups of pictures, gradual refresh, damage) shows where pieces meet: the frames before a piece have to be those
that the piece before it ended with.
"""

import os
from dataclasses import dataclass

from texelflow.gpu_delegate.errors import MediaError

from .packet_index import PacketTimes
from .recording import Recording

OVERLAP = 16  # frames that are compared where pieces meet: H.264 and HEVC keep no more to decode others from


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
    raise NotImplementedError


class PieceSource(Recording):
    """The frames first to last of a recording, both included.

    `lead`, and `trail`, may be set before iteration: so many frames before the range and after it are given, too, and
    marked as of the lead. Iteration raises UnfitPieceError where frames are not those that packets promised. After it
    `decoded_head` and `decoded_tail` are checksums of the OVERLAP frames before the range, and of its own last ones;
    `damaged_frames` is of the range alone, `truncated` is told by the recording's last piece.
    """

    def __init__(self, path: str | os.PathLike[str], first: int, last: int, index: FrameIndex | None = None) -> None:
        """`index` is that of the same file, if it has been read already."""
        raise NotImplementedError
