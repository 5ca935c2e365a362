"""A whole frame of a network that finds things, in the stages of a session: up, found, drawn."""

import contextlib

from ..frame.drawing.canvas import Canvas
from ..frame.drawing.found_picture import FoundFrames
from ..frame.finding.finding_stage import FindingStage
from ..frame.finding.network_paths import FindingPath, path_in_steps
from ..frame.inference.backends import Backend, ComputeBackend
from ..frame.inference.network_options import NetworkOptions
from ..frame.looks.effects import Effect
from ..frame.looks.looks import ChosenLook, Look
from ..frame.stages.frame_pipeline import Stage
from ..models.decoders.found import Finding
from ..models.finding_model import FindingModel
from ..picture.picture import PictureFormat
from ..picture.video_frame import VideoFrame


class FoundFrame:
    """As WholeFrame, with what is found in place of a mask. `canvas` has the picture."""

    def __init__(
        self,
        compute: ComputeBackend,
        model: FindingModel,
        frame: PictureFormat,
        options: NetworkOptions,
        effect: Effect,
        kept: int,
    ) -> None:
        """Its pipeline is opened: the model, and the detectors that it needs. Raises TexelflowError, ValueError where
        nothing draws.
        """
        if compute.pictures is None:
            raise ValueError("there is nothing to draw with")
        self._pictures = compute.pictures
        with contextlib.ExitStack() as stack:
            self._path = _opened(compute, model, frame, options, kept)
            stack.callback(self._path.release)
            self._finding = FindingStage(self._path.finder)
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
    def uploaded_bytes(self) -> int:
        """Of frames, and of what is drawn, so far."""
        return self._path.uploaded_bytes + self.canvas.uploaded_bytes

    @property
    def stages(self) -> tuple[Stage, ...]:
        """The way of a frame to its picture."""
        composite = Stage("composite", self._composite, lambda: self._pictures.gathers)
        return (*self._path.stages, self._finding.stage, composite)

    def found(self) -> tuple[Finding, ...]:
        """What was in the last frame."""
        return self._finding.found()

    def release(self) -> None:
        """Free everything."""
        self._held.close()

    def _composite(self, frame: VideoFrame) -> None:
        self.canvas.stage.run(frame)
        self._pictures.finish()


def _opened(
    compute: ComputeBackend, model: FindingModel, frame: PictureFormat, options: NetworkOptions, kept: int
) -> FindingPath:
    steps = path_in_steps(compute, model, frame, options, kept)
    while True:
        try:
            next(steps)
        except StopIteration as end:
            path = end.value
            assert isinstance(path, FindingPath), "that is what is made for models that find things"
            return path
