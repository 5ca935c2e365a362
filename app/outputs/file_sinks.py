"""Writes frames to a video file or to a folder of PNG files, on a thread of their own."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Protocol

from ..console import counted, one_line
from ..files import check_writable
from ..frame.textures.readback import ReadBytes
from ..media.codecs import Codec
from ..media.output_stream import standard_output
from ..media.png import PngStream, mark_folder, unmark_folder, write_png
from ..media.recorder import FrameTaker, PieceRecorder, Recorder
from ..media.sound_encoder import SoundTrack
from ..media.video_encoder import VideoForm
from ..picture.picture import ImageSize
from ..stale_files import remove_stale_asides
from .picture_readers import FrameStamp
from .png_files import PIPE, make_folder, write_numbered

_USUAL_RATE, _HIGHEST_RATE = 30, 1000


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


class SoundSource(Protocol):
    """What is heard while frames come; while it is `muted` that is silence."""

    muted: bool

    def track(self) -> SoundTrack | None:
        """For a recording that begins now; None where there is nothing to hear."""

    def lines(self) -> list[str]:
        """Lines for the user since the last call."""


@dataclass(frozen=True)
class Writing:
    """How files are written: by which codec, at which quality (0 to 100), and what tags those that are finished.

    A pipe gets Matroska, or pictures one after the other. With `piece_first`, videos are pieces for join.join_video: of
    the kind that their name says, but not playable; their first frame has that number among all frames of the whole.
    """

    codec: Codec = "auto"
    quality: int | None = None
    made_by: str | None = None
    pipes_pictures: bool = False
    piece_first: int | None = None


class VideoSink:
    """I420 of textures/yuv.py, or RGBA, to a video file or a pipe, with the times at which pictures were taken."""

    newest_wins = False

    def __init__(
        self,
        path: Path,
        size: ImageSize,
        timing: Timing,
        codes: bool,
        writing: Writing = Writing(),
        alpha: bool = False,
        sound: SoundTrack | None = None,
    ) -> None:
        """`codes`: frames are I420, else RGBA, whose alpha is kept with `alpha`. No file is made yet.

        Raises MediaError if no such file can be written, UsageError for what does not go into it.
        """
        self.name = one_line(str(path))
        self._size, self._codes, self._sound = size, codes, sound
        self._recorder = _recorder(path, size, timing, writing, alpha, sound)

    @property
    def warnings(self) -> Sequence[str]:
        """The recorder's."""
        return self._recorder.warnings

    def write(self, stamp: FrameStamp, data: ReadBytes) -> None:
        """One frame. A time that does not grow becomes a millisecond later than the one before. Raises MediaError."""
        if self._codes:
            self._recorder.write_i420(data, stamp.pts)
        else:
            self._recorder.write(data.reshape(self._size[1], self._size[0], 4), stamp.pts)

    def close(self, complete: bool) -> str:
        """Finish the file; `complete` has the sound copied to its end. Raises MediaError."""
        if self._sound:
            self._sound.end()
        self._recorder.close(complete)
        if not self._recorder.frames:
            return f"nothing was recorded to {self.name}: no frame came"
        heard = ", with sound" if self._sound and self._sound.recorded else ""
        frames = counted(self._recorder.frames, "frame")
        return f"written: {self.name} ({self._recorder.seconds:.1f} s, {frames}{heard})"


class PngSink:
    """Pictures to PNG files in a folder, named by the numbers of their frames: 8-bit gray, RGB or RGBA."""

    newest_wins = False
    warnings: Sequence[str] = ()

    def __init__(self, folder: Path, size: ImageSize, channels: int, made_by: str | None = None) -> None:
        """`channels` is 1, 3 or 4; frames come as gray, or as RGBA. Makes the folder. Raises MediaError."""
        self._folder, self._made_by = make_folder(folder), made_by
        self.name = one_line(str(folder))
        self._shape, self._channels = (size[1], size[0]) if channels == 1 else (size[1], size[0], 4), channels
        self._files = 0

    def write(self, stamp: FrameStamp, data: ReadBytes) -> None:
        """One file. Raises MediaError."""
        if not self._files:
            unmark_folder(self._folder)
        picture = data.reshape(self._shape)
        self._last = write_numbered(self._folder, stamp.index, picture[..., :3] if self._channels == 3 else picture)
        self._files += 1

    def close(self, complete: bool) -> str:
        """Tag the folder, if its source has ended. Raises MediaError."""
        if not self._files:
            return f"nothing was recorded to {self.name}: no frame came"
        if complete and self._made_by:
            mark_folder(self._last, self._made_by)
        return f"written: {self.name} ({counted(self._files, 'PNG file')})"


class PictureSink:
    """One picture to one PNG file."""

    newest_wins = False
    warnings: Sequence[str] = ()

    def __init__(self, path: Path, size: ImageSize, channels: int, made_by: str | None = None) -> None:
        """`channels` is 1, 3 or 4; the frame comes as gray, or as RGBA. Raises MediaError."""
        check_writable(path)
        remove_stale_asides(path.parent)
        self._path, self.name, self._made_by = path, one_line(str(path)), made_by
        self._shape, self._channels = (size[1], size[0]) if channels == 1 else (size[1], size[0], 4), channels
        self._written = False

    def write(self, stamp: FrameStamp, data: ReadBytes) -> None:
        """The picture. Raises MediaError."""
        picture = data.reshape(self._shape)
        write_png(self._path, picture[..., :3] if self._channels == 3 else picture, self._made_by)
        self._written = True

    def close(self, complete: bool) -> str:
        """Nothing is under way."""
        return f"written: {self.name}" if self._written else f"nothing was recorded to {self.name}: no frame came"


class PicturePipeSink:
    """Pictures to standard output, one PNG after the other."""

    newest_wins = False
    warnings: Sequence[str] = ()
    name = PIPE

    def __init__(self, size: ImageSize, channels: int) -> None:
        """`channels` is 3 or 4; frames come as RGBA. Raises UsageError for a terminal."""
        self._stream, self._size, self._channels = PngStream(standard_output()), size, channels

    def write(self, stamp: FrameStamp, data: ReadBytes) -> None:
        """One picture. Raises MediaError, OutputError, and BrokenPipeError if the reader has left."""
        self._stream.write(data.reshape(self._size[1], self._size[0], 4)[..., : self._channels])

    def close(self, complete: bool) -> str:
        """Nothing is under way."""
        self._stream.close(complete)
        return f"written: - ({counted(self._stream.frames, 'PNG picture')})"


def _recorder(
    path: Path, size: ImageSize, timing: Timing, writing: Writing, alpha: bool, sound: SoundTrack | None
) -> FrameTaker:
    """Of a whole, or of a piece."""
    rate = timing.rate or Fraction(_USUAL_RATE)
    times = timing.time_base, rate, timing.sample_aspect_ratio
    if writing.piece_first is not None:
        form = VideoForm(path.suffix.lower(), *size, *times, writing.codec, writing.quality, alpha)
        return PieceRecorder(path, form, writing.piece_first)
    target = standard_output() if str(path) == PIPE else path
    return Recorder(
        target, *size, *times, timing.sound, timing.sound_cut,
        alpha=alpha, codec=writing.codec, quality=writing.quality, made_by=writing.made_by, sound=sound,
    )  # fmt: skip


def nominal_rate(fps: float) -> Fraction:
    """Frames per second for an encoder; 30 where nobody knows them."""
    if not 0 < fps <= _HIGHEST_RATE:  # also for what is not a number
        return Fraction(_USUAL_RATE)
    return max(Fraction(fps).limit_denominator(1001), Fraction(1, 1001))
