"""Frames' codes or pixels go in, on a thread of their own; a video, or a folder of PNG files, comes out."""

from fractions import Fraction
from pathlib import Path

from ..capture.capture import TIME_BASE
from ..console import counted, one_line
from ..files import check_output
from ..frame.outputs import make_folder, write_numbered
from ..frame.readback import Bytes
from ..media.recorder import Recorder
from ..picture.picture import ImageSize
from .branch import Stamp

_USUAL_RATE, _HIGHEST_RATE = 30, 1000
_LEAST_STEP = 1000  # a millisecond: Matroska keeps no less


class VideoSink:
    """I420 of app/frame/yuv.py to a video file, with the times at which its pictures were taken."""

    newest_wins = False

    def __init__(self, path: Path, size: ImageSize, fps: float) -> None:
        """`fps` is nominal, 0 if unknown. Raises MediaError if no such file can be written; none is made yet."""
        check_output(path)
        self.name = one_line(str(path))
        self._rate = nominal_rate(fps)
        self._recorder = Recorder(path, *size, TIME_BASE, self._rate)
        self._pts: list[int] = []  # of the first and the last frame

    def write(self, stamp: Stamp, data: Bytes) -> None:
        """One frame. A time that does not grow becomes a little later than the one before. Raises MediaError."""
        pts = max(stamp.pts, self._pts[-1] + _LEAST_STEP) if self._pts else stamp.pts
        self._recorder.write_i420(data, pts)
        self._pts = [*self._pts[:1], pts]

    def close(self) -> str:
        """Finish the file. Raises MediaError."""
        self._recorder.close()
        if not self._pts:
            return f"nothing was recorded to {self.name}: no frame came"
        seconds = (self._pts[-1] - self._pts[0]) / 1e6 + float(1 / self._rate)
        return f"saved {self.name}: {seconds:.1f} s, {counted(self._recorder.frames, 'frame')}"


class PngSink:
    """Pictures to PNG files in a folder, named by the numbers of their frames: 8-bit grey, or RGBA."""

    newest_wins = False

    def __init__(self, folder: Path, size: ImageSize, channels: int) -> None:
        """`channels` is 1 or 4. Makes the folder. Raises MediaError."""
        self._folder = make_folder(folder)
        self.name = one_line(str(folder))
        self._shape = (size[1], size[0]) if channels == 1 else (size[1], size[0], channels)
        self._files = 0

    def write(self, stamp: Stamp, data: Bytes) -> None:
        """One file. Raises MediaError."""
        write_numbered(self._folder, stamp.index, data.reshape(self._shape))
        self._files += 1

    def close(self) -> str:
        """Nothing is under way."""
        return f"saved {counted(self._files, 'PNG file')} in {self.name}"


def nominal_rate(fps: float) -> Fraction:
    """Frames per second for an encoder; 30 where nobody knows them."""
    if not 0 < fps <= _HIGHEST_RATE:  # also for what is not a number
        return Fraction(_USUAL_RATE)
    return max(Fraction(fps).limit_denominator(1001), Fraction(1, 1001))
