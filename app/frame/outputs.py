"""What lies on the device goes in; recorded pictures and mask files come out, some frames later."""

import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import numpy.typing as npt

from texelflow.gpu_delegate.context import Context
from texelflow.gpu_delegate.errors import MediaError, UsageError

from ..leftovers import remove_if_left
from ..media.recorder import Recorder, write_png
from ..media.sources import VideoFrame
from ..picture.convert import Rgba
from ..picture.preprocess import Floats, ImageSize
from ..threads import Observer, Worker
from .buffers import mask_buffer
from .effects import Effect
from .gl_path import GlPath
from .pipeline import Stage
from .readback import Bytes, ReadbackRing, frame_mask
from .resample import MaskToFrame
from .segmenter import CpuSegmenter
from .targets import OffscreenTarget

TaggedPicture = tuple[int, Bytes]  # the number that its frame is known by, and RGBA bytes


class PictureOutput:
    """Pictures in a target to a function (H, W, 4), called in order on a thread of its own; read without waiting.

    `observe` may be set: it is called on that thread with the times of each call.
    """

    observe: Observer | None = None

    def __init__(
        self,
        context: Context,
        target: OffscreenTarget,
        tag: Callable[[VideoFrame], int],
        write: Callable[[int, Rgba], None],
    ) -> None:
        """`write` gets what `tag` says of the frame, and its picture. Raises DeviceError for want of memory."""
        width, height = target.size
        self._target, self._tag = target, tag
        self._ring: ReadbackRing[int] = ReadbackRing(context, width * height * 4)
        self._writer: Worker[TaggedPicture] = Worker(
            lambda item: write(item[0], item[1].reshape(height, width, 4)), observe=self._tell
        )
        self.stage = Stage("record", self._take)

    def _tell(self, start_ns: int, took_ms: float) -> None:
        if self.observe:
            self.observe(start_ns, took_ms)

    def _take(self, frame: VideoFrame) -> None:
        self._ring.request_picture(self._tag(frame), self._target.framebuffer, self._target.size)
        for picture in self._ring.collect():
            self._writer.put(picture)

    def finish(self) -> None:
        """Write what is still under way. Raises MediaError."""
        for picture in self._ring.drain():
            self._writer.put(picture)
        self._writer.finish()

    def release(self) -> None:
        """End the thread and free the buffers; what is still under way after an error is dropped."""
        self._writer.drop()
        self._ring.release()


class VideoOutput(PictureOutput):
    """Pictures in a target to a recorder."""

    def __init__(self, context: Context, target: OffscreenTarget, recorder: Recorder) -> None:
        super().__init__(context, target, lambda frame: frame.pts, lambda pts, rgba: recorder.write(rgba, pts))


class PngOutput(PictureOutput):
    """Pictures in a target to PNG files in a folder, named by their frames' numbers; RGBA with alpha, else RGB."""

    def __init__(self, context: Context, target: OffscreenTarget, folder: Path, alpha: bool) -> None:
        channels = 4 if alpha else 3

        def write(index: int, rgba: Rgba) -> None:
            write_numbered(folder, index, rgba[..., :channels])

        super().__init__(context, target, lambda frame: frame.index, write)


def wants_folder(out: Path, effect: Effect) -> bool:
    """Whether --out names a folder for PNG files, not a video: it is one, or has no suffix.

    Raises UsageError for a video of a transparent effect.
    """
    if os.path.isdir(out) or not out.suffix:  # unlike Path.is_dir, never raises
        return True
    if effect == "cutout":
        folder = out.with_suffix("")
        raise UsageError(f"--out {out}: a video has no transparency; give a folder for PNG files, as --out {folder}")
    return False


class GlMaskOutput:
    """Masks in the network's output tensor to PNG files of the frame's size, read back without waiting."""

    def __init__(self, context: Context, path: GlPath, frame_size: ImageSize, folder: Path) -> None:
        self._path, self._size, self._folder = path, frame_size, folder
        self._to_frame = MaskToFrame(context, frame_size, path.layout, path.fit)
        self._gl = context.gl
        self._buffer = mask_buffer(context, frame_size, self._to_frame.size_bytes)
        self._ring: ReadbackRing[int] = ReadbackRing(context, self._to_frame.size_bytes)
        self.stage = Stage("masks", self._take)

    def _take(self, frame: VideoFrame) -> None:
        self._to_frame.run(self._path.mask, self._buffer)
        self._ring.request_buffer(frame.index, self._buffer)
        for index, data in self._ring.collect():
            write_mask(self._folder, index, frame_mask(data, self._size))

    def finish(self) -> None:
        """Write what is still under way."""
        for index, data in self._ring.drain():
            write_mask(self._folder, index, frame_mask(data, self._size))

    def release(self) -> None:
        """Free the buffers and the shader."""
        self._ring.release()
        self._to_frame.release()
        self._gl.delete("Buffers", self._buffer.buffer)


class CpuMaskOutput:
    """Masks in RAM to PNG files of the frame's size."""

    def __init__(self, segmenter: CpuSegmenter, folder: Path) -> None:
        self._segmenter, self._folder = segmenter, folder
        self.stage = Stage("masks", self._take)

    def _take(self, frame: VideoFrame) -> None:
        write_mask(self._folder, frame.index, self._segmenter.frame_mask())

    def finish(self) -> None:
        """Nothing is ever under way."""

    def release(self) -> None:
        """Nothing to free."""


def write_mask(folder: Path, index: int, mask: Floats) -> None:
    """One mask (h, w) from 0 to 1 as 8-bit grey, named by its frame's number. Raises MediaError."""
    grey = np.rint(np.clip(mask, 0, 1) * 255).astype(np.uint8)
    write_numbered(folder, index, grey)


def write_numbered(folder: Path, index: int, picture: npt.NDArray[np.uint8]) -> None:
    """A picture of a sequence, named by its frame's number. Raises MediaError."""
    try:
        write_png(folder / f"{index:06d}.png", picture)
    except MediaError as error:
        raise MediaError(f"{error}; the pictures before it are whole") from error


def make_folder(folder: Path) -> Path:
    """The folder, made if it is not there, without what a killed run left half-written. Raises MediaError."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise MediaError(f"the folder '{folder}' cannot be made ({error.strerror}); choose another place") from error
    if not os.access(folder, os.W_OK):
        raise MediaError(f"nothing can be written in the folder '{folder}'; check its permissions")
    for part in folder.glob("*.png.part"):
        remove_if_left(part)
    return folder
