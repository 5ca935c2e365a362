"""Decodes a video file to upright RGBA frames with the file's own time stamps.

Frames are found by decoding forward from the start, so that numbers and times are exact in every file, also where the
frame rate varies. A file that is cut off yields what decodes, and `FileSource.truncated` then says what is missing.
"""

import os
import re
from collections.abc import Iterator
from fractions import Fraction
from itertools import chain

import av

from texelflow.gpu_delegate.base.errors import MediaError, UsageError

from ..picture.convert import describe_color
from ..picture.video_frame import FrameMaker
from ..picture.video_frame import VideoFrame as VideoFrame
from .container import ContainerLayout, examine_container
from .image_header import HEAD_BYTES, kind_of_head
from .recording import Position as Position
from .recording import Recording
from .recording import VideoInfo as VideoInfo

MAX_SIDE = 16384  # the largest texture that desktop GPUs take
MAX_PIXELS = 128 * 1024 * 1024

# Demuxers that play one local file. Playlists and scripts that name other files, and text as video, are not among them.
_FORMATS = (
    "mov,matroska,webm,avi,mpegts,mpeg,flv,asf,ogg,mxf,nut,ivf,dv,gif,apng,rm,wtv,yuv4mpegpipe,h264,hevc,m4v,mjpeg,obu"
)
_LOST_INDEX = (
    "the recording was cut off before its index was written; try to recover it with untrunc and an intact clip from "
    "the same camera, and record to .mkv or fragmented .mp4, which survive this"
)

_FRAME_NUMBER = re.compile(r"[0-9]{1,12}")
_TIME = re.compile(r"(?:(?:(?P<h>[0-9]{1,4}):)?(?P<m>[0-9]{1,6}):)?(?P<s>[0-9]{1,9}(?:\.[0-9]{1,9})?)(?P<unit>s|ms)?")


def parse_position(text: str) -> Position:
    """'120' is a frame number; '3.5s', '3.5', '3500ms', '1:02' and '00:00:03.500' are times. Raises UsageError."""
    text = text.strip()
    if _FRAME_NUMBER.fullmatch(text):
        return int(text)
    match = _TIME.fullmatch(text)
    clock = ":" in text
    if match is None or (clock and match["unit"]):
        raise UsageError(f"'{text[:40]}' is not a position: give a frame number (120) or a time (3.5s, 00:00:03.500)")
    seconds = Fraction(match["s"]) / (1000 if match["unit"] == "ms" else 1)
    return seconds + 60 * int(match["m"] or 0) + 3600 * int(match["h"] or 0)


class FileSource(Recording):
    """A file as a Recording; `damaged_frames` counts packets and frames that did not decode soundly.

    Raises MediaError for what cannot be played, UsageError where the range is turned around.
    """

    def __init__(self, path: str | os.PathLike[str], first: Position = 0, last: Position | None = None) -> None:
        super().__init__(os.fspath(path), first, last)
        self._begin()
        self._size_bytes = self._container.size
        try:
            self.maker = FrameMaker(self._path, self._first_frame)
            self.info = self._describe(self._first_frame)
        except BaseException:
            self._container.close()
            raise

    def close(self) -> None:
        """Close the file; harmless when repeated."""
        self._container.close()

    def _begin(self) -> None:
        """Open the file, and decode its first frame. Raises MediaError."""
        self._packets = 0
        self._failure = ""  # of reading, in mid-file
        self._container, self._layout = self._open()
        try:
            self._stream = pick_stream(self._container, self._path)
            self._decoded = self._decode()
            self._first_frame = self._decode_first()
        except BaseException:
            self._container.close()
            raise

    def _open(self) -> tuple[av.container.InputContainer, ContainerLayout]:
        return open_recording(self._path)

    def _timed(self) -> Iterator[tuple[int, Fraction, av.VideoFrame]]:
        """Each frame with its pts and its seconds since the first; stamps missing or running backwards are made up."""
        start = previous = None
        for frame in chain([self._first_frame], self._decoded):
            previous = pts = self._pts_after(previous, frame)
            start = pts if start is None else start
            yield pts, (pts - start) * self.info.time_base, frame

    def _pts_after(self, previous: int | None, frame: av.VideoFrame) -> int:
        """A frame's time stamp, made up from the one before where it is missing or runs backwards."""
        pts = self._stamp(frame)
        if previous is None:
            return pts or 0
        step = max(1, round(1 / (self.info.average_rate * self.info.time_base)))
        return previous + step if pts is None else max(pts, previous + 1)

    def _stamp(self, frame: av.VideoFrame) -> int | None:
        """The time stamp that the file gives a frame."""
        if self._container.format.name != "avi" or self._first_frame.dts is None:
            return frame.pts
        # AVI knows no times of display: its frames, in the order of display, take the times of decoding.
        return None if frame.dts is None else frame.dts - self._first_frame.dts

    def _decode(self) -> Iterator[av.VideoFrame]:
        """Frames in the order of display. Damaged packets are counted and skipped; a reading error ends the file."""
        packets = self._container.demux(self._stream)
        while True:
            try:
                packet = next(packets)
            except StopIteration:
                return
            except (av.FFmpegError, IndexError) as error:  # PyAV does not know streams that appear in mid-file
                self._failure = getattr(error, "strerror", "a stream appeared")
                yield from self._decode_packet(None)
                return
            self._packets += packet.size > 0
            yield from self._decode_packet(packet)

    def _decode_packet(self, packet: "av.Packet[av.VideoStream] | None") -> list[av.VideoFrame]:
        try:
            frames = self._stream.codec_context.decode(packet)
        except av.FFmpegError:
            if packet is not None:
                self._count_damage(packet.pts)
            return []
        for frame in frames:
            if frame.is_corrupt:
                self._count_damage(frame.pts)
        return frames

    def _count_damage(self, pts: int | None) -> None:
        """Called for each packet and frame that did not decode soundly, with its time stamp."""
        self.damaged_frames += 1

    def _decode_first(self) -> av.VideoFrame:
        frame = next(self._decoded, None)
        if frame is None:
            if self._layout.cut_off:
                raise MediaError(f"'{self._path}' is cut off before its first whole frame; record or copy it again")
            raise MediaError(f"'{self._path}' holds no frame that can be decoded; the file is damaged, copy it again")
        check_picture_size(self._path, frame.width, frame.height)
        return frame

    def _note_missing_end(self, frames: int) -> None:
        """Called where the file ended by itself: compare what came with what the container promises."""
        promised = self._stream.frames
        if self._layout.cut_off:
            self.truncated = f"the file ends {self._layout.cut_off}; {frames} frames were there"
        elif self._failure:
            self.truncated = f"reading failed after {self._packets} frames ({self._failure})"
        elif self._layout.kind == "other" and self._packets < promised:
            self.truncated = f"the file promises {promised} frames; {frames} were there"
        elif self._container.size < self._size_bytes:
            self.truncated = f"the file shrank while it was read; {frames} frames were there"

    def _describe(self, frame: av.VideoFrame) -> VideoInfo:
        stream, turned = self._stream, self.maker.orientation.transpose
        aspect, rate = _aspect(stream), _rate(stream)
        duration_s = _duration_s(stream, self._container)
        matrix, levels = describe_color(frame)
        return VideoInfo(
            path=self._path,
            width=frame.height if turned else frame.width,
            height=frame.width if turned else frame.height,
            rotation=self.maker.orientation.clockwise_degrees,
            sample_aspect_ratio=1 / aspect if turned else aspect,
            average_rate=rate,
            time_base=stream.time_base or 1 / rate,
            frame_count=stream.frames or (max(1, round(duration_s * rate)) if duration_s else None),
            duration_s=duration_s,
            codec=stream.codec_context.name,
            pixel_format=frame.format.name,
            color_matrix=matrix,
            color_range=levels,
            has_audio=bool(self._container.streams.audio),
        )


def _unreachable(path: str) -> str:
    """Why there is nothing under a name; '' if there is something."""
    try:
        os.stat(path)
    except PermissionError as error:
        return f"cannot be read ({error.strerror}); check the permissions of the folders above it"
    except (OSError, ValueError):  # circular links, NUL
        is_link = os.path.lexists(path)
        return f"{'is a link that leads nowhere' if is_link else 'does not exist'}; check the spelling and the folder"
    return ""


def _is_still(path: str) -> bool:
    """Whether a file begins as a picture does."""
    try:
        with open(path, "rb") as file:
            return kind_of_head(file.read(HEAD_BYTES)) is not None
    except OSError:
        return False


def _check_file(path: str) -> ContainerLayout:
    """Refuse anything but a readable, non-empty regular file; return its layout."""
    if reason := _unreachable(path):
        raise MediaError(f"'{path}' {reason}")
    if os.path.isdir(path):
        raise MediaError(f"'{path}' is a folder; name a video file in it")
    if not os.path.isfile(path):
        raise MediaError(f"'{path}' is not a regular file; name a video file")
    try:
        if os.path.getsize(path) == 0:
            raise MediaError(f"'{path}' is empty; record or copy it again")
        return examine_container(path)
    except OSError as error:
        raise MediaError(f"'{path}' cannot be read ({error.strerror}); check its permissions") from error


def open_recording(path: str) -> tuple[av.container.InputContainer, ContainerLayout]:
    """Open a file for demuxing, and tell its layout. Raises MediaError. Reads no other file, whatever this one says."""
    layout = _check_file(path)
    options = {**allowed_formats(), "protocol_whitelist": "file"}
    try:
        container = av.open(f"file:{path}", "r", options={"max_pixels": str(MAX_PIXELS)}, container_options=options)
    except (av.FFmpegError, ValueError, UnicodeError) as error:
        if layout.kind == "mp4" and not layout.has_index:
            raise MediaError(f"'{path}' cannot be played: {_LOST_INDEX}") from error
        if layout.cut_off:
            raise MediaError(
                f"'{path}' is cut off {layout.cut_off}, and cannot be played; copy or record it again"
            ) from error
        if _is_still(path):
            raise MediaError(f"'{path}' is a picture, and a video is needed; replay takes pictures") from error
        raise MediaError(
            f"'{path}' is not a video in a known format, or is damaged; try mp4, mkv, webm, mov or avi"
        ) from error

    return container, layout


def allowed_formats(*others: str) -> dict[str, str]:
    """The option of FFmpeg's that keeps it to demuxers which play one recording, and these others."""
    return {"format_whitelist": ",".join((_FORMATS, *others))}


def pick_stream(container: av.container.InputContainer, path: str) -> av.VideoStream:
    """The first stream of moving pictures, cover art not counted, of a codec and a size that can be decoded."""
    streams = [
        s for s in container.streams if s.type == "video" and not s.disposition & av.stream.Disposition.attached_pic
    ]
    if not streams:
        raise MediaError(f"'{path}' has no video stream; name a file that has pictures")
    stream = streams[0]
    if not isinstance(stream, av.VideoStream) or stream.codec_context is None:
        raise MediaError(f"'{path}' is in a video codec that is not supported; convert it to H.264 first")
    check_picture_size(path, stream.codec_context.width, stream.codec_context.height)
    stream.codec_context.options = {"max_pixels": str(MAX_PIXELS)}
    if stream.codec_context.name == "h264":  # with threads FFmpeg leaves old memory in damaged pictures
        stream.codec_context.thread_type = "NONE"
    return stream


def check_picture_size(path: str, width: int, height: int) -> None:
    if max(width, height) > MAX_SIDE or width * height > MAX_PIXELS:
        raise MediaError(
            f"'{path}' is {width}x{height}; the limit is {MAX_SIDE} a side and {MAX_PIXELS >> 20} Mpx, so scale it down"
        )


def _aspect(stream: av.VideoStream) -> Fraction:
    """The stored pixels' width over height; 1 where the file gives none, or an implausible one."""
    aspect = stream.sample_aspect_ratio
    return aspect if aspect and Fraction(1, 16) <= aspect <= 16 else Fraction(1)


def _rate(stream: av.VideoStream) -> Fraction:
    """Frames per second on average; 30 where the file gives none, or an implausible one."""
    rates = (stream.average_rate, stream.guessed_rate)
    return next((rate for rate in rates if rate and Fraction(1, 3600) <= rate <= 1000), Fraction(30))


def _duration_s(stream: av.VideoStream, container: av.container.InputContainer) -> float | None:
    if stream.duration and stream.time_base:
        return float(stream.duration * stream.time_base)
    return container.duration / av.time_base if container.duration else None
