"""Blocks of sound: decoding them, and a history of the last seconds, each block with its time.

All blocks are of one kind: 48 kHz, stereo, float32 from -1 to 1.
"""

import threading
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TypeAlias

import av
import numpy as np
import numpy.typing as npt

Samples: TypeAlias = npt.NDArray[np.float32]  # (CHANNELS, n)

RATE_HZ, CHANNELS = 48_000, 2
_KEPT_SAMPLES, _KEPT_BLOCKS = 10 * RATE_HZ, 4096
_MOST_SAMPLES = 2 * RATE_HZ  # of a block; decoders give far less at once


@dataclass(frozen=True)
class SoundBlock:
    """Samples, and when the first of them was heard: a reading of perf_counter, as of frames' captured_ns."""

    at_ns: int
    samples: Samples = field(repr=False, compare=False)

    @property
    def end_ns(self) -> int:
        """When the next block begins, if nothing is missing."""
        return self.at_ns + duration_ns(self.samples.shape[1])


class SoundHistory:
    """The last ten seconds of a source's sound. All its methods may be called on any thread.

    `expected`: there is sound, or there will be.
    """

    def __init__(self, expected: bool = False) -> None:
        self.expected = expected
        self._blocks: deque[SoundBlock] = deque()
        self._changed = threading.Condition()
        self._passed = 0  # blocks that are no longer kept
        self._samples = 0  # of those that are

    def put(self, blocks: Iterable[SoundBlock]) -> None:
        """Add what came; what is too old goes."""
        with self._changed:
            for block in blocks:
                self._blocks.append(block)
                self._samples += block.samples.shape[1]
                self.expected = True
            while self._samples > _KEPT_SAMPLES or len(self._blocks) > _KEPT_BLOCKS:
                self._samples -= self._blocks.popleft().samples.shape[1]
                self._passed += 1
            self._changed.notify_all()

    def since(self, number: int) -> tuple[list[SoundBlock], int]:
        """Blocks from the one of this number on, counted from 0, as far as they are kept; and the next one's number."""
        with self._changed:
            first = max(0, number - self._passed)
            return list(self._blocks)[first:], self._passed + len(self._blocks)

    @property
    def end_ns(self) -> int:
        """When the newest block ends; 0 while there is none."""
        with self._changed:
            return self._blocks[-1].end_ns if self._blocks else 0

    def wait_until(self, end_ns: int, timeout_s: float) -> bool:
        """Wait until there is sound up to that time; whether it came."""
        with self._changed:
            return self._changed.wait_for(lambda: bool(self._blocks) and self._blocks[-1].end_ns >= end_ns, timeout_s)


class BlockDecoder:
    """Decodes the packets of one stream of sound to samples. What is damaged gives none."""

    def __init__(self, stream: av.AudioStream) -> None:
        self._context = stream.codec_context
        self._kind: tuple[object, ...] = ()
        self._resampler: av.AudioResampler | None = None

    def decode(self, packet: "av.Packet[av.AudioStream]") -> list[tuple[float | None, Samples]]:
        """Samples with the seconds of their stream at which they begin, None where it does not say."""
        try:
            return [
                (None if frame.pts is None or not frame.time_base else float(frame.pts * frame.time_base), samples)
                for frame in self._context.decode(packet)
                if (samples := self._resampled(frame)).size
            ]
        except (av.FFmpegError, ValueError, MemoryError):
            self._resampler = None
            return []

    def _resampled(self, frame: av.AudioFrame) -> Samples:
        kind = frame.format.name, frame.layout.name, frame.sample_rate
        if self._resampler is None or kind != self._kind:
            self._kind, self._resampler = kind, av.AudioResampler("fltp", "stereo", RATE_HZ)
        parts = [part.to_ndarray() for part in self._resampler.resample(frame)]
        samples = np.concatenate([np.zeros((CHANNELS, 0), np.float32), *parts], axis=1, dtype=np.float32)
        return np.clip(np.nan_to_num(samples[:, :_MOST_SAMPLES]), -1, 1)


def duration_ns(samples: int) -> int:
    """How long so many samples last."""
    return samples * 1_000_000_000 // RATE_HZ


def samples_in(duration_ns: int) -> int:
    """How many samples last so long; negative where it is."""
    return round(duration_ns * RATE_HZ / 1e9)
