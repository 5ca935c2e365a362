"""Networks on regions of a frame's textures, on the GPU: nothing but what a decoder needs comes back."""

import contextlib
from collections.abc import Generator, Iterator, Sequence

import numpy as np

from texelflow.gpu_delegate.programs.model_sharing import graph_compiler
from texelflow.gpu_delegate.targets.gl.gl_buffers import read_buffer
from texelflow.gpu_delegate.targets.gl.runtime import Program
from texelflow.gpu_delegate.tuning.store import tuned_device

from ...models.decoders.found import Finding
from ...models.decoders.region import FrameRegion, whole_region
from ...models.finding_model import FindingModel
from ...picture.color_planes import Floats
from ...picture.picture import ImageSize, Picture, PictureFormat
from ...picture.video_frame import VideoFrame
from ..inference.network_options import NETWORK_DEFAULTS, NetworkOptions
from ..textures.region_pass import RegionToTensor
from ..textures.upload import FrameTextures
from .gl_outputs import GlOutputs
from .region_input import finding_values
from .seen_frames import SeenFrames


class GlRegions:
    """One network, in the context's thread. release() frees all but frames' textures that others use."""

    note = ""  # all is where it is meant to be

    def __init__(
        self, seen: SeenFrames, model: FindingModel, frame: PictureFormat, options: NetworkOptions = NETWORK_DEFAULTS
    ) -> None:
        """Compiles the model. Raises UnsupportedError for one that does not run wholly on the GPU, DeviceError."""
        for _ in self._made(seen, model, frame, options):
            pass

    @classmethod
    def in_steps(
        cls, seen: SeenFrames, model: FindingModel, frame: PictureFormat, options: NetworkOptions = NETWORK_DEFAULTS
    ) -> "Generator[tuple[int, int], None, GlRegions]":
        """The same shader by shader, as Program.in_steps has it."""
        made = cls.__new__(cls)
        yield from made._made(seen, model, frame, options)
        return made

    def _made(
        self, seen: SeenFrames, model: FindingModel, frame: PictureFormat, options: NetworkOptions
    ) -> Iterator[tuple[int, int]]:
        compiling, cache = options.compiling.with_memory(keeps_inputs=False), options.weights_cache
        self.model, self._seen, self._context = model, seen, seen.context
        context = seen.context
        device = tuned_device(context, compiling.precision)
        compiled = graph_compiler(context.programs, cache)(model.graph, device, compiling)  # may refuse, so comes first
        with contextlib.ExitStack() as stack:
            self._textures = seen.textures(frame)
            self._cut = self._cut_of(self._textures)
            stack.callback(self._cut.release)
            whole = whole_region(frame.upright_size, model.input_size).to_frame()
            self.program = yield from Program.in_steps(
                context, compiled, lambda tensor: self._cut.run(whole, tensor), cache
            )
            stack.callback(self.program.release)
            self._outputs = GlOutputs(self.program, model)
            seen.join()
            stack.pop_all()

    @property
    def input_size(self) -> ImageSize:
        """See RegionNetwork."""
        return self.model.input_size

    @property
    def renderer(self) -> str:
        """The context's."""
        return self._context.renderer

    @property
    def dispatches(self) -> int:
        """The network's, for one region."""
        return len(self.program.compiled.kernels)

    def take(self, frame: PictureFormat) -> None:
        """Take pictures of another format from now on: a shader is compiled. Raises DeviceError."""
        self._follow(self._seen.textures(frame))

    def find(self, frame: VideoFrame, region: FrameRegion) -> tuple[Finding, ...]:
        """See RegionNetwork."""
        self._run(frame.picture, region)
        return self.model.decoding.decode(self._outputs.read(), region)

    def find_each(self, frame: VideoFrame, regions: Sequence[FrameRegion]) -> tuple[tuple[Finding, ...], ...]:
        """What is in each region: all are asked of the GPU before it is waited for."""
        if not self._outputs.waits:
            return tuple(self.find(frame, region) for region in regions)
        for number, region in enumerate(regions):
            self._run(frame.picture, region)
            self._outputs.keep(number)
        decode = self.model.decoding.decode
        return tuple(decode(self._outputs.read_kept(number), region) for number, region in enumerate(regions))

    def outputs(self, picture: Picture, region: FrameRegion) -> tuple[Floats, ...]:
        """The network's outputs for a region of a picture, as copies, in the shapes of the file."""
        self._run(picture, region)
        return self._outputs.read_all()

    def region_to_tensor(self, picture: Picture, region: FrameRegion) -> Floats:
        """The network's input (1, H, W, 3) for a region of a picture, read back."""
        self._follow(self._seen.see(picture))
        place, (width, height) = self.program.input, self.input_size
        self._cut.run(region.to_frame(), place)
        texels = read_buffer(self._context, place).view(np.float32)
        return texels.reshape(1, height, width, 4)[..., :3]

    def release(self) -> None:
        """Free all GL objects of its own."""
        self._cut.release()
        self._outputs.release()
        self.program.release()
        self._seen.leave()

    def _run(self, picture: Picture, region: FrameRegion) -> None:
        """From the picture to the outputs in the GPU's memory."""
        self._follow(self._seen.see(picture))
        self._cut.run(region.to_frame(), self.program.input)
        self.program.run()

    def _follow(self, textures: FrameTextures) -> None:
        """Cut regions out of these textures from now on."""
        if textures is not self._textures:
            cut = self._cut_of(textures)
            self._cut.release()
            self._cut, self._textures = cut, textures

    def _cut_of(self, textures: FrameTextures) -> RegionToTensor:
        values, model = finding_values(self.model), self.model
        return RegionToTensor(
            self._context, textures, model.input_size, values.range, model.repeats_edges, values.steps
        )
