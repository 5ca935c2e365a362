"""Copies the sound of a recording for the recorder: its packets, unchanged but for their times.

Where a container does not take their codec, the sound is converted to Opus.
"""

import io
from collections import deque
from collections.abc import Iterable, Iterator
from fractions import Fraction
from itertools import islice
from typing import TypeAlias

import av
from av import AudioFrame
from av.bitstream import BitStreamFilterContext

from .sources import open_recording

AudioPacket: TypeAlias = "av.Packet[av.AudioStream]"

_OPUS_RATE = 48000
_OPUS_CHANNEL_RATE = 64000  # bits a second


class SoundCopy:
    """The first sound track of a file, read in step with the pictures; `codec` is '' where there is none."""

    def __init__(self, path: str, cut: bool) -> None:
        """`cut`: leave out what begins before the first picture or after the last. Raises MediaError."""
        self.cut = cut
        self._container, _ = open_recording(path)
        self._source = next((stream for stream in self._container.streams.audio if stream.codec_context), None)
        self.codec = self._source.codec_context.codec.canonical_name if self._source else ""
        self._target: av.AudioStream | None = None
        self._filter: BitStreamFilterContext | None = None
        self._ahead: tuple[Fraction, AudioPacket] | None = None
        self._timed = self._read()
        self._ready: deque[AudioPacket] = deque()  # to be given next

    def close(self) -> None:
        """Close the file; harmless when repeated."""
        self._container.close()

    def attach(self, container: av.container.OutputContainer) -> None:
        """Add a stream of the same codec to the output; nothing where there is no sound. Raises av.FFmpegError."""
        if self._source is None:
            return
        self._target = container.add_stream_from_template(self._source)
        if self.codec == "aac" and not self._source.codec_context.extradata:
            # Broadcast AAC repeats its header in each packet; files want it once.
            self._filter = BitStreamFilterContext("aac_adtstoasc", self._source)

    def has_packets(self, origin_s: Fraction) -> bool:
        """Whether there are any to give. Seconds on the source's clock."""
        return self._next(origin_s) is not None

    def packets(self, origin_s: Fraction, until_s: Fraction | None) -> Iterator[AudioPacket]:
        """Packets not yet given that begin before until_s (None: all), their times shifted so that origin_s becomes 0.

        Both are seconds on the source's clock.
        """
        while True:
            while self._ready:
                yield self._ready.popleft()
            if (ahead := self._next(origin_s)) is None or (until_s is not None and ahead[0] >= until_s):
                return
            self._ahead = None
            self._ready.extend(self._converted(ahead[1], origin_s))

    def rest(self, origin_s: Fraction) -> Iterator[AudioPacket]:
        """What is still under way after the last packet, with times as those before."""
        return iter(())

    def _next(self, origin_s: Fraction) -> tuple[Fraction, AudioPacket] | None:
        """The packet to give next, with its seconds."""
        self._ahead = self._ahead or next(self._timed, None)
        while self._ahead and self.cut and self._ahead[0] < origin_s:
            self._ahead = next(self._timed, None)
        return self._ahead

    def _read(self) -> Iterator[tuple[Fraction, AudioPacket]]:
        """Packets with their seconds. Those without growing time stamps, which no container takes, are left out."""
        last_dts = None
        try:
            for packet in self._container.demux(self._source) if self._source else ():
                if packet.pts is None or packet.dts is None or (last_dts is not None and packet.dts <= last_dts):
                    continue
                last_dts = packet.dts
                yield packet.pts * packet.time_base, packet
        except av.FFmpegError:
            return  # cut off here: the pictures' source reports it

    def _converted(self, packet: AudioPacket, origin_s: Fraction) -> Iterator[AudioPacket]:
        """What becomes of a packet of the source."""
        _shift(packet, origin_s)
        for filtered in self._filter.filter(packet) if self._filter else [packet]:
            if self._target:
                filtered.stream = self._target
                yield filtered


class OpusSound(SoundCopy):
    """The same sound as Opus: in mono, or in stereo where it has more channels. Damaged packets are left out."""

    def attach(self, container: av.container.OutputContainer) -> None:
        """Add a stream of Opus to the output; nothing where there is no sound. Raises av.FFmpegError."""
        if self._source is None:
            return
        channels = min(self._source.codec_context.channels, 2)
        self._target = container.add_stream("libopus", rate=_OPUS_RATE)
        self._target.codec_context.layout = "mono" if channels == 1 else "stereo"
        self._target.codec_context.bit_rate = _OPUS_CHANNEL_RATE * channels

    def rest(self, origin_s: Fraction) -> Iterator[AudioPacket]:
        """What the decoder and the encoder still hold."""
        if self._target:
            yield from self._encoded([*self._decoded(None), None], origin_s)

    def _converted(self, packet: AudioPacket, origin_s: Fraction) -> Iterator[AudioPacket]:
        return self._encoded(self._decoded(packet), origin_s)

    def _decoded(self, packet: "AudioPacket | None") -> list[AudioFrame]:
        assert self._source
        try:
            return self._source.codec_context.decode(packet)
        except av.FFmpegError:
            return []

    def _encoded(self, frames: Iterable[AudioFrame | None], origin_s: Fraction) -> Iterator[AudioPacket]:
        assert self._target
        for frame in frames:
            if frame is None or frame.pts is not None:  # without a time it has no place
                for packet in self._target.encode(frame):
                    _shift(packet, origin_s)
                    yield packet


def _shift(packet: AudioPacket, origin_s: Fraction) -> None:
    """Let origin_s be 0."""
    shift = round(origin_s / packet.time_base)
    packet.pts = None if packet.pts is None else packet.pts - shift
    packet.dts = None if packet.dts is None else packet.dts - shift


def fits(path: str, container_format: str) -> bool:
    """Whether such a container takes the sound of the file: its first packets are muxed in memory."""
    sound = SoundCopy(path, cut=False)
    try:
        with av.open(io.BytesIO(), "w", format=container_format) as container:
            sound.attach(container)
            for packet in islice(sound.packets(Fraction(0), None), 2):
                container.mux(packet)
    except (av.FFmpegError, OverflowError, ValueError):  # the last where there is no place for such a codec
        return False
    finally:
        sound.close()
    return True
