"""The sound of a recording goes in; its packets, unchanged but for their times, come out for the recorder to mux."""

import io
from collections.abc import Iterator
from fractions import Fraction
from itertools import islice
from typing import TypeAlias

import av
from av.bitstream import BitStreamFilterContext

from .sources import open_recording

AudioPacket: TypeAlias = "av.Packet[av.AudioStream]"


class SoundCopy:
    """The first sound track of a file, read in step with the pictures; `codec` is '' where there is none."""

    def __init__(self, path: str, cut: bool) -> None:
        """`cut`: leave out what begins before the first picture or after the last. Raises MediaError."""
        self.cut = cut
        self._container, _ = open_recording(path)
        self._source = next((stream for stream in self._container.streams.audio if stream.codec_context), None)
        self.codec = self._source.codec_context.name if self._source else ""
        self._target: av.AudioStream | None = None
        self._filter: BitStreamFilterContext | None = None
        self._ahead: tuple[Fraction, AudioPacket] | None = None
        self._timed = self._read()

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
        while (ahead := self._next(origin_s)) is not None:
            start_s, packet = ahead
            if until_s is not None and start_s >= until_s:
                return
            self._ahead = None
            yield from self._shifted(packet, round(origin_s / packet.time_base))

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

    def _shifted(self, packet: AudioPacket, shift: int) -> Iterator[AudioPacket]:
        packet.pts = None if packet.pts is None else packet.pts - shift
        packet.dts = None if packet.dts is None else packet.dts - shift
        for filtered in self._filter.filter(packet) if self._filter else [packet]:
            if self._target:
                filtered.stream = self._target
                yield filtered


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
