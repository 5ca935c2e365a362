"""Asks a video device of Linux what it is, its modes and how its pictures lie in memory, without starting a stream.

Structures and numbers are those of linux/videodev2.h, the meaning of default colors that of its V4L2_MAP_* macros.
Reading a structure is a pure function of its bytes; asking a device is done through an `Ask`.
"""

import contextlib
import errno
import os
import struct
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from ..picture.picture import ImageSize, Matrix
from .modes import Mode
from .raw import ALIASES

if sys.platform != "win32":
    import fcntl

Ask = Callable[[int, bytearray], None]
"""ioctl: fills a structure in. Raises OSError, of EINVAL where an enumeration has ended."""

_POINTER_PAD = struct.calcsize("P") - 4
_CAPABILITY = struct.Struct("=16s32s32s3I12x")
_FORMAT_ENTRY = struct.Struct("=3I32sI16x")
_SIZE_ENTRY = struct.Struct("=9I8x")
_RATE_ENTRY = struct.Struct("=11I8x")
_SUBSCRIPTION = struct.Struct("=3I20x")
_EVENT = struct.Struct("@I0q64sIIll9I0q")  # as the machine aligns it
_FORMAT = struct.Struct(f"=I{_POINTER_PAD}x12I152x")

_READ, _WRITE = 2 << 30, 1 << 30


def _request(direction: int, number: int, form: struct.Struct) -> int:
    return direction | form.size << 16 | ord("V") << 8 | number


QUERYCAP = _request(_READ, 0, _CAPABILITY)
ENUM_FMT = _request(_READ | _WRITE, 2, _FORMAT_ENTRY)
G_FMT = _request(_READ | _WRITE, 4, _FORMAT)
S_FMT = _request(_READ | _WRITE, 5, _FORMAT)
ENUM_FRAMESIZES = _request(_READ | _WRITE, 74, _SIZE_ENTRY)
ENUM_FRAMEINTERVALS = _request(_READ | _WRITE, 75, _RATE_ENTRY)
DQEVENT = _request(_READ, 89, _EVENT)
SUBSCRIBE_EVENT = _request(_WRITE, 90, _SUBSCRIPTION)

_CAPTURE, _CAPTURE_PLANES, _MEMORY_TO_MEMORY, _OWN_CAPABILITIES = 0x1, 0x1000, 0xC000, 0x80000000
_SEND_INITIAL = 1  # of subscriptions: tell the present state at once
_DISCRETE = 1  # of frame sizes and of frame intervals
_MOST_ENTRIES = 256  # of any list; a driver's list may be endless
_COMMON_SIZES = ((320, 240), (640, 360), (640, 480), (800, 600), (1280, 720), (1920, 1080), (2560, 1440), (3840, 2160))
_COMMON_RATES = (120.0, 60.0, 50.0, 30.0, 25.0, 24.0, 20.0, 15.0, 10.0, 5.0)
_JPEG, _SMPTE240M, _REC709, _BT2020 = 7, 2, 3, 10  # of enum v4l2_colorspace
_ENCODINGS: dict[int, Matrix] = {1: "bt601", 2: "bt709", 3: "bt601", 4: "bt709", 6: "bt2020", 8: "smpte240m"}
_DEFAULT_ENCODINGS: dict[int, Matrix] = {_REC709: "bt709", _BT2020: "bt2020", _SMPTE240M: "smpte240m"}


@dataclass(frozen=True)
class VideoDevice:
    """What a device node says it is."""

    path: str
    name: str
    capabilities: int

    @property
    def captures(self) -> bool:
        """Whether pictures can be read from it: not those for metadata or output, nor encoders."""
        return bool(self.capabilities & (_CAPTURE | _CAPTURE_PLANES)) and not self.capabilities & _MEMORY_TO_MEMORY

    @property
    def buffer_type(self) -> int:
        """The kernel's number of what is captured: in one plane, or in several."""
        return 1 if self.capabilities & _CAPTURE else 9


@dataclass(frozen=True)
class Current:
    """The format that a device is set to."""

    pixels: str
    size: ImageSize
    stride_bytes: int
    size_bytes: int
    matrix: Matrix
    full_range: bool


def parse_device(path: str, data: bytes) -> VideoDevice:
    """Read struct v4l2_capability."""
    _, card, _, _, all_nodes, this_node = _CAPABILITY.unpack(data)
    return VideoDevice(path, _text(card), this_node if all_nodes & _OWN_CAPABILITIES else all_nodes)


def parse_sizes(data: bytes) -> tuple[ImageSize, ...]:
    """Read struct v4l2_frmsizeenum: one size; or of a range its ends, and what is common between them."""
    _, _, kind, *numbers = _SIZE_ENTRY.unpack(data)
    if kind == _DISCRETE:
        return ((numbers[0], numbers[1]),)
    least_w, most_w, step_w, least_h, most_h, step_h = numbers

    widths, heights = range(least_w, most_w + 1, max(1, step_w)), range(least_h, most_h + 1, max(1, step_h))
    common = (size for size in _COMMON_SIZES if size[0] in widths and size[1] in heights)
    return tuple(dict.fromkeys(((least_w, least_h), *common, (most_w, most_h))))


def parse_rates(data: bytes) -> tuple[float, ...]:
    """Read struct v4l2_frmivalenum, intervals in seconds, as frames per second; of a range those that are common."""
    _, _, _, _, kind, *numbers = _RATE_ENTRY.unpack(data)
    if kind == _DISCRETE:
        return _rates((numbers[0], numbers[1]))
    fastest, slowest = (_rates(pair) for pair in ((numbers[0], numbers[1]), (numbers[2], numbers[3])))
    if not fastest or not slowest:
        return fastest
    between = (rate for rate in _COMMON_RATES if slowest[0] < rate < fastest[0])
    return tuple(dict.fromkeys((*fastest, *between, *slowest)))


def parse_v4l2_format(data: bytes) -> Current:
    """Read struct v4l2_format of a single plane."""
    _, width, height, pixels, _, stride, size, colorspace, _, _, encoding, quantization, _ = _FORMAT.unpack(data)
    matrix = _ENCODINGS.get(encoding) or _DEFAULT_ENCODINGS.get(colorspace, "bt601")
    full_range = quantization == 1 or (quantization == 0 and colorspace == _JPEG)
    return Current(fourcc_name(pixels), (width, height), stride, size, matrix, full_range)


def parse_event(data: bytes) -> tuple[int, int]:
    """Read struct v4l2_event: its type, and the first number of what it tells."""
    kind, told, *_ = _EVENT.unpack(data)
    return kind, int.from_bytes(told[:4], sys.byteorder)


def fourcc_name(number: int) -> str:
    """The four characters of a format, by V4L2's name where there are several."""
    name = number.to_bytes(4, "little").decode("ascii", "replace")
    return ALIASES.get(name, name)


def modes_of(ask: Ask, buffer_type: int = 1) -> tuple[Mode, ...]:
    """All modes of a device, in its own order."""
    entries = _entries(ask, ENUM_FMT, lambda i: _FORMAT_ENTRY.pack(i, buffer_type, 0, b"", 0))
    codes = dict.fromkeys(_FORMAT_ENTRY.unpack(entry)[4] for entry in entries)
    modes = (
        Mode(fourcc_name(code), size, _rates_at(ask, code, size)) for code in codes for size in _sizes_of(ask, code)
    )
    return tuple(islice(modes, _MOST_ENTRIES))


def _sizes_of(ask: Ask, code: int) -> Iterable[ImageSize]:
    entries = _entries(ask, ENUM_FRAMESIZES, lambda i: _SIZE_ENTRY.pack(i, code, *[0] * 7))
    return dict.fromkeys(size for data in entries for size in parse_sizes(data))


def _rates_at(ask: Ask, code: int, size: ImageSize) -> tuple[float, ...]:
    entries = _entries(ask, ENUM_FRAMEINTERVALS, lambda i: _RATE_ENTRY.pack(i, code, *size, *[0] * 7))
    return tuple(sorted({rate for data in entries for rate in parse_rates(data)}, reverse=True))


def _entries(ask: Ask, request: int, blank: Callable[[int], bytes]) -> Iterator[bytes]:
    """The structures of a list, until the device says that there is no more."""
    for index in range(_MOST_ENTRIES):
        data = bytearray(blank(index))
        try:
            ask(request, data)
        except OSError:
            return
        yield bytes(data)


def _rates(interval: tuple[int, int]) -> tuple[float, ...]:
    seconds, per = interval
    return (round(per / seconds, 3),) if seconds and per else ()


def _text(raw: bytes) -> str:
    return raw.partition(b"\0")[0].decode("utf-8", "replace").strip()


@contextlib.contextmanager
def open_node(path: str) -> Iterator[Ask]:
    """Ask a device node; harmless to whoever else uses it. Raises OSError, on Windows always."""
    if sys.platform == "win32":
        raise OSError(errno.ENOSYS, "Windows has no video devices of Linux", path)
    else:
        handle = os.open(path, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
        try:

            def ask(request: int, data: bytearray) -> None:
                fcntl.ioctl(handle, request, data, True)

            yield ask
        finally:
            os.close(handle)


def device_at(ask: Ask, path: str) -> VideoDevice:
    """What is at a path. Raises OSError where it is no video device."""
    data = bytearray(_CAPABILITY.size)
    ask(QUERYCAP, data)
    return parse_device(path, bytes(data))


def current_format(ask: Ask, buffer_type: int = 1) -> Current:
    """The format that a device is set to. Raises OSError."""
    data = bytearray(_FORMAT.pack(buffer_type, *[0] * 12))
    ask(G_FMT, data)
    return parse_v4l2_format(bytes(data))


def state_by_event(ask: Ask, kind: int) -> int | None:
    """The number that events of this type tell, as it is now; None where the driver tells none at once.

    Raises OSError where it knows no such events.
    """
    ask(SUBSCRIBE_EVENT, bytearray(_SUBSCRIPTION.pack(kind, 0, _SEND_INITIAL)))
    data, told = bytearray(_EVENT.size), None
    with contextlib.suppress(OSError):  # no more events
        for _ in range(_MOST_ENTRIES):
            ask(DQEVENT, data)
            found, number = parse_event(bytes(data))
            told = number if found == kind else told
    return told


def is_busy(ask: Ask, buffer_type: int = 1) -> bool:
    """Whether another program streams from it: then it refuses even the format that it has."""
    data = bytearray(_FORMAT.pack(buffer_type, *[0] * 12))
    try:
        ask(G_FMT, data)
        ask(S_FMT, data)
    except OSError as error:
        return error.errno == errno.EBUSY
    return False


def nodes(folder: str = "/dev") -> tuple[str, ...]:
    """Paths of all video devices, by their numbers."""
    found = [path for path in Path(folder).glob("video*") if path.name[5:].isdigit()]
    return tuple(str(path) for path in sorted(found, key=lambda path: int(path.name[5:])))
