"""A frame in RAM goes in, a float32 mask of its size in RAM comes out: the job by which engines are compared."""

from typing import Protocol

from texelflow.gpu_delegate.context import Context
from texelflow.gpu_delegate.layout import Precision
from texelflow.gpu_delegate.runtime import CompileProgress

from ..models.loading import SegmentationModel
from ..picture.picture import Picture, PictureFormat
from ..picture.preprocess import Floats
from .buffers import mask_buffer
from .cpu_path import CpuPath, mask_of
from .gl_path import GlPath
from .readback import frame_mask, read_buffer
from .resample import MaskToFrame


class FrameJob(Protocol):
    """The frame job on one backend, for pictures of one format, stretched to the network's input."""

    renderer: str
    dispatches: int

    def run(self, picture: Picture) -> Floats:
        """The mask (h, w) of a picture, of its upright size."""


class CpuFrameJob:
    """The frame job on the CPU."""

    renderer = "TensorFlow Lite on the CPU"
    dispatches = 0

    def __init__(self, model: SegmentationModel, frame: PictureFormat) -> None:
        self.run = CpuPath(model, frame).run


class GlFrameJob:
    """The frame job on the GPU; the only reading back is the mask at the end, and run() waits for it."""

    def __init__(
        self,
        context: Context,
        model: SegmentationModel,
        frame: PictureFormat,
        progress: CompileProgress | None = None,
        precision: Precision = "fp32",
    ) -> None:
        self._context, self._size = context, frame.upright_size
        self._path = GlPath(context, model, frame, "stretch", progress, precision)
        self._to_frame = MaskToFrame(context, self._size, self._path.layout, "stretch")
        self._mask = mask_buffer(context, self._size, self._to_frame.size_bytes)
        self._output = self._path.mask
        self.renderer = context.renderer
        self.dispatches = self._path.dispatches + 1

    def run(self, picture: Picture) -> Floats:
        path = self._path
        path.upload(picture)
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
