"""Networks on regions of pictures in RAM, in machine code of our own: one native call cuts the region and computes."""

from texelflow.gpu_delegate.base.wording import counted
from texelflow.gpu_delegate.model.layout import Precision
from texelflow.gpu_delegate.model.packing import in_file_type
from texelflow.gpu_delegate.model.quantization import dequantized
from texelflow.gpu_delegate.programs.model_sharing import ModelSharing
from texelflow.gpu_delegate.targets.llvm.compiler import native_target
from texelflow.gpu_delegate.targets.llvm.cutting import cut_step, joined_rounds
from texelflow.gpu_delegate.targets.llvm.frame_steps import FrameKernels
from texelflow.gpu_delegate.targets.llvm.native_runtime import NativeNetwork
from texelflow.gpu_delegate.targets.llvm.planes import planes_of
from texelflow.gpu_delegate.targets.llvm.pool import WorkerPool
from texelflow.gpu_delegate.targets.llvm.region_sampler import RegionStep
from texelflow.gpu_delegate.targets.llvm.work import WorkTable

from ...models.decoders.found import Finding
from ...models.decoders.region import FrameRegion
from ...models.finding_model import FindingModel
from ...picture.color_planes import Floats
from ...picture.picture import ImageSize, Picture, PictureFormat, whole_rows
from ...picture.region_cut import cut_places
from ...picture.video_frame import VideoFrame
from ..inference.native_ends import region_picture
from .finding_outputs import found_in
from .region_input import finding_values, region_tensor


class NativeRegions:
    """One network for pictures of one format at a time. Not for use from several threads at once."""

    note = ""  # it is what was asked for

    def __init__(
        self,
        model: FindingModel,
        frame: PictureFormat,
        threads: int | None = None,
        pool: WorkerPool | None = None,
        weights_cache: ModelSharing | None = None,
        precision: Precision = "fp32",
    ) -> None:
        """`threads` are of its own, unless there is a pool.

        Raises UnsupportedError for a model that has no native code, DeviceError without LLVM or on an old CPU.
        """
        self.model = model
        self._network = NativeNetwork.load(model.graph, threads, pool, weights_cache=weights_cache, precision=precision)
        self._kernels = FrameKernels(native_target())
        self.renderer = f"{self._kernels.target.name} code on the CPU, {counted(self._network.pool.threads, 'thread')}"
        number = self._network.image.inputs[0]
        stored = self._network.image.tensors[number]
        planes = planes_of(self._network.memory(number), stored.shape, stored.storage)
        self._input = planes[: stored.shape.channels]
        self.take(frame)

    @property
    def input_size(self) -> ImageSize:
        """See RegionNetwork."""
        return self.model.input_size

    @property
    def pool(self) -> WorkerPool:
        """Of threads, which other networks may share."""
        return self._network.pool

    def take(self, frame: PictureFormat) -> None:
        """Take pictures of another format from now on."""
        sampled = region_picture(frame)
        self._format = frame
        self._step: RegionStep | None = None
        if sampled.fits:
            values = finding_values(self.model)
            self._step = RegionStep(
                sampled, values.range, self.model.repeats_edges, self._input, self._kernels, values.steps
            )
            network = self._network
            cut = cut_step(len(network.steps), self._step.size, network.pool.threads)
            self._table = WorkTable(joined_rounds([cut, *network.image.rounds]), [*network.steps, self._step.addresses])
            self._cut_table = WorkTable([cut], [*network.steps, self._step.addresses])

    def find(self, frame: VideoFrame, region: FrameRegion) -> tuple[Finding, ...]:
        """See RegionNetwork."""
        return found_in(self.model, self.outputs(frame.picture, region), region)

    def outputs(self, picture: Picture, region: FrameRegion) -> tuple[Floats, ...]:
        """The network's outputs for a region of a picture, as copies, in the shapes of the file."""
        network, image = self._network, self._network.image
        network.check_run()
        self._give(picture, region)
        with network.turn():
            if self._step:
                network.pool.run(self._table)
                network.finish_run()
            else:
                network.compute()
            return tuple(dequantized(network.read(each), image.tensors[each].own) for each in image.outputs)

    def region_to_tensor(self, picture: Picture, region: FrameRegion) -> Floats:
        """The network's input (1, H, W, 3) for a region of a picture, in its own memory."""
        self._give(picture, region)
        if self._step:
            self._network.pool.run(self._cut_table)
        return self._input.transpose(1, 2, 0)[None]

    def release(self) -> None:
        """End its threads."""
        self._network.close()

    def _give(self, picture: Picture, region: FrameRegion) -> None:
        """A picture and a region of it; where no kernel can cut that, NumPy does."""
        if picture.format != self._format:
            self.take(picture.format)
        if self._step:
            places = cut_places(self._format, self.input_size, region.to_frame())
            self._step.take(whole_rows(picture, self._format), places)
        else:
            number = self._network.image.inputs[0]
            tensor = region_tensor(self.model, picture, region)
            self._network.write(number, in_file_type(tensor, self._network.image.tensors[number].own))
