"""Makes the pictures of a recording, a camera or a stream on a thread of its own, for texelflow.video and write."""

import os
import threading
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

from .app.capture.capture import TIME_BASE
from .app.frame.textures.readback import ReadBytes
from .app.live.sourcing import OpenSource
from .app.live.taking import take_live
from .app.media.media_inputs import open_input
from .app.media.recording import VideoInfo
from .app.outputs.file_sinks import Timing, nominal_rate
from .app.outputs.picture_queue import PictureQueue
from .app.outputs.picture_readers import FrameStamp
from .app.picture.preprocess import ImageSize
from .app.replay.bulk import BulkOptions, replay_all
from .app.replay.replay import expected_frames, replay, timing_of
from .app.replay.replay_engine import ReplayEngine
from .app.replay.replay_options import ReplayOptions, check_options
from .app.settings.config_watch import ConfigWatch
from .app.settings.settings import SettingValue
from .gpu_delegate.base.errors import UsageError
from .gpu_delegate.targets.gl.library import release_thread
from .words import LibraryConsole, in_words_of_python

__all__ = ["PictureMaking"]


class PictureMaking:
    """The pictures of one source. `size` is (width, height), `rate` pictures a second, 0 if unknown.

    `stamp` is that of the picture that was taken last; is_complete, whether all there are have been taken.
    """

    def __init__(self, options: ReplayOptions, live: bool, quiet: bool) -> None:
        """Raises TexelflowError for settings that do not go together, and for a source that cannot be opened."""
        self.options, self.live = options, live
        self.stamp: FrameStamp | None = None
        self.is_complete = False
        self._watch = ConfigWatch(None, options.flags, "live" if live else "replay", own_file=False)
        self._pictures, self._console = PictureQueue(newest_wins=live), _LinesKept(quiet)
        self._stopping, self._closed, self._process = threading.Event(), False, os.getpid()
        self._thread: threading.Thread | None = None
        self._error: BaseException | None = None
        self._info: VideoInfo | None = None
        self.size, self.rate = self._open_live() if live else self._look_at_recording()

    @property
    def has_alpha(self) -> bool:
        """Whether pictures are to be seen with their alpha."""
        return self._watch.settings.effect == "cutout"

    @property
    def frames(self) -> int | None:
        """How many there are in all; None where nobody knows."""
        return (expected_frames(self.options, self._info) or None) if self._info else None

    @property
    def timing(self) -> Timing:
        """Of the stamps."""
        return timing_of(self.options, self._info) if self._info else Timing(TIME_BASE, nominal_rate(self.rate))

    @property
    def files(self) -> tuple[Path, ...]:
        """Those that are read, without a model's and a background's."""
        return () if self.live else (self.options.file,)

    @property
    def is_untouched(self) -> bool:
        """Whether all pictures are still to come."""
        return not (self._thread or self._closed)

    def take(self) -> ReadBytes | None:
        """The next picture as RGBA, its top row first; None if there are no more. Raises what ended them."""
        if os.getpid() != self._process:
            raise UsageError("this video belongs to the process that was forked; call texelflow.video in each process")
        if self.is_untouched:
            self._begin(self._replay)
        taken = self._pictures.take()
        if taken is None:
            self._raise_error()
            self.is_complete = not self._closed
            return None
        self.stamp, data = taken
        return data

    def write_all(self, outputs: Mapping[str, SettingValue]) -> int:
        """Have all pictures written as replay does it, by settings that name outputs; nobody else gets them. How many.

        What is there is written over. Ctrl-C finishes what was written, and goes on then. Raises TexelflowError.
        """
        each, frames = replace(self.options, flags={**self.options.flags, **outputs}, force=True), list[int]()

        def work() -> None:
            with self._engine() as engine:
                summary, _ = replay_all(BulkOptions((str(each.file),), each), self._console, engine)
                frames.append(summary["frames"])

        self._begin(work)
        try:
            self._pictures.take()
        finally:
            self._stopping.set()
            self._wait()
        self._raise_error()
        return frames[0]

    def take_warnings(self) -> list[str]:
        """Lines for the user, since the last call; none of what was closed early."""
        lines = self._console.take_lines()
        return [] if self._closed else lines

    def close(self) -> None:
        """End the thread, whatever it is about; harmless when repeated."""
        self._closed = True
        if os.getpid() == self._process:
            self._stopping.set()
            self._pictures.leave()
            self._wait()

    def _look_at_recording(self) -> tuple[ImageSize, float]:
        """Before anything is computed."""
        check_options(replace(self.options, taker=self._pictures), self._watch.settings)
        with open_input(self.options.file, self.options.first, self.options.last) as recording:
            self._info = info = recording.info
        return (info.width, info.height), float(info.average_rate)

    def _open_live(self) -> tuple[ImageSize, float]:
        """Begin to take pictures, and wait for the first. Raises TexelflowError."""
        came, opened = threading.Event(), list[OpenSource]()

        def take(source: OpenSource) -> None:
            opened.append(source)
            came.set()

        def work() -> None:
            try:
                take_live(self._watch, self._console, self._pictures, self._stopping, take)
            finally:
                came.set()

        self._begin(work)
        came.wait()
        if not opened:
            self._wait()
            self._raise_error()
        (capture,) = opened[0].captures
        return opened[0].first.size, capture.nominal_fps or capture.fps

    def _replay(self) -> None:
        def tell(*_: object) -> None:
            """Whoever takes pictures sees how far that is."""

        with self._engine() as engine:
            replay(replace(self.options, taker=self._pictures), self._console, tell, engine)

    def _engine(self) -> ReplayEngine:
        engine = ReplayEngine(self._console)
        engine.stopping = self._stopping
        return engine

    def _begin(self, work: Callable[[], None]) -> None:
        def run() -> None:
            try:
                with in_words_of_python():
                    work()
            except BaseException as error:
                self._error = error
            finally:
                release_thread()
                self._pictures.end()

        self._thread = threading.Thread(target=run, name="texelflow video", daemon=True)
        self._thread.start()

    def _wait(self) -> None:
        if self._thread:
            self._thread.join()

    def _raise_error(self) -> None:
        """What went wrong, once all is over; the first time."""
        if not self._closed:
            self._wait()
            error, self._error = self._error, None
            if error:
                raise error


class _LinesKept(LibraryConsole):
    """A console that keeps warnings for whoever takes them."""

    def __init__(self, quiet: bool) -> None:
        super().__init__(quiet)
        self._lines: list[str] = []

    def warn(self, line: str) -> None:
        """Keep it."""
        self._lines.append(line)

    def take_lines(self) -> list[str]:
        """Those since the last call."""
        lines, self._lines = self._lines, []
        return lines
