"""Encodes live sound in step with a recording's frames."""

from collections import deque
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import TypeAlias

import av
import numpy as np

from .sound_blocks import RATE_HZ, Samples, SoundBlock, SoundHistory, duration_ns
from .sound_line import SoundLine

EncodedSound: TypeAlias = "av.Packet[av.AudioStream]"

_CODECS = {"webm": "libopus"}  # by libavformat's name of the container
_USUAL_CODEC = "aac"
_BITS_PER_SECOND = 160_000
_AHEAD = 3072  # samples beyond a frame's time that the encoder may have: some codecs hold back two packets
_FIRST_S, _LAST_S = 0.25, 0.5  # waits for sound that is still on its way, at the beginning and at the end
_PATIENCE = 2 * RATE_HZ  # samples: what is missing for so long becomes silence
_FAR = 10 * RATE_HZ  # samples: no sound is so far ahead of its frame, but by a wrong stamp


class SoundTrack:
    """The sound of one recording, from its first frame on: what the recorder asks of a SoundCopy, made as it comes.

    Used by the recorder's thread. `recorded` says whether anything was given.
    """

    cut = True  # what lies outside of the frames is left out

    def __init__(self, history: SoundHistory, epoch_ns: int, muted: Callable[[], bool] = lambda: False) -> None:
        """`epoch_ns`, of perf_counter, is when frames' times begin at 0. What comes while it is `muted` is silence."""
        self.recorded = False
        self._history, self._epoch_ns, self._muted = history, epoch_ns, muted
        self._stream: av.AudioStream | None = None
        self._line: SoundLine | None = None
        self._next_block = 0
        self._waiting: deque[SoundBlock] = deque()  # sound that is ahead of the frames
        self._encoded = 0
        self._packets: deque[EncodedSound] = deque()
        self._ending = self._ended = False

    def has_packets(self, origin_s: Fraction) -> bool:
        """Whether there is sound, or will be."""
        return self._history.expected

    def attach(self, container: av.container.OutputContainer) -> None:
        """Add a stream to the output. Raises av.FFmpegError."""
        codec = _CODECS.get(container.format.name, _USUAL_CODEC)
        stream = container.add_stream(codec, rate=RATE_HZ)
        assert isinstance(stream, av.AudioStream)
        stream.codec_context.layout = "stereo"
        stream.codec_context.bit_rate = _BITS_PER_SECOND
        stream.codec_context.time_base = Fraction(1, RATE_HZ)
        self._stream = stream

    def rest(self, origin_s: Fraction) -> Iterator[EncodedSound]:
        """Nothing: packets gives all there is after end."""
        return iter(())

    def packets(self, origin_s: Fraction, until_s: Fraction | None) -> Iterator[EncodedSound]:
        """Packets not yet given that begin before until_s (None: whatever is there), counted from origin_s.

        Both are seconds of the frames' time. What has not come by then follows later. Raises av.FFmpegError.
        """
        if self._stream is None:
            return
        until = 0 if until_s is None else int((until_s - origin_s) * RATE_HZ)
        if self._line is None:
            self._line = SoundLine(self._epoch_ns + int(origin_s * 1_000_000_000))
            self._begin(self._line)
        self._encode_until(self._line, until)
        if self._ending and not self._ended:
            self._finish(self._line, until)
        while self._packets and (until_s is None or (self._packets[0].pts or 0) < until):
            self.recorded = True
            yield self._packets.popleft()

    def end(self) -> None:
        """The next packets asked for are the last ones."""
        self._ending = True

    def close(self) -> None:
        """Nothing is open."""

    def _begin(self, line: SoundLine) -> None:
        """Have the encoder give its first packet, of silence if there is no sound yet."""
        self._history.wait_until(self._heard_ns(line, _AHEAD), _FIRST_S)
        self._encode_until(line, 0)
        if line.count < _AHEAD:
            self._encode(line.silence(_AHEAD - line.count))

    def _finish(self, line: SoundLine, until: int) -> None:
        """Encode up to the end of the last frame, and what the encoder holds back."""
        assert self._stream
        self._history.wait_until(self._heard_ns(line, until), _LAST_S)
        self._encode_until(line, until, beyond=0)
        self._encode(line.silence(until - line.count))
        self._packets.extend(self._stream.encode(None))
        self._ended = True

    def _encode_until(self, line: SoundLine, until: int, beyond: int = _AHEAD) -> None:
        """Encode what has come, no further than so many samples beyond the frame."""
        blocks, self._next_block = self._history.since(self._next_block)
        self._waiting.extend(block for block in blocks if line.position(block.at_ns) < until + _FAR)
        while self._waiting and line.position(self._waiting[0].at_ns) < until + beyond:
            block = self._waiting.popleft()
            most = max(0, until + beyond - line.position(block.at_ns))
            if block.samples.shape[1] > most:
                rest = SoundBlock(block.at_ns + duration_ns(most), block.samples[:, most:])
                self._waiting.appendleft(rest)
                block = SoundBlock(block.at_ns, block.samples[:, :most])
            if self._muted():
                block = SoundBlock(block.at_ns, np.zeros_like(block.samples))
            self._encode(line.place(block))
        self._encode(line.silence(until - _PATIENCE - line.count))

    def _encode(self, parts: Iterator[Samples]) -> None:
        assert self._stream
        for samples in parts:
            if not samples.size:
                continue
            frame = av.AudioFrame.from_ndarray(np.ascontiguousarray(samples), "fltp", "stereo")
            frame.sample_rate, frame.time_base, frame.pts = RATE_HZ, Fraction(1, RATE_HZ), self._encoded
            self._encoded += samples.shape[1]
            self._packets.extend(self._stream.encode(frame))

    def _heard_ns(self, line: SoundLine, samples: int) -> int:
        """When such a sample of the line is heard."""
        return line.start_ns + duration_ns(samples)
