"""Writes encoded pictures to a video file that survives a kill, with the sound of a recording.

Every picture is in the file as soon as add() has returned. Where the disk has no room for one more, the file is closed.
"""

import contextlib
import os
from fractions import Fraction
from itertools import chain, islice
from math import ceil
from typing import TypeAlias, cast

import av
from av.packet import PacketSideData, packet_sidedata_type_from_literal

from texelflow.gpu_delegate.base.errors import MediaError, OutputError

from ..files import check_output
from .finished import payload
from .growing_file import DISK_FULL_ERRORS
from .matroska import MatroskaMuxer
from .mp4 import Mp4Muxer
from .muxer import Muxer, add_same_stream
from .output_stream import OutputStream
from .sound import OpusSound, SoundCopy, fits
from .sound_encoder import SoundTrack
from .video_encoder import ALPHA_DATA, EncodedPicture, VideoEncoder, VideoForm

VideoPacket: TypeAlias = "av.Packet[av.VideoStream]"

_MUXERS: dict[str, type[Muxer]] = {
    "mp4": Mp4Muxer,
    "mov": Mp4Muxer,
    "matroska": MatroskaMuxer,
    "webm": MatroskaMuxer,
}
_STEP_S = Fraction(1, 1000)  # Matroska keeps no less


class VideoFile:
    """What Recorder writes, and what joins pieces; the arguments are Recorder's.

    `warnings` lists, one line each, what differs from what was asked for; `frames` counts what was written.
    """

    def __init__(
        self,
        form: VideoForm,
        target: str | os.PathLike[str] | OutputStream,
        audio_from: str | os.PathLike[str] | None = None,
        audio_cut: bool = False,
        made_by: str | None = None,
        sound: SoundTrack | None = None,
    ) -> None:
        """Nothing is written yet. Raises MediaError, UsageError."""
        self._target: str | OutputStream
        if isinstance(target, OutputStream):
            self._target, self.name = target, "standard output"
        else:
            check_output(target, *([] if audio_from is None else [audio_from]))
            self._target, self.name = os.fspath(target), f"'{os.fspath(target)}'"
        form.check()
        self.frames = 0
        self.warnings = padding_warnings(form)
        self._form = form
        self._held = None if made_by is None else payload(made_by)
        self._first_pts = self._last_pts = self._handed_over = 0
        self._sound: SoundCopy | SoundTrack | None = sound
        if audio_from is not None:
            self._sound = self._open_sound(os.fspath(audio_from), audio_cut)
        self._opened: tuple[Muxer, av.VideoStream] | None = None
        self._closed = False

    @property
    def seconds(self) -> float:
        """From the first picture to the end of the last one."""
        if not self.frames:
            return 0.0
        return float((self._last_pts - self._first_pts) * self._form.time_base + 1 / self._form.rate)

    def add(self, picture: EncodedPicture, pts: int, encoder: VideoEncoder) -> None:
        """Write one picture, and the sound before it; the first makes the file, which `encoder` describes.

        pts is in units of the form's time_base; see growing_time. Raises MediaError; a stream raises BrokenPipeError
        if its reader has left, OutputError for other failures. Then the file is closed.
        """
        self._handed_over += 1
        try:
            if self._opened is None:
                self._first_pts = pts
                self._opened = self._open(encoder)
            else:
                pts = growing_time(pts, self._last_pts, self._form)
            muxer, stream = self._opened
            self._copy_sound(muxer, pts * self._form.time_base)
            muxer.add(self._packet(picture, pts, stream))
            muxer.flush()
            self.frames, self._last_pts = self.frames + 1, pts
            muxer.expect_more()
        except (BrokenPipeError, OutputError):
            self._abandon()
            raise
        except (av.FFmpegError, OSError, OverflowError) as error:
            raise self._closed_after(error) from error

    def failed(self, error: Exception) -> MediaError:
        """Close the file, as a picture could not be encoded: what to tell of it."""
        self._handed_over += 1
        return self._closed_after(error)

    def _closed_after(self, error: Exception) -> MediaError:
        with contextlib.suppress(MediaError):
            self.close(complete=False)
        return self._failure(error)

    def close(self, complete: bool) -> None:
        """Finish the file; harmless when repeated. `complete` copies the sound to its end, unless pictures are a cut.

        It tags the file, too, if that was asked for. Without pictures there is no file. Raises what add raises.
        """
        if self._closed:
            return
        self._closed = True
        try:
            if self._opened:
                self._finish(self._opened[0], complete)
        except BrokenPipeError:
            raise
        except (av.FFmpegError, OSError, OverflowError) as error:
            raise self._failure(error) from error
        finally:
            if self._sound:
                self._sound.close()

    def _abandon(self) -> None:
        """Write nothing any more: nobody reads it."""
        self._closed = True
        if self._sound:
            self._sound.close()

    def _finish(self, muxer: Muxer, complete: bool) -> None:
        whole = False
        try:
            if self.frames:
                to_its_end = complete and self._sound is not None and not self._sound.cut
                end_s = None if to_its_end else self._last_pts * self._form.time_base + 1 / self._form.rate
                self._copy_sound(muxer, end_s, is_last=True)
                muxer.flush()
            whole = complete
        finally:
            muxer.finish(whole)

    def _open(self, encoder: VideoEncoder) -> tuple[Muxer, av.VideoStream]:
        """The muxer's first part makes the file."""
        muxer = _MUXERS[self._form.container](self._target, self._form.container, self._held)
        stream = add_same_stream(muxer.container, encoder.stream)
        assert isinstance(stream, av.VideoStream)
        stream.time_base = self._form.time_base
        if self._sound and self._sound.has_packets(self._first_pts * self._form.time_base):
            self._sound.attach(muxer.container)
        muxer.container.start_encoding()
        return muxer, stream

    def _open_sound(self, path: str, cut: bool) -> SoundCopy | None:
        sound = SoundCopy(path, cut)
        if not sound.codec or fits(path, self._form.container):
            return sound
        sound.close()
        if self._form.container == "webm":
            self.warnings.append(f"the sound is converted from {sound.codec} to Opus, as .webm takes no {sound.codec}")
            return OpusSound(path, cut)
        advice = "" if self._form.container == "matroska" else "; try .mkv"
        self.warnings.append(f"the sound is left out: {sound.codec} of this kind does not fit this file{advice}")
        return None

    def _packet(self, picture: EncodedPicture, pts: int, stream: av.VideoStream) -> VideoPacket:
        packet = cast(VideoPacket, av.Packet(picture.data))
        packet.stream, packet.time_base = stream, self._form.time_base
        packet.pts = packet.dts = pts - self._first_pts
        # The last frame lasts one frame; the muxer works out the others.
        packet.duration = max(1, round(1 / (self._form.rate * self._form.time_base)))
        packet.is_keyframe = picture.is_key
        if picture.alpha:
            packet.set_sidedata(_side_data(picture.alpha))
        return packet

    def _copy_sound(self, muxer: Muxer, until_s: Fraction | None, is_last: bool = False) -> None:
        if self._sound is None:
            return
        origin_s = self._first_pts * self._form.time_base
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
        """With how much of the file can be played."""
        kept = f"; {self.frames} of {self._handed_over} frames were kept" if self.frames else ""
        return write_failure(self.name, error, kept)


def write_failure(name: str, error: Exception, kept: str = "") -> MediaError:
    """What to tell of an error of FFmpeg's or of the system's, and of what was `kept`."""
    if getattr(error, "errno", None) in DISK_FULL_ERRORS:
        return MediaError(f"{name} cannot be written: the disk is full{kept}; choose another place")
    reason = getattr(error, "strerror", None) or error
    advice = "choose another place" if isinstance(error, OSError) else "the time stamps of the input may be absurd"
    return MediaError(f"{name} cannot be written ({reason}){kept}; {advice}")


def growing_time(pts: int, before: int, form: VideoForm) -> int:
    """When a picture is shown: at its own time, or a millisecond after the one before where that is not later.

    Matroska, which keeps milliseconds, takes no time that is later by less.
    """
    step = max(1, ceil(_STEP_S / form.time_base))
    least = step if form.container in ("matroska", "webm") else 1
    return pts if pts - before >= least else before + step


def padding_warnings(form: VideoForm) -> list[str]:
    """What is said of frames of an odd size."""
    if (form.width, form.height) == form.even_size:
        return []
    told = f"{form.width}x{form.height} is padded to {form.even_size[0]}x{form.even_size[1]}"
    return [f"{told} by repeating the edge, as videos need even sizes"]


def _side_data(alpha: bytes) -> PacketSideData:
    kind = packet_sidedata_type_from_literal(ALPHA_DATA)
    side_data = PacketSideData(kind, len(alpha))  # type: ignore[call-arg]  # PyAV's stubs lack its arguments
    side_data.update(alpha)
    return side_data
