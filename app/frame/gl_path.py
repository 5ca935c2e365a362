"""A frame in RAM goes in, its mask on the GPU comes out: upload, image_to_tensor and the network, nothing read back."""

from typing import Any

from app.frame.picture import Picture, PictureFormat
from app.frame.pipeline import Stage
from app.frame.preprocess import Fit
from app.frame.resample import ImageToTensor, MaskLayout
from app.frame.upload import FrameTextures
from app.models.loading import SegmentationModel
from gpu_delegate.context import Context
from gpu_delegate.layout import Precision
from gpu_delegate.program import draft
from gpu_delegate.runtime import Program, Progress, TensorRange, device_of


class GlPath:
    """One model for pictures of one format, in the context's thread. release() or leave its with-block to free it."""

    def __init__(
        self,
        context: Context,
        model: SegmentationModel,
        frame_format: PictureFormat,
        fit: Fit = "stretch",
        progress: Progress | None = None,
        precision: Precision = "fp32",
    ) -> None:
        """Compiles the model; `progress` gets (shaders ready, shaders in all).

        Raises UnsupportedError for a model that does not run wholly on the GPU, DeviceError for sizes over its limits.
        """
        self.model, self.fit = model, fit
        blueprint = draft(model.graph, device_of(context), precision=precision)  # may refuse, so it comes first
        self.frame = FrameTextures(context, frame_format)
        self._to_tensor = ImageToTensor(context, self.frame, model.input_size, fit, model.spec.input_range)
        self.program = Program(context, blueprint, progress, self._to_tensor.run)
        self._input = self.program.input

    @property
    def mask(self) -> TensorRange:
        """The network's output tensor, which holds the mask on the network's own grid."""
        return self.program.output

    @property
    def layout(self) -> MaskLayout:
        """How the mask lies in that tensor."""
        spec = self.model.spec
        activation: Any = spec.activation
        channels = self.program.output.shape.channels
        return MaskLayout(self.model.output_size, channels, spec.channel, self.program.output.stride, activation)

    @property
    def dispatches(self) -> int:
        """Of one frame: image_to_tensor's and the network's."""
        return 1 + len(self.program.blueprint.kernels)

    @property
    def uploaded_bytes(self) -> int:
        """Of frames, so far; the weights went up before."""
        return self.frame.uploaded_bytes

    @property
    def stages(self) -> tuple[Stage, ...]:
        """The way of a frame to its mask."""
        return (
            Stage("upload", lambda frame: self.upload(frame.picture)),
            Stage("image_to_tensor", lambda frame: self.image_to_tensor()),
            Stage("network", lambda frame: self.network()),
        )

    def upload(self, picture: Picture) -> None:
        """The picture into its textures."""
        self.frame.upload(picture)

    def image_to_tensor(self) -> None:
        """The textures into the network's input tensor."""
        self._to_tensor.run(self._input)

    def network(self) -> None:
        """The input tensor into the mask; who reads that puts the barrier."""
        self.program.run()

    def release(self) -> None:
        """Free all GL objects."""
        self._to_tensor.release()
        self.frame.release()
        self.program.release()
