"""Compiles all that makes a picture of a frame with one model, a shader at a time.

The stages of one model run while those of the next are being compiled, so that another model costs no frame;
SwitchableStages is what the pipeline knows of them.
"""

import contextlib
from collections.abc import Callable, Generator
from dataclasses import dataclass, replace
from functools import partial
from time import perf_counter

from texelflow.gpu_delegate.base.errors import TexelflowError, UsageError

from ..frame.drawing.backdrop import Backdrop
from ..frame.drawing.canvas import Canvas
from ..frame.drawing.found_picture import FoundFrames
from ..frame.finding.finder_opening import finding_stage_in_steps, left_to_find, solution_for
from ..frame.finding.finding_stage import FIND, FindingStage
from ..frame.finding.network_paths import FindingPath, NetworkPath, path_in_steps
from ..frame.inference.backends import ComputeBackend
from ..frame.inference.mask_sampler import MaskSampler
from ..frame.inference.network_options import NetworkOptions
from ..frame.looks.effects import Effect
from ..frame.looks.looks import WHOLE, ChosenLook, Framing
from ..frame.refinement.detail import DETAIL, Detail
from ..frame.refinement.held import HELD, HeldThings
from ..frame.refinement.refine import Refinement, Refiner
from ..frame.stages.frame_pipeline import Stage
from ..frame.textures.picture_device import PictureDevice, Target
from ..models.decoders.found import Finding
from ..models.decoders.region import FrameRegion
from ..models.finding_loading import ShownModel
from ..picture.grid import PictureGrid
from ..picture.picture import PictureFormat
from ..picture.preprocess import Fit
from ..picture.video_frame import VideoFrame
from ..tracking.face_covers import face_at
from ..tracking.finder import FoundKind
from .framer import Framer
from .kept_network import KeptNetwork

KEPT_FRAMES = 3  # on the device: looking ahead shows the one before, which may still be drawn while one goes up

_READY = (1, 1)  # all shaders of the network
_TURN_S = 0.004  # of compiling between two looks at the source
_OF_NETWORK = ("image_to_tensor", "network", DETAIL)


@dataclass(frozen=True)
class Drawn:
    """Where pictures are drawn, and what is behind the person there."""

    target: Target  # of the frame's size
    backdrop: Backdrop


@dataclass(frozen=True)
class SharedParts:
    """What stays when the model changes; `drawn` is None where nothing is drawn."""

    compute: ComputeBackend
    format: PictureFormat  # of the source's pictures
    options: NetworkOptions
    drawn: Drawn | None
    kept: KeptNetwork | None = None  # for segmenters that outlive their stages
    sampler: MaskSampler | None = None  # of the network's masks
    cameras: "tuple[SharedParts, ...]" = ()  # of each, where there are several
    grid: PictureGrid | None = None  # where their pictures are


@dataclass(frozen=True)
class ModelStages:
    """One model and all that is drawn with it. Made by stages_in_steps."""

    segmenter: NetworkPath
    refiner: Refiner | None  # of masks; as the canvas None where nothing is drawn
    canvas: Canvas | None
    stages: tuple[Stage, ...]  # of the segmenter, and of the finder
    compute: ComputeBackend  # where its network runs
    free_segmenter: Callable[[], None]  # or leave it to those that come after
    finder: FindingStage | None = None  # what finds faces, hands, people: the model, or others beside it
    detail: Detail | None = None  # what has the network look at people once more
    held: HeldThings | None = None  # what finds what is held

    @property
    def uploaded_bytes(self) -> int:
        """Of frames and masks, so far."""
        return self.segmenter.uploaded_bytes

    @property
    def remembers(self) -> bool:
        """Whether its network knows what it saw before."""
        return self.segmenter.model.remembers

    @property
    def uses_hindsight(self) -> bool:
        """Whether the frame after the one that is drawn tells more of that one's mask."""
        return self.refiner is not None and self.canvas is not None and self.canvas.look.effect != "classes"

    def gathers(self, place: int) -> bool:
        """Whether the stage at that place does nothing now but call OpenGL."""
        return self.stages[place].gathers()

    def run(self, place: int, frame: VideoFrame, fresh: bool, finds: bool = True) -> None:
        """Run the stage at that place; network and finder only if they are to see the frame."""
        stage = self.stages[place]
        if stage.name == FIND and self.finder and not (finds or self.finder.guards):
            self.finder.hold(frame)
        elif stage.name == HELD and not finds:
            return  # nor is a hand found
        elif stage.name == DETAIL and not self.uses_hindsight:
            return  # nobody needs finer masks, and the scores of classes are where they would be made
        elif fresh or stage.name not in _OF_NETWORK:
            stage.run(frame)

    def found(self, age: int) -> tuple[Finding, ...]:
        """What was found in the newest frame, or in one that came so many before it, in pixels of that frame."""
        return self.finder.found(age) if self.finder else ()

    def found_by_cameras(self, age: int) -> tuple[tuple[Finding, ...], ...]:
        """The same of each camera, in pixels of its own frame."""
        return (self.found(age),)

    def look_ahead(self, upcoming: tuple[VideoFrame, ...]) -> None:
        """These come after the next frame: who hides faces sees them before."""
        if self.finder:
            self.finder.upcoming = upcoming

    def refine(self, fresh: bool, age: int) -> None:
        """As Refiner.run has it."""
        if self.refiner:
            self.refiner.run(fresh, age)

    def catch_up(self) -> None:
        """As Refiner.catch_up has it."""
        if self.refiner:
            self.refiner.catch_up()

    def refit(self) -> None:
        """As Refiner.refit has it."""
        if self.refiner:
            self.refiner.refit()

    def rest(self) -> None:
        """As Refiner.rest has it."""
        if self.refiner:
            self.refiner.rest()

    def begin_anew(self) -> None:
        """The next frame and its mask have nothing to do with those before."""
        self.segmenter.begin_anew()
        if self.refiner:
            self.refiner.reset()
        if self.detail:
            self.detail.begin_anew()
        if self.held:
            self.held.begin_anew()
        if self.finder:
            self.finder.begin_anew()

    def set_refinement(self, refinement: Refinement) -> None:
        """Of the next masks."""
        if self.refiner:
            self.refiner.refinement = refinement

    def release(self) -> None:
        """Free everything but the shared parts."""
        for part in (self.canvas, self.refiner, self.held, self.detail, self.finder):
            if part:
                part.release()
        self.free_segmenter()


StageSteps = Generator[tuple[int, int], None, ModelStages]


def stages_in_steps(
    shared: SharedParts,
    model: ShownModel,
    choice: ChosenLook,
    refinement: Refinement,
    companions: tuple[FoundKind, ...] = (),
) -> StageSteps:
    """All of one model, with a pause after each shader of the network and each part: (ready, in all).

    `companions` are to be found in each frame, by networks of their own where the model is not one that finds them.
    Raises TexelflowError.
    """
    compute, fit, drawn = shared.compute, shared.options.fit, shared.drawn
    store, made_for = shared.kept, (compute, model, shared.format, shared.options, KEPT_FRAMES if drawn else 1)
    with contextlib.ExitStack() as made:
        segmenter = yield from (store.in_steps if store else path_in_steps)(*made_for)
        free = partial(store.keep, segmenter, *made_for) if store else segmenter.release
        made.callback(free)
        yield _READY
        finder = refiner = canvas = detail = held = None
        own = segmenter if isinstance(segmenter, FindingPath) else None
        if own or companions:
            lent = (lambda: segmenter.frame) if compute.pictures else None
            asked = left_to_find(companions, model), shared.format, shared.options, lent, made_for[-1]
            finder = yield from finding_stage_in_steps(compute, *asked, own.finder if own else None)
            finder.looks_for = solution_for(own.model).seeks if own else ""
            made.callback(finder.release)
            yield _READY
        if compute.pictures and drawn:
            if not isinstance(segmenter, FindingPath) and segmenter.picture is None:
                detail = _detail(compute.pictures, segmenter, shared.options)
                if detail:
                    made.callback(detail.release)
                if shared.options.held:
                    held = _held(compute.pictures, finder, segmenter, detail, fit)
                if held:
                    made.callback(held.release)
                refiner = Refiner(compute.pictures, segmenter, fit, refinement, detail, held)
                made.callback(refiner.release)
                yield _READY
            canvas = Canvas(
                compute.pictures, FoundFrames(segmenter.frame) if isinstance(segmenter, FindingPath) else segmenter,
                drawn.target, fit, choice, backdrop=drawn.backdrop, refiner=refiner, things=finder,
            )  # fmt: skip
            if compute.native:
                yield _READY
                if detail:
                    detail.prepare()
                if refiner:
                    refiner.prepare()
                canvas.prepare()
        made.pop_all()
    runs_on = replace(compute, backend=segmenter.backend)
    stages = segmenter.stages
    if shared.sampler and not isinstance(segmenter, FindingPath):
        stages = shared.sampler.watching(segmenter)
    stages = (*stages, *((detail.stage,) if detail else ()), *((finder.stage,) if finder else ()))
    stages = (*stages, *((held.stage,) if held else ()))
    return ModelStages(segmenter, refiner, canvas, stages, runs_on, free, finder, detail, held)


def makes_masks(segmenter: NetworkPath) -> bool:
    """Whether a network puts out masks, which are neither pictures nor what is found."""
    return segmenter.picture is None and not isinstance(segmenter, FindingPath)


def _detail(pictures: PictureDevice, segmenter: NetworkPath, options: NetworkOptions) -> Detail | None:
    """What looks at people once more, if that is wanted. Raises UsageError for a network that cannot."""
    if not options.detail or isinstance(segmenter, FindingPath):
        return None
    model = segmenter.model
    if model.remembers or segmenter.layout.has_own_colors:
        raise UsageError(f"--detail on: {model.name} remembers frames, and cannot look at one twice; leave it out")
    return Detail(pictures, segmenter, options.fit)


def _held(
    pictures: PictureDevice, finder: FindingStage | None, segmenter: NetworkPath, detail: Detail | None, fit: Fit
) -> HeldThings | None:
    """What joins a segmenter's masks, with a finder of hands. Raises UsageError for a network that cannot follow."""
    if finder is None or isinstance(segmenter, FindingPath):
        return None
    if segmenter.layout.has_own_colors:
        name = segmenter.model.name
        raise UsageError(f"--keep-held: {name} puts out the person's own colors, none of what is held; leave it out")
    size = detail.size if detail else segmenter.layout.size
    return HeldThings(pictures, finder, segmenter.frame.format.upright_size, size, fit)


class SwitchableStages:
    """The stages of the model that runs, and those of the one that is to come.

    What the next frame needs is set before it: `fresh`, whether the network sees it; `finds`, whether the finder does;
    `age`, 1 if the one before it is the one to be drawn, with its mask in hindsight; catches_up, if it is in the
    textures already, and none comes after; refines, whether its mask is used; shows, whether its picture is. `stages`
    are others where a model takes over that has others.
    """

    def __init__(self, first: ModelStages, name: str, framing: Framing = WHOLE) -> None:
        """Takes the first ones over; the name is that of their model in the settings."""
        self.current, self.name = first, name
        self.fresh, self.age, self.catches_up, self.refines = True, 0, False, True
        self.shows = self.finds = True
        self._framer = Framer(framing)
        self._crops: tuple[FrameRegion | None, ...] = ()  # of the last picture
        self._coming: tuple[StageSteps, str] | None = None
        self._uploaded_bytes = 0  # by models that are gone
        self._is_lost = False
        self.stages = self._all_stages()

    @property
    def uploaded_bytes(self) -> int:
        """Of frames, masks and backgrounds, so far."""
        current = self.current
        backgrounds = current.canvas.uploaded_bytes if current.canvas else 0
        return self._uploaded_bytes + current.uploaded_bytes + backgrounds

    @property
    def findings(self) -> tuple[Finding, ...]:
        """What was found in the frame that was drawn last, in its pixels; nothing where nobody wants it."""
        return self.current.found(self.age)

    @property
    def canvas(self) -> Canvas:
        """What draws. Raises ValueError where nothing is drawn."""
        if self.current.canvas is None:
            raise ValueError("nothing is drawn here")
        return self.current.canvas

    @property
    def has_mask(self) -> bool:
        """Whether the network puts out masks, or a picture with transparency."""
        picture = self.current.segmenter.picture
        return makes_masks(self.current.segmenter) or (picture is not None and "mask" in picture.layout.effects)

    @property
    def target(self) -> Target:
        """The picture of the last frame."""
        return self.canvas.target

    def composite(self, frame: VideoFrame) -> None:
        """Draw the picture of the current frame; once more if its look has changed since."""
        if self.shows:
            canvas = self.canvas
            found = self.current.found_by_cameras(self.age)
            self._crops = self._framer.crops(canvas.frame_sizes, found, frame.time_ms / 1000)
            canvas.show_parts(self._crops)
            canvas.stage.run(frame)
            self._finish()

    def face_at(self, x: float, y: float) -> int:
        """The number of the face that may be hidden at a place of the last picture, as fractions of it; 0 for none.

        Of several cameras none: each of them counts from one.
        """
        finder = self.current.finder
        if finder is None or not finder.guards or len(self._crops) != 1:
            return 0
        (width, height), crop = self.canvas.frame_sizes[0], self._crops[0]
        part = crop or FrameRegion(width / 2, height / 2, width, height)
        x = 1 - x if self.canvas.look.mirror else x
        place = part.center_x + (x - 0.5) * part.width, part.center_y + (y - 0.5) * part.height
        return face_at(finder.covers(self.age), *place)

    def drawn(self, effect: Effect) -> Target:
        """The last frame with another effect."""
        return self.canvas.drawn(effect)

    def shown(self) -> Target:
        """The last picture as a screen shows it."""
        return self.canvas.shown()

    def redraw(self, frame: VideoFrame) -> None:
        """Draw the frame that was drawn last by the look and the refinement as they are now."""
        self.current.refit()
        self.composite(frame)

    def prepare(self, frame: VideoFrame, age: int, fresh: bool = True) -> None:
        """Upload a frame, have the network see it if it is `fresh`, and the refiner its mask, without drawing it."""
        self.fresh, self.age, self.catches_up, self.finds = fresh, age, False, True
        for stage in self.stages[:-1] if self.current.canvas else self.stages:
            stage.run(frame)

    def begin_anew(self) -> None:
        """The next frame and its mask have nothing to do with those before."""
        self.current.begin_anew()
        self._framer.begin_anew()

    def expose_anew(self) -> None:
        """The light of the next frame has nothing to do with that of those before."""
        self.current.segmenter.expose_anew()

    def set_look(self, choice: ChosenLook, refinement: Refinement) -> None:
        """Draw like this from now on; stages that were compiled in the meantime were begun with an earlier look."""
        if canvas := self.current.canvas:
            canvas.look = choice.look
            canvas.set_background(choice.background)
        self._framer.framing = choice.framing
        self.current.set_refinement(refinement)

    @property
    def changing(self) -> bool:
        """Whether another model's are on their way."""
        return self._coming is not None

    def change(self, steps: StageSteps, name: str) -> None:
        """Begin to compile another model's; what was begun before is given up."""
        self.give_up()
        self._coming = steps, name

    def give_up(self) -> None:
        """Let those that run stay."""
        if self._coming:
            self._coming[0].close()
            self._coming = None

    def advance(self) -> ModelStages | None:
        """Compile for some milliseconds; the new stages in the moment when they take over. Raises TexelflowError.

        If it raises, those that run stay.
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
            return self.take_over(finished.value, name)
        except TexelflowError:
            self._coming = None
            raise
        return None

    def take_over(self, stages: ModelStages, name: str) -> ModelStages:
        """Go on with another model's, which are ready; those that ran are freed."""
        before, self.current, self.name = self.current, stages, name
        self._uploaded_bytes += before.uploaded_bytes
        before.release()
        self.stages = self._all_stages()
        return stages

    def lose(self) -> None:
        """Free what a context holds that is lost; restore() comes next."""
        self.give_up()
        if not self._is_lost:
            self._is_lost = True
            self._uploaded_bytes += self.current.uploaded_bytes
            self.current.release()

    def restore(self, stages: ModelStages) -> None:
        """Go on with those of another context, of the same model."""
        self.current, self._is_lost = stages, False
        self.stages = self._all_stages()

    def release(self) -> None:
        """Free all of them."""
        self.lose()

    def _all_stages(self) -> tuple[Stage, ...]:
        """Those of the model that runs, and of drawing."""
        ran = self.current.stages
        mask = tuple(Stage(each.name, self._runner(place), self._gathering(place)) for place, each in enumerate(ran))
        if not self.current.canvas:
            return mask
        refine = Stage("refine", self._refine, self._draws_by_calls)
        return (*mask, refine, Stage("composite", self.composite, self._draws_by_calls))

    def _refine(self, frame: VideoFrame) -> None:
        if not self.refines:
            self.current.rest()
        elif self.catches_up:
            self.current.catch_up()
        else:
            self.current.refine(self.fresh, self.age)
        self._finish()

    def _draws_by_calls(self) -> bool:
        """Whether drawing does nothing now but call OpenGL."""
        pictures = self.current.compute.pictures
        return pictures is not None and pictures.gathers

    def _finish(self) -> None:
        """Have what was drawn done, so that the stage's time is its own."""
        if pictures := self.current.compute.pictures:
            pictures.finish()

    def _gathering(self, place: int) -> Callable[[], bool]:
        """Whether that stage of the current model gathers."""
        return lambda: self.current.gathers(place)

    def _runner(self, place: int) -> Callable[[VideoFrame], None]:
        """What runs that stage of the network, whichever model is the current one."""

        def run(frame: VideoFrame) -> None:
            if not self.catches_up:
                self.current.run(place, frame, self.fresh, self.finds)

        return run
