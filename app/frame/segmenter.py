"""A machine and a model go in; what makes masks of frames on it comes out, as stages.

GlPath keeps all on the GPU; CpuSegmenter runs the network on the CPU, and uploads frame and mask if there is OpenGL to
draw with.
"""

from typing import Protocol

import numpy as np

from app.console import Console
from app.frame.buffers import mask_buffer
from app.frame.cpu_path import CpuPath
from app.frame.gl_path import GlPath
from app.frame.machine import Machine
from app.frame.pipeline import Stage
from app.frame.preprocess import Fit, Floats, ImageSize
from app.frame.resample import MaskLayout
from app.frame.upload import FrameUploader
from app.media.sources import VideoFrame
from app.models.loading import SegmentationModel
from gpu_delegate import opengl
from gpu_delegate.context import Context
from gpu_delegate.errors import UnsupportedError
from gpu_delegate.layout import Precision
from gpu_delegate.opengl import BufferRange, BufferSpan

_NO_BUFFER = BufferRange(0, 0, 0)


class DrawableMask(Protocol):
    """What a compositor needs: the frame's texture, and the mask in a buffer."""

    @property
    def frame(self) -> int: ...
    @property
    def mask(self) -> BufferSpan: ...
    @property
    def layout(self) -> MaskLayout: ...


class Segmenter(DrawableMask, Protocol):
    """What makes masks; `dispatches` and `uploaded_bytes` are there to be shown."""

    @property
    def stages(self) -> tuple[Stage, ...]: ...
    @property
    def dispatches(self) -> int: ...
    @property
    def uploaded_bytes(self) -> int: ...
    def release(self) -> None: ...


class CpuSegmenter:
    """The network on the CPU. With a context, frame and mask go up to be drawn."""

    dispatches = 0

    def __init__(self, context: Context | None, model: SegmentationModel, frame_size: ImageSize, fit: Fit) -> None:
        self._path = CpuPath(model, frame_size, fit)
        self._context = context
        self._uploader = FrameUploader(context, frame_size) if context else None
        width, height = model.output_size
        size_bytes = width * height * 4
        self._buffer = mask_buffer(context, (width, height), size_bytes, computed=False) if context else _NO_BUFFER
        self.layout = MaskLayout(model.output_size, stride=1)
        self._tensor: Floats = np.zeros(0, np.float32)
        self.mask_in_ram: Floats = np.zeros((height, width), np.float32)
        self.uploaded_bytes = 0

    @property
    def frame(self) -> int:
        return self._uploader.texture if self._uploader else 0

    @property
    def mask(self) -> BufferSpan:
        return self._buffer

    @property
    def stages(self) -> tuple[Stage, ...]:
        """The way of a frame to its mask, in RAM and, with a context, on the device."""
        way = (Stage("image_to_tensor", self._prepare), Stage("network", self._run))
        return (*way, Stage("upload", self._upload)) if self._context else way

    def frame_mask(self) -> Floats:
        """The last mask in the frame's size (h, w)."""
        return self._path.mask_to_frame(self.mask_in_ram)

    def _prepare(self, frame: VideoFrame) -> None:
        self._tensor = self._path.image_to_tensor(frame.rgba)

    def _run(self, frame: VideoFrame) -> None:
        self.mask_in_ram = np.ascontiguousarray(self._path.network(self._tensor))

    def _upload(self, frame: VideoFrame) -> None:
        assert self._context is not None
        assert self._uploader is not None
        self._uploader.upload(frame.rgba)
        gl, mask = self._context.gl, self.mask_in_ram
        gl.glBindBuffer(opengl.COPY_WRITE_BUFFER, self._buffer.buffer)
        gl.glBufferSubData(opengl.COPY_WRITE_BUFFER, 0, mask.nbytes, mask.ctypes.data)
        self.uploaded_bytes += frame.rgba.nbytes + mask.nbytes

    def release(self) -> None:
        """Free what is on the device."""
        if self._context and self._uploader:
            self._uploader.release()
            self._context.gl.delete("Buffers", self._buffer.buffer)


def make_segmenter(
    machine: Machine,
    model: SegmentationModel,
    frame_size: ImageSize,
    fit: Fit,
    console: Console,
    precision: Precision = "fp32",
) -> GlPath | CpuSegmenter:
    """What makes the masks on this machine; shows progress while it compiles. Raises TexelflowError.

    precision is that of tensors on the GPU; the CPU keeps float32.
    """
    if machine.backend == "cpu" or machine.context is None:
        return CpuSegmenter(machine.context, model, frame_size, fit)
    with console.compilation() as progress:
        try:
            return GlPath(machine.context, model, frame_size, fit, progress, precision)
        except UnsupportedError as error:
            raise UnsupportedError(f"{model.name}: {error}; --backend cpu computes it") from None
