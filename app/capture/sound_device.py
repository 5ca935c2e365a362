"""Lists and reads microphones with PyAV: ALSA, AVFoundation or DirectShow."""

import importlib
import os
import sys
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from time import perf_counter_ns, time_ns
from typing import Any

import av

from texelflow.gpu_delegate.base.wording import meant

from ..console import one_line
from ..media.sound_blocks import RATE_HZ, BlockDecoder, SoundBlock, duration_ns
from . import alsa
from .microphone import Blocks, Hear, Microphone
from .source import SourceError, SourceLostError
from .stamps import SANE_AGE_NS

DEFAULT = "default"
_FORMATS = {"linux": "alsa", "darwin": "avfoundation", "win32": "dshow"}
_BLOCK_BYTES = RATE_HZ // 100 * 4  # of PCM that are decoded at once: 10 ms of 16-bit stereo
_WINDOW_NS = 1_000_000_000
_EARLY_NS = 100_000_000  # stamps that are smoothed lie a little in the future at times
_MISSING_NS = 100_000_000  # stamps that jump so far tell of samples that were lost
_OPTIONS: Mapping[str, Sequence[Mapping[str, str]]] = {  # tried in this order
    "alsa": [{"sample_rate": str(RATE_HZ), "channels": channels} for channels in ("2", "1")],
    "avfoundation": [{}],
    "dshow": [{"audio_buffer_size": "20"}],  # milliseconds
}
_OF_PLUGINS = ("default", "pulse", "pipewire", "sysdefault:", "plughw:", "usbstream:")  # that hear something


@dataclass(frozen=True)
class MicrophoneInfo:
    """A microphone: what --microphone takes, and its name for a person."""

    microphone: str
    name: str


class ArrivalClock:
    """Says when blocks were heard: by their stamps where those are of the system's clock, else by when they came.

    Both jitter, a block never comes before it was heard, and samples themselves are regular: so they are counted, and
    the earliest of the last second tells how the count lies against our clock.
    """

    def __init__(self) -> None:
        self._counted_ns = 0
        self._readings: deque[tuple[int, int]] = deque()  # when a block came; where the count began by it

    def place(self, stamp_ns: int | None, samples: int, came_ns: int, wall_ns: int) -> int:
        """The first sample's time, of perf_counter; came_ns and wall_ns are one moment, by that and by the system's."""
        length_ns = duration_ns(samples)
        heard_ns = came_ns - length_ns
        if stamp_ns is not None and -_EARLY_NS <= wall_ns - stamp_ns <= SANE_AGE_NS:
            heard_ns = min(heard_ns, came_ns - (wall_ns - stamp_ns))
            if self._readings and heard_ns - self._counted_ns - self._start_ns > _MISSING_NS:
                self._readings.clear()
        self._readings.append((came_ns, heard_ns - self._counted_ns))
        while came_ns - self._readings[0][0] > _WINDOW_NS:
            self._readings.popleft()
        at_ns = self._start_ns + self._counted_ns
        self._counted_ns += length_ns
        return at_ns

    @property
    def _start_ns(self) -> int:
        return min(start_ns for _, start_ns in self._readings)


def open_microphone(name: str) -> Microphone:
    """By its name in `live --list`, or "default". Raises SourceError."""
    hear: Hear = partial(_hear, name)
    return Microphone(one_line(name), hear)


def list_microphones() -> tuple[MicrophoneInfo, ...]:
    """Those that the system tells of; fewer than there are on some, and none where it tells nothing."""
    form = _FORMATS.get(sys.platform, "alsa")
    alsa.prepare()
    try:
        devices: Sequence[Any] = importlib.import_module("av.device").enumerate_input_devices(form)
    except (ImportError, AttributeError, ValueError, av.FFmpegError):  # older versions of PyAV have no such module
        return ()
    if form == "alsa":
        devices = [device for device in devices if device.name.startswith(_OF_PLUGINS)]
    else:
        devices = [device for device in devices if "audio" in device.media_types]
    return tuple(MicrophoneInfo(_named(form, device), one_line(device.description)) for device in devices)


def _named(form: str, device: Any) -> str:
    """What opens it again: DirectShow's names are awkward, its descriptions are what FFmpeg takes as well."""
    return one_line(device.description if form == "dshow" else device.name)


def _target(form: str, name: str) -> str:
    """What FFmpeg calls it. Raises SourceError where there is none."""
    if form == "avfoundation":
        return f":{name}"
    if form == "alsa":
        return name
    if name == DEFAULT:
        if not (microphones := list_microphones()):
            raise SourceError("no microphone is plugged in; 'texelflow live --list' shows what is there")
        name = microphones[0].microphone
    return f"audio={name}"


def _hear(name: str) -> Blocks:
    form = _FORMATS.get(sys.platform, "alsa")
    alsa.prepare()
    container = _opened(form, name)
    return _blocks(container, name)


def _opened(form: str, name: str) -> av.container.InputContainer:
    target, reason = _target(form, name), ""
    for options in _OPTIONS[form]:
        try:
            return av.open(target, "r", format=form, container_options=dict(options))
        except (av.FFmpegError, ValueError) as error:
            reason = (getattr(error, "strerror", None) or str(error)).lower()
    help = alsa.alsa_advice(os.environ) if form == "alsa" else ""
    raise SourceError(
        f"microphone {one_line(name)} cannot be opened ({reason}): "
        + (help or "is it plugged in, and allowed? 'texelflow live --list' shows what is there")
        + meant(name, [each.microphone for each in list_microphones()])
    )


def _blocks(container: av.container.InputContainer, name: str) -> Blocks:
    """Until it is gone. Raises SourceLostError."""
    with container:
        stream = next(iter(container.streams.audio), None)
        if stream is None:
            raise SourceLostError("it gives no sound")
        decoder, clock = BlockDecoder(stream), ArrivalClock()
        try:
            for packet in _gathered(container, stream):
                came_ns, wall_ns = perf_counter_ns(), time_ns()
                for at_s, samples in decoder.decode(packet):
                    stamp_ns = None if at_s is None else round(at_s * 1e9)
                    yield SoundBlock(clock.place(stamp_ns, samples.shape[1], came_ns, wall_ns), samples)
        except av.FFmpegError as error:
            raise SourceLostError((error.strerror or "it was unplugged").lower()) from error


def _gathered(container: av.container.InputContainer, stream: av.AudioStream) -> Iterator["av.Packet[av.AudioStream]"]:
    """Packets of 10 ms at least: some drivers give a few samples at a time."""
    data, first = bytearray(), None
    is_pcm = stream.codec_context.name.startswith("pcm_")
    for packet in container.demux(stream):
        if not is_pcm:
            yield packet
            continue
        first = packet if first is None else first
        data += bytes(packet)
        if len(data) >= _BLOCK_BYTES:
            yield _joined(first, bytes(data))
            data, first = bytearray(), None


def _joined(first: "av.Packet[av.AudioStream]", data: bytes) -> "av.Packet[av.AudioStream]":
    joined: av.Packet[Any] = av.Packet(data)
    joined.time_base, joined.pts, joined.dts = first.time_base, first.pts, first.dts
    joined.stream = first.stream
    return joined
