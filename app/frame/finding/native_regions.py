"""Networks on regions of pictures in RAM, in machine code of our own: one native call cuts the region and computes.

As many regions as there are threads are one call, too: each thread has one, with memory of its own, so that none waits
for another one between layers.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

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
from texelflow.gpu_delegate.targets.llvm.region_sampler import RegionPicture, RegionStep
from texelflow.gpu_delegate.targets.llvm.work import StepAddresses, WorkRound, WorkTable

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

_MOST_BESIDE = 4  # regions at once: each has the memory of a network


@dataclass(frozen=True)
class _Seat:
    """A network's memory, and what cuts its input."""

    network: NativeNetwork
    step: RegionStep

    @property
    def cut(self) -> WorkRound:
        """The step behind the network's, in one task."""
        return cut_step(len(self.network.steps), self.step.size, 1)

    @property
    def steps(self) -> list[StepAddresses]:
        return [*self.network.steps, self.step.addresses]


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
        self._input = _input_of(self._network)
        # Outputs of networks with a WeightsCache are read in turns, and states are of one run after the other.
        self._is_alone = weights_cache is not None or bool(self._network.image.states)
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
        self._beside: tuple[Sequence[_Seat], WorkTable] | None = None  # once so many regions come
        if sampled.fits:
            self._step = self._cutting(sampled, self._input)
            network = self._network
            cut = cut_step(len(network.steps), self._step.size, network.pool.threads)
            self._table = WorkTable(joined_rounds([cut, *network.image.rounds]), [*network.steps, self._step.addresses])
            self._cut_table = WorkTable([cut], [*network.steps, self._step.addresses])

    def find(self, frame: VideoFrame, region: FrameRegion) -> tuple[Finding, ...]:
        """See RegionNetwork."""
        return found_in(self.model, self.outputs(frame.picture, region), region)

    def find_each(self, frame: VideoFrame, regions: Sequence[FrameRegion]) -> tuple[tuple[Finding, ...], ...]:
        """What is in each region: by as many at once as there are threads."""
        found, threads, picture = list[tuple[Finding, ...]](), self._network.pool.threads, frame.picture
        if picture.format != self._format:
            self.take(picture.format)
        goes = 1 < threads <= _MOST_BESIDE and self._step is not None and not self._is_alone
        while goes and len(regions) - len(found) >= threads:
            now = regions[len(found) : len(found) + threads]
            outputs = self._outputs_beside(picture, now)
            found += [found_in(self.model, each, region) for each, region in zip(outputs, now, strict=True)]
        return (*found, *(self.find(frame, region) for region in regions[len(found) :]))

    def outputs(self, picture: Picture, region: FrameRegion) -> tuple[Floats, ...]:
        """The network's outputs for a region of a picture, as copies, in the shapes of the file."""
        network = self._network
        network.check_run()
        self._give(picture, region)
        with network.turn():
            if self._step:
                network.pool.run(self._table)
                network.finish_run()
            else:
                network.compute()
            return _outputs_of(network)

    def region_to_tensor(self, picture: Picture, region: FrameRegion) -> Floats:
        """The network's input (1, H, W, 3) for a region of a picture, in its own memory."""
        self._give(picture, region)
        if self._step:
            self._network.pool.run(self._cut_table)
        return self._input.transpose(1, 2, 0)[None]

    def release(self) -> None:
        """End its threads."""
        self._network.close()

    def _cutting(self, sampled: RegionPicture, planes: Floats) -> RegionStep:
        values = finding_values(self.model)
        return RegionStep(sampled, values.range, self.model.repeats_edges, planes, self._kernels, values.steps)

    def _outputs_beside(self, picture: Picture, regions: Sequence[FrameRegion]) -> list[tuple[Floats, ...]]:
        """As outputs, for as many regions as there are threads."""
        seats, table = self._beside = self._beside or self._seated(len(regions))
        planes = whole_rows(picture, self._format)
        for seat, region in zip(seats, regions, strict=True):
            seat.step.take(planes, cut_places(self._format, self.input_size, region.to_frame()))
        self._network.pool.run(table)
        for seat in seats:
            seat.network.finish_run()
        return [_outputs_of(seat.network) for seat in seats]

    def _seated(self, count: int) -> tuple[Sequence[_Seat], WorkTable]:
        """So many networks, of which each is one task."""
        assert self._step, "there is something that cuts regions"
        seats, sampled = [_Seat(self._network, self._step)], region_picture(self._format)
        for _ in range(1, count):
            network = self._network.copy()
            seats.append(_Seat(network, self._cutting(sampled, _input_of(network))))
        tasks, steps = [], list[StepAddresses]()
        for seat in seats:
            rounds = [seat.cut, *seat.network.image.rounds]
            ranges = (part for tasks in rounds for task in tasks for part in task)
            tasks.append(tuple(replace(part, step=part.step + len(steps)) for part in ranges))
            steps += seat.steps
        return seats, WorkTable([tuple(tasks)], steps)

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


def _input_of(network: NativeNetwork) -> Floats:
    """The planes (C, H, W) of its input in memory."""
    number = network.image.inputs[0]
    stored = network.image.tensors[number]
    return planes_of(network.memory(number), stored.shape, stored.storage)[: stored.shape.channels]


def _outputs_of(network: NativeNetwork) -> tuple[Floats, ...]:
    """Of the last run, as copies, in the shapes of the file."""
    image = network.image
    return tuple(dequantized(network.read(each), image.tensors[each].own) for each in image.outputs)
