"""Decodes the pictures of a background ahead of their times, from an image or a video.

A recording begins again at its end. All reading and decoding is done on a thread, so that drawing never waits.
"""

import threading
from collections import deque
from collections.abc import Generator, Iterator
from contextlib import closing
from pathlib import Path

from texelflow.gpu_delegate.base.errors import MediaError

from ...media.image_file import IMAGE_FORMATS
from ...media.sources import FileSource
from ...picture.picture import ImageSize, Picture, rgba_picture
from .background import cover, is_image, read_image

Timed = tuple[float, Picture]  # when it is due, in ms since the beginning

_LEAST_MS = 4.0  # between two pictures, whatever the file says: decoding must keep up
_MOST_LATE_MS = 250.0  # beyond that a background goes on from where it is


def check_background(path: Path) -> None:
    """Raises MediaError for a file that is neither an image nor a recording that can be played."""
    if is_image(path):
        read_image(path)
    else:
        _open_recording(path).close()


def _open_recording(path: Path) -> FileSource:
    try:
        return FileSource(path)
    except MediaError as error:
        raise MediaError(f"no background: {error}; images have to be {IMAGE_FORMATS}") from error


class BackgroundFeed:
    """The pictures of one file. All methods are for one thread, and none of them waits unless it is asked to.

    `note` is one line for the user about what has happened since; '' for nothing.
    """

    def __init__(self, path: Path, size: ImageSize, depth: int = 3) -> None:
        """Opens nothing yet. Images are cut to cover (width, height); recordings keep the size of their pictures."""
        self.path, self.note = path, ""
        self._size, self._depth = size, depth
        self._ready: deque[Timed] = deque()
        self._late_ms = 0.0  # by which all is shown later than it was due
        self._error: BaseException | None = None
        self._ended = self._closed = False
        self._changed = threading.Condition()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def at(self, time_ms: float, wait: bool = False) -> Picture | None:
        """The picture that is due at a time, which never goes back; None if that has been given out before.

        `wait` waits until it is decoded; else what comes too late is shown when it comes, and puts off the rest.
        Raises MediaError, once all that was decoded before has been given out.
        """
        due = None
        with self._changed:
            while self._is_due(time_ms, wait):
                due = self._ready.popleft()
                self._changed.notify_all()
            if due is None and self._error is not None and not self._ready:
                raise self._error
        if due is None:
            return None
        if not wait and time_ms - due[0] - self._late_ms > _MOST_LATE_MS:
            self._late_ms = time_ms - due[0]
        return due[1]

    def close(self, wait: bool = False) -> None:
        """End the thread after the picture at hand, and the file with it; harmless when repeated."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        if wait:
            self._thread.join()

    def _is_due(self, time_ms: float, wait: bool) -> bool:
        """Whether the next picture is there, and its time has come."""
        if wait:
            self._changed.wait_for(lambda: self._ready or self._ended)
        return bool(self._ready) and self._ready[0][0] + self._late_ms <= time_ms

    def _run(self) -> None:
        try:
            with closing(self._pictures()) as pictures:
                for timed in pictures:
                    if not self._put(timed):
                        break
        except BaseException as error:
            self._error = error
        with self._changed:
            self._ended = True
            self._changed.notify_all()

    def _put(self, timed: Timed) -> bool:
        """Add a picture once there is room for it; whether more are wanted."""
        with self._changed:
            self._changed.wait_for(lambda: self._closed or len(self._ready) < self._depth)
            self._ready.append(timed)
            self._changed.notify_all()
            return not self._closed

    def _pictures(self) -> Generator[Timed, None, None]:
        if is_image(self.path):
            yield 0.0, rgba_picture(cover(read_image(self.path), self._size))
        else:
            yield from self._repeated()

    def _repeated(self) -> Iterator[Timed]:
        """The frames of a recording without end; of one with a single frame, that."""
        before_ms, time_ms, begin_ms = 0.0, -_LEAST_MS, 0.0
        while True:
            with _open_recording(self.path) as source:
                for frame in source:
                    before_ms, time_ms = time_ms, max(time_ms + _LEAST_MS, begin_ms + frame.time_ms)
                    yield time_ms, frame.picture
            if source.truncated:
                self.note = f"background {self.path} is cut off; the part that is there is repeated"
            if time_ms == begin_ms:
                return
            begin_ms = time_ms + (time_ms - before_ms)
