"""Opens the address of a stream as a source of pictures: MJPEG over HTTP, RTSP, RTP, UDP and TCP."""

import errno
from fractions import Fraction
from time import perf_counter_ns
from typing import Any

import av
from av.codec.context import Flags

from texelflow.gpu_delegate.base.errors import MediaError

from ..media.sources import MAX_PIXELS, MAX_SIDE, pick_stream
from ..picture.video_frame import FrameMaker, orientation_of, picture_format
from .http_stream import DigestWantedError, public, request
from .mjpeg import MjpegSource
from .source import CapturedFrame, CaptureRequest, Source, SourceError, SourceLostError
from .stream_sound import StreamSound

SCHEMES = ("http", "https", "rtsp", "rtsps", "udp", "rtp", "tcp")
_REQUEST_S, _OPEN_S, _READ_S = 4.0, 6.0, 2.0
_MOST_FPS = 1000
# Neither playlists nor scripts, which name other files; no protocol that reads files.
_FORMATS = "rtsp,rtp,sdp,mpegts,mpjpeg,mjpeg,h264,hevc,m4v,mpeg,flv,matroska,webm,mov,ogg,nut,asf"
_PROTOCOLS = "rtsp,rtsps,rtp,srtp,udp,tcp,tls,http,https,httpproxy"
_MJPEG = ("multipart/", "video/x-motion-jpeg", "video/x-mjpeg", "video/mjpeg")
_NO_VIDEO = (av.error.InvalidDataError, av.error.ArgumentError)  # the second: in a format that is not allowed
_LOW_LATENCY = {
    "fflags": "nobuffer+discardcorrupt",
    "flags": "low_delay",
    "analyzeduration": "2000000",
    "probesize": "1000000",
    "max_delay": "100000",
}
_OF_SCHEME = {
    "rtsp": {"rtsp_flags": "prefer_tcp"},
    "rtsps": {"rtsp_flags": "prefer_tcp"},
    "udp": {"overrun_nonfatal": "1", "fifo_size": "8192"},
    "http": {"strict_mime_boundary": "0"},
    "https": {"strict_mime_boundary": "0"},
}


def open_network(url: str, requested: CaptureRequest) -> Source:
    """The stream, in its own size and rate, whatever is wanted. Raises SourceError."""
    scheme = url.partition("://")[0].lower()
    if scheme in ("http", "https"):
        try:
            stream = request(url, _REQUEST_S)
        except DigestWantedError:
            return StreamSource(url, requested.sound)
        if stream.content_type.startswith(_MJPEG):
            return MjpegSource(stream, public(url))
        stream.close()
        if stream.content_type.startswith(("image/", "text/")):
            raise SourceError(
                f"{public(url)} is {stream.content_type}, not a stream of pictures; look for the stream's"
            )
    return StreamSource(url, requested.sound)


class StreamSource:
    """A stream that FFmpeg reads. Implements Source. Its own stamps say nothing of the camera's clock.

    A picture's time is when its last packet arrived. Of pictures that are decoded at once the newest is delivered.
    """

    stamps = "arrival"
    may_stand_still = False

    def __init__(self, url: str, sound: bool = False) -> None:
        """Waits for the first picture. Raises SourceError."""
        self._name = name = public(url)
        scheme = url.partition("://")[0].lower()
        options = {"format_whitelist": _FORMATS, "protocol_whitelist": _PROTOCOLS, **_LOW_LATENCY}
        try:
            self._container = av.open(
                url,
                "r",
                options={"max_pixels": str(MAX_PIXELS)},
                container_options=options | _OF_SCHEME.get(scheme, {}),
                timeout=(_OPEN_S, _READ_S),
            )
        except (av.FFmpegError, ValueError, UnicodeError) as error:
            raise SourceError(f"{name} cannot be opened: {_reason(error)}") from error
        try:
            self._stream = pick_stream(self._container, name)
            self._stream.codec_context.thread_type = "NONE"  # threads would hold pictures back
            self._stream.codec_context.flags |= Flags.low_delay
            heard = next((stream for stream in self._container.streams.audio if stream.codec_context), None)
            self._sound = StreamSound(heard) if sound and heard else None
            self._packets = self._container.demux([self._stream, *([heard] if self._sound and heard else [])])
            self._maker: FrameMaker | None = None
            self._first: CapturedFrame | None = self._next(_OPEN_S)
        except MediaError as error:
            self.close()
            raise SourceError(str(error)) from error
        self.format = self._first.picture.format
        self.fps = _rate(self._stream.average_rate)
        width, height = self.format.upright_size
        self.description = f"{name}, {self._stream.codec_context.name} {width}x{height}" + (
            f", {self.fps:.3g} fps" if self.fps else ""
        )

    def read(self) -> CapturedFrame:
        """The next picture. Raises SourceLostError."""
        first, self._first = self._first, None
        return first or self._next(_READ_S)

    def close(self) -> None:
        """Leave the stream; harmless when repeated."""
        self._container.close()

    def _next(self, patience_s: float) -> CapturedFrame:
        deadline_ns = perf_counter_ns() + int(patience_s * 1e9)
        while perf_counter_ns() < deadline_ns:
            packet = self._receive()
            start_ns = perf_counter_ns()
            if packet.stream_index != self._stream.index:
                if self._sound:
                    self._sound.take(packet)
            elif frames := self._decode(packet):
                return self._captured(frames[-1], start_ns, len(frames) - 1)
        raise SourceLostError(f"{self._name} sends no picture that can be decoded")

    def _receive(self) -> "av.Packet[Any]":
        try:
            return next(self._packets)
        except StopIteration:
            raise SourceLostError(f"{self._name} has ended") from None
        except (av.FFmpegError, IndexError, ValueError) as error:  # PyAV ignores streams that appear later
            if isinstance(error, av.error.ExitError | TimeoutError):
                raise SourceLostError(f"no picture from {self._name} for {_READ_S:g} s") from error
            raise SourceLostError(f"{self._name} was cut off: {_reason(error)}") from error

    def _decode(self, packet: "av.Packet[av.VideoStream]") -> list[av.VideoFrame]:
        try:
            frames = self._stream.codec_context.decode(packet)
        except av.FFmpegError:
            return []
        return [frame for frame in frames if max(frame.width, frame.height) <= MAX_SIDE]

    def _captured(self, frame: av.VideoFrame, start_ns: int, skipped: int) -> CapturedFrame:
        if self._maker is None or picture_format(frame, orientation_of(frame)) != self._maker.format:
            self._maker = FrameMaker(self._name, frame)
        try:
            made = self._maker.make(0, 0, 0.0, frame, start_ns)
        except MediaError as error:
            raise SourceLostError(str(error)) from error
        sound = self._sound.with_picture(frame.time, start_ns) if self._sound else ()
        return CapturedFrame(made.picture, start_ns, start_ns, made.decode_ms, made.convert, skipped, sound)


def _rate(rate: Fraction | None) -> float:
    return float(rate) if rate and 0 < rate <= _MOST_FPS else 0.0


def _reason(error: Exception) -> str:
    """Why FFmpeg failed, in plain words."""
    if isinstance(error, av.error.ExitError | TimeoutError):
        return "it does not answer in time"
    if isinstance(error, _NO_VIDEO):
        return "it is no video in a known format"
    if isinstance(error, OSError) and error.errno == errno.EIO:
        return "no such host, or it closed the connection"
    if isinstance(error, av.FFmpegError):
        return (error.strerror or "the connection failed").lower()
    return "the address is not valid"
