"""The frame job, by which engines are compared: a frame in RAM to a float32 mask of its size in RAM.

A network that puts out a picture gives that instead, with four channels.
"""

import contextlib
from typing import Protocol

from texelflow.gpu_delegate.base.errors import UnsupportedError
from texelflow.gpu_delegate.model.packing import in_file_type
from texelflow.gpu_delegate.model.quantization import dequantized
from texelflow.gpu_delegate.targets.gl.context import Context
from texelflow.gpu_delegate.targets.gl.gl_buffers import WayOut
from texelflow.gpu_delegate.targets.gl.opengl import BufferRange
from texelflow.gpu_delegate.targets.gl.runtime import CompileProgress

from ...models.model_loading import FrameModel, PictureModel, SegmentationModel
from ...picture.picture import Picture, PictureFormat
from ...picture.preprocess import Floats, ImageSize
from ..inference.backends import Backend
from ..inference.cpu_engine import AnyCpuPath, open_parts_path
from ..inference.cpu_path import class_scores, mask_of
from ..inference.gl_path import GlPath
from ..inference.network_options import NETWORK_DEFAULTS, NetworkOptions
from ..textures.buffers import mask_buffer
from ..textures.readback import frame_mask
from ..textures.resample import MaskToFrame
from .picture_job import GlPictureJob


class FrameJob(Protocol):
    """The frame job on one backend, for pictures of one format."""

    backend: Backend
    renderer: str
    gl_version: str | None  # as of Context; None where TensorFlow Lite runs
    dispatches: int
    note: str  # what of the network runs on the GPU, or on the CPU, if more was to; else ""

    def run(self, picture: Picture) -> Floats:
        """The mask (h, w), or the network's picture (h, w, 4), of a picture, of its upright size."""

    def begin_anew(self) -> None:
        """The next picture has nothing to do with those before."""

    def take(self, frame: PictureFormat) -> None:
        """Take pictures of another format from now on. Raises DeviceError; then everything is as it was."""

    def network(self, tensor: Floats) -> Floats:
        """The mask (H, W) on the network's own grid for its input (1, H, W, 3), for checking the network alone."""

    def release(self) -> None:
        """Free everything."""


class CpuFrameJob:
    """The frame job on the CPU or, with a delegate of TensorFlow Lite's, in parts on the GPU."""

    def __init__(self, path: AnyCpuPath, instead: str = "") -> None:
        """`instead` says why the path is not the one that was asked for."""
        self.run, self.take, self.network, self.release = path.run, path.take, path.network, path.close
        self.begin_anew, self._path = path.begin_anew, path
        found = path.delegation
        self.dispatches = found.dispatches if found else 0
        self.note = f"{path.model.name}: {found.line}" if found else instead
        self.backend: Backend = "gl" if self.dispatches else "cpu"
        self.gl_version: str | None = None
        self.renderer = path.renderer

    def scores(self) -> Floats:
        """The scores (H, W, C) of all classes for the last picture, on the network's own grid: the caller's own."""
        model = self._path.model
        assert isinstance(model, SegmentationModel), "a picture has none"
        return class_scores(self._path.scores, model.spec)


class GlFrameJob:
    """The frame job on the GPU; the only reading back is the mask at the end, and run() waits for it."""

    backend: Backend = "gl"
    note = ""

    def __init__(
        self,
        context: Context,
        model: SegmentationModel,
        frame: PictureFormat,
        options: NetworkOptions = NETWORK_DEFAULTS,
        progress: CompileProgress | None = None,
    ) -> None:
        self._context, self._spec = context, model.spec
        self._path = GlPath(context, model, frame, options, progress)
        self.begin_anew = self._path.begin_anew
        self._output = self._path.mask
        with contextlib.ExitStack() as stack:
            self._size, self._to_frame, self._mask = self._way_out(frame, stack)
            stack.pop_all()
        self._to_ram = WayOut(context)
        self.renderer = context.renderer
        self.gl_version: str | None = context.gl_version
        self.dispatches = self._path.dispatches

    def _way_out(self, frame: PictureFormat, stack: contextlib.ExitStack) -> tuple[ImageSize, MaskToFrame, BufferRange]:
        """What lies behind the network, and is freed by the stack."""
        size = frame.upright_size
        to_frame = MaskToFrame(self._context, size, self._path.layout, self._path.fit)
        stack.callback(to_frame.release)
        mask = mask_buffer(self._context, size, to_frame.size_bytes)
        stack.callback(self._context.gl.delete, "Buffers", mask.buffer)
        return size, to_frame, mask

    def take(self, frame: PictureFormat) -> None:
        """The same network for pictures of another format: two or three shaders are compiled."""
        with contextlib.ExitStack() as stack:
            made = self._way_out(frame, stack)
            self._path.take(frame)
            stack.pop_all()
        self._to_frame.release()
        self._context.gl.delete("Buffers", self._mask.buffer)
        self._size, self._to_frame, self._mask = made

    def run(self, picture: Picture) -> Floats:
        path = self._path
        path.upload(picture)
        path.image_to_tensor()
        path.network()
        self._to_frame.run(self._output, self._mask)
        return frame_mask(self._to_ram.read(self._mask), self._size)

    def network(self, tensor: Floats) -> Floats:
        """See FrameJob."""
        program, graph = self._path.program, self._path.model.graph
        program.write(graph.inputs[0], in_file_type(tensor, graph.tensors[graph.inputs[0]]))
        program.run()
        result = graph.tensors[graph.outputs[0]]
        return mask_of(dequantized(program.read(result.index), result), self._spec)

    def scores(self) -> Floats:
        """The scores (H, W, C) of all classes for the last picture, on the network's own grid: the caller's own."""
        program, graph = self._path.program, self._path.model.graph
        result = graph.tensors[graph.outputs[0]]
        return class_scores(dequantized(program.read(result.index), result), self._spec)

    def release(self) -> None:
        self._to_ram.release()
        self._to_frame.release()
        self._context.gl.delete("Buffers", self._mask.buffer)
        self._path.release()


def mask_job(
    context: Context,
    model: SegmentationModel,
    frame: PictureFormat,
    options: NetworkOptions = NETWORK_DEFAULTS,
    progress: CompileProgress | None = None,
) -> GlFrameJob | CpuFrameJob:
    """The frame job of masks on the GPU; that of a model that the GPU cannot run wholly goes through the delegate."""
    try:
        return GlFrameJob(context, model, frame, options, progress)
    except UnsupportedError:
        return CpuFrameJob(open_parts_path(model, frame, options))


def frame_job(
    context: Context,
    model: FrameModel,
    frame: PictureFormat,
    options: NetworkOptions = NETWORK_DEFAULTS,
    progress: CompileProgress | None = None,
) -> GlFrameJob | GlPictureJob | CpuFrameJob:
    """The same of masks or pictures."""
    if not isinstance(model, PictureModel):
        return mask_job(context, model, frame, options, progress)
    try:
        return GlPictureJob(context, GlPath(context, model, frame, options, progress), model)
    except UnsupportedError:
        return CpuFrameJob(open_parts_path(model, frame, options))
