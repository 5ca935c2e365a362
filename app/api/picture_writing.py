"""The public function write: pictures to a video file, or to PNG files, as `texelflow replay --out` writes them."""

import os
import warnings
from collections.abc import Iterable
from numbers import Real
from pathlib import Path
from time import perf_counter, sleep
from typing import Any

import numpy as np

from .app.files import FileKind, Files, Read, Write, look_at, objections
from .app.media.codecs import TRANSPARENT, USUAL_QUALITY, choose_encoding
from .app.names import local_name
from .app.outputs.file_sinks import PictureSink, PngSink, Timing, VideoSink, Writing, nominal_rate
from .app.outputs.output_worker import MOST_KEPT_FRAMES, Sink
from .app.outputs.picture_readers import FrameStamp, StampedBytes
from .app.outputs.png_files import PIPE, is_picture, wants_folder
from .app.settings.settings import defaults, with_values
from .app.threads import Worker
from .camera_showing import VirtualCamera
from .gpu_delegate.base.errors import UsageError
from .picture_arrays import Pixels, over_black, pixels_of, rgba_of_pixels
from .picture_making import PictureMaking
from .video_pictures import Video, making_of
from .words import in_words_of_python

__all__ = ["write"]

_RATE = 30.0


def write(
    path: "str | os.PathLike[str] | VirtualCamera",
    pictures: Iterable[Any],
    *,
    like: Video | None = None,
    rate: float | None = None,
    codec: str = "auto",
    quality: int = USUAL_QUALITY,
    force: bool = False,
) -> int:
    """Write pictures to a file or a folder, and return how many there were.

    path: a video (.mp4, .m4v, .mov, .mkv, .webm), a folder, which gets PNG files named by their pictures' numbers
    (000000.png), or for a single picture a .png file. A folder has no ending, or is there already. Or a VirtualCamera,
    which shows each picture when its time has come.
    pictures: what texelflow.video returns, or any iterable of pictures of one size: uint8 (H, W, 3) RGB, (H, W, 4)
    RGBA, which keeps its transparency in .mov, .webm and PNG files and is laid over black elsewhere, with a
    RuntimeWarning, or (H, W) gray. NumPy arrays of any layout, what speaks DLPack (PyTorch), Pillow's images.
    like: of pictures that were made of those of a texelflow.video one by one: they get the time stamps, the sound and
    the shape of pixels of that video, and PNG files its numbers. Without it pictures come evenly, `rate` of them in a
    second (30).
    codec: "auto", which is what the ending is for, or "h264", "vp9", "prores", "ffv1". quality: of videos, 0 (small
    files) to 100.
    force: whether what is there may be written over.

        texelflow.write("out.webm", texelflow.video("talk.mp4", effect="cutout"))

        video = texelflow.video("talk.mp4", effect="blur")
        texelflow.write("out.mp4", (picture[::-1] for picture in video), like=video)

    A video that nobody has taken a picture of is written as `texelflow replay --out` writes it with the same settings:
    the same PNG files to the byte, the same frames, times and sound. Every picture is in the file as soon as it is
    encoded; what is interrupted, by Ctrl-C or an error, leaves a file that can be played.

    Raises UsageError for names, pictures and options that do not go together, MediaError for what cannot be written;
    and what the pictures raise.
    """
    if isinstance(pictures, str | os.PathLike):
        named = os.fspath(pictures)
        if not isinstance(path, str | os.PathLike | VirtualCamera):
            raise UsageError(f"the path comes first: texelflow.write({named!r}, pictures)")
        raise UsageError(f"pictures are an iterable of arrays, not a name; texelflow.video({named!r}) has a file's")
    if isinstance(pictures, np.ndarray) or not isinstance(pictures, Iterable):
        given = type(pictures).__name__
        raise UsageError(f"pictures are an iterable of arrays, not one {given}; give a list: [picture]")
    if like is not None and not isinstance(like, Video):
        raise UsageError(f"like={like!r}: what texelflow.video returned is needed")
    if rate is not None and like is not None:
        raise UsageError("rate and like go not together: pictures come evenly, or at the times of that video's")
    if rate is not None and not _is_rate(rate):
        raise UsageError(f"rate={rate!r}: pictures a second are needed, from 0.001 to 1000")
    itself = making_of(pictures) if isinstance(pictures, Video) and rate is None else None
    source = making_of(like) if like else itself
    timing = (
        source.timing if source else Timing(1 / nominal_rate(float(rate or _RATE)), nominal_rate(float(rate or _RATE)))
    )
    if isinstance(path, VirtualCamera):
        return _show_each(path, pictures, source, timing)
    out = _named(path)
    with in_words_of_python():
        values = with_values(defaults("replay"), {"codec": codec, "quality": quality})
        writing = Writing(values.codec, None if values.quality == USUAL_QUALITY else values.quality)
        if not (wants_folder(out) or is_picture(out)):
            choose_encoding(out.suffix.lower(), writing.codec, writing.quality)
    _check_place(out, source, force)
    if itself and itself is source and itself.is_untouched and _keeps(out, itself):
        frames = itself.write_all({"out": str(out), "codec": values.codec, "quality": values.quality})
        _warn(itself.take_warnings(), 1)
        return frames
    return _write_each(out, pictures, source, timing, writing)


def _named(path: object) -> Path:
    """Where pictures go. Raises UsageError."""
    name = os.fspath(path) if isinstance(path, str | os.PathLike) else None
    if not isinstance(name, str) or not name:
        given = repr(path) if isinstance(path, str | bytes | int | float | None) else type(path).__name__
        raise UsageError(f"path={given}: the name of a video file, or of a folder for PNG files, is needed")
    if name == PIPE:
        raise UsageError("path '-': pipes are for the command line; name a file or a folder")
    return Path(local_name(os.path.expanduser(name)))


def _is_rate(rate: object) -> bool:
    return isinstance(rate, Real) and not isinstance(rate, bool) and 0.001 <= float(rate) <= 1000


def _check_place(out: Path, source: PictureMaking | None, force: bool) -> None:
    """Raise UsageError for what must not be written."""
    reads = tuple(Read("the video itself", file) for file in source.files) if source else ()
    kind: FileKind = "pictures" if wants_folder(out) else "picture" if is_picture(out) else "video"
    files = Files(reads, (Write("path", out, kind),))
    for objection in objections(files, look_at(files)):
        if not (force and objection.question):
            raise UsageError(objection.line.replace("--force", "force=True"))


def _keeps(out: Path, video: PictureMaking) -> bool:
    """Whether a file of that name keeps the transparency that the pictures have, if they have any."""
    return not video.has_alpha or wants_folder(out) or is_picture(out) or out.suffix.lower() in TRANSPARENT


def _write_each(
    out: Path, pictures: Iterable[Any], source: PictureMaking | None, timing: Timing, writing: Writing
) -> int:
    """Each picture as it comes, encoded on another thread."""
    file: _PictureFile | None = None
    stamp: FrameStamp | None = None
    try:
        for count, picture in enumerate(pictures):
            pixels = pixels_of(picture)
            file = file or _PictureFile(out, pixels, timing, writing)
            stamp, before = _stamp(source, count), stamp
            if count == 1 and stamp == before:  # not of the last one, which programs that look ahead make at the end
                raise UsageError("like=... is a video that was not taken one by one: give a generator, or a rate")
            file.put(stamp, pixels)
    except BaseException:
        if file:
            file.end(complete=False)
        raise
    if file is None:
        raise UsageError(f"there is no picture to write to '{out}'")
    file.end(complete=source is None or source.is_complete)
    file.check()
    return file.count


def _show_each(camera: VirtualCamera, pictures: Iterable[Any], source: PictureMaking | None, timing: Timing) -> int:
    """Each picture at its time; those of what is live as they come."""
    count, began_s = 0, None
    for picture in pictures:
        if not (source and source.live):
            due_s = float(_stamp(source, count).pts * timing.time_base)
            began_s = perf_counter() - due_s if began_s is None else began_s
            sleep(max(0.0, began_s + due_s - perf_counter()))
        camera.send(picture)
        count += 1
    return count


def _stamp(source: PictureMaking | None, count: int) -> FrameStamp:
    """Of the picture of that number. Raises UsageError where its video has given none yet."""
    if source is None:
        return FrameStamp(count, count)
    if source.stamp is None:
        raise UsageError("like=... is a video of which no picture has been taken: take them one by one, or give a rate")
    return source.stamp


class _PictureFile:
    """The file or folder of pictures of one size; all errors but those of put() are kept for check()."""

    def __init__(self, out: Path, first: Pixels, timing: Timing, writing: Writing) -> None:
        """Raises UsageError, MediaError."""
        self.count = 0
        self._out, self._shape = out, first.shape
        height, width = first.shape[:2]
        channels = first.shape[2] if first.ndim == 3 else 1
        self._drops_alpha, self._complete = False, False
        sink: Sink
        if wants_folder(out) or is_picture(out):
            self._is_single = is_picture(out)
            sink = (PictureSink if self._is_single else PngSink)(out, (width, height), channels)
        else:
            self._is_single = False
            alpha = channels == 4 and out.suffix.lower() in TRANSPARENT
            self._drops_alpha = channels == 4 and not alpha
            with in_words_of_python():
                sink = VideoSink(out, (width, height), timing, False, writing, alpha)
        self._is_gray = channels == 1 and not isinstance(sink, VideoSink)
        self._sink = sink
        self._has_warned = not self._drops_alpha
        self._worker: Worker[StampedBytes] = Worker(lambda item: sink.write(*item), MOST_KEPT_FRAMES, close=self._close)

    def put(self, stamp: FrameStamp, pixels: Pixels) -> None:
        """One more. Raises UsageError for one of another shape, and what went wrong before."""
        if pixels.shape != self._shape:
            raise UsageError(f"picture {self.count} is {pixels.shape}, and those before it are {self._shape}")
        if self._is_single and self.count:
            raise UsageError(f"'{self._out}' takes one picture, and there are more; name a folder or a video")
        if not self._has_warned and pixels[..., 3].min() < 255:
            self._has_warned = True
            without = f"{self._out.suffix} has no transparency, so pictures are laid over black"
            _warn([f"{self._out}: {without}; .mov and .webm have it, and a folder of PNG files"], 3)
        self._worker.put((stamp, self._as_taken(pixels).reshape(-1)))
        self.count += 1

    def end(self, complete: bool) -> None:
        """Wait until all is written."""
        self._complete = complete
        self._worker.end()
        self._worker.join()
        _warn(self._sink.warnings, 3)

    def check(self) -> None:
        """Raise what went wrong."""
        self._worker.check()

    def _as_taken(self, pixels: Pixels) -> Pixels:
        """As sinks take pictures: gray, or RGBA, in memory that nobody changes meanwhile."""
        if self._is_gray:
            return np.array(pixels, order="C")
        return over_black(pixels) if self._drops_alpha else rgba_of_pixels(pixels)

    def _close(self) -> None:
        self._sink.close(self._complete)


def _warn(lines: Iterable[str], depth: int) -> None:
    """Of the caller's line, so many calls above."""
    for line in lines:
        warnings.warn(line, RuntimeWarning, stacklevel=depth + 2)
