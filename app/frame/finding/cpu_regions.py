"""Networks on regions of pictures in RAM, by TensorFlow Lite: what cuts the region is NumPy.

A delegate may run parts of a network on the GPU, or in the CPU's own code, where these cannot run the whole.
"""

from texelflow.gpu_delegate.base.errors import UnsupportedError
from texelflow.gpu_delegate.cpu.delegation import DelegateMaker
from texelflow.gpu_delegate.cpu.reference import Reference
from texelflow.gpu_delegate.cpu.rewriting import rewritten, without_custom_landmarks
from texelflow.gpu_delegate.model.packing import in_file_type
from texelflow.gpu_delegate.model.quantization import dequantized
from texelflow.gpu_delegate.programs.model_sharing import ModelSharing

from ...models.decoders.found import Finding
from ...models.decoders.region import FrameRegion
from ...models.finding_model import FindingModel
from ...picture.color_planes import Floats
from ...picture.picture import ImageSize, Picture, PictureFormat
from ...picture.video_frame import VideoFrame
from .finding_outputs import found_in
from .region_input import region_tensor


class CpuRegions:
    """One network for pictures of any format."""

    def __init__(
        self,
        model: FindingModel,
        threads: int | None = None,
        delegate: DelegateMaker | None = None,
        as_read: bool = False,
        weights_cache: ModelSharing | None = None,
        note: str = "",
    ) -> None:
        """`delegate` and `weights_cache` are Reference's; `note` says why it is not what was asked for.

        With `as_read`, or a delegate, no pass that only saves work changes the model. Raises ModelError where
        TensorFlow Lite refuses it, DeviceError where that is not installed, UsageError for what the cache refuses.
        """
        self.model, self.note = model, note
        graph, judges = model.graph, as_read and delegate is None
        if delegate is None:
            graph = without_custom_landmarks(graph) if as_read else rewritten(graph)
        self._reference = Reference(graph, threads, delegate=delegate, weights_cache=weights_cache, judges=judges)
        on_cpu, delegation = "TensorFlow Lite on the CPU", self._reference.delegation
        self.renderer = on_cpu
        if delegation and delegation.partitions:
            self.renderer = f"{delegation.renderer} and {on_cpu}, {delegation.line}"

    @property
    def input_size(self) -> ImageSize:
        """See RegionNetwork."""
        return self.model.input_size

    def check_parts(self, reason: UnsupportedError) -> None:
        """Raises UnsupportedError where its delegate runs too little of the network to pay."""
        if self._reference.delegation:
            self._reference.delegation.check_taken(reason)

    def take(self, frame: PictureFormat) -> None:
        """Nothing depends on the format."""

    def find(self, frame: VideoFrame, region: FrameRegion) -> tuple[Finding, ...]:
        """See RegionNetwork."""
        return found_in(self.model, self.outputs(frame.picture, region), region)

    def outputs(self, picture: Picture, region: FrameRegion) -> tuple[Floats, ...]:
        """The network's outputs for a region of a picture, as copies, in the shapes of the file."""
        graph = self.model.graph
        tensor = in_file_type(self.region_to_tensor(picture, region), graph.tensors[graph.inputs[0]])
        found = self._reference.run(tensor)
        return tuple(dequantized(values, graph.tensors[t]) for values, t in zip(found, graph.outputs, strict=True))

    def region_to_tensor(self, picture: Picture, region: FrameRegion) -> Floats:
        """The network's input (1, H, W, 3) for a region of a picture."""
        return region_tensor(self.model, picture, region)

    def release(self) -> None:
        """As Reference.close."""
        self._reference.close()
