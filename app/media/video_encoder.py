"""Encodes frames one by one, with an encoder that begins anew every 300 frames.

So 300 frames are the same bytes wherever they are encoded, whatever came before them and on however many cores: the
encoder counts frames, and knows neither their times nor what it runs on.
"""

import contextlib
import io
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

import av
import numpy as np
import numpy.typing as npt
from av.container import OutputContainer

from texelflow.gpu_delegate.base.errors import MediaError, UsageError

from ..picture.convert import FromRgba, Rgba
from .codecs import Codec, Encoding, choose_encoding

SEGMENT_FRAMES = 300
ENCODER_THREADS = 4  # H.264's slices are as many, so its bytes depend on it

CONTAINERS = {".mp4": "mp4", ".m4v": "mp4", ".mov": "mov", ".mkv": "matroska", ".webm": "webm"}  # for libavformat
ALPHA_DATA: Literal["matroska_block_additional"] = "matroska_block_additional"  # what FFmpeg calls it
_MOST_PIXELS = 1 << 16  # of a side; encoders take fewer
_LONGEST_FRAME_S = Fraction(1)  # that all encoders take
_LIMITED, _FULL = 1, 2  # AVColorRange
_RGB, _BT709 = 0, 1  # AVColorSpace; AVColorPrimaries and AVColorTransferCharacteristic of BT.709 have the same number


@dataclass(frozen=True)
class VideoForm:
    """All that decides how frames become a video: the ending of its name, sizes in pixels, and the rest of Recorder's.

    `time_base` is in seconds, `rate` in frames a second.
    """

    ending: str
    width: int
    height: int
    time_base: Fraction
    rate: Fraction
    sample_aspect_ratio: Fraction = Fraction(1)
    codec: Codec = "auto"
    quality: int | None = None
    alpha: bool = False

    def check(self) -> None:
        """Raise UsageError for what is no form of a video."""
        sizes = self.width, self.height
        rates = self.time_base, self.rate
        if not (all(type(size) is int and 0 < size <= _MOST_PIXELS for size in sizes) and min(rates) > 0):
            raise UsageError(f"no video is {self.width} by {self.height} pixels at {self.rate} frames a second")
        _ = self.encoding

    @property
    def encoding(self) -> Encoding:
        """Raises UsageError where nothing goes."""
        return choose_encoding(self.ending, self.codec, self.quality, self.alpha)

    @property
    def container(self) -> str:
        """libavformat's name of the container."""
        return CONTAINERS[self.ending]

    @property
    def even_size(self) -> tuple[int, int]:
        """Of the video: odd sizes are padded."""
        return self.width + self.width % 2, self.height + self.height % 2


@dataclass(frozen=True)
class EncodedPicture:
    """One frame; `alpha` is what Matroska keeps beside it."""

    data: bytes
    is_key: bool
    alpha: bytes = b""


def begins_anew(number: int) -> bool:
    """Whether the encoder does so before the frame of this number in a recording."""
    return number % SEGMENT_FRAMES == 0


class VideoEncoder:
    """Of all frames of one video, which come as RGBA, or all as I420."""

    def __init__(self, form: VideoForm, is_i420: bool) -> None:
        """Raises UsageError, and av.FFmpegError where the encoder does not take such frames."""
        self.form, self.is_i420 = form, is_i420
        self._encoding = form.encoding
        if is_i420 and self._encoding.alpha:
            raise UsageError("I420 has no transparency; give RGBA")
        self._convert = FromRgba(self._encoding.rgba_format)
        self._container, self.stream = self._open()
        self.extradata = bytes(self.stream.codec_context.extradata or b"")
        self._count = 0  # of frames that this encoder has taken

    def close(self) -> None:
        """Let go of the encoder; `stream`, which describes the video, is then no longer to be used."""
        self._container.close()

    def encode(self, rgba: Rgba) -> EncodedPicture:
        """One frame, uint8 (H, W, 4) of the form's size. Raises av.FFmpegError, MediaError."""
        height, width, _ = rgba.shape
        if (width, height) != self.form.even_size:
            rgba = np.pad(rgba, ((0, height % 2), (0, width % 2), (0, 0)), "edge")
        return self._encode(self._convert(rgba))

    def encode_i420(self, planes: npt.NDArray[np.uint8]) -> EncodedPicture:
        """One frame of the even size as tightly packed luma, Cb and Cr. Raises av.FFmpegError, MediaError."""
        rows = planes.reshape(self.form.even_size[1] * 3 // 2, self.form.even_size[0])
        frame = av.VideoFrame.from_ndarray(rows, format="yuv420p")
        if self._encoding.i420_format != "yuv420p":
            # In threads libswscale writes a little beyond rows, where another one has just written.
            frame = frame.reformat(format=self._encoding.i420_format, threads=1)
        return self._encode(frame)

    def _encode(self, frame: av.VideoFrame) -> EncodedPicture:
        if self._count and begins_anew(self._count):
            self._begin_anew()
        frame.pts, frame.time_base = self._count, self.stream.codec_context.time_base
        self._count += 1
        packets = self.stream.encode(frame)
        if len(packets) != 1:
            raise MediaError(f"{self._encoding.encoder} gives {len(packets)} packets for a frame; one is needed")
        (packet,) = packets
        return EncodedPicture(bytes(packet), packet.is_keyframe, bytes(packet.get_sidedata(ALPHA_DATA)))

    def _begin_anew(self) -> None:
        self.close()
        self._container, self.stream = self._open()
        if bytes(self.stream.codec_context.extradata or b"") != self.extradata:
            raise MediaError(f"{self._encoding.encoder} describes the same video in two ways")
        self._count = 0

    def _open(self) -> tuple[OutputContainer, av.VideoStream]:
        """A fresh encoder, in a container to which nothing is written, so that it is as one for such a file."""
        form, encoding = self.form, self._encoding
        options = {**encoding.options, **(encoding.i420_options if self.is_i420 else {})}
        with contextlib.ExitStack() as opened:
            container = opened.enter_context(av.open(io.BytesIO(), "w", format=form.container))
            stream = container.add_stream(encoding.encoder, rate=form.rate, options=options)
            assert isinstance(stream, av.VideoStream)
            stream.width, stream.height = form.even_size
            stream.pix_fmt = encoding.i420_format if self.is_i420 else encoding.rgba_format
            context = stream.codec_context
            context.time_base = min(1 / form.rate, _LONGEST_FRAME_S)
            context.sample_aspect_ratio = form.sample_aspect_ratio
            context.thread_count = ENCODER_THREADS
            is_yuv = stream.pix_fmt.startswith("yuv")
            context.color_range, context.colorspace = (_LIMITED, _BT709) if is_yuv else (_FULL, _RGB)
            context.color_primaries = context.color_trc = _BT709
            container.start_encoding()
            opened.pop_all()
        return container, stream
