"""Frames' codes or pixels go in, on a thread of their own; a video, or a folder of PNG files, comes out."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import ceil
from pathlib import Path

from ..console import counted, one_line
from ..frame.readback import Bytes
from ..media.recorder import Recorder
from ..picture.picture import ImageSize
from .png_files import make_folder, write_numbered
from .readers import FrameStamp

_USUAL_RATE, _HIGHEST_RATE = 30, 1000
_STEP_S = Fraction(1, 1000)  # Matroska keeps no less
_MATROSKA = (".mkv", ".webm")


@dataclass(frozen=True)
class Timing:
    """Of a source's frames: seconds in one unit of pts, frames per second (0: unknown), a pixel's width by its height.

    The sound of videos is copied from `sound`, whose pts the frames then have; `sound_cut` if they are a part of it.
    """

    time_base: Fraction
    rate: Fraction = Fraction(0)
    sample_aspect_ratio: Fraction = Fraction(1)
    sound: Path | None = None
    sound_cut: bool = False


class VideoSink:
    """I420 of app/frame/yuv.py, or RGBA, to a video file, with the times at which its pictures were taken."""

    newest_wins = False

    def __init__(self, path: Path, size: ImageSize, timing: Timing, codes: bool) -> None:
        """`codes`: frames are I420, else RGBA. Raises MediaError if no such file can be written; none is made yet."""
        self.name = one_line(str(path))
        self._size, self._codes = size, codes
        self._time_base, self._rate = timing.time_base, timing.rate or Fraction(_USUAL_RATE)
        self._recorder = Recorder(
            path, *size, timing.time_base, self._rate, timing.sample_aspect_ratio, timing.sound, timing.sound_cut
        )
        self._step = max(1, ceil(_STEP_S / timing.time_base))  # for times that do not grow
        self._least = self._step if path.suffix.lower() in _MATROSKA else 1
        self._pts: list[int] = []  # of the first and the last frame

    @property
    def warnings(self) -> Sequence[str]:
        """The recorder's."""
        return self._recorder.warnings

    def write(self, stamp: FrameStamp, data: Bytes) -> None:
        """One frame. A time that does not grow becomes a millisecond later than the one before. Raises MediaError."""
        pts = stamp.pts
        if self._pts and pts - self._pts[-1] < self._least:
            pts = self._pts[-1] + self._step
        if self._codes:
            self._recorder.write_i420(data, pts)
        else:
            self._recorder.write(data.reshape(self._size[1], self._size[0], 4), pts)
        self._pts = [*self._pts[:1], pts]

    def close(self, complete: bool) -> str:
        """Finish the file; `complete` has the sound copied to its end. Raises MediaError."""
        self._recorder.close(complete)
        if not self._pts:
            return f"nothing was recorded to {self.name}: no frame came"
        seconds = float((self._pts[-1] - self._pts[0]) * self._time_base + 1 / self._rate)
        return f"written: {self.name} ({seconds:.1f} s, {counted(self._recorder.frames, 'frame')})"


class PngSink:
    """Pictures to PNG files in a folder, named by the numbers of their frames: 8-bit grey, RGB or RGBA."""

    newest_wins = False
    warnings: Sequence[str] = ()

    def __init__(self, folder: Path, size: ImageSize, channels: int) -> None:
        """`channels` is 1, 3 or 4; frames come as grey, or as RGBA. Makes the folder. Raises MediaError."""
        self._folder = make_folder(folder)
        self.name = one_line(str(folder))
        self._shape, self._channels = (size[1], size[0]) if channels == 1 else (size[1], size[0], 4), channels
        self._files = 0

    def write(self, stamp: FrameStamp, data: Bytes) -> None:
        """One file. Raises MediaError."""
        picture = data.reshape(self._shape)
        write_numbered(self._folder, stamp.index, picture[..., :3] if self._channels == 3 else picture)
        self._files += 1

    def close(self, complete: bool) -> str:
        """Nothing is under way."""
        if not self._files:
            return f"nothing was recorded to {self.name}: no frame came"
        return f"written: {self.name} ({counted(self._files, 'PNG file')})"


def nominal_rate(fps: float) -> Fraction:
    """Frames per second for an encoder; 30 where nobody knows them."""
    if not 0 < fps <= _HIGHEST_RATE:  # also for what is not a number
        return Fraction(_USUAL_RATE)
    return max(Fraction(fps).limit_denominator(1001), Fraction(1, 1001))
