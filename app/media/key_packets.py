"""Judges whether decoding can begin at a key packet without losing anything of what is shown from there on.

"Nothing" is what the standards say of frames that are shown at the key frame's time or later: none of them is decoded
from one before. That holds of every key frame of most codecs. H.264 has such ones (IDR) and others (open groups of
pictures, gradual refresh), which its key packets are searched for.
"""

import av

_SINGLE = "mjpeg png prores dnxhd rawvideo huffyuv utvideo dvvideo jpeg2000 bmp cfhd v210"  # of one picture each
_RENEWED = "vp8 vp9 av1 hevc mpeg1video mpeg2video"  # where no frame after a key frame may refer to one before
_ALWAYS = frozenset((_SINGLE + " " + _RENEWED).split())
_H264_SLICE, _H264_IDR = 1, 5  # types of units
_MARK = b"\x00\x00\x01"


class KeyPackets:
    """Judges the key packets of one stream."""

    def __init__(self, stream: av.VideoStream) -> None:
        context = stream.codec_context
        self._codec = context.name
        extra = context.extradata or b""
        self._length_bytes = (extra[4] & 3) + 1 if len(extra) > 4 and extra[0] == 1 else 0  # as mp4 and mkv have it

    def begins_anew(self, packet: "av.Packet[av.VideoStream]") -> bool:
        """Whether frames from that key frame on, in the order of display, are not decoded from any before it."""
        if self._codec != "h264":
            return self._codec in _ALWAYS
        data = bytes(packet)
        return h264_begins_anew(data, self._length_bytes)


def h264_begins_anew(data: bytes, length_bytes: int) -> bool:
    """Whether the first slice of a packet is of an IDR picture; its units have lengths of so many bytes, or marks."""
    at = 0
    while True:
        if length_bytes:
            size, at = int.from_bytes(data[at : at + length_bytes], "big"), at + length_bytes
        else:
            found = data.find(_MARK, at)
            size, at = 1, found + len(_MARK) if found >= 0 else len(data)
        if at >= len(data) or size == 0:
            return False
        kind = data[at] & 31
        if kind in (_H264_SLICE, _H264_IDR):
            return kind == _H264_IDR
        at += size
