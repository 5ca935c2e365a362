"""Indexes a recording by its packets, undecoded: the time stamps of its frames and where decoding may begin.

Packets are quickly read, but not reliable: some give no frame, some share a time stamp. Seeking by them has to verify
what the decoder gives.
"""

import contextlib
import threading
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import av
import numpy as np

from texelflow.gpu_delegate.base.errors import MediaError

from .key_packets import KeyPackets
from .sources import open_recording, pick_stream

MOST_FRAMES = 1 << 22  # 38 hours at 30 a second; more are not listed
_POLL_S = 0.02


@dataclass(frozen=True)
class PacketTimes:
    """The times that packets state: `pts` of the frames in order of display, `key_pts` of the key frames among them.

    `key_seeks` are the stamps that find the key frames' packets when seeking. `sound` says that each packet has a stamp
    of its own, so that the n-th of `pts` may be taken for frame n. `key_exact`: decoding that begins at that key frame
    gives what decoding from the start gives, from it on. `key_packets` packets come before it in the file.
    """

    pts: Sequence[int]
    key_pts: Sequence[int]
    key_seeks: Sequence[int]
    sound: bool
    key_exact: Sequence[int] = ()  # 1 or 0
    key_packets: Sequence[int] = ()

    def index_at(self, pts: int) -> int:
        """The number of the frame that is on the screen at a time stamp; 0 before the first."""
        return max(0, bisect_right(self.pts, pts) - 1)

    def keyframe_before(self, index: int) -> int:
        """The number of the last key frame up to a frame; 0 where there is none."""
        if not self.pts:
            return 0
        keys = bisect_right(self.key_pts, self.pts[min(max(0, index), len(self.pts) - 1)])
        return bisect_left(self.pts, self.key_pts[keys - 1]) if keys else 0


@dataclass(frozen=True)
class KeyPacket:
    """What a packet tells of a key frame: as PacketTimes has it."""

    pts: int
    seek: int
    exact: bool = False
    packets: int = 0


def arrange(stamps: Sequence[int], keys: Sequence[KeyPacket], sound: bool = True) -> PacketTimes:
    """Times of packets given in any order; a stamp that two packets share is kept once, and then `sound` is false."""
    in_order = np.unique(np.array(stamps, np.int64))
    ordered = sorted(keys, key=lambda key: key.pts)
    return PacketTimes(
        array("q", in_order.tobytes()),
        array("q", [key.pts for key in ordered]),
        array("q", [key.seek for key in ordered]),
        sound and len(in_order) == len(stamps) > 0,
        array("b", [key.exact for key in ordered]),
        array("q", [key.packets for key in ordered]),
    )


class PacketIndex:
    """Reads all packets of a file on a thread of its own; `packet_times` is None until it has them.

    pts are those of FileSource's frames: `offset` is what it takes from the stamps of an AVI file, else 0.
    """

    def __init__(self, path: str, offset: int = 0) -> None:
        self.packet_times: PacketTimes | None = None
        self._path, self._offset = path, offset
        self._ready, self._unwanted = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    @property
    def count(self) -> int | None:
        """How many frames the packets promise."""
        return len(self.packet_times.pts) if self.packet_times else None

    def index_at(self, pts: int) -> int | None:
        """The number of the frame that is on the screen at a time stamp."""
        return self.packet_times.index_at(pts) if self.packet_times else None

    def keyframe_before(self, index: int) -> int | None:
        """The number of the last key frame up to a frame; 0 where there is none."""
        return self.packet_times.keyframe_before(index) if self.packet_times else None

    def wait(self, timeout_s: float, unwanted: Callable[[], bool] = lambda: False) -> None:
        """Until `packet_times` are there, or the time is over, or `unwanted` says so."""
        for _ in range(round(timeout_s / _POLL_S)):
            if self._ready.wait(_POLL_S) or unwanted():
                return

    def close(self) -> None:
        """End the thread; harmless when repeated."""
        self._unwanted.set()
        self._thread.join()

    def _run(self) -> None:
        try:
            self.packet_times = read_packet_times(self._path, self._offset, lambda stamp: self._unwanted.is_set())
        except MediaError:  # the file vanished or changed since it was opened for playing, which will tell
            self.packet_times = arrange([], [], sound=False)
        finally:
            self._ready.set()


def read_packet_times(path: str, offset: int = 0, enough: Callable[[int], bool] = lambda stamp: False) -> PacketTimes:
    """The times of all packets of a file, or of the first ones, until `enough` says so of the last one's.

    `offset` is taken from the stamps of an AVI file, as FileSource does. Raises MediaError where the file cannot be
    read at all.
    """
    container, _ = open_recording(path)
    with container:
        return _read_times(container, pick_stream(container, path), offset, enough)


def _read_times(
    container: av.container.InputContainer, stream: av.VideoStream, offset: int, enough: Callable[[int], bool]
) -> PacketTimes:
    stamps, keys = array("q"), list[KeyPacket]()
    by_dts = container.format.name == "avi"
    by_pts = "matroska" in container.format.name  # whose index has times of display; others seek by decoding time
    sound, count, of_keys = not by_dts, 0, KeyPackets(stream)
    for packet in _packets(container, stream):
        before, count = count, count + (packet.size > 0)
        if packet.is_discard:
            continue
        stamp = packet.dts if by_dts else packet.pts
        if stamp is None or len(stamps) == MOST_FRAMES:
            sound = False
            continue
        sound = sound and packet.size > 0 and not packet.is_corrupt
        stamps.append(stamp - offset)
        if packet.is_keyframe:
            seek = stamp if by_pts or packet.dts is None else packet.dts
            keys.append(KeyPacket(stamp - offset, seek, of_keys.begins_anew(packet), before))
        if enough(stamp - offset):
            break
    return arrange(stamps, keys, sound)


def _packets(container: av.container.InputContainer, stream: av.VideoStream) -> Iterator["av.Packet[av.VideoStream]"]:
    """Those that there are, until the file ends or reading fails."""
    with contextlib.suppress(av.FFmpegError, IndexError):  # of streams that appear in mid-file, as in FileSource
        for packet in container.demux(stream):
            is_last = packet.size == 0 and packet.pts is None  # tells decoders that the file ends
            if not is_last:
                yield packet
