"""What frames run through, and how it is opened: what stays when the model changes, its stages, the pipeline."""

import contextlib
from dataclasses import dataclass

from texelflow.gpu_delegate.targets.gl.context import Context

from ..console import Console
from ..frame.drawing.backdrop import Backdrop
from ..frame.stages.frame_pipeline import FramePipeline, FrameRecord, Stage
from ..frame.textures.picture_device import PictureDevice, Target
from ..picture.preprocess import ImageSize
from ..settings.settings import Settings
from .derived import chosen_look_of
from .model_stages import Drawn, ModelStages, SharedParts, StageSteps, SwitchableStages
from .workload import Workload


@dataclass(kw_only=True)
class FrameParts:
    """What frames run through; whoever opened it frees it, and replaces what belongs to a context that is lost."""

    shared: SharedParts
    stages: SwitchableStages
    pipeline: FramePipeline
    workload: Workload
    behind: tuple[Stage, ...] = ()  # what the pipeline runs after those of the model

    def open_pipeline(self, context: Context | None) -> FramePipeline:
        """A new one, of all stages as they are now; the one before stays its owner's. Raises DeviceError."""
        stages = self.stages
        run = (*stages.stages, *self.behind)
        self.pipeline = FramePipeline(run, context, lambda: stages.uploaded_bytes, found=lambda: stages.findings)
        return self.pipeline

    def follow_stages(self) -> list[FrameRecord]:
        """Have the pipeline run the stages of another model, if they are others; the records of frames before that.

        Raises DeviceError.
        """
        run = (*self.stages.stages, *self.behind)
        same = tuple(stage.name for stage in run) == self.pipeline.names
        return [] if same else self.pipeline.change(run)


def drawn_on(
    pictures: PictureDevice | None, size: ImageSize, settings: Settings, waits: bool, stack: contextlib.ExitStack
) -> Drawn | None:
    """Where pictures of that size are drawn, if they are; `waits`: for the right picture of a background."""
    if pictures is None:
        return None
    target = target_on(pictures, size, stack)
    backdrop = Backdrop(pictures, size, chosen_look_of(settings).background, waits=waits)
    stack.callback(backdrop.release)
    return Drawn(target, backdrop)


def target_on(pictures: PictureDevice, size: ImageSize, stack: contextlib.ExitStack) -> Target:
    """A picture to draw into, which the stack frees."""
    target = pictures.target(size)
    stack.callback(target.release)
    return target


def compiled_at_once(steps: StageSteps, console: Console) -> ModelStages:
    """A model's stages, while a terminal shows how far that is. Raises TexelflowError."""
    with console.compilation() as progress:
        while True:
            try:
                progress(*next(steps))
            except StopIteration as finished:
                stages: ModelStages = finished.value
                return stages
