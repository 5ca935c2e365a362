"""Plans the clips of the proof: descriptions of small recordings and pictures of every kind, the same each time.

An archive of them has folders in folders, odd names, several codecs, rates that vary, sound, rotation, odd sizes, a
recording of 20 minutes, and files that are broken.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from random import Random
from typing import Literal

Fault = Literal["no index", "garbage", "empty", "text", "cut off", "damaged"]
FAILING: tuple[Fault, ...] = ("no index", "garbage", "empty", "text")  # the others still play
_FAST = (("preset", "ultrafast"), ("crf", "20"))
_VP9 = (("deadline", "realtime"), ("cpu-used", "8"), ("b", "200k"))
_SIZES = ((96, 72), (128, 96), (160, 120), (192, 108), (240, 180), (320, 240))
_RATES = (10, 12, 15, 24, 25)
_LONG_NAME, _LONG_SECONDS, _LONG_RATE = "lectures/whole day.mp4", 20 * 60, 8


@dataclass(frozen=True)
class ClipKind:
    """How recordings of one kind are made; `turned` counts quarters."""

    suffix: str
    codec: str = "libx264"
    options: tuple[tuple[str, str], ...] = _FAST
    pixel_format: str = "yuv420p"
    sound: str | None = None
    varies: bool = False  # the time between frames
    turned: int = 0
    odd: bool = False  # width and height


@dataclass(frozen=True)
class PlannedClip:
    """One file of the archive. `name` is its path in it; a picture has one frame."""

    name: str
    kind: ClipKind
    size: tuple[int, int]
    rate: int
    frames: int
    seed: int
    fault: Fault | None = None

    @property
    def is_picture(self) -> bool:
        """Whether it is a picture, not a recording."""
        return self.kind.suffix in (".png", ".jpg", ".webp")

    @property
    def fails(self) -> bool:
        """Whether nothing can be made of it."""
        return self.fault in FAILING

    @property
    def is_long(self) -> bool:
        """Whether it is the one of 20 minutes."""
        return self.name == _LONG_NAME


_PLAIN = ClipKind(".mp4")
_LONG_GROUPS = ClipKind(".mp4", options=(("preset", "veryfast"), ("crf", "24"), ("g", "120"), ("bf", "3")))
_KINDS = (
    *(_PLAIN,) * 11,
    *(_LONG_GROUPS,) * 5,
    *(ClipKind(".mp4", sound="aac"),) * 6,
    *(ClipKind(".webm", "libvpx-vp9", _VP9),) * 5,
    *(ClipKind(".webm", "libvpx-vp9", _VP9, sound="libopus"),) * 2,
    *(ClipKind(".mkv", varies=True),) * 5,
    *(ClipKind(".mkv", varies=True, sound="flac"),) * 2,
    *(ClipKind(".mov", turned=turned) for turned in (1, 2, 3)),
    ClipKind(".mp4", sound="aac", turned=1),
    *(ClipKind(".webm", "libvpx-vp9", _VP9, odd=True),) * 2,
    *(ClipKind(".mkv", pixel_format="yuv444p", odd=True),) * 2,
    *(ClipKind(".avi", "mjpeg", (), "yuvj420p"),) * 2,
    *(ClipKind(".ts", "mpeg2video", ()),) * 2,
    ClipKind(".avi", "mpeg4", ()),
    ClipKind(".mkv", "libx265", (("preset", "ultrafast"), ("x265-params", "log-level=none")), varies=True),
    ClipKind(".mkv", "ffv1", ()),
    *(ClipKind(".png"), ClipKind(".jpg"), ClipKind(".webp"), ClipKind(".png", odd=True)),
)
_FAULTS: tuple[Fault, ...] = ("no index", "garbage", "empty", "text", "cut off", "damaged")
_FOLDERS = (
    "lectures/2019 spring", "lectures/2019 spring/part 2", "Bücher & Töne", "интервью", "講演/第一回",
    "camera trap/north", "camera trap/south [2]", "50% #1", ".",
)  # fmt: skip
_STEMS = ("talk", "Talk (final)", "clip 1.5", "naïve café", "виды", "録画", "it's", 'so "called"', "-dash", "a=b;c")


def planned_clips(fewer: int = 1) -> list[PlannedClip]:
    """The whole archive: 60 recordings, broken ones and the long one among them, and 4 pictures.

    `fewer` leaves only every so many of the plain ones, and that part of the long one.
    """
    clips = [_planned(number, kind) for number, kind in enumerate(_KINDS)][::fewer]
    broken = [_planned(100 + number, _PLAIN, fault) for number, fault in enumerate(_FAULTS)]
    frames = _LONG_SECONDS * _LONG_RATE // fewer
    long = PlannedClip(_LONG_NAME, ClipKind(".mp4", sound="aac"), (96, 72), _LONG_RATE, frames, 7)
    return [*clips, *broken, long, *_twins()]


def _twins() -> Iterator[PlannedClip]:
    """Recordings in one folder that differ in their ending alone."""
    for suffix in (".mp4", ".mkv"):
        yield PlannedClip(f"lectures/same{suffix}", ClipKind(suffix), (96, 72), 10, 30, len(suffix))


def _planned(number: int, kind: ClipKind, fault: Fault | None = None) -> PlannedClip:
    """Size, rate, length and name by chance."""
    choose = Random(f"clip {number}")
    width, height = choose.choice(_SIZES)
    if kind.odd:
        width, height = width - 1, height - 1
    rate, seconds = choose.choice(_RATES), choose.uniform(2, 12)
    name = f"{_STEMS[number % len(_STEMS)]} {number:02d}{kind.suffix}"
    folder = _FOLDERS[choose.randrange(len(_FOLDERS))]
    is_picture = kind.suffix in (".png", ".jpg", ".webp")
    frames = 1 if is_picture else round(rate * seconds)
    return PlannedClip(
        name if folder == "." else f"{folder}/{name}", kind, (width, height), rate, frames, number, fault
    )
