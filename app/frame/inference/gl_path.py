"""The GPU path: from a frame in RAM to its mask or picture on the GPU, by upload, conversion and network."""

import contextlib
from collections.abc import Generator, Iterator
from typing import Any

from texelflow.gpu_delegate.programs.model_sharing import graph_compiler
from texelflow.gpu_delegate.targets.gl.context import Context
from texelflow.gpu_delegate.targets.gl.runtime import CompileProgress, Program, TensorRange
from texelflow.gpu_delegate.tuning.store import tuned_device

from ...models.decoders.region import FrameRegion
from ...models.model_loading import FrameModel, PictureModel, input_values, output_scale, preprocessing_for
from ...picture.picture import Picture, PictureFormat
from ...picture.video_frame import VideoFrame
from ..stages.frame_pipeline import Stage, gathers_always
from ..textures.region_pass import RegionToTensor
from ..textures.resample import ImageToTensor, MaskLayout
from ..textures.upload import FrameTextures
from ..textures.upload_path import choose_path
from .backends import Backend
from .network_options import NETWORK_DEFAULTS, NetworkOptions
from .network_output import ClassScores, PictureLayout, PictureOutput, shows_classes


class GlPath:
    """One model for pictures of one format, in the context's thread. release() or leave its with-block to free it."""

    backend: Backend = "gl"
    note = delegated = ""  # all is where it is meant to be
    on_cpu = ""

    def __init__(
        self,
        context: Context,
        model: FrameModel,
        frame_format: PictureFormat,
        options: NetworkOptions = NETWORK_DEFAULTS,
        progress: CompileProgress | None = None,
        kept: int = 1,
    ) -> None:
        """Compiles the model; `progress` gets (shaders ready, shaders in all), the device keeps the last `kept` frames.

        Raises UnsupportedError for a model that does not run wholly on the GPU, DeviceError for sizes over its limits.
        """
        for done in self._made(context, model, frame_format, options, kept):
            if progress:
                progress(*done)

    @classmethod
    def in_steps(
        cls,
        context: Context,
        model: FrameModel,
        frame_format: PictureFormat,
        options: NetworkOptions = NETWORK_DEFAULTS,
        kept: int = 1,
    ) -> "Generator[tuple[int, int], None, GlPath]":
        """The same shader by shader, as Program.in_steps has it; `kept` is FrameTextures'."""
        path = cls.__new__(cls)
        yield from path._made(context, model, frame_format, options, kept)
        return path

    def _made(
        self, context: Context, model: FrameModel, frame_format: PictureFormat, options: NetworkOptions, kept: int
    ) -> Iterator[tuple[int, int]]:
        """Everything that the constructor does, with a pause after each shader."""
        compiling, cache = options.compiling.with_memory(keeps_inputs=False), options.weights_cache
        self.model, self.fit, self.precision = model, options.fit, compiling.precision
        self._preprocessing = preprocessing_for(model, options.preprocessing)
        device = tuned_device(context, compiling.precision)
        compiled = graph_compiler(context.programs, cache)(model.graph, device, compiling)  # may refuse, so comes first
        with contextlib.ExitStack() as stack:
            self.frame, self._to_tensor = self._way_in(context, frame_format, kept, stack)
            self.program = yield from Program.in_steps(context, compiled, self._to_tensor.run, cache)
            stack.pop_all()
        self._input = self.program.input
        self._cut: RegionToTensor | None = None  # made where regions are looked at

    def _way_in(
        self, context: Context, frame_format: PictureFormat, kept: int, stack: contextlib.ExitStack
    ) -> tuple[FrameTextures, ImageToTensor]:
        """What lies ahead of the network, and is freed by the stack."""
        frame = FrameTextures(context, frame_format, choose_path(context, frame_format), kept)
        stack.callback(frame.release)
        values = input_values(self.model)
        to_tensor = ImageToTensor(
            context, frame, self.model.input_size, self.fit, values.range, self._preprocessing, values.steps
        )
        stack.callback(to_tensor.release)
        return frame, to_tensor

    def take(self, frame_format: PictureFormat) -> None:
        """Take pictures of another format from now on, with the same network: a shader or two are compiled.

        Raises DeviceError as the constructor does; then everything is as it was.
        """
        with contextlib.ExitStack() as stack:
            made = self._way_in(self.program.context, frame_format, self.frame.kept, stack)
            stack.pop_all()
        self._forget_cut()
        self._to_tensor.release()
        self.frame.release()
        self.frame, self._to_tensor = made

    def _forget_cut(self) -> None:
        if self._cut:
            self._cut.release()
            self._cut = None

    @property
    def mask(self) -> TensorRange:
        """The network's output tensor, which holds the mask, or its picture, on the network's own grid."""
        return self.program.output

    @property
    def layout(self) -> MaskLayout:
        """How the mask lies in that tensor. Raises ValueError for a network that puts out a picture."""
        if isinstance(self.model, PictureModel):
            raise ValueError(f"{self.model.name} puts out a picture")
        spec = self.model.spec
        activation: Any = spec.activation
        place, scale = self.program.output, output_scale(self.model)
        kinds = spec.channel, place.stride, activation, scale, spec.has_own_colors, spec.group, spec.adds
        return MaskLayout(self.model.output_size, place.shape.channels, *kinds)

    @property
    def picture(self) -> PictureOutput | None:
        """The picture in that tensor; None for a segmentation."""
        if not isinstance(self.model, PictureModel):
            return None
        (low, high), scale = self.model.spec.output_range, output_scale(self.model)
        layout = PictureLayout(self.model.output_size, 4 if self.model.has_alpha else 3, (low / scale, high / scale))
        return PictureOutput(layout, lambda: self.mask)

    @property
    def classes(self) -> ClassScores | None:
        """The scores in that tensor; None where they are not for being shown."""
        model = self.model
        if isinstance(model, PictureModel) or not shows_classes(model.output_size, model.classes):
            return None
        return ClassScores(model.output_size, model.classes, model.spec.labels, lambda: self.mask)

    @property
    def dispatches(self) -> int:
        """The network's, for one frame."""
        return len(self.program.compiled.kernels)

    @property
    def uploaded_bytes(self) -> int:
        """Of frames, so far; the weights went up before."""
        return self.frame.uploaded_bytes

    @property
    def stages(self) -> tuple[Stage, ...]:
        """The way of a frame to its mask."""
        return (
            Stage("upload", lambda frame: self.upload(frame.picture), gathers_always),
            Stage("image_to_tensor", lambda frame: self.image_to_tensor(), gathers_always),
            Stage("network", lambda frame: self.network(), gathers_always),
        )

    def begin_anew(self) -> None:
        """The next frame has nothing to do with those before."""
        self.program.reset_states()
        self.expose_anew()

    def expose_anew(self) -> None:
        """The light of the next frame has nothing to do with that of those before."""
        self._to_tensor.begin_anew()

    def upload(self, picture: Picture) -> None:
        """The picture into its textures."""
        self.frame.upload(picture)

    def image_to_tensor(self) -> None:
        """The textures into the network's input tensor."""
        self._to_tensor.run(self._input)

    def network(self) -> None:
        """The input tensor into the mask; who reads that puts the barrier."""
        self.program.run()

    def mask_of_region(self, frame: VideoFrame, region: FrameRegion) -> TensorRange:
        """The mask of a region of the frame in the textures, in place of the whole one's; the frame's edges go on."""
        if self._cut is None:
            values, frame_textures = input_values(self.model), self.frame
            self._cut = RegionToTensor(
                self.program.context, frame_textures, self.model.input_size, values.range, True, values.steps,
                self._to_tensor.gain,
            )  # fmt: skip
        self._cut.run(region.to_frame(), self._input)
        self.program.run()
        return self.mask

    def release(self) -> None:
        """Free all GL objects."""
        self._forget_cut()
        self._to_tensor.release()
        self.frame.release()
        self.program.release()
