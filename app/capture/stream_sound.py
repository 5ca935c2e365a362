"""Places a stream's packets of sound on the clock of its pictures."""

from collections import deque
from statistics import median

import av

from ..media.sound_blocks import BlockDecoder, Samples, SoundBlock
from .stamps import SANE_AGE_NS

_PICTURES = 61  # so many tell how the stream's time lies against ours, however the network delays one or the other
_JUMP_NS = 1_000_000_000  # from which on the stream has begun to count anew
_MOST_WAITING = 512  # blocks between two pictures


class StreamSound:
    """The sound of one stream, handed out with its pictures."""

    def __init__(self, stream: av.AudioStream) -> None:
        self.stream = stream
        self._decoder = BlockDecoder(stream)
        self._waiting: deque[tuple[float, Samples]] = deque(maxlen=_MOST_WAITING)
        self._offsets_ns: deque[int] = deque(maxlen=_PICTURES)

    def take(self, packet: "av.Packet[av.AudioStream]") -> None:
        """Decode a packet; what has no time stamp cannot be placed, and is left out."""
        self._waiting.extend((at_s, samples) for at_s, samples in self._decoder.decode(packet) if at_s is not None)

    def with_picture(self, picture_s: float | None, came_ns: int) -> tuple[SoundBlock, ...]:
        """The sound since the picture before; this one has that time in the stream, and came at that one of ours.

        Sound that lies more than some seconds away from it is left out.
        """
        if picture_s is not None:
            offset_ns = came_ns - round(picture_s * 1e9)
            if self._offsets_ns and abs(offset_ns - median(self._offsets_ns)) > _JUMP_NS:
                self._offsets_ns.clear()
            self._offsets_ns.append(offset_ns)
        if not self._offsets_ns:
            return ()
        shift_ns = round(median(self._offsets_ns))
        blocks = [SoundBlock(round(at_s * 1e9) + shift_ns, samples) for at_s, samples in self._waiting]
        self._waiting.clear()
        return tuple(block for block in blocks if abs(block.at_ns - came_ns) < SANE_AGE_NS)
