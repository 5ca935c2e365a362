"""Reads the sound of a clip, as far as its pictures have been shown."""

from collections.abc import Iterator

import av

from ..media.sound_blocks import RATE_HZ, BlockDecoder, Samples, SoundBlock, duration_ns
from ..media.sources import open_recording


class ClipSound:
    """The sound of a file, read by whoever shows its pictures; none where it has none, or where it is damaged."""

    def __init__(self, path: str, first_s: float) -> None:
        """`first_s` is the first picture's time in the file, which is 0 below. Raises MediaError."""
        self._container, _ = open_recording(path)
        self._first_s = first_s
        self._blocks = self._decoded()
        self._ahead: tuple[int, Samples] | None = None

    def until(self, end_ns: int, start_ns: int) -> tuple[SoundBlock, ...]:
        """What was not given yet and is heard before end_ns since the first picture, which is shown at start_ns."""
        blocks = []
        while (ahead := self._ahead or next(self._blocks, None)) and ahead[0] < end_ns:
            at_ns, samples = ahead
            most = max(1, (end_ns - at_ns) * RATE_HZ // 1_000_000_000)
            rest = samples[:, most:]
            self._ahead = (at_ns + duration_ns(most), rest) if rest.size else None
            blocks.append(SoundBlock(start_ns + at_ns, samples[:, :most]))
        self._ahead = ahead
        return tuple(blocks)

    def close(self) -> None:
        """Close the file; harmless when repeated."""
        self._container.close()

    def _decoded(self) -> Iterator[tuple[int, Samples]]:
        """Samples with their time, in ns since the first picture; those before it are left out."""
        stream = next((stream for stream in self._container.streams.audio if stream.codec_context), None)
        if stream is None:
            return
        decoder, next_s = BlockDecoder(stream), 0.0
        try:
            for packet in self._container.demux(stream):
                for stamp_s, samples in decoder.decode(packet):
                    at_s = next_s if stamp_s is None else stamp_s - self._first_s
                    next_s = at_s + samples.shape[1] / RATE_HZ
                    early = max(0, round(-at_s * RATE_HZ))
                    if early < samples.shape[1]:
                        yield round(max(at_s, 0.0) * 1e9), samples[:, early:]
        except (av.FFmpegError, IndexError):
            return  # cut off here: the pictures' source reports it
