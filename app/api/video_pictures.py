"""The public function video: finished pictures of a recording, a camera or a stream, one after the other."""

import os
import warnings
import weakref
from fractions import Fraction
from pathlib import Path
from types import TracebackType
from typing import Any

import cv2
import numpy as np

from .app.capture.opener import PATTERN, is_camera
from .app.media.recording import Position
from .app.media.sources import parse_position
from .app.models.decoders.found import Finding
from .app.names import scheme_of
from .app.outputs.picture_readers import FrameStamp
from .app.outputs.png_files import PIPE
from .app.picture.preprocess import ImageSize
from .app.replay.replay_options import ReplayOptions
from .app.settings.settings import Verb
from .gpu_delegate.base.errors import UsageError
from .picture_arrays import Pixels
from .picture_making import PictureMaking
from .setting_values import setting_values
from .words import in_words_of_python

__all__ = ["Video", "making_of", "video"]

_LATEST_S = 10**9


def video(
    source: str | os.PathLike[str] | int,
    *,
    start: int | float | str = 0,
    end: int | float | str | None = None,
    quiet: bool = False,
    **settings: Any,
) -> "Video":
    """Finished pictures of a recording, a camera or a stream, as `texelflow replay` and `texelflow live` make them.

    source: the path of a recording, of a picture, or a pattern of numbered pictures (shot_%04d.png); a camera's number
    or device (0, "/dev/video0"), a stream's address (rtsp://..., http://...) or "pattern", the test pattern.
    start, end: the first and the last picture of a recording, both included: a frame's number (120), seconds (4.5), or
    text as --from and --to take it ("4s", "1:02.5").
    quiet: show no progress; without it there is some on stderr where that is a terminal.
    settings: any setting of the command line by its name, for a recording those of replay (effect="replace",
    background="room", model="selfie", delay_video=False, ...), else those of live (size="640x480", fps=30, ...).
    `texelflow replay --help` lists them, with their ranges. What writes or shows pictures is not among them:
    texelflow.write writes.

    Every picture of a recording comes, as soon as it is asked for: decoding, drawing and reading go on ahead of the
    caller, on threads of their own. Of what is live the newest picture comes, and those that nobody asked for in time
    are left out.

        for picture in texelflow.video("talk.mp4", effect="replace", background="room"):
            ...  # uint8 (H, W, 3) RGB, or (H, W, 4) RGBA with effect="cutout"; row 0 on top; the caller's own

    Raises UsageError for settings that do not go together, MediaError for what cannot be read, CatalogueError,
    ModelError, UnsupportedError, DeviceError; those of compiling come with the first picture of a recording.
    """
    name = _name_of(source)
    live = name == PATTERN or is_camera(name) or (bool(scheme_of(name)) and not os.path.lexists(name))
    verb: Verb = "live" if live else "replay"
    if name == PIPE:
        raise UsageError("video '-': pictures of a pipe are for the command line; name a file")
    values = setting_values(verb, settings)
    if live:
        if start != 0 or end is not None:
            raise UsageError("start and end are for recordings: what is live begins now")
        values["camera"] = name
    first, last = _position("start", start), None if end is None else _position("end", end)
    with in_words_of_python():
        return Video(PictureMaking(ReplayOptions(Path(name), values, first, last), live, quiet))


class Video:
    """Pictures of a recording, a camera or a stream: what texelflow.video returns. An iterator, and a context manager.

        with texelflow.video("talk.mp4", effect="blur") as video:
            print(video.size, video.rate, video.frames)
            for picture in video:  # uint8 (H, W, 3) RGB
                print(video.index, video.time, video.findings)
        video.close()  # the `with` block has done that

    What it holds is freed with its last picture, by close(), at the end of a `with` block, or when it is forgotten, as
    at the end of a loop that was left early. It may be used from any thread, by one at a time.
    """

    def __init__(self, making: PictureMaking) -> None:
        """For texelflow.video, which makes one."""
        self._making = making
        weakref.finalize(self, making.close)

    @property
    def size(self) -> ImageSize:
        """(width, height) of the pictures, in pixels."""
        return self._making.size

    @property
    def rate(self) -> float:
        """Pictures a second on average; their own times may be uneven. 0 where nobody knows, of some cameras."""
        return self._making.rate

    @property
    def frames(self) -> int | None:
        """How many pictures there are in all, as far as the recording tells; None where nobody knows."""
        return self._making.frames

    @property
    def index(self) -> int:
        """The number of the picture that came last, in the whole recording, from 0. Raises UsageError before it."""
        return self._stamp.index

    @property
    def time(self) -> float:
        """When the picture that came last is shown, in seconds since the recording's first frame, of what is live since
        the first picture. Raises UsageError before it."""
        return self._stamp.time_ms / 1000

    @property
    def findings(self) -> tuple[Finding, ...]:
        """What a model that finds things found in the frame of the picture that came last, in its pixels, best first.

        Raises UsageError before it.
        """
        return self._stamp.findings

    def __iter__(self) -> "Video":
        return self

    def __next__(self) -> Pixels:
        """The next picture: uint8 (H, W, 3) RGB, or (H, W, 4) RGBA with effect="cutout". It is the caller's own.

        Raises MediaError where the recording cannot be read on, DeviceError, and UsageError in a process that was
        forked. A recording that is cut off, or damaged, ends with a RuntimeWarning.
        """
        data = self._making.take()
        if data is None:
            for line in self._making.take_warnings():
                warnings.warn(line, RuntimeWarning, stacklevel=2)
            raise StopIteration
        rgba = data.reshape(self.size[1], self.size[0], 4)
        return rgba if self._making.has_alpha else np.asarray(cv2.cvtColor(rgba, cv2.COLOR_RGBA2RGB), np.uint8)

    def close(self) -> None:
        """Free everything, and end all threads; no picture comes any more. Harmless when repeated."""
        self._making.close()

    def __reduce__(self) -> str:
        """There are no copies. Raises UsageError."""
        raise UsageError("a Video cannot be copied or pickled; call texelflow.video again")

    def __enter__(self) -> "Video":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        width, height = self.size
        return f"<texelflow.video {self._making.options.file.name!r}: {width}x{height}>"

    @property
    def _stamp(self) -> FrameStamp:
        if self._making.stamp is None:
            raise UsageError("index and time are those of the last picture, and none has come yet")
        return self._making.stamp


def making_of(video: Video) -> PictureMaking:
    """What makes the pictures of a video."""
    return video._making


def _name_of(source: object) -> str:
    """What is to be opened, as text. Raises UsageError."""
    if isinstance(source, bool) or not isinstance(source, int | str | os.PathLike):
        raise UsageError(
            f"a video is named by a path, an address or a camera's number, not by {type(source).__name__};"
            " of arrays texelflow.Pipeline makes pictures"
        )
    name = str(source) if isinstance(source, int) else os.fspath(source)
    if not isinstance(name, str):
        raise UsageError("a video's path is text, not bytes")
    if not name:
        raise UsageError("video '': a path, an address or a camera's number is needed")
    return name


def _position(which: str, value: object) -> Position:
    """Of a recording: a frame's number, or seconds. Raises UsageError."""
    if isinstance(value, str):
        return parse_position(value)
    if isinstance(value, int | float | Fraction) and not isinstance(value, bool) and 0 <= value <= _LATEST_S:
        return value if isinstance(value, int) else Fraction(value)
    raise UsageError(f"{which}={value!r}: a frame's number (120), seconds (4.5) or text ('1:02.5') is needed")
