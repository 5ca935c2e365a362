"""The CPU path in machine code of our own: a frame in RAM to its mask or picture in RAM.

A frame is one native call: the picture to the planes of the network's input, the network, the mask to the frame's size.
What the kernels of the two ends cannot do (rows too long, networks that put out pictures) NumPy does.
"""

from collections.abc import Mapping
from types import MappingProxyType

import numpy as np
import numpy.typing as npt

from texelflow.gpu_delegate.base.wording import counted
from texelflow.gpu_delegate.cpu.delegation import Delegation
from texelflow.gpu_delegate.model.graph import Attributes, Graph, Softmax
from texelflow.gpu_delegate.model.layout import Precision
from texelflow.gpu_delegate.model.packing import in_file_type
from texelflow.gpu_delegate.model.quantization import dequantized, is_quantized
from texelflow.gpu_delegate.programs.model_sharing import ModelSharing
from texelflow.gpu_delegate.targets.llvm.compiler import native_target
from texelflow.gpu_delegate.targets.llvm.cutting import cut_step
from texelflow.gpu_delegate.targets.llvm.frame_steps import (
    FrameKernels,
    FrameMaskStep,
    SamplerStep,
    frame_table,
    step_table,
)
from texelflow.gpu_delegate.targets.llvm.native_runtime import NativeNetwork
from texelflow.gpu_delegate.targets.llvm.planes import planes_of
from texelflow.gpu_delegate.targets.llvm.pool import WorkerPool
from texelflow.gpu_delegate.targets.llvm.region_sampler import RegionStep
from texelflow.gpu_delegate.targets.llvm.work import WorkTable

from ...models.added_nodes import AddedNodes
from ...models.decoders.region import FrameRegion
from ...models.model_loading import FrameModel, PictureModel, input_values, preprocessing_for
from ...models.spec import ModelSpec, PictureSpec
from ...picture.exposure import Exposure
from ...picture.picture import Picture, PictureFormat, whole_rows
from ...picture.preprocess import Fit, Floats, Preprocessing, Preprocessor, sampling
from ...picture.region_cut import cut_places
from .cpu_path import picture_of_output, preprocessor_of
from .native_ends import region_picture, resized_mask, sampled_picture

_OPS: Mapping[str, tuple[str, Attributes]] = MappingProxyType(
    {"sigmoid": ("LOGISTIC", Attributes()), "softmax": ("SOFTMAX", Softmax())}
)


def with_mask(graph: Graph, spec: ModelSpec | PictureSpec) -> tuple[Graph, int, int]:
    """A network whose last output has been through what its masks need, and where a mask is: the tensor, its channel.

    Its own output stays first. Of bytes are made the real numbers that they mean; several classes become one mask.
    """
    scores = graph.tensors[graph.outputs[0]]
    if isinstance(spec, PictureSpec):
        spec = ModelSpec((0, 1), "none", 0)
    made, last = AddedNodes(graph), scores.index
    if is_quantized(scores):
        last = made.op("DEQUANTIZE", [last])
    if spec.activation in _OPS:
        last = made.op(_OPS[spec.activation][0], [last], attributes=_OPS[spec.activation][1])
    if spec.group:
        shown = [made.channel(last, number) for number in spec.group]
        last = made.chain("ADD" if spec.adds else "MAXIMUM", shown)
    if last == scores.index:
        return graph, last, spec.channel
    return made.graph((*graph.outputs, last)), last, 0 if spec.group else spec.channel


class NativePath:
    """One model for pictures of one format. Not for use from several threads at once."""

    delegation: Delegation | None = None  # nothing of it runs on the GPU
    unshared = ""  # it shares what a cache has

    def __init__(
        self,
        model: FrameModel,
        frame: PictureFormat,
        fit: Fit = "stretch",
        threads: int | None = None,
        preprocessing: Preprocessing = "plain",
        weights_cache: ModelSharing | None = None,
        precision: Precision = "fp32",
        pool: WorkerPool | None = None,
    ) -> None:
        """`threads` are of its own, unless there is a pool.

        Raises UnsupportedError for a model that has no native code, DeviceError without LLVM or on an old CPU.

        UsageError for what the cache does not take.
        """
        self.model, self.fit, self._preprocessing = model, fit, preprocessing_for(model, preprocessing)
        masking, self._mask_tensor, self._mask_channel = with_mask(model.graph, model.spec)
        self._network = NativeNetwork.load(masking, threads, pool, weights_cache=weights_cache, precision=precision)
        self.precision = self._network.image.precision
        self._kernels = FrameKernels(native_target())
        self.renderer = f"{self._kernels.target.name} code on the CPU, {counted(self._network.pool.threads, 'thread')}"
        self._input = self._planes(self._network.image.inputs[0])
        self._tensor: Floats = self._input.transpose(1, 2, 0)[None]  # the network's input as others see it
        self._scores: Floats | None = None
        self._reads_scores = weights_cache is not None  # at once: later another network may have written over them
        self.take(frame)

    def take(self, frame: PictureFormat) -> None:
        """Take pictures of another format from now on."""
        model, size = self.model, frame.upright_size
        there = sampling(size, model.input_size, self.fit, area=self._preprocessing == "auto")
        sampled, mask = sampled_picture(frame, there), resized_mask(size, model.output_size, self.fit)
        self._format = frame
        self._numpy: Preprocessor | None = None
        self._exposure = Exposure(frame, there.stored(frame)) if self._preprocessing == "auto" else None
        self._sampler = self._mask = self._table = None
        self._cut: RegionStep | None = None
        if sampled.fits:
            values = input_values(model)
            self._sampler = SamplerStep(sampled, values.range, self._input, self._kernels, values.steps)
        if not isinstance(model, PictureModel) and mask.fits:
            self._mask = FrameMaskStep(mask, self._kernels)
        if self._sampler and self._mask:
            self._table = frame_table(self._network, self._sampler, self._mask)

    def begin_anew(self) -> None:
        """The next picture has nothing to do with those before."""
        self._network.reset_states()
        self.expose_anew()

    def expose_anew(self) -> None:
        """The light of the next picture has nothing to do with that of those before."""
        if self._exposure:
            self._exposure.begin_anew()
        if self._numpy:
            self._numpy.begin_anew()

    def image_to_tensor(self, picture: Picture) -> Floats:
        """The network's input (1, H, W, 3) for a picture, which comes after the one before it, in its own memory."""
        if self._sampler is None:
            return self._preprocessor.image_to_tensor(picture)
        self._give(self._sampler, picture)
        self._network.pool.run(step_table(self._sampler, self._network.pool.threads))
        return self._tensor

    def network(self, tensor: Floats) -> Floats:
        """The mask (H, W), or the picture (H, W, 4), on the network's own grid, 0 to 1, for its input tensor."""
        if tensor is not self._tensor:
            number = self._network.image.inputs[0]
            self._network.write(number, in_file_type(tensor, self._network.image.tensors[number].own))
        with self._network.turn():
            self._network.compute()
            self._scores = self._read_scores() if self._reads_scores else None
            if isinstance(self.model, PictureModel):
                return picture_of_output(self.scores, self.model.spec)
            return self._mask_plane().copy()

    def mask_of_region(self, picture: Picture, region: FrameRegion) -> Floats:
        """The mask (H, W) of a region of the last picture, on the network's own grid; the frame's edges go on."""
        threads, gain = self._network.pool.threads, self._exposure.last if self._exposure else 1.0
        if self._cut is None:
            self._cut = self._region_step()
        if self._cut is None or gain != 1:  # which its kernel does not have
            given = gain if self._sampler else None
            return self.network(self._preprocessor.region_to_tensor(picture, region.to_frame(), given))
        self._cut.take(
            whole_rows(picture, self._format), cut_places(self._format, self.model.input_size, region.to_frame())
        )
        with self._network.turn():
            self._network.pool.run(WorkTable([cut_step(0, self._cut.size, threads)], [self._cut.addresses]))
            self._network.compute()
            return self._mask_plane().copy()

    def _region_step(self) -> RegionStep | None:
        """What cuts regions out of pictures of the format; None where no kernel can."""
        picture, values = region_picture(self._format), input_values(self.model)
        if not picture.fits:
            return None
        return RegionStep(picture, values.range, True, self._input[:3], self._kernels, values.steps)

    @property
    def scores(self) -> Floats:
        """The network's last output (1, H, W, C), read when it is asked for, if it stays there; before the next run."""
        if self._scores is None:
            self._scores = self._read_scores()
        return self._scores

    def mask_to_frame(self, mask: Floats) -> Floats:
        """The mask (h, w), or the picture (h, w, 4), of the frame's size."""
        return self._preprocessor.mask_to_frame(mask)

    def run(self, picture: Picture) -> Floats:
        """The frame job: a picture to the mask (h, w), or to the network's picture (h, w, 4), of its upright size."""
        if self._table is None or self._sampler is None or self._mask is None:
            return self.mask_to_frame(self.network(self.image_to_tensor(picture)))
        self._network.check_run()
        frame_mask = np.empty(self._mask.frame_size, np.float32)
        self._give(self._sampler, picture)
        with self._network.turn():
            self._mask.take(self._mask_plane(), frame_mask)
            self._network.pool.run(self._table)
            self._network.finish_run()
            self._scores = self._read_scores() if self._reads_scores else None
        return frame_mask

    def close(self) -> None:
        """End its threads."""
        self._network.close()

    def _give(self, sampler: SamplerStep, picture: Picture) -> None:
        """A picture, which must be there until it has been sampled. Raises ValueError for one of another format."""
        planes = whole_rows(picture, self._format)
        sampler.take(planes, self._exposure.gain(picture) if self._exposure else 1.0)

    def _read_scores(self) -> Floats:
        number = self._network.image.outputs[0]
        return dequantized(self._network.read(number), self._network.image.tensors[number].own)

    def _mask_plane(self) -> npt.NDArray[np.float32]:
        """The mask in memory, (H, W)."""
        assert not isinstance(self.model, PictureModel), "it has one"
        plane: npt.NDArray[np.float32] = self._planes(self._mask_tensor)[self._mask_channel]
        return plane

    def _planes(self, tensor: int) -> npt.NDArray[np.float32]:
        """The planes of an input's or output's channels in memory, (C, H, W)."""
        stored = self._network.image.tensors[tensor]
        return planes_of(self._network.memory(tensor), stored.shape, stored.storage)[: stored.shape.channels]

    @property
    def _preprocessor(self) -> Preprocessor:
        """NumPy's way, made when it is first needed."""
        if self._numpy is None:
            self._numpy = preprocessor_of(self.model, self._format, self.fit, self._preprocessing)
        return self._numpy
