"""Makes small video files of the kinds that tests need, with PyAV."""

import struct
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import islice
from pathlib import Path

import av
import numpy as np
import numpy.typing as npt
from av.audio.frame import AudioFrame
from av.video.reformatter import VideoReformatter

from texelflow import assets

Rgb = npt.NDArray[np.uint8]
DEMO_CLIP = Path(assets.__file__).parent / "people.mp4"
SOUND_RATE = 48000


@dataclass(frozen=True)
class Recipe:
    """How a clip is encoded. color is (AVColorSpace, AVColorRange); pts are in units of time_base."""

    codec: str = "libx264"
    pixel_format: str = "yuv420p"
    rate: int = 30
    time_base: Fraction | None = None
    pts: Sequence[int] | None = None
    color: tuple[int, int] = (0, 0)
    aspect: Fraction | None = None
    sound: str | None = None
    codec_options: dict[str, str] = field(default_factory=lambda: {"crf": "4", "preset": "ultrafast"})
    container_options: dict[str, str] = field(default_factory=dict)


def numbered(count: int, width: int = 64, height: int = 48) -> list[Rgb]:
    """Plain gray frames, each a little brighter than the one before, so that `number_of` finds which one it is."""
    return [np.full((height, width, 3), 20 + 6 * index, np.uint8) for index in range(count)]


def number_of(rgba: npt.NDArray[np.uint8]) -> int:
    """Which frame of `numbered` this is, after encoding and decoding."""
    return round((float(rgba[..., :3].mean()) - 20) / 6)


def moving(count: int, width: int = 64, height: int = 48) -> list[Rgb]:
    """A color gradient with a bright bar that moves to the right."""
    y, x = np.mgrid[0:height, 0:width]
    still = np.stack([x * 200 // max(1, width - 1), y * 200 // max(1, height - 1), (x + y) % 200], -1).astype(np.uint8)
    frames = []
    for index in range(count):
        frame = still.copy()
        frame[:, 3 * index % width : 3 * index % width + 8] = 240
        frames.append(frame)
    return frames


def write_clip(path: Path, frames: Sequence[Rgb], recipe: Recipe = Recipe()) -> Path:
    """Encode frames (H, W, 3) to a file whose suffix tells the container; returns the path."""
    height, width, _ = frames[0].shape
    with av.open(str(path), "w", container_options=recipe.container_options) as container:
        stream = container.add_stream(recipe.codec, rate=recipe.rate, options=recipe.codec_options)
        assert isinstance(stream, av.VideoStream)
        stream.width, stream.height, stream.pix_fmt = width, height, recipe.pixel_format
        context = stream.codec_context
        if recipe.time_base:
            context.time_base = stream.time_base = recipe.time_base
        if recipe.aspect:
            context.sample_aspect_ratio = recipe.aspect
        matrix, levels = recipe.color
        context.colorspace, context.color_range = matrix or 2, levels
        sound = _Sound(container, recipe.sound) if recipe.sound else None
        scaler = VideoReformatter()  # one for all, since each takes a millisecond to make
        for index, rgb in enumerate(frames):
            picture = av.VideoFrame.from_ndarray(rgb, "rgb24")
            picture.colorspace = (
                matrix or 5
            )  # the scaler's target: its own option lacks BT.2020 in some versions of PyAV
            frame = scaler.reformat(
                picture,
                format=recipe.pixel_format,
                src_color_range=2,
                dst_color_range=levels or 1,
                interpolation=0x46004,
            )
            frame.pts = recipe.pts[index] if recipe.pts else index
            frame.time_base = recipe.time_base or Fraction(1, recipe.rate)
            container.mux(stream.encode(frame))
            if sound:
                sound.write(container, SOUND_RATE // recipe.rate)
        container.mux(stream.encode(None))
        if sound:
            container.mux(sound.stream.encode(None))
    return path


class _Sound:
    """A sine tone on a mono track."""

    def __init__(self, container: av.container.OutputContainer, codec: str) -> None:
        stream = container.add_stream(codec, rate=SOUND_RATE)
        assert isinstance(stream, av.AudioStream)
        stream.codec_context.layout = "mono"
        self.stream = stream
        self._samples = 0

    def write(self, container: av.container.OutputContainer, samples: int) -> None:
        times = np.arange(self._samples, self._samples + samples)
        name = self.stream.codec_context.format.name
        loudness, kind = {"f": (0.3, np.float32), "s16": (9000, np.int16), "s32": (1 << 28, np.int32)}[
            "f" if name.startswith("flt") else name[:3]
        ]
        wave = (np.sin(times * 0.05) * loudness).astype(kind)
        frame = AudioFrame.from_ndarray(wave[None], name, "mono")
        frame.sample_rate, frame.pts = SOUND_RATE, self._samples
        self._samples += samples
        container.mux(self.stream.encode(frame))


def beginning_of(source: Path, copy: Path, frames: int) -> Path:
    """The beginning of a recording, copied packet by packet; returns the copy's path."""
    with av.open(str(source)) as recording, av.open(str(copy), "w") as container:
        stream = container.add_stream_from_template(recording.streams.video[0])
        for packet in islice(recording.demux(recording.streams.video[0]), frames):
            packet.stream = stream
            container.mux(packet)
    return copy


def set_display_matrix(path: Path, a: int, b: int, c: int, d: int) -> None:
    """Write a matrix of -1, 0 and 1 into the track header of an mp4, as phones do for portrait recordings."""
    data = bytearray(path.read_bytes())
    start = data.index(b"tkhd") + 4 + 40  # after version, times, id, duration, layer, group and volume
    one = 1 << 16
    data[start : start + 36] = struct.pack(">9i", a * one, b * one, 0, c * one, d * one, 0, 0, 0, 1 << 30)
    path.write_bytes(data)


def time_of(frame: av.VideoFrame) -> Fraction:
    """The frame's time stamp in seconds."""
    assert frame.pts is not None
    assert frame.time_base is not None
    return frame.pts * frame.time_base


def packets(path: Path, kind: str) -> list[tuple[Fraction, bytes]]:
    """The times in seconds and the bytes of all packets of the first stream of a kind, 'video' or 'audio'."""
    with av.open(str(path)) as container:
        stream = next(stream for stream in container.streams if stream.type == kind)
        return [
            (packet.pts * packet.time_base, bytes(packet))
            for packet in container.demux(stream)
            if packet.pts is not None and packet.size
        ]
