"""Makes the masks and pictures of frames in several ways, side by side, and times each."""

import contextlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from statistics import median
from time import perf_counter
from types import MappingProxyType

import numpy as np

from texelflow.gpu_delegate.model.layout import Precision
from texelflow.gpu_delegate.plan.compile_options import CompileOptions

from ...console import Console
from ...frame.drawing.backdrop import Backdrop
from ...frame.drawing.canvas import Canvas
from ...frame.finding.finder_opening import finding_stage_in_steps
from ...frame.finding.finding_stage import FindingStage
from ...frame.finding.region_networks import finished
from ...frame.inference.backends import ComputeBackend
from ...frame.inference.frame_segmenter import FrameSegmenter, make_segmenter
from ...frame.inference.network_options import NetworkOptions
from ...frame.looks.looks import ChosenLook, Look
from ...frame.refinement.detail import Detail
from ...frame.refinement.held import HeldThings
from ...frame.refinement.refine import MOST_DELAY, Refinement, Refiner
from ...frame.textures.picture_device import PictureDevice, Target
from ...frame.textures.readback import ReadBytes
from ...media.sources import VideoFrame
from ...models.model_loading import SegmentationModel
from ...picture.picture import PictureFormat, rgba_picture
from ...picture.preprocess import Floats, Preprocessing

__all__ = ["STEPS", "MaskWay", "MaskWays", "mixed_over"]


@dataclass(frozen=True)
class MaskStep:
    """One way to masks. `plain`: of the plain input, and frames are mixed by them with the colors that they have."""

    refinement: Refinement | None = None
    plain: bool = False
    detail: bool = False
    held: bool = False


STEPS: Mapping[str, MaskStep] = MappingProxyType(
    {
        "raw": MaskStep(plain=True),  # the network's mask, interpolated
        "input": MaskStep(),  # the same of the input that the preprocessing makes
        "smooth": MaskStep(Refinement(edges=False)),
        "edges": MaskStep(Refinement(smooth=0)),
        "both": MaskStep(Refinement()),
        "delayed": MaskStep(Refinement(delay=MOST_DELAY)),
        "detail": MaskStep(Refinement(), detail=True),
        "held": MaskStep(Refinement(), held=True),
    }
)


class MaskWays:
    """Several ways, by name, and the segmenters that they need: two, where one is plain. `release` frees them."""

    def __init__(
        self,
        compute: ComputeBackend,
        model: SegmentationModel,
        frame: PictureFormat,
        steps: Sequence[str],
        console: Console,
        precision: Precision,
        preprocessing: Preprocessing,
    ) -> None:
        """`steps` are names of STEPS. Raises TexelflowError."""
        pictures = compute.pictures
        assert pictures is not None, "a picture is needed"
        compiling = CompileOptions(precision=precision)
        self._segmenters = dict[tuple[Preprocessing, bool], FrameSegmenter]()
        self.by_name = dict[str, MaskWay]()
        with contextlib.ExitStack() as stack:
            for name in steps:
                way_in: Preprocessing = "plain" if STEPS[name].plain else preprocessing
                own = way_in, STEPS[name].detail  # whose network runs once more
                if own not in self._segmenters:
                    self._segmenters[own] = make_segmenter(
                        compute, model, frame, NetworkOptions(compiling, preprocessing=way_in), console, MOST_DELAY + 1
                    )
                    stack.callback(self._segmenters[own].release)
                finder = None
                if STEPS[name].held:
                    finder = _finder_of_hands(compute, self._segmenters[own])
                    stack.callback(finder.release)
                self.by_name[name] = MaskWay(pictures, self._segmenters[own], STEPS[name], finder)
                stack.callback(self.by_name[name].release)
            self.release = stack.pop_all().close

    @property
    def on_cpu(self) -> str:
        """What runs the network on the CPU."""
        return next(iter(self._segmenters.values())).on_cpu

    def run(self, frame: VideoFrame) -> None:
        """Make the masks of the next frame, which each way may refine then."""
        for segmenter in self._segmenters.values():
            for stage in segmenter.stages:
                stage.run(frame)

    def begin_anew(self) -> None:
        """Forget the frames so far, as at a cut, and the times."""
        for segmenter in self._segmenters.values():
            segmenter.begin_anew()
        for way in self.by_name.values():
            way.restart()


def mixed_over(rgba: ReadBytes, mask: Floats, color: Sequence[int]) -> ReadBytes:
    """A frame (h, w, 4) over a plain color by its mask (h, w), as a compositor does that knows of nothing else."""
    part = mask[..., None]
    return np.asarray(np.rint(rgba * part + np.array([*color, 255], np.float32) * (1 - part)), np.uint8)


def _finder_of_hands(compute: ComputeBackend, segmenter: FrameSegmenter) -> FindingStage:
    frame = segmenter.frame.format
    return finished(finding_stage_in_steps(compute, ("hand",), frame, NetworkOptions(), lambda: segmenter.frame, 1))


class MaskWay:
    """One way from the network's output to what the compositor draws. `release` frees it."""

    def __init__(
        self, pictures: PictureDevice, segmenter: FrameSegmenter, step: MaskStep, finder: FindingStage | None = None
    ) -> None:
        """`finder` is of hands, and stays others'."""
        self._pictures, self._finder = pictures, finder
        size = segmenter.frame.format.upright_size
        self._target = pictures.target(size)
        self._detail = Detail(pictures, segmenter, "stretch") if step.detail else None
        self._held = HeldThings(pictures, finder, size, segmenter.layout.size) if finder else None
        self._refiner = None
        if step.refinement:
            self._refiner = Refiner(pictures, segmenter, "stretch", step.refinement, self._detail, self._held)
        self._backdrop = Backdrop(pictures, self._target.size)
        self._canvas = Canvas(
            pictures, segmenter, self._target, "stretch", ChosenLook(Look("mask")),
            backdrop=self._backdrop, refiner=self._refiner,
        )  # fmt: skip
        self._refine_ms, self._composite_ms = list[float](), list[float]()
        self._frames, self._judged = 0, -1

    def refine(self, frame: VideoFrame) -> int | None:
        """Refine the mask of the next frame, which the segmenter has seen; what looks once more is timed with it.

        Returns the age of the frame whose mask that is, 0 for this one; None if that one was there before.
        """
        age = 0
        if self._refiner:
            self._refine_ms.append(self._time_ms(partial(self._run, self._refiner, frame)))
            age = self._refiner.age
        number, self._frames = self._frames - age, self._frames + 1
        if number <= self._judged:
            return None
        self._judged = number
        return age

    def _run(self, refiner: Refiner, frame: VideoFrame) -> None:
        if self._detail:
            self._detail.run(frame)
        if self._finder and self._held:
            self._finder.run(frame)
            self._held.run(frame)
        refiner.run()

    def mask(self, frame: VideoFrame) -> Floats:
        """What is drawn for the effect `mask`: (h, w), from 0 to 1."""
        self._canvas.stage.run(frame)
        return np.asarray(self._pictures.read(self._target)[..., 0] / np.float32(255), np.float32)

    def over(self, color: tuple[int, int, int]) -> ReadBytes:
        """What is drawn for the effect `replace` before a plain color of levels up to 255: RGBA (h, w, 4)."""
        self._backdrop.show(rgba_picture(np.full((2, 2, 4), (*color, 255), np.uint8)))
        drawn = list[Target]()
        self._composite_ms.append(self._time_ms(lambda: drawn.append(self._canvas.drawn("replace"))))
        return self._pictures.read(drawn[0])

    @property
    def refine_ms(self) -> float:
        """The median over all frames."""
        return median(self._refine_ms) if self._refine_ms else 0.0

    @property
    def composite_ms(self) -> float:
        """The median over all pictures of the effect `replace`."""
        return median(self._composite_ms) if self._composite_ms else 0.0

    def restart(self) -> None:
        """Forget the frames so far, as at a cut, and their times."""
        self._frames, self._judged = 0, -1
        self._refine_ms.clear()
        self._composite_ms.clear()
        if self._refiner:
            self._refiner.reset()
        if self._detail:
            self._detail.begin_anew()
        if self._finder and self._held:
            self._finder.begin_anew()
            self._held.begin_anew()

    def release(self) -> None:
        """Free all that is on the device."""
        for part in (self._canvas, self._refiner, self._held, self._detail, self._backdrop, self._target):
            if part:
                part.release()

    def _time_ms(self, work: Callable[[], object]) -> float:
        """What something takes on the device."""
        self._pictures.wait()
        start = perf_counter()
        work()
        self._pictures.wait()
        return (perf_counter() - start) * 1e3
