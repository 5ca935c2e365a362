"""Reads one picture file, or a numbered row of them, as a recording.

Numbers begin with the lowest that is there, and end before the first that is missing: then `truncated` says so. A
picture that cannot be decoded is counted as damaged and left out; the others keep their times.
"""

import os
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import partial

import av

from texelflow.gpu_delegate.base.errors import MediaError, UsageError

from ..picture.convert import describe_color
from ..picture.video_frame import FrameMaker
from .image_file import read_image_file
from .recording import Position, Recording, VideoInfo

RATE = Fraction(25)  # of pictures that state none, as FFmpeg has it
MOST_NAMES = 1_000_000  # in a folder that is listed
_MOST_DIGITS = 99
_SLOWEST, _FASTEST = Fraction(1, 3600), 1000
_PARTS = re.compile(r"(%%|%[0-9]{0,2}d)")

Decode = Callable[[], av.VideoFrame]
"""Gives one picture, upright. Raises MediaError."""


class ImageRecording(Recording):
    """Pictures as a Recording, the n-th at n / rate seconds. Those of other sizes are scaled to the first one's."""

    def __init__(
        self,
        path: str,
        pictures: Iterable[Decode],
        first: Position = 0,
        last: Position | None = None,
        rate: Fraction = RATE,
        count: int | None = None,
        missing: Callable[[], str | None] = lambda: None,
    ) -> None:
        """`count` is how many there are, if that is known; `missing` is asked after the last what there should be.

        Raises MediaError where there is no picture or the first is no good, UsageError for a rate out of range.
        """
        super().__init__(path, first, last)
        if not _SLOWEST <= rate <= _FASTEST:
            raise UsageError(f"{float(rate):g} frames per second: give a rate from 1/3600 to {_FASTEST}")
        self._pictures, self._rate, self._missing = iter(pictures), rate, missing
        decode = next(self._pictures, None)
        if decode is None:
            raise MediaError(f"'{path}' has no picture in it")
        self._first_frame = decode()
        self.maker = FrameMaker(path, self._first_frame)
        self.info = self._describe(count)

    def close(self) -> None:
        """Nothing is open."""

    def _timed(self) -> Iterator[tuple[int, Fraction, av.VideoFrame]]:
        yield 0, Fraction(0), self._first_frame
        for number, decode in enumerate(self._pictures, start=1):
            try:
                frame = decode()
            except MediaError:
                self.damaged_frames += 1
            else:
                yield number, number / self._rate, frame

    def _note_missing_end(self, frames: int) -> None:
        self.truncated = self._missing()

    def _describe(self, count: int | None) -> VideoInfo:
        frame = self._first_frame
        matrix, levels = describe_color(frame)
        return VideoInfo(
            path=self._path,
            width=frame.width,
            height=frame.height,
            rotation=0,
            sample_aspect_ratio=Fraction(1),
            average_rate=self._rate,
            time_base=1 / self._rate,
            frame_count=count,
            duration_s=None if count is None else float(count / self._rate),
            codec="image",
            pixel_format=frame.format.name,
            color_matrix=matrix,
            color_range=levels,
            has_audio=False,
        )


@dataclass(frozen=True)
class NumberedNames:
    """The names of files in a folder that differ by a number, which has leading zeros up to `digits` of them."""

    folder: str
    before: str
    digits: int
    after: str

    def name(self, number: int) -> str:
        """Of the file with a number."""
        return f"{self.before}{number:0{self.digits}d}{self.after}"

    def numbers(self) -> list[int]:
        """Of the files that are there, from the lowest up. Raises MediaError."""
        pattern = re.compile(rf"{re.escape(self.before)}([0-9]{{1,{_MOST_DIGITS}}}){re.escape(self.after)}")
        found = ((int(match[1]), name) for name in names_in(self.folder) if (match := pattern.fullmatch(name)))
        return sorted(number for number, name in found if self.name(number) == name)


def numbered_names(path: str) -> NumberedNames | None:
    """shot_%04d.png or shot_%d.png, as FFmpeg has it, %% for a percent sign; None for any other name."""
    folder, name = os.path.split(path)
    parts = _PARTS.split(name)
    places = [index for index, part in enumerate(parts) if _PARTS.fullmatch(part) and part != "%%"]
    if len(places) != 1:
        return None
    parts = [part.replace("%%", "%") for part in parts]
    before, place, after = "".join(parts[: places[0]]), parts[places[0]], "".join(parts[places[0] + 1 :])
    return NumberedNames(folder, before, int(place[1:-1] or 0), after)


def names_in(folder: str) -> list[str]:
    """What is in a folder, in no order. Raises MediaError where it cannot be listed, or holds more than MOST_NAMES."""
    names = list[str]()
    try:
        with os.scandir(folder or os.curdir) as entries:
            for entry in entries:
                names.append(entry.name)
                if len(names) > MOST_NAMES:
                    raise MediaError(
                        f"folder '{folder or os.curdir}' holds more than {MOST_NAMES} files; move some elsewhere"
                    )
    except OSError as error:
        raise MediaError(
            f"folder '{folder or os.curdir}' cannot be listed ({error.strerror}); check its name"
        ) from error
    return names


def open_image(path: str, first: Position = 0, last: Position | None = None, rate: Fraction = RATE) -> ImageRecording:
    """One image file, as a recording of one frame. Raises MediaError, UsageError."""
    return ImageRecording(path, [partial(read_image_file, path)], first, last, rate, 1)


def open_numbered(
    path: str, names: NumberedNames, first: Position = 0, last: Position | None = None, rate: Fraction = RATE
) -> ImageRecording:
    """The files that a pattern names, as one recording. Raises MediaError, UsageError."""
    numbers = names.numbers()
    if not numbers:
        raise MediaError(f"'{path}' is a pattern that no file fits; check the folder and the number of digits")
    start = numbers[0]
    count = next((at for at, number in enumerate(numbers) if number != start + at), len(numbers))
    left = len(numbers) - count
    missing = f"'{names.name(start + count)}' is missing; {left} behind it are left out" if left else None
    paths = (os.path.join(names.folder, names.name(start + at)) for at in range(count))
    pictures = (partial(read_image_file, each) for each in paths)
    return ImageRecording(path, pictures, first, last, rate, count, lambda: missing)
