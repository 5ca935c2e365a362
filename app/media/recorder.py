"""Frames with time stamps go in; a video file that survives a kill comes out, with the sound of their recording.

The file is an mp4 in fragments, each flushed as soon as it is whole, which becomes a plain mp4 when it is closed.
"""

import contextlib
import errno
import os
from fractions import Fraction
from pathlib import Path
from types import TracebackType

import av
import cv2
import numpy as np
import numpy.typing as npt

from app.files import check_output, check_writable
from app.leftovers import locked, remove_if_left
from app.media.convert import FromRgba, Rgba
from app.media.sound import SoundCopy, fits
from gpu_delegate.errors import MediaError

# delay_moov lets the muxer write edit lists, without which sound that starts before the pictures shifts against them.
_MP4_OPTIONS = {"movflags": "hybrid_fragmented+frag_keyframe+delay_moov"}
# bitexact leaves out the random segment number.
_MKV_OPTIONS = {"fflags": "bitexact", "cluster_time_limit": "1000"}
_FORMATS = {
    ".mp4": ("mp4", _MP4_OPTIONS),
    ".m4v": ("mp4", _MP4_OPTIONS),
    ".mov": ("mov", _MP4_OPTIONS),
    ".mkv": ("matroska", _MKV_OPTIONS),
}
# A muxer that waits for the other stream holds packets back, which a kill would lose: at most one second of them.
_COMMON_OPTIONS = {"flush_packets": "1", "max_interleave_delta": "1000000"}
# zerolatency: no frames in flight, no B-frames (whose time stamps fragments would shift), the same bytes in every run.
_X264_OPTIONS = {"preset": "veryfast", "tune": "zerolatency", "crf": "18", "g": "15"}
_CHROMA_AMID = {"x264-params": "chromaloc=1"}
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
        self._first_pts = self._last_pts = 0
        self._format, options = _FORMATS[os.path.splitext(self._path)[1].lower()]
        self._options = _COMMON_OPTIONS | options
        self._sound = None if audio_from is None else self._open_sound(os.fspath(audio_from), audio_cut)
        self._opened: tuple[av.container.OutputContainer, av.VideoStream] | None = None
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
        self._write(self._convert(rgba), pts, _X264_OPTIONS)

    def write_i420(self, planes: npt.NDArray[np.uint8], pts: int) -> None:
        """Add one frame of the even size as tightly packed luma, Cb and Cr: BT.709, limited, chroma amid 2x2 pixels.

        Raises MediaError. All frames of a file come this way, or none does.
        """
        width, height = self._even_size
        if planes.size != width * height * 3 // 2:
            raise self._refusal(f"{planes.size} bytes")
        rows = planes.reshape(height * 3 // 2, width)
        self._write(av.VideoFrame.from_ndarray(rows, format="yuv420p"), pts, _X264_OPTIONS | _CHROMA_AMID)

    def _write(self, frame: av.VideoFrame, pts: int, options: dict[str, str]) -> None:
        if self._closed:
            raise self._refusal("any")
        if self._opened is None:
            self._opened, self._first_pts = self._open(options), pts
        container, stream = self._opened
        frame.time_base = self._time_base
        try:
            frame.pts = pts - self._first_pts
            self._copy_sound(container, pts * self._time_base)
            self._encode(container, stream, frame)
        except (av.FFmpegError, OverflowError) as error:
            with contextlib.suppress(MediaError):
                self.close(complete=False)
            raise self._failure(error) from error
        self.frames += 1
        self._last_pts = pts

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
        except (av.FFmpegError, OverflowError) as error:
            raise self._failure(error) from error
        finally:
            if self._sound:
                self._sound.close()
            if self._opened and not self.frames:
                with contextlib.suppress(OSError):
                    os.unlink(self._path)

    def _finish(self, container: av.container.OutputContainer, stream: av.VideoStream, complete: bool) -> None:
        try:
            if self.frames:
                self._encode(container, stream, None)
                whole = complete and self._sound is not None and not self._sound.cut
                self._copy_sound(container, None if whole else self._last_pts * self._time_base + 1 / self._rate)
        finally:
            container.close()

    def _open(self, options: dict[str, str]) -> tuple[av.container.OutputContainer, av.VideoStream]:
        """Open the file and write its header."""
        container = av.open(f"file:{self._path}", "w", format=self._format, container_options=self._options)
        try:
            stream = container.add_stream("libx264", rate=self._rate, options=options)
            stream.width, stream.height = self._even_size
            stream.pix_fmt = "yuv420p"
            context = stream.codec_context
            context.time_base = stream.time_base = self._time_base
            context.sample_aspect_ratio = self._aspect
            context.color_range = _LIMITED
            context.colorspace = context.color_primaries = context.color_trc = _BT709
            if self._sound:
                self._sound.attach(container)
            container.start_encoding()
        except av.FFmpegError as error:
            with contextlib.suppress(av.FFmpegError):
                container.close()
            with contextlib.suppress(OSError):
                os.unlink(self._path)
            raise self._failure(error) from error
        return container, stream

    def _open_sound(self, path: str, cut: bool) -> SoundCopy | None:
        sound = SoundCopy(path, cut)
        if not sound.codec or fits(path, self._format, self._options):
            return sound
        sound.close()
        self.warnings.append(f"the sound is left out: {sound.codec} of this kind does not fit this file; try .mkv")
        return None

    def _encode(
        self, container: av.container.OutputContainer, stream: av.VideoStream, frame: av.VideoFrame | None
    ) -> None:
        for packet in stream.encode(frame):
            # The last frame lasts one frame; the muxer works out the others.
            packet.duration = max(1, round(1 / (self._rate * self._time_base)))
            container.mux(packet)

    def _copy_sound(self, container: av.container.OutputContainer, until_s: Fraction | None) -> None:
        if self._sound is None:
            return
        try:
            for packet in self._sound.packets(self._first_pts * self._time_base, until_s):
                container.mux(packet)
        except (av.FFmpegError, OverflowError) as error:
            if isinstance(error, OSError):
                raise
            self._sound.close()
            self._sound = None
            self.warnings.append(f"the sound is left out from frame {self.frames} on: it is damaged there")

    def _failure(self, error: Exception) -> MediaError:
        """What to tell of an error of FFmpeg's, with how much of the file can be played."""
        number = getattr(error, "errno", None)
        kept = f"; {_count_frames(self._path)} of {self.frames} frames were kept" if self.frames else ""
        if number in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
            return MediaError(f"'{self._path}' cannot be written: the disk is full{kept}; choose another place")
        reason = getattr(error, "strerror", None) or error
        advice = "choose another place" if isinstance(error, OSError) else "the time stamps of the input may be absurd"
        return MediaError(f"'{self._path}' cannot be written ({reason}){kept}; {advice}")


def _count_frames(path: str) -> int:
    """How many frames a file holds that was not finished."""
    try:
        with av.open(f"file:{path}") as container:
            return sum(
                packet.size > 0 and not packet.is_corrupt for packet in container.demux(container.streams.video[0])
            )
    except (av.FFmpegError, IndexError):
        return 0


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
                file.flush()
                os.replace(part, name)
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(part)
            raise
    except (OSError, cv2.error) as error:
        reason = getattr(error, "strerror", None) or "the image cannot be encoded"
        raise MediaError(f"'{name}' cannot be written: {reason}; choose another place") from error
