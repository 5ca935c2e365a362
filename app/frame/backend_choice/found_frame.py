"""A whole frame of a network that finds things, in the stages of a session: up, found, drawn."""

import contextlib
from collections.abc import Sequence

from texelflow.gpu_delegate.targets.gl.runtime import CompileProgress

from ...models.decoders.found import Finding
from ...models.decoders.region import whole_region
from ...models.finding_model import FindingModel
from ...picture.convert import Rgba
from ...picture.picture import Picture, PictureFormat
from ...picture.video_frame import VideoFrame
from ...tracking.finder import RegionNetwork
from ..drawing.canvas import Canvas
from ..drawing.found_picture import FoundFrames
from ..finding.finding_stage import FindingStage
from ..finding.network_paths import FindingPath, path_in_steps
from ..inference.backends import Backend, ComputeBackend
from ..inference.network_options import NetworkOptions
from ..looks.effects import Effect
from ..looks.looks import ChosenLook, Look
from ..stages.frame_pipeline import Stage


class FoundFrame:
    """As WholeFrame, with what is found in place of a mask. `canvas` has the picture."""

    def __init__(
        self,
        compute: ComputeBackend,
        model: FindingModel,
        frame: PictureFormat,
        options: NetworkOptions,
        effect: Effect = "findings",
        kept: int = 1,
        sees_each: bool = False,
        progress: CompileProgress | None = None,
    ) -> None:
        """Its pipeline is opened: the model, and the detectors that it needs. With `sees_each` every network sees each
        frame once, whatever is there. Raises TexelflowError, ValueError where nothing draws.
        """
        if compute.pictures is None:
            raise ValueError("there is nothing to draw with")
        self._pictures = compute.pictures
        with contextlib.ExitStack() as stack:
            self._path = opened_path(compute, model, frame, options, kept, progress)
            stack.callback(self._path.release)
            self._finding = FindingStage(SeesEach(self._path.networks) if sees_each else self._path.finder)
            target = compute.pictures.target(frame.upright_size)
            stack.callback(target.release)
            shown, look = FoundFrames(self._path.frame), ChosenLook(Look(effect))
            self.canvas = Canvas(compute.pictures, shown, target, options.fit, look, things=self._finding)
            stack.callback(self.canvas.release)
            self._held = stack.pop_all()

    @property
    def effect(self) -> Effect:
        """What is drawn."""
        return self.canvas.look.effect

    @property
    def backend(self) -> Backend:
        """Where its networks run."""
        return self._path.backend

    @property
    def on_cpu(self) -> str:
        """What runs networks on the CPU, for tables."""
        return self._path.on_cpu

    @property
    def note(self) -> str:
        """Why something is not what was asked for, in one line, or empty."""
        return self._path.note

    @property
    def uploaded_bytes(self) -> int:
        """Of frames, and of what is drawn, so far."""
        return self._path.uploaded_bytes + self.canvas.uploaded_bytes

    @property
    def stages(self) -> tuple[Stage, ...]:
        """The way of a frame to its picture."""
        composite = Stage("composite", self._composite, lambda: self._pictures.gathers)
        return (*self._path.stages, self._finding.stage, composite)

    def run(self, picture: Picture) -> Rgba:
        """The picture (H, W, 4) of a frame in RAM."""
        frame = VideoFrame(0, 0, 0.0, picture)
        for stage in self.stages:
            stage.run(frame)
        return self._pictures.read(self.canvas.target)

    def found(self) -> tuple[Finding, ...]:
        """What was in the last frame."""
        return self._finding.found()

    def release(self) -> None:
        """Free everything."""
        self._held.close()

    def _composite(self, frame: VideoFrame) -> None:
        self.canvas.stage.run(frame)
        self._pictures.finish()


class SeesEach:
    """A FrameFinder that follows nothing: each of its networks sees the whole frame, so that all take their time."""

    def __init__(self, networks: Sequence[RegionNetwork]) -> None:
        self._networks = networks

    def find(self, frame: VideoFrame) -> tuple[Finding, ...]:
        """What any of them finds."""
        regions = [whole_region(frame.size, network.input_size) for network in self._networks]
        pairs = zip(self._networks, regions, strict=True)
        return tuple(found for network, region in pairs for found in network.find(frame, region))

    def begin_anew(self) -> None:
        """Nothing is remembered."""


def opened_path(
    compute: ComputeBackend,
    model: FindingModel,
    frame: PictureFormat,
    options: NetworkOptions,
    kept: int = 1,
    progress: CompileProgress | None = None,
) -> FindingPath:
    """As path_in_steps, at once; `progress` gets (ready, in all) of the shaders of each network."""
    steps = path_in_steps(compute, model, frame, options, kept)
    with contextlib.closing(steps):
        while True:
            try:
                ready = next(steps)
            except StopIteration as end:
                path = end.value
                assert isinstance(path, FindingPath), "that is what is made for models that find things"
                return path
            if progress:
                progress(*ready)
