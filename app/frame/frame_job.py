"""A frame in RAM goes in, a float32 mask of its size in RAM comes out: the job by which engines are compared."""

from typing import Protocol

from app.frame.buffers import mask_buffer
from app.frame.cpu_path import CpuPath, mask_of
from app.frame.gl_path import GlPath
from app.frame.preprocess import Floats, ImageSize
from app.frame.readback import frame_mask, read_buffer
from app.frame.resample import MaskToFrame
from app.media.convert import Rgba
from app.models.loading import SegmentationModel
from gpu_delegate.context import Context
from gpu_delegate.layout import Precision
from gpu_delegate.runtime import Progress


class FrameJob(Protocol):
    """The frame job on one backend, for frames of one size, stretched to the network's input."""

    renderer: str
    dispatches: int

    def run(self, rgba: Rgba) -> Floats:
        """The mask (h, w) of a frame (h, w, 4)."""


class CpuFrameJob:
    """The frame job on the CPU."""

    renderer = "TensorFlow Lite on the CPU"
    dispatches = 0

    def __init__(self, model: SegmentationModel, size: ImageSize) -> None:
        self.run = CpuPath(model, size).run


class GlFrameJob:
    """The frame job on the GPU; the only reading back is the mask at the end, and run() waits for it."""

    def __init__(
        self,
        context: Context,
        model: SegmentationModel,
        size: ImageSize,
        progress: Progress | None = None,
        precision: Precision = "fp32",
    ) -> None:
        self._context, self._size = context, size
        self._path = GlPath(context, model, size, "stretch", progress, precision)
        self._to_frame = MaskToFrame(context, size, self._path.layout, "stretch")
        self._mask = mask_buffer(context, size, self._to_frame.size_bytes)
        self._output = self._path.mask
        self.renderer = context.renderer
        self.dispatches = self._path.dispatches + 1

    def run(self, rgba: Rgba) -> Floats:
        path = self._path
        path.upload(rgba)
        path.image_to_tensor()
        path.network()
        self._to_frame.run(self._output, self._mask)
        return frame_mask(read_buffer(self._context, self._mask), self._size)

    def network(self, tensor: Floats) -> Floats:
        """The mask (H, W) on the network's own grid for its input (1, H, W, 3), for checking the network alone."""
        program, graph = self._path.program, self._path.model.graph
        program.write(graph.inputs[0], tensor)
        program.run()
        return mask_of(program.read(graph.outputs[0]), self._path.model.spec)
