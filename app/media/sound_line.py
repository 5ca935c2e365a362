"""Joins blocks of sound to samples without a gap, in step with the blocks' times.

A gap becomes silence, what overlaps is left out, and a clock that drifts is followed by making blocks a little longer
or shorter: by half a percent at most, which nobody hears.
"""

from collections.abc import Iterator

import numpy as np

from .sound_blocks import CHANNELS, RATE_HZ, Samples, SoundBlock, samples_in

_STEADY = RATE_HZ // 100  # samples out of step that are let be: 10 ms, which stamps jitter
_GAP = RATE_HZ * 6 // 100  # 60 ms, from which on something is missing, or there twice
_STRETCH = 200  # a block changes by one sample in so many
_PIECE = RATE_HZ  # of silence given at once


class SoundLine:
    """The samples of one recording, from start_ns on; `count` is how many there are so far."""

    def __init__(self, start_ns: int) -> None:
        self.count = 0
        self.start_ns = start_ns
        self._joined = False  # whether the next block goes on from the one before

    def place(self, block: SoundBlock) -> Iterator[Samples]:
        """What comes next in the line, now that this block is there; nothing where its time has passed."""
        late = self.position(block.at_ns) - self.count
        samples = block.samples
        if not self._joined or abs(late) > _GAP:
            yield from self.silence(late)
            samples = samples[:, max(0, -late) :]
        elif abs(late) > _STEADY:
            samples = stretched(samples, 1 if late > 0 else -1)
        self._joined = self._joined or samples.size > 0
        self.count += samples.shape[1]
        yield samples

    def silence(self, samples: int) -> Iterator[Samples]:
        """So much silence, none if negative. The next block then begins exactly at its time."""
        while samples > 0:
            piece = np.zeros((CHANNELS, min(samples, _PIECE)), np.float32)
            samples -= piece.shape[1]
            self.count += piece.shape[1]
            self._joined = False
            yield piece

    def position(self, at_ns: int) -> int:
        """The number of the sample that belongs to a time."""
        return samples_in(at_ns - self.start_ns)


def stretched(samples: Samples, sign: int) -> Samples:
    """The block a little longer (1) or shorter (-1), by at least one sample."""
    before = samples.shape[1]
    after = before + sign * max(1, before // _STRETCH)
    if before < 2 or after < 1:
        return samples
    places = np.arange(after) * (before / after)
    return np.stack([np.interp(places, np.arange(before), channel) for channel in samples]).astype(np.float32)
