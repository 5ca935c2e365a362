"""Opens what finds things in frames: the networks of a solution, each of which runs where settings want it."""

import contextlib
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType

from ...models.catalogue import Progress, resolve
from ...models.decoders.found import Finding
from ...models.finding_loading import ShownModel, load_finding_model
from ...models.finding_model import FindingModel
from ...picture.picture import PictureFormat
from ...picture.video_frame import VideoFrame
from ...tracking.face_guard import GUARD_MODEL, FaceGuard, guarding
from ...tracking.finder import FoundKind, FrameFinder
from ...tracking.solutions import Solution, solution_ending_with, solution_of
from ...tracking.tracking_finder import make_finder
from ..inference.backends import ComputeBackend
from ..inference.frame_segmenter import made_on_thread
from ..inference.network_options import NetworkOptions
from ..textures.picture_device import FramePlanes
from ..textures.upload import FrameTextures
from .finding_stage import FindingStage
from .gl_regions import GlRegions
from .region_networks import FrameRegions, regions_in_steps
from .seen_frames import SeenFrames

__all__ = [
    "OpenFinder",
    "fetch_companions",
    "fetch_partners",
    "finder_in_steps",
    "finding_stage_in_steps",
    "left_to_find",
    "loaded_models",
    "solution_for",
]

_BESIDE: Mapping[FoundKind, tuple[str, int]] = MappingProxyType(  # the solution, and how many things it follows
    {
        "face": ("face-detection-full", 16),
        "hidden face": (GUARD_MODEL, 16),
        "hand": ("hand-landmark-lite", 4),
    }
)
_MOST_OF_OWN = 16  # boxes of a network that no solution is known for

FinderSteps = Generator[tuple[int, int], None, "OpenFinder"]


@dataclass(frozen=True)
class OpenFinder:
    """A finder with its networks. Belongs to the context's thread, where there is one."""

    finder: FrameFinder
    networks: tuple[FrameRegions, ...]
    solution: Solution
    most: int  # things that are followed; 0: as many as is usual

    def renewed(self) -> "OpenFinder":
        """For another recording: the same networks, and things are counted from the first again."""
        return replace(self, finder=make_finder(self.solution, self.networks, self.most or None))

    @property
    def dispatches(self) -> int:
        """Of all networks, each for one region; 0 on the CPU."""
        return sum(each.dispatches for each in self.networks if isinstance(each, GlRegions))

    @property
    def on_gpu(self) -> bool:
        """Whether all of them run there."""
        return all(isinstance(each, GlRegions) for each in self.networks)

    @property
    def note(self) -> str:
        """Why something is not what was asked for, in one line, or empty."""
        return "; ".join(each.note for each in self.networks if each.note)

    @property
    def on_cpu(self) -> str:
        """What runs networks on the CPU, for tables."""
        return next((each.renderer for each in self.networks if not isinstance(each, GlRegions)), "")

    def take(self, frame: PictureFormat) -> None:
        """See pictures of another format from now on. Raises DeviceError."""
        for each in self.networks:
            each.take(frame)

    def release(self) -> None:
        """Free the networks."""
        for each in self.networks:
            each.release()


def solution_for(model: FindingModel) -> Solution:
    """The solution that ends with a model: that of its name or, of a file, of a network that is read alike."""
    known = solution_ending_with(model.name, model.decoder)
    if known is None:
        return Solution(model.name, "", (model.name,), most=_MOST_OF_OWN)
    own = known.models[-1] if known.name == model.name else model.name  # a name of several models is none of theirs
    return replace(known, models=(*known.models[:-1], own))


def fetch_partners(model: FindingModel, progress: Progress | None = None) -> None:
    """Have the models there that one needs before it, as its detector. Raises CatalogueError."""
    for name in solution_for(model).models[:-1]:
        resolve(name, progress)


def fetch_companions(kinds: tuple[FoundKind, ...], shown: ShownModel, progress: Progress | None = None) -> None:
    """Have the models there that find things beside one that is shown. Raises CatalogueError."""
    for kind in left_to_find(kinds, shown):
        for name in _companion(kind)[0].models:
            resolve(name, progress)


def left_to_find(kinds: tuple[FoundKind, ...], shown: ShownModel) -> tuple[FoundKind, ...]:
    """Those of the kinds that the model that is shown does not find itself: faces, or hands with all their points."""
    if not isinstance(shown, FindingModel):
        return kinds
    finds_faces, finds_hands = solution_for(shown).seeks == "face", shown.decoder == "hand-points"
    own = {"face": finds_faces, "hand": finds_hands}
    return tuple(kind for kind in kinds if not own.get(kind))


def _companion(kind: FoundKind) -> tuple[Solution, int]:
    name, most = _BESIDE[kind]
    solution = solution_of(name)
    assert solution, "it is one of the solutions"
    return solution, most


def finder_in_steps(
    compute: ComputeBackend,
    solution: Solution,
    frame: PictureFormat,
    options: NetworkOptions,
    lent: Callable[[], FramePlanes] | None = None,
    own: FindingModel | None = None,
    most: int = 0,
) -> FinderSteps:
    """A solution for pictures of a format, with a pause after each shader: (ready, in all).

    `lent` gives the planes on the device into which each picture goes before it is seen; `own` is the solution's last
    model, others are of the catalogue; `most` things are followed, 0: as many as is usual. Raises TexelflowError.
    """
    models = yield from made_on_thread(loaded_models, solution, own)
    networks = yield from regions_in_steps(compute, models, frame, options, _seen(compute, lent))
    return OpenFinder(make_finder(solution, networks, most or None), networks, solution, most)


def finding_stage_in_steps(
    compute: ComputeBackend,
    kinds: tuple[FoundKind, ...],
    frame: PictureFormat,
    options: NetworkOptions,
    lent: Callable[[], FramePlanes] | None,
    kept: int,
    shown: FrameFinder | None = None,
) -> Generator[tuple[int, int], None, FindingStage]:
    """What finds things of several kinds beside a model that is shown, together with that one's own finder, if it has
    one, whose networks stay others'. Raises TexelflowError.
    """
    finders, guard = [shown] if shown else [], None
    with contextlib.ExitStack() as made:
        for kind in kinds:
            solution, most = _companion(kind)
            hides = kind == "hidden face"
            own = (yield from made_on_thread(_guard)) if hides else None
            planes = None if hides else lent  # a guard sees frames before they are lent
            opened = yield from finder_in_steps(compute, solution, frame, options, planes, own, most)
            made.callback(opened.release)
            if hides:
                guard = FaceGuard(opened.networks[0])
            else:
                finders.append(opened.finder)
        free = made.pop_all().close
    finder = finders[0] if len(finders) == 1 else _Together(tuple(finders)) if finders else None
    return FindingStage(finder, kept, free, guard)


class _Together:
    """Several finders as one."""

    def __init__(self, finders: tuple[FrameFinder, ...]) -> None:
        self._finders = finders

    def find(self, frame: VideoFrame) -> tuple[Finding, ...]:
        """What all of them find."""
        return tuple(found for finder in self._finders for found in finder.find(frame))

    def begin_anew(self) -> None:
        """For all."""
        for finder in self._finders:
            finder.begin_anew()


def _guard() -> FindingModel:
    return guarding(load_finding_model(GUARD_MODEL))


def loaded_models(solution: Solution, own: FindingModel | None) -> tuple[FindingModel, ...]:
    """The models of a solution, in its order; `own` is the last one, others are of the catalogue. Raises as
    load_finding_model.
    """
    *before, last = solution.models
    return (*map(load_finding_model, before), replace(own, name=last) if own else load_finding_model(last))


def _seen(compute: ComputeBackend, lent: Callable[[], FramePlanes] | None) -> SeenFrames | None:
    """Textures that are lent, where networks look at textures."""
    if compute.backend != "gl" or compute.context is None or lent is None:
        return None

    def textures() -> FrameTextures:
        planes = lent()
        assert isinstance(planes, FrameTextures), "OpenGL draws where it computes"
        return planes

    return SeenFrames(compute.context, textures)
