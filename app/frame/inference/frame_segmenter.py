"""Segmenters: what makes masks, or pictures, of frames on a machine with a model, as stages.

GlPath keeps all on the GPU; CpuSegmenter runs the network on the CPU or, with TensorFlow Lite's delegate, in parts on
the GPU, and uploads frame and mask if there is something to draw with.
"""

from collections.abc import Callable, Generator
from concurrent.futures import ThreadPoolExecutor, wait
from typing import ParamSpec, Protocol, TypeVar

import numpy as np

from texelflow.gpu_delegate.base import debug
from texelflow.gpu_delegate.base.errors import UnsupportedError
from texelflow.gpu_delegate.model.layout import Precision
from texelflow.gpu_delegate.targets.gl.opengl import BufferRange, BufferSpan

from ...console import Console
from ...media.sources import VideoFrame
from ...models.decoders.region import FrameRegion
from ...models.mattes import ALPHA, MATTE_CHANNELS
from ...models.model_loading import FrameModel, PictureModel
from ...picture.picture import PictureFormat
from ...picture.preprocess import Floats
from ..stages.frame_pipeline import Stage
from ..textures.picture_device import FramePlanes, PictureDevice
from ..textures.resample import MaskLayout
from .backends import Backend, ComputeBackend
from .cpu_choice import chosen_cpu_path
from .cpu_engine import AnyCpuPath, open_parts_path
from .gl_path import GlPath
from .network_options import NetworkOptions
from .network_output import ClassScores, PictureLayout, PictureOutput, shows_classes
from .scores import ScoresUpload

_NO_BUFFER = BufferRange(0, 0, 0)
_WAIT_S = 0.001  # for a network on the CPU, between two looks at what else there is to do
_Arguments = ParamSpec("_Arguments")
_Made = TypeVar("_Made")


class DrawableMask(Protocol):
    """What a compositor of masks needs: the frame's textures, and the mask in a buffer."""

    @property
    def frame(self) -> FramePlanes: ...
    @property
    def mask(self) -> BufferSpan: ...
    @property
    def layout(self) -> MaskLayout: ...


class DrawableOutput(DrawableMask, Protocol):
    """What else there may be: a network's picture, in place of the mask, or the scores of several classes."""

    @property
    def picture(self) -> PictureOutput | None: ...
    @property
    def classes(self) -> ClassScores | None: ...


class FrameSegmenter(DrawableOutput, Protocol):
    """What makes masks or pictures; the first five are there to be shown, on_cpu where that runs the network."""

    @property
    def backend(self) -> Backend: ...
    @property
    def dispatches(self) -> int: ...
    @property
    def note(self) -> str: ...
    @property
    def on_cpu(self) -> str: ...
    @property
    def uploaded_bytes(self) -> int: ...
    @property
    def stages(self) -> tuple[Stage, ...]: ...
    def begin_anew(self) -> None: ...
    def expose_anew(self) -> None: ...
    def mask_of_region(self, frame: VideoFrame, region: FrameRegion) -> BufferSpan: ...
    def release(self) -> None: ...


class CpuSegmenter:
    """The network on the CPU, or in parts through a delegate. With `pictures`, frame and mask go up to be drawn."""

    def __init__(
        self,
        pictures: PictureDevice | None,
        path: AnyCpuPath,
        frame: PictureFormat,
        precision: Precision = "fp32",
        kept: int = 1,
        instead: str = "",
    ) -> None:
        """`path` takes frames of that format; `precision` is the delegate's, if the path has one. `instead` says why
        the path is not the one that was asked for.
        """
        self._path, self._pictures, self._kept = path, pictures, kept
        self._textures = self._textures_of(frame)
        self.model = model = path.model
        width, height = model.output_size
        shape = (height, width, 4) if isinstance(model, PictureModel) else (height, width)
        self.mask_in_ram: Floats = np.zeros(shape, np.float32)  # or the network's picture
        self._is_matte = not isinstance(model, PictureModel) and model.spec.has_own_colors
        size_bytes = self.mask_in_ram.nbytes * (MATTE_CHANNELS if self._is_matte else 1)
        self._buffer = pictures.memory((width, height), size_bytes) if pictures else _NO_BUFFER
        self.layout = MaskLayout(model.output_size, stride=1)
        if self._is_matte:
            self.layout = MaskLayout(model.output_size, MATTE_CHANNELS, ALPHA, has_own_colors=True)
        self.picture = _picture_of(model, self._buffer)
        self._region_buffer: BufferRange | None = None  # made where regions are looked at
        self._scores = ScoresUpload(pictures, model.output_size) if pictures else None
        self._tensor: Floats = np.zeros(0, np.float32)
        self._mask_bytes = 0
        delegation = path.delegation
        self.dispatches = delegation.dispatches if delegation else 0
        self.delegated = f"{path.model.name}: {delegation.line}" if delegation else ""
        self.note = self.delegated or instead
        self.on_cpu = path.renderer
        self.backend: Backend = "gl" if self.dispatches else "cpu"
        self.precision: Precision = precision if self.dispatches else path.precision

    @property
    def frame(self) -> FramePlanes:
        """The last frame on the device. Raises ValueError where nothing is drawn."""
        if self._textures is None:
            raise ValueError("there is nothing to draw with")
        return self._textures

    @property
    def uploaded_bytes(self) -> int:
        """Of frames, masks, pictures and scores, so far."""
        scores = self._scores.uploaded_bytes if self._scores else 0
        return scores + self._mask_bytes + (self._textures.uploaded_bytes if self._textures else 0)

    @property
    def mask(self) -> BufferSpan:
        return self._buffer

    @property
    def classes(self) -> ClassScores | None:
        """The scores of all classes, which go up when they are drawn; None where they are not for being shown."""
        model, scores = self._path.model, self._scores
        if scores is None or isinstance(model, PictureModel) or not shows_classes(model.output_size, model.classes):
            return None
        return ClassScores(model.output_size, model.classes, model.spec.labels, lambda: scores.shown(self._path.scores))

    @property
    def stages(self) -> tuple[Stage, ...]:
        """The way of a frame to its mask, in RAM and, where it is drawn, on the device."""
        way = (Stage("image_to_tensor", self._prepare), Stage("network", self._run))
        return (*way, Stage("upload", self._upload)) if self._pictures else way

    def begin_anew(self) -> None:
        """The next frame has nothing to do with those before."""
        self._path.begin_anew()

    def expose_anew(self) -> None:
        """The light of the next frame has nothing to do with that of those before."""
        self._path.expose_anew()

    def take(self, frame: PictureFormat) -> None:
        """Take frames of another format from now on. Raises DeviceError; then everything is as it was."""
        textures = self._textures_of(frame)
        self._path.take(frame)
        if self._textures:
            self._textures.release()
        self._textures = textures

    def _textures_of(self, frame: PictureFormat) -> FramePlanes | None:
        """Where frames are on the device; None without one."""
        return self._pictures.planes(frame, self._kept, measures=True) if self._pictures else None

    def frame_mask(self) -> Floats:
        """The last mask in the frame's size (h, w)."""
        return self._path.mask_to_frame(self.mask_in_ram)

    def mask_of_region(self, frame: VideoFrame, region: FrameRegion) -> BufferSpan:
        """The mask of a region of the last frame, on the device; the frame's edges go on. Raises ValueError without."""
        if self._pictures is None:
            raise ValueError("there is nothing to draw with")
        if self._region_buffer is None:
            self._region_buffer = self._pictures.memory(self.layout.size, self.mask_in_ram.nbytes)
        self._pictures.write(self._region_buffer, self._path.mask_of_region(frame.picture, region))
        return self._region_buffer

    def _prepare(self, frame: VideoFrame) -> None:
        self._tensor = self._path.image_to_tensor(frame.picture)

    def _run(self, frame: VideoFrame) -> None:
        self.mask_in_ram = np.ascontiguousarray(self._path.network(self._tensor))

    def _upload(self, frame: VideoFrame) -> None:
        assert self._pictures is not None
        self.frame.upload(frame.picture)
        shown = np.ascontiguousarray(self._path.scores) if self._is_matte else self.mask_in_ram
        self._pictures.write(self._buffer, shown)
        self._mask_bytes += shown.nbytes

    def release(self) -> None:
        """Free what is on the device, and the interpreter."""
        self._path.close()
        if self._pictures:
            self.frame.release()
            self._pictures.free(self._buffer)
            if self._region_buffer:
                self._pictures.free(self._region_buffer)
        if self._scores:
            self._scores.release()


def _picture_of(model: FrameModel, buffer: BufferRange) -> PictureOutput | None:
    """The network's picture, as it goes up: 0 to 1, with transparency in any case."""
    if not isinstance(model, PictureModel):
        return None
    layout = PictureLayout(model.output_size, 4 if model.has_alpha else 3, (0.0, 1.0))
    return PictureOutput(layout, lambda: buffer)


def segmenter_in_steps(
    compute: ComputeBackend,
    model: FrameModel,
    frame: PictureFormat,
    options: NetworkOptions,
    kept: int = 1,
) -> Generator[tuple[int, int], None, GlPath | CpuSegmenter]:
    """What makes the masks on this machine, with a pause after each shader: (ready, in all). Raises TexelflowError.

    A model that the GPU cannot run wholly is TensorFlow Lite's, which leaves to the GPU what that can: `note` tells how
    much. `kept` is how many pictures stay in the textures.
    """
    context = compute.context
    if compute.backend == "cpu" or context is None:
        pool = compute.native.pool if compute.native else None
        native, instead = yield from made_on_thread(chosen_cpu_path, model, frame, compute.cpu, options, pool)
        return CpuSegmenter(compute.pictures, native, frame, kept=kept, instead=instead)
    try:
        path: GlPath = yield from GlPath.in_steps(context, model, frame, options, kept)
        return path
    except UnsupportedError as error:
        debug.tell(debug.RUN, f"debug: {error}; its parts go through the delegate")
    parts = yield from made_on_thread(open_parts_path, model, frame, options)
    return CpuSegmenter(compute.pictures, parts, frame, options.compiling.precision, kept)


def made_on_thread(
    make: Callable[_Arguments, _Made], *arguments: _Arguments.args, **named: _Arguments.kwargs
) -> Generator[tuple[int, int], None, _Made]:
    """What a function makes on a thread of its own: frames may be drawn meanwhile."""
    thread = ThreadPoolExecutor(1, "compiling")
    try:
        made = thread.submit(make, *arguments, **named)
        while not made.done():
            yield 0, 1
            wait([made], _WAIT_S)
        return made.result()
    finally:
        thread.shutdown(wait=False)


def make_segmenter(
    compute: ComputeBackend,
    model: FrameModel,
    frame: PictureFormat,
    options: NetworkOptions,
    console: Console,
    kept: int = 1,
) -> GlPath | CpuSegmenter:
    """The same at once, with progress on the console, and the note."""
    steps = segmenter_in_steps(compute, model, frame, options, kept)
    with console.compilation() as progress:
        while True:
            try:
                progress(*next(steps))
            except StopIteration as finished:
                segmenter: GlPath | CpuSegmenter = finished.value
                break
    if segmenter.note:
        console.note_once(segmenter.note)
    return segmenter
