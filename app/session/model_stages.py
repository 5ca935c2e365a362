"""A model goes in; all that makes a picture of a camera's frame comes out, compiled together, a shader at a time.

A scene runs while the next one is being compiled, so that another model costs no frame; Scenes is what the pipeline
knows of them.
"""

import contextlib
from collections.abc import Callable, Generator
from dataclasses import dataclass
from time import perf_counter

from texelflow.gpu_delegate.errors import TexelflowError
from texelflow.gpu_delegate.layout import Precision

from ..frame.backdrop import Backdrop
from ..frame.canvas import Canvas
from ..frame.effects import Effect
from ..frame.gl_path import GlPath
from ..frame.looks import Choice
from ..frame.machine import Machine
from ..frame.pipeline import Stage
from ..frame.refine import Refinement, Refiner
from ..frame.segmenter import CpuSegmenter, segmenter_in_steps
from ..frame.targets import OffscreenTarget
from ..media.sources import VideoFrame
from ..models.loading import SegmentationModel
from ..picture.picture import PictureFormat
from ..picture.preprocess import Fit

KEPT_FRAMES = 3  # on the device: with --delay-video the one before is shown, and may still be drawn while one goes up

_READY = (1, 1)  # all shaders of the network
_TURN_S = 0.004  # of compiling between two looks at the camera
_OF_NETWORK = ("image_to_tensor", "network")


@dataclass(frozen=True)
class Ground:
    """What stays when the model changes."""

    machine: Machine
    format: PictureFormat  # of the camera's pictures
    fit: Fit
    precision: Precision
    target: OffscreenTarget  # of the frame's size
    backdrop: Backdrop


@dataclass(frozen=True)
class Scene:
    """One model and all that is drawn with it. Made by scene_in_steps."""

    segmenter: GlPath | CpuSegmenter
    refiner: Refiner
    canvas: Canvas
    stages: tuple[Stage, ...]  # of the segmenter

    def release(self) -> None:
        """Free everything but the ground."""
        for part in (self.canvas, self.refiner, self.segmenter):
            part.release()


Steps = Generator[tuple[int, int], None, Scene]


def scene_in_steps(ground: Ground, model: SegmentationModel, choice: Choice, refinement: Refinement) -> Steps:
    """A scene, with a pause after each shader of the network and each part: (ready, in all). Raises TexelflowError."""
    machine, fit = ground.machine, ground.fit
    assert machine.context is not None
    with contextlib.ExitStack() as made:
        segmenter = yield from segmenter_in_steps(machine, model, ground.format, fit, ground.precision, KEPT_FRAMES)
        made.callback(segmenter.release)
        yield _READY
        refiner = Refiner(machine.context, segmenter, fit, refinement)
        made.callback(refiner.release)
        yield _READY
        canvas = Canvas(
            machine.context, segmenter, ground.target, fit, choice, backdrop=ground.backdrop, refiner=refiner
        )
        made.pop_all()
    return Scene(segmenter, refiner, canvas, segmenter.stages)


class Scenes:
    """The scene that runs, and the one that is to come. `fresh` says whether the network sees the next frame."""

    def __init__(self, first: Scene, name: str) -> None:
        """Takes the first one over; its name is what a person calls its model."""
        self.current, self.name = first, name
        self.fresh = True
        self._coming: tuple[Steps, str] | None = None
        self._uploaded_bytes = 0  # by scenes that are gone
        self.stages = (
            *(Stage(stage.name, self._runner(place, stage.name)) for place, stage in enumerate(first.stages)),
            Stage("refine", lambda frame: self.current.refiner.run(self.fresh)),
            Stage("composite", self.composite),
        )

    @property
    def uploaded_bytes(self) -> int:
        """Of frames and masks, so far."""
        current = self.current
        return self._uploaded_bytes + current.segmenter.uploaded_bytes + current.canvas.uploaded_bytes

    @property
    def target(self) -> OffscreenTarget:
        """The picture of the last frame."""
        return self.current.canvas.target

    def composite(self, frame: VideoFrame) -> None:
        """Draw the picture of the frame at hand; once more if its look has changed since."""
        self.current.canvas.stage.run(frame)

    def drawn(self, effect: Effect) -> OffscreenTarget:
        """The last frame with another effect."""
        return self.current.canvas.drawn(effect)

    def shown(self) -> OffscreenTarget:
        """The last picture as a screen shows it."""
        return self.current.canvas.shown()

    @property
    def changing(self) -> bool:
        """Whether another scene is on its way."""
        return self._coming is not None

    def change(self, steps: Steps, name: str) -> None:
        """Begin to compile another scene; what was begun before is given up."""
        self.give_up()
        self._coming = steps, name

    def give_up(self) -> None:
        """Let the scene that runs stay."""
        if self._coming:
            self._coming[0].close()
            self._coming = None

    def advance(self) -> Scene | None:
        """Compile for some milliseconds; the new scene in the moment when it takes over. Raises TexelflowError.

        If it raises, the scene that runs stays.
        """
        if self._coming is None:
            return None
        steps, name = self._coming
        end = perf_counter() + _TURN_S
        try:
            while perf_counter() < end:
                next(steps)
        except StopIteration as finished:
            self._coming = None
            before, self.current, self.name = self.current, finished.value, name
            self._uploaded_bytes += before.segmenter.uploaded_bytes
            before.release()
            return self.current
        except TexelflowError:
            self._coming = None
            raise
        return None

    def release(self) -> None:
        """Free all scenes."""
        self.give_up()
        self.current.release()

    def _runner(self, place: int, name: str) -> Callable[[VideoFrame], None]:
        """What runs that stage of the network, whichever scene is the current one."""

        def run(frame: VideoFrame) -> None:
            if self.fresh or name not in _OF_NETWORK:
                self.current.stages[place].run(frame)

        return run
