"""Records frames to a video file that survives a kill, with the sound of their recording.

Every frame is in the file as soon as write() has returned. Where the disk has no room for one more, the file is closed.
A stream that cannot seek, such as a pipe, gets the same frames as Matroska. A piece of a recording goes to a file of
its own kind, from which join makes a part of a video file.
"""

import contextlib
import os
from collections.abc import Callable
from fractions import Fraction
from types import TracebackType
from typing import Protocol, TypeVar

import av
import numpy as np
import numpy.typing as npt

from texelflow.gpu_delegate.base.errors import MediaError, OutputError

from ..picture.convert import Rgba
from .codecs import Codec
from .output_stream import OutputStream
from .piece_file import PieceFile
from .png import write_png as write_png
from .sound_encoder import SoundTrack
from .video_encoder import EncodedPicture, VideoEncoder, VideoForm
from .video_file import VideoFile

_OF_STREAMS = ".mkv"


class _PictureFile(Protocol):
    """Where encoded pictures go."""

    name: str
    frames: int
    warnings: list[str]

    @property
    def seconds(self) -> float: ...

    def add(self, picture: EncodedPicture, pts: int, encoder: VideoEncoder) -> None: ...

    def failed(self, error: Exception) -> MediaError: ...

    def close(self, complete: bool) -> None: ...


Taker = TypeVar("Taker", bound="FrameTaker")


class FrameTaker:
    """Encodes frames as they come, into a file. A context manager: leaving it, also by Ctrl-C, finishes the file.

    `warnings` lists, one line each, what differs from what was asked for.
    """

    def __init__(self, form: VideoForm, file: _PictureFile) -> None:
        """The first frame opens the encoder, and then the file. Raises UsageError where the form contradicts itself."""
        self.warnings = file.warnings
        self._form, self._file = form, file
        self._encoder: VideoEncoder | None = None
        self._closed = False

    def __enter__(self: Taker) -> Taker:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self.close()
        else:
            with contextlib.suppress(MediaError, OutputError, BrokenPipeError):  # the error on its way out is reported
                self.close(complete=False)

    @property
    def frames(self) -> int:
        """How many were written."""
        return self._file.frames

    @property
    def seconds(self) -> float:
        """From the first frame to the end of the last one."""
        return self._file.seconds

    def write(self, rgba: Rgba, pts: int) -> None:
        """Add one frame, uint8 (H, W, 4); pts, in units of time_base, should grow: see video_file.growing_time.

        Raises MediaError. A stream raises BrokenPipeError if its reader has left, OutputError for other failures; then
        it is closed.
        """
        height, width, _ = rgba.shape
        if (width, height) != (self._form.width, self._form.height):
            raise self._refusal(f"{width}x{height}")
        self._write(lambda encoder: encoder.encode(rgba), pts, False)

    def write_i420(self, planes: npt.NDArray[np.uint8], pts: int) -> None:
        """Add one frame of the even size as tightly packed luma, Cb and Cr: BT.709, limited, chroma amid 2x2 pixels.

        Raises what write raises, and UsageError with alpha. All frames of a file come this way, or none does.
        """
        width, height = self._form.even_size
        if planes.size != width * height * 3 // 2:
            raise self._refusal(f"{planes.size} bytes")
        self._write(lambda encoder: encoder.encode_i420(planes), pts, True)

    def close(self, complete: bool = True) -> None:
        """Finish the file; harmless when repeated. `complete` says that its source has ended: see VideoFile.close."""
        self._closed = True
        if self._encoder:
            self._encoder.close()
        self._file.close(complete)

    def _write(self, encode: Callable[[VideoEncoder], EncodedPicture], pts: int, is_i420: bool) -> None:
        if self._closed or (self._encoder and self._encoder.is_i420 != is_i420):
            raise self._refusal("any")
        try:
            self._encoder = self._encoder or VideoEncoder(self._form, is_i420)
            picture = encode(self._encoder)
        except (av.FFmpegError, MediaError) as error:
            self._closed = True
            raise self._file.failed(error) from error
        try:
            self._file.add(picture, pts, self._encoder)
        except BaseException:
            self._closed = True
            raise

    def _refusal(self, what: str) -> MediaError:
        return MediaError(f"{self._file.name} is closed, or made for frames of another size than {what}")


class Recorder(FrameTaker):
    """Writes frames to a video file as they come."""

    def __init__(
        self,
        target: str | os.PathLike[str] | OutputStream,
        width: int,
        height: int,
        time_base: Fraction,
        rate: Fraction,
        sample_aspect_ratio: Fraction = Fraction(1),
        audio_from: str | os.PathLike[str] | None = None,
        audio_cut: bool = False,
        *,
        alpha: bool = False,
        codec: Codec = "auto",
        quality: int | None = None,
        made_by: str | None = None,
        sound: SoundTrack | None = None,
    ) -> None:
        """Sizes in pixels, time_base in seconds, rate in frames per second. Raises MediaError, UsageError.

        The first frame opens the file: what it replaces stays until there is something to replace it with.
        The sound of audio_from is copied unchanged, in step with the frames, whose pts must then be those of that file.
        audio_cut says that the frames are a part of it, and drops the sound outside. Where .webm does not take its
        codec, it is converted to Opus, and a warning says so.
        With `alpha` the alpha of the frames is kept, straight: colors are not multiplied by it; .mov and .webm hold
        it. `codec` and `quality` (0 to 100, 75 if None) are those of codecs.choose_encoding.
        `made_by` tags a file that is closed complete, for finished.finished_by; None leaves it without a tag.
        `sound`, which is encoded as it comes, takes the place of audio_from.
        """
        ending = _OF_STREAMS if isinstance(target, OutputStream) else os.path.splitext(target)[1].lower()
        form = VideoForm(ending, width, height, time_base, rate, sample_aspect_ratio, codec, quality, alpha)
        super().__init__(form, VideoFile(form, target, audio_from, audio_cut, made_by, sound))


class PieceRecorder(FrameTaker):
    """Writes a piece of a recording, without sound, to a file for join.join_video."""

    def __init__(self, path: str | os.PathLike[str], form: VideoForm, first: int) -> None:
        """`first` is the number of the first frame in the recording, a multiple of SEGMENT_FRAMES.

        Raises MediaError, UsageError.
        """
        super().__init__(form, PieceFile(path, form, first))
