"""Frames with time stamps go in; a video file that survives a kill comes out, with the sound of their recording.

Every frame is in the file as soon as write() has returned. Where the disk has no room for one more, the file is closed.
A stream that cannot seek, such as a pipe, gets the same frames as Matroska.
"""

import contextlib
import os
from fractions import Fraction
from itertools import chain, islice
from types import TracebackType

import av
import numpy as np
import numpy.typing as npt

from texelflow.gpu_delegate.errors import MediaError, OutputError, UsageError

from ..files import check_output
from ..picture.convert import FromRgba, Rgba
from .codecs import Codec, choose_encoding
from .finished import payload
from .growing_file import DISK_FULL_ERRORS
from .matroska import MatroskaMuxer
from .mp4 import Mp4Muxer
from .muxer import Muxer
from .output_stream import OutputStream
from .png import write_png as write_png
from .sound import OpusSound, SoundCopy, fits
from .sound_encoder import SoundTrack

_FORMATS: dict[str, tuple[type[Muxer], str]] = {
    ".mp4": (Mp4Muxer, "mp4"),
    ".m4v": (Mp4Muxer, "mp4"),
    ".mov": (Mp4Muxer, "mov"),
    ".mkv": (MatroskaMuxer, "matroska"),
    ".webm": (MatroskaMuxer, "webm"),
}
_OF_STREAMS = ".mkv"
_LIMITED, _FULL = 1, 2  # AVColorRange
_RGB, _BT709 = 0, 1  # AVColorSpace; AVColorPrimaries and AVColorTransferCharacteristic of BT.709 have the same number


class Recorder:
    """Writes frames to a video file as they come. A context manager: leaving it, also by Ctrl-C, finishes the file.

    `warnings` lists, one line each, what differs from what was asked for; `frames` counts what was written.
    """

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
        With `alpha` the alpha of the frames is kept, straight: colours are not multiplied by it; .mov and .webm hold
        it. `codec` and `quality` (0 to 100, 75 if None) are those of codecs.choose_encoding.
        `made_by` tags a file that is closed complete, for finished.finished_by; None leaves it without a tag.
        `sound`, which is encoded as it comes, takes the place of audio_from.
        """
        self._target: str | OutputStream
        if isinstance(target, OutputStream):
            self._target, self._name, ending = target, "standard output", _OF_STREAMS
        else:
            check_output(target, *([] if audio_from is None else [audio_from]))
            self._target, self._name = os.fspath(target), f"'{os.fspath(target)}'"
            ending = os.path.splitext(target)[1].lower()
        self.frames = 0
        self._size, self._time_base, self._rate, self._aspect = (width, height), time_base, rate, sample_aspect_ratio
        self._even_size = (width + width % 2, height + height % 2)
        self.warnings = _padding(self._size, self._even_size)
        self._encoding = choose_encoding(ending, codec, quality, alpha)
        self._held = None if made_by is None else payload(made_by)
        self._convert = FromRgba(self._encoding.rgba_format)
        self._first_pts = self._last_pts = self._handed_over = 0
        self._muxer, self._format = _FORMATS[ending]
        self._sound: SoundCopy | SoundTrack | None = sound
        if audio_from is not None:
            self._sound = self._open_sound(os.fspath(audio_from), audio_cut)
        self._opened: tuple[Muxer, av.VideoStream] | None = None
        self._closed = False

    def __enter__(self) -> "Recorder":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self.close()
        else:
            with contextlib.suppress(MediaError, OutputError, BrokenPipeError):  # the error on its way out is reported
                self.close(complete=False)

    def write(self, rgba: Rgba, pts: int) -> None:
        """Add one frame, uint8 (H, W, 4); pts, in units of time_base, must grow. Raises MediaError.

        A stream raises BrokenPipeError if its reader has left, OutputError for other failures; then it is closed.
        """
        height, width, _ = rgba.shape
        if (width, height) != self._size:
            raise self._refusal(f"{width}x{height}")
        if self._size != self._even_size:
            rgba = np.pad(rgba, ((0, height % 2), (0, width % 2), (0, 0)), "edge")
        self._write(self._convert(rgba), pts, False)

    def write_i420(self, planes: npt.NDArray[np.uint8], pts: int) -> None:
        """Add one frame of the even size as tightly packed luma, Cb and Cr: BT.709, limited, chroma amid 2x2 pixels.

        Raises what write raises, and UsageError with alpha. All frames of a file come this way, or none does.
        """
        if self._encoding.alpha:
            raise UsageError("I420 has no transparency; give RGBA")
        width, height = self._even_size
        if planes.size != width * height * 3 // 2:
            raise self._refusal(f"{planes.size} bytes")
        rows = planes.reshape(height * 3 // 2, width)
        frame = av.VideoFrame.from_ndarray(rows, format="yuv420p")
        if self._encoding.i420_format != "yuv420p":
            frame = frame.reformat(format=self._encoding.i420_format)
        self._write(frame, pts, True)

    def _write(self, frame: av.VideoFrame, pts: int, is_i420: bool) -> None:
        if self._closed:
            raise self._refusal("any")
        if self._opened is None:
            self._first_pts = pts
            self._opened = self._open(is_i420)
        muxer, stream = self._opened
        frame.time_base = self._time_base
        self._handed_over += 1
        try:
            frame.pts = pts - self._first_pts
            self._copy_sound(muxer, pts * self._time_base)
            self._encode(muxer, stream, frame)
            self.frames, self._last_pts = self.frames + 1, pts
            muxer.expect_more()
        except (BrokenPipeError, OutputError):
            self._abandon()
            raise
        except (av.FFmpegError, OSError, OverflowError) as error:
            with contextlib.suppress(MediaError):
                self.close(complete=False)
            raise self._failure(error) from error

    def _refusal(self, what: str) -> MediaError:
        return MediaError(f"{self._name} is closed, or made for frames of another size than {what}")

    def _abandon(self) -> None:
        """Write nothing any more: nobody reads it."""
        self._closed = True
        if self._sound:
            self._sound.close()

    def close(self, complete: bool = True) -> None:
        """Finish the file; harmless when repeated. `complete` copies the sound to its end, unless the frames are a cut.

        It tags the file, too, if that was asked for. Without frames there is no file. Raises MediaError if the rest
        cannot be written; a stream raises what write raises.
        """
        if self._closed:
            return
        self._closed = True
        try:
            if self._opened:
                self._finish(*self._opened, complete)
        except BrokenPipeError:
            raise
        except (av.FFmpegError, OSError, OverflowError) as error:
            raise self._failure(error) from error
        finally:
            if self._sound:
                self._sound.close()

    def _finish(self, muxer: Muxer, stream: av.VideoStream, complete: bool) -> None:
        whole = False
        try:
            if self.frames:
                to_its_end = complete and self._sound is not None and not self._sound.cut
                end_s = None if to_its_end else self._last_pts * self._time_base + 1 / self._rate
                self._copy_sound(muxer, end_s, is_last=True)
                self._encode(muxer, stream, None)
            whole = complete
        finally:
            muxer.finish(whole)

    def _open(self, is_i420: bool) -> tuple[Muxer, av.VideoStream]:
        """Open the encoder; the first frame makes the file."""
        encoding = self._encoding
        muxer = self._muxer(self._target, self._format, self._held)
        try:
            options = {**encoding.options, **(encoding.i420_options if is_i420 else {})}
            stream = muxer.container.add_stream(encoding.encoder, rate=self._rate, options=options)
            assert isinstance(stream, av.VideoStream)
            stream.width, stream.height = self._even_size
            stream.pix_fmt = encoding.i420_format if is_i420 else encoding.rgba_format
            context = stream.codec_context
            context.time_base = stream.time_base = self._time_base
            context.sample_aspect_ratio = self._aspect
            is_yuv = stream.pix_fmt.startswith("yuv")
            context.color_range, context.colorspace = (_LIMITED, _BT709) if is_yuv else (_FULL, _RGB)
            context.color_primaries = context.color_trc = _BT709
            if self._sound and self._sound.has_packets(self._first_pts * self._time_base):
                self._sound.attach(muxer.container)
            muxer.container.start_encoding()
        except av.FFmpegError as error:
            raise self._failure(error) from error
        return muxer, stream

    def _open_sound(self, path: str, cut: bool) -> SoundCopy | None:
        sound = SoundCopy(path, cut)
        if not sound.codec or fits(path, self._format):
            return sound
        sound.close()
        if self._format == "webm":
            self.warnings.append(f"the sound is converted from {sound.codec} to Opus, as .webm takes no {sound.codec}")
            return OpusSound(path, cut)
        advice = "" if self._format == "matroska" else "; try .mkv"
        self.warnings.append(f"the sound is left out: {sound.codec} of this kind does not fit this file{advice}")
        return None

    def _encode(self, muxer: Muxer, stream: av.VideoStream, frame: av.VideoFrame | None) -> None:
        for packet in stream.encode(frame):
            # The last frame lasts one frame; the muxer works out the others.
            packet.duration = max(1, round(1 / (self._rate * self._time_base)))
            muxer.add(packet)
        muxer.flush()

    def _copy_sound(self, muxer: Muxer, until_s: Fraction | None, is_last: bool = False) -> None:
        if self._sound is None:
            return
        origin_s = self._first_pts * self._time_base
        try:
            # The first packet goes first, whenever it begins: the file's beginning tells of it.
            for packet in chain(
                () if self.frames else islice(self._sound.packets(origin_s, None), 1),
                self._sound.packets(origin_s, until_s),
                self._sound.rest(origin_s) if is_last else (),
            ):
                muxer.add(packet)
        except (av.FFmpegError, OverflowError, ValueError) as error:  # ValueError: the sound changes its kind
            if isinstance(error, OSError):
                raise
            self._sound.close()
            self._sound = None
            self.warnings.append(f"the sound is left out from frame {self.frames} on: it is damaged there")

    def _failure(self, error: Exception) -> MediaError:
        """What to tell of an error of FFmpeg's or of the system's, with how much of the file can be played."""
        kept = f"; {self.frames} of {self._handed_over} frames were kept" if self.frames else ""
        if getattr(error, "errno", None) in DISK_FULL_ERRORS:
            return MediaError(f"{self._name} cannot be written: the disk is full{kept}; choose another place")
        reason = getattr(error, "strerror", None) or error
        advice = "choose another place" if isinstance(error, OSError) else "the time stamps of the input may be absurd"
        return MediaError(f"{self._name} cannot be written ({reason}){kept}; {advice}")


def _padding(size: tuple[int, int], even: tuple[int, int]) -> list[str]:
    """What is said of frames of an odd size."""
    if size == even:
        return []
    return ["{}x{} is padded to {}x{} by repeating the edge, as videos need even sizes".format(*size, *even)]
