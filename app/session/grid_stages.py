"""Runs the stages of one model for each of several cameras, together for one frame.

Each camera has its own tensors, masks and history; what it gives nothing new for is not run again. Where a frame is
due for a new mask, each camera's next picture gets one, so that none waits for frames that come when others do.
"""

import contextlib
from collections.abc import Callable
from dataclasses import dataclass, replace

from texelflow.gpu_delegate.programs.model_sharing import ModelSharing

from ..frame.drawing.grid_canvas import DrawnCamera, GridCanvas
from ..frame.looks.looks import ChosenLook
from ..frame.refinement.refine import Refinement
from ..models.decoders.found import Finding, moved_finding
from ..models.finding_loading import ShownModel
from ..picture.grid import CellPlace, PictureGrid
from ..picture.grid_frame import CameraFrame, GridFrame
from ..picture.video_frame import VideoFrame
from ..tracking.finder import FoundKind
from .model_stages import ModelStages, SharedParts, StageSteps, stages_in_steps


class CameraStages:
    """Those of one camera. `version` is another one whenever its picture may look different."""

    def __init__(self, stages: ModelStages) -> None:
        self.stages, self.version = stages, 0
        self._frame: CameraFrame | None = None  # what the device has
        self._is_new = self._is_fresh = self._finds = False
        self._is_owed = False  # whether the next picture gets a mask, whatever is due then

    def run(self, place: int, frame: CameraFrame, fresh: bool, finds: bool = True) -> None:
        """Run the stage at that place, if the frame is new; the first one begins with it."""
        if place == 0:
            self._begin(frame, fresh, finds)
        if self._is_new:
            self.stages.run(place, frame.newest, self._is_fresh, self._finds)

    def _begin(self, frame: CameraFrame, fresh: bool, finds: bool) -> None:
        self._is_new, self._frame = frame is not self._frame, frame
        if self._is_new and frame.cut:
            self.stages.begin_anew()
            self._is_owed = True
        due = fresh or self._is_owed
        self._is_fresh = self._is_new and due
        self._finds = self._is_fresh or finds
        self._is_owed = due and not self._is_fresh
        self.version += self._is_new

    @property
    def found(self) -> tuple[Finding, ...]:
        """What was found in the frame that is shown, in its pixels."""
        return self.stages.found(self._frame.age) if self._frame else ()

    def found_at(self, place: CellPlace) -> tuple[Finding, ...]:
        """The same in pixels of the grid, where the frame is at that place."""
        if self._frame is None:
            return ()
        scale = place.width / self._frame.newest.size[0]
        return tuple(moved_finding(found, place.left, place.top, scale) for found in self.found)

    def refine(self) -> None:
        """The mask of a frame that is new."""
        if self._is_new and self._frame:
            self.stages.refine(self._is_fresh, self._frame.age)

    def rest(self) -> None:
        """Nobody needs the mask of a frame that is new."""
        if self._is_new:
            self.stages.rest()

    def change(self, act: Callable[[ModelStages], None]) -> None:
        """Do something to the mask of the picture that is there."""
        act(self.stages)
        self.version += 1

    def begin_anew(self) -> None:
        """Whatever comes next is new."""
        self.stages.begin_anew()
        self._frame, self._is_owed = None, False


@dataclass(frozen=True)
class GridStages(ModelStages):
    """Those of all cameras; segmenter, refiner and stages are the first one's, the canvas shows all."""

    cameras: tuple[CameraStages, ...] = ()
    grid: PictureGrid | None = None  # where their pictures are

    @property
    def uploaded_bytes(self) -> int:
        """Of all."""
        return sum(camera.stages.uploaded_bytes for camera in self.cameras)

    def gathers(self, place: int) -> bool:
        """Whether all do."""
        return all(camera.stages.gathers(place) for camera in self.cameras)

    def run(self, place: int, frame: VideoFrame, fresh: bool, finds: bool = True) -> None:
        """For each camera that has something new."""
        assert isinstance(frame, GridFrame)
        for camera, newest in zip(self.cameras, frame.cameras, strict=True):
            camera.run(place, newest, fresh, finds)

    def found(self, age: int) -> tuple[Finding, ...]:
        """Of all cameras, in pixels of the grid; each has an age of its own."""
        if self.grid is None or not self.finder:
            return ()
        pairs = zip(self.cameras, self.grid.places, strict=True)
        return tuple(finding for camera, place in pairs for finding in camera.found_at(place))

    def found_by_cameras(self, age: int) -> tuple[tuple[Finding, ...], ...]:
        """Each has an age of its own."""
        return tuple(camera.found for camera in self.cameras)

    def refine(self, fresh: bool, age: int) -> None:
        """Each by its own age and freshness."""
        for camera in self.cameras:
            camera.refine()

    def catch_up(self) -> None:
        """For all."""
        for camera in self.cameras:
            camera.change(ModelStages.catch_up)

    def refit(self) -> None:
        """For all."""
        for camera in self.cameras:
            camera.change(ModelStages.refit)

    def rest(self) -> None:
        """For each camera that has something new."""
        for camera in self.cameras:
            camera.rest()

    def begin_anew(self) -> None:
        """For all."""
        for camera in self.cameras:
            camera.begin_anew()

    def set_refinement(self, refinement: Refinement) -> None:
        """For all."""
        for camera in self.cameras:
            camera.stages.set_refinement(refinement)

    def release(self) -> None:
        """Free everything but the shared parts."""
        if self.canvas:
            self.canvas.release()
        for camera in self.cameras:
            camera.stages.release()


def all_stages_in_steps(
    shared: SharedParts, model: ShownModel, choice: ChosenLook, refinement: Refinement,
    companions: tuple[FoundKind, ...] = (),
) -> StageSteps:  # fmt: skip
    """stages_in_steps for one camera, or for each of several."""
    make = _grid_in_steps if shared.cameras else stages_in_steps
    return make(shared, model, choice, refinement, companions)


def _grid_in_steps(
    shared: SharedParts, model: ShownModel, choice: ChosenLook, refinement: Refinement,
    companions: tuple[FoundKind, ...],
) -> StageSteps:  # fmt: skip
    """Weights and code are those of the first camera; each further one takes its own tensors alone."""
    cameras, cache = list[CameraStages](), ModelSharing()
    with contextlib.ExitStack() as made:
        for number, camera in enumerate(shared.cameras):
            sharing = replace(camera, options=replace(camera.options, weights_cache=cache))
            steps = stages_in_steps(sharing, model, choice, refinement, companions)
            stages = yield from _counted(steps, number, len(shared.cameras))
            made.callback(stages.release)
            cameras.append(CameraStages(stages))
        if cache.has_models:  # TensorFlow Lite may have none
            cache.finalize_hard()
        first, canvas = cameras[0].stages, None
        if shared.compute.pictures and shared.drawn and shared.grid:
            drawn = [_drawn_camera(*pair) for pair in zip(shared.cameras, cameras, strict=True)]
            canvas = GridCanvas(shared.compute.pictures, drawn, shared.drawn.target, shared.grid)
        made.pop_all()
    return GridStages(
        first.segmenter, first.refiner, canvas, first.stages, first.compute, first.free_segmenter, first.finder,
        cameras=tuple(cameras), grid=shared.grid,
    )  # fmt: skip


def _counted(steps: StageSteps, before: int, in_all: int) -> StageSteps:
    """The steps of one of several cameras, as parts of all."""
    while True:
        try:
            done, total = next(steps)
        except StopIteration as finished:
            stages: ModelStages = finished.value
            return stages
        yield before * total + done, in_all * total


def _drawn_camera(shared: SharedParts, camera: CameraStages) -> DrawnCamera:
    assert shared.drawn, "what is shown in a grid is drawn"
    assert camera.stages.canvas, "where pictures are drawn there is a canvas"
    return DrawnCamera(camera.stages.canvas.drawing, shared.drawn.target, shared.drawn.backdrop, lambda: camera.version)
