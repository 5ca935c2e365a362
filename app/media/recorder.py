"""Frames with time stamps go in; a video file that survives a kill comes out, with the sound of their recording.

Every frame is in the file as soon as write() has returned. Where the disk has no room for one more, the file is closed.
"""

import contextlib
import os
from fractions import Fraction
from itertools import chain, islice
from pathlib import Path
from types import TracebackType

import av
import cv2
import numpy as np
import numpy.typing as npt

from texelflow.gpu_delegate.errors import MediaError

from ..files import check_output, check_writable
from ..leftovers import locked, remove_if_left
from ..picture.convert import FromRgba, Rgba
from .growing_file import DISK_FULL
from .matroska import MatroskaMuxer
from .mp4 import Mp4Muxer
from .muxer import Muxer
from .sound import SoundCopy, fits

_FORMATS: dict[str, tuple[type[Muxer], str]] = {
    ".mp4": (Mp4Muxer, "mp4"),
    ".m4v": (Mp4Muxer, "mp4"),
    ".mov": (Mp4Muxer, "mov"),
    ".mkv": (MatroskaMuxer, "matroska"),
}
# zerolatency: no frames in flight, no B-frames (whose time stamps fragments would shift), the same bytes in every run.
_X264_OPTIONS = {"preset": "veryfast", "tune": "zerolatency", "crf": "18", "g": "15"}
_SIZED_UNITS = "annexb=0"  # as both containers keep them
_CHROMA_AMID = "chromaloc=1"
_LIMITED, _BT709 = 1, 1  # AVColorRange; AVColorSpace, AVColorPrimaries and AVColorTransferCharacteristic alike


class Recorder:
    """Writes frames to a video file as they come. A context manager: leaving it, also by Ctrl-C, finishes the file.

    `warnings` lists, one line each, what differs from what was asked for; `frames` counts what was written.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        width: int,
        height: int,
        time_base: Fraction,
        rate: Fraction,
        sample_aspect_ratio: Fraction = Fraction(1),
        audio_from: str | os.PathLike[str] | None = None,
        audio_cut: bool = False,
    ) -> None:
        """Sizes in pixels, time_base in seconds, rate in frames per second. Raises MediaError.

        The first frame opens the file: what it replaces stays until there is something to replace it with.
        The sound of audio_from is copied unchanged, in step with the frames, whose pts must then be those of that file.
        audio_cut says that the frames are a part of it, and drops the sound outside.
        """
        self._path = os.fspath(path)
        check_output(self._path, *([] if audio_from is None else [audio_from]))
        self.warnings: list[str] = []
        self.frames = 0
        self._size, self._time_base, self._rate, self._aspect = (width, height), time_base, rate, sample_aspect_ratio
        self._even_size = (width + width % 2, height + height % 2)
        if self._even_size != self._size:
            even = "{}x{}".format(*self._even_size)
            self.warnings.append(
                f"{width}x{height} is padded to {even} by repeating the edge, as H.264 needs even sizes"
            )
        self._convert = FromRgba()
        self._first_pts = self._last_pts = self._handed_over = 0
        self._muxer, self._format = _FORMATS[os.path.splitext(self._path)[1].lower()]
        self._sound = None if audio_from is None else self._open_sound(os.fspath(audio_from), audio_cut)
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
            with contextlib.suppress(MediaError):  # the error on its way out is the one to report
                self.close(complete=False)

    def write(self, rgba: Rgba, pts: int) -> None:
        """Add one frame, uint8 (H, W, 4); pts, in units of time_base, must grow. Raises MediaError."""
        height, width, _ = rgba.shape
        if (width, height) != self._size:
            raise self._refusal(f"{width}x{height}")
        if self._size != self._even_size:
            rgba = np.pad(rgba, ((0, height % 2), (0, width % 2), (0, 0)), "edge")
        self._write(self._convert(rgba), pts, _SIZED_UNITS)

    def write_i420(self, planes: npt.NDArray[np.uint8], pts: int) -> None:
        """Add one frame of the even size as tightly packed luma, Cb and Cr: BT.709, limited, chroma amid 2x2 pixels.

        Raises MediaError. All frames of a file come this way, or none does.
        """
        width, height = self._even_size
        if planes.size != width * height * 3 // 2:
            raise self._refusal(f"{planes.size} bytes")
        rows = planes.reshape(height * 3 // 2, width)
        self._write(av.VideoFrame.from_ndarray(rows, format="yuv420p"), pts, f"{_SIZED_UNITS}:{_CHROMA_AMID}")

    def _write(self, frame: av.VideoFrame, pts: int, parameters: str) -> None:
        if self._closed:
            raise self._refusal("any")
        if self._opened is None:
            self._first_pts = pts
            self._opened = self._open(parameters)
        muxer, stream = self._opened
        frame.time_base = self._time_base
        self._handed_over += 1
        try:
            frame.pts = pts - self._first_pts
            self._copy_sound(muxer, pts * self._time_base)
            self._encode(muxer, stream, frame)
            self.frames, self._last_pts = self.frames + 1, pts
            muxer.expect_more()
        except (av.FFmpegError, OSError, OverflowError) as error:
            with contextlib.suppress(MediaError):
                self.close(complete=False)
            raise self._failure(error) from error

    def _refusal(self, what: str) -> MediaError:
        return MediaError(f"'{self._path}' is closed, or made for frames of another size than {what}")

    def close(self, complete: bool = True) -> None:
        """Finish the file; harmless when repeated. `complete` copies the sound to its end, unless the frames are a cut.

        Without frames there is no file. Raises MediaError if the rest cannot be written.
        """
        if self._closed:
            return
        self._closed = True
        try:
            if self._opened:
                self._finish(*self._opened, complete)
        except (av.FFmpegError, OSError, OverflowError) as error:
            raise self._failure(error) from error
        finally:
            if self._sound:
                self._sound.close()

    def _finish(self, muxer: Muxer, stream: av.VideoStream, complete: bool) -> None:
        try:
            if self.frames:
                whole = complete and self._sound is not None and not self._sound.cut
                self._copy_sound(muxer, None if whole else self._last_pts * self._time_base + 1 / self._rate)
                self._encode(muxer, stream, None)
        finally:
            muxer.finish()

    def _open(self, parameters: str) -> tuple[Muxer, av.VideoStream]:
        """Open the encoder; the first frame makes the file."""
        muxer = self._muxer(self._path, self._format)
        try:
            stream = muxer.container.add_stream(
                "libx264", rate=self._rate, options=_X264_OPTIONS | {"x264-params": parameters}
            )
            stream.width, stream.height = self._even_size
            stream.pix_fmt = "yuv420p"
            context = stream.codec_context
            context.time_base = stream.time_base = self._time_base
            context.sample_aspect_ratio = self._aspect
            context.color_range = _LIMITED
            context.colorspace = context.color_primaries = context.color_trc = _BT709
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
        advice = "" if self._format == "matroska" else "; try .mkv"
        self.warnings.append(f"the sound is left out: {sound.codec} of this kind does not fit this file{advice}")
        return None

    def _encode(self, muxer: Muxer, stream: av.VideoStream, frame: av.VideoFrame | None) -> None:
        for packet in stream.encode(frame):
            # The last frame lasts one frame; the muxer works out the others.
            packet.duration = max(1, round(1 / (self._rate * self._time_base)))
            muxer.add(packet)
        muxer.flush()

    def _copy_sound(self, muxer: Muxer, until_s: Fraction | None) -> None:
        if self._sound is None:
            return
        origin_s = self._first_pts * self._time_base
        try:
            # The first packet goes first, whenever it begins: the file's beginning tells of it.
            for packet in chain(
                () if self.frames else islice(self._sound.packets(origin_s, None), 1),
                self._sound.packets(origin_s, until_s),
            ):
                muxer.add(packet)
        except (av.FFmpegError, OverflowError) as error:
            if isinstance(error, OSError):
                raise
            self._sound.close()
            self._sound = None
            self.warnings.append(f"the sound is left out from frame {self.frames} on: it is damaged there")

    def _failure(self, error: Exception) -> MediaError:
        """What to tell of an error of FFmpeg's or of the system's, with how much of the file can be played."""
        kept = f"; {self.frames} of {self._handed_over} frames were kept" if self.frames else ""
        if getattr(error, "errno", None) in DISK_FULL:
            return MediaError(f"'{self._path}' cannot be written: the disk is full{kept}; choose another place")
        reason = getattr(error, "strerror", None) or error
        advice = "choose another place" if isinstance(error, OSError) else "the time stamps of the input may be absurd"
        return MediaError(f"'{self._path}' cannot be written ({reason}){kept}; {advice}")


def write_png(path: str | os.PathLike[str], image: npt.NDArray[np.uint8]) -> None:
    """Write grey (H, W), RGB (H, W, 3) or RGBA (H, W, 4) as PNG, wholly or not at all. Raises MediaError."""
    name = os.fspath(path)
    check_writable(name)
    if image.ndim == 3:
        image = image[..., [2, 1, 0, 3][: image.shape[2]]]  # OpenCV's order
    part = f"{name}.part"
    try:
        done, data = cv2.imencode(".png", image)
        if not done:
            raise MediaError(f"'{name}' cannot be written: an image of {image.shape} is no PNG")
        try:
            remove_if_left(Path(part))  # it may be a link to what is not ours
            with open(part, "wb") as file, locked(part, patient=True):
                file.write(data.tobytes())
                file.close()  # Windows moves no file that is open
                os.replace(part, name)
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(part)
            raise
    except (OSError, cv2.error) as error:
        reason = getattr(error, "strerror", None) or "the image cannot be encoded"
        raise MediaError(f"'{name}' cannot be written: {reason}; choose another place") from error
