"""Saves screenshots of what the device draws as PNG files, without blocking the loop."""

from collections import deque
from dataclasses import dataclass
from itertools import count
from pathlib import Path

from texelflow.gpu_delegate.base.errors import MediaError
from texelflow.gpu_delegate.targets.gl.context import Context

from ..console import one_line
from ..frame.textures.offscreen_target import on_opengl
from ..frame.textures.picture_device import Target
from ..frame.textures.readback import ReadbackRing, ReadBytes
from ..media.recorder import write_png
from ..threads import Worker

_LONGEST_STEM = 60  # characters, so that the name stays within what file systems take


@dataclass(frozen=True)
class _Shot:
    index: int  # of the frame
    alpha: bool


class Screenshots:
    """Pictures of a target in files named by clip and frame. A file that is there already is never written over."""

    def __init__(self, context: Context, picture: Target, clip: Path, folder: Path) -> None:
        self._context, self._picture = context, picture
        self._stem, self._folder = clip.stem[:_LONGEST_STEM], folder
        self._ring: ReadbackRing[_Shot] | None = None  # made for the first one
        self._writer: Worker[tuple[_Shot, ReadBytes]] | None = None
        self._answers: deque[str] = deque()
        self.pending = 0  # asked for and not yet answered

    def take(self, index: int, alpha: bool) -> None:
        """Ask for the picture of frame `index` as it is now. Raises DeviceError."""
        if self._ring is None:
            width, height = self._picture.size
            self._ring = ReadbackRing(self._context, width * height * 4)
            self._writer = Worker(self._write)
        self._ring.request_picture(_Shot(index, alpha), on_opengl(self._picture).framebuffer, self._picture.size)
        self.pending += 1

    def collect(self) -> list[str]:
        """Fetch what was asked for before; lines that say which files were written since the last call."""
        if self._ring and self._writer:
            for shot in self._ring.drain():
                self._writer.put(shot)
        lines = [self._answers.popleft() for _ in range(len(self._answers))]
        self.pending -= len(lines)
        return lines

    def close(self) -> None:
        """Write what was asked for, and free what that took."""
        self.collect()
        if self._writer and self._ring:
            self._writer.finish()
            self._ring.release()
            self._ring = self._writer = None

    def _write(self, item: tuple[_Shot, ReadBytes]) -> None:
        """On the writer's thread; a failure is told as success is, and ends nothing."""
        shot, data = item
        width, height = self._picture.size
        rgba = data.reshape(height, width, 4)
        try:
            path = _new_file(self._folder, f"{self._stem}-{shot.index:06d}")
            try:
                write_png(path, rgba if shot.alpha else rgba[..., :3])
            except MediaError:
                path.unlink()
                raise
            self._answers.append(one_line(f"written: {path}"))
        except MediaError as error:
            self._answers.append(str(error))


def _new_file(folder: Path, stem: str) -> Path:
    """An empty file of that name, or with a number after it if there is one already. Raises MediaError."""
    for number in count(1):
        path = folder / (f"{stem}.png" if number == 1 else f"{stem}-{number}.png")
        try:
            path.open("xb").close()
            return path
        except FileExistsError:
            continue
        except OSError as error:
            raise MediaError(f"no screenshot: '{path}' cannot be written ({error.strerror})") from error
    raise AssertionError
