"""Makes pictures of frames that its caller hands over, one after the other, by settings that may change in between.

As a session, but without a clock, a view and outputs: frames come when somebody has one, and what becomes of the
picture is the caller's. It is opened anew for frames of another format; the network stays then.
"""

import contextlib
from collections.abc import Callable, Mapping
from dataclasses import replace
from types import MappingProxyType

import moderngl

from texelflow.gpu_delegate.base.errors import UsageError
from texelflow.gpu_delegate.programs.model_sharing import ModelSharing
from texelflow.gpu_delegate.reading.reader import read_model

from ..console import Console
from ..frame.drawing.canvas import Canvas
from ..frame.finding.finder_opening import fetch_companions
from ..frame.finding.network_paths import FindingPath
from ..frame.inference.backends import ComputeBackend
from ..frame.inference.frame_segmenter import CpuSegmenter
from ..frame.looks.moving_background import check_background
from ..frame.stages.frame_pipeline import FramePipeline, FrameRecord, Stage
from ..frame.textures.offscreen_target import on_opengl
from ..frame.textures.picture_device import PictureDevice, Target
from ..frame.textures.texture_copies import TexturePicture, copy_out
from ..models.decoders.found import Finding
from ..models.finding_loading import ShownModel
from ..models.finding_model import FindingModel
from ..outputs.picture_readers import FrameReader, FrameStamp
from ..outputs.reader_choice import readers_of
from ..picture.convert import Rgba
from ..picture.picture import PictureFormat, rgba_format
from ..picture.preprocess import Floats, ImageSize
from ..picture.video_frame import VideoFrame
from ..settings.settings import Settings, changed
from .abilities import check_abilities
from .clock import Due
from .derived import (
    chosen_look_of,
    companions_of,
    framing_of,
    network_options_of,
    refinement_of,
    spec_of,
    work_of,
)
from .frame_parts import FrameParts, compiled_at_once, drawn_on
from .frame_runner import FrameRunner, Takers
from .kept_network import KeptNetwork
from .model_stages import KEPT_FRAMES, SharedParts, StageSteps, SwitchableStages, stages_in_steps
from .session_model import session_model
from .workload import Workload

READ = "read"  # the last stage, behind those that a session has

Give = Callable[[Callable[[], Rgba]], None]  # takes a picture, in the last stage: what it gets reads it into RAM


class PictureMaker:
    """Frames to pictures. For one thread at a time, that of the context where there is one; release() frees all.

    `settings` are those of live, of which it follows what concerns the picture. `given` are the names of those that
    somebody asked for. `figures` are the times of the last frame's stages in ms, by name.
    """

    def __init__(
        self, compute: ComputeBackend, model: ShownModel, settings: Settings, given: Mapping[str, object],
        console: Console, weights_cache: ModelSharing | None = None,
    ) -> None:  # fmt: skip
        """Compiles the network, whose model is that of the settings; what depends on frames comes with the first one.

        Raises TexelflowError.
        """
        assert compute.pictures, "pictures are drawn"
        self.settings, self.model, self.figures = settings, model, MappingProxyType[str, float]({})
        self._compute, self._pictures, self._console = compute, compute.pictures, console
        self._given, self._cache = {**given}, weights_cache
        self._options = replace(network_options_of(settings), weights_cache=weights_cache)
        self._kept = KeptNetwork()
        self._open: _OpenParts | None = None
        self._frames = 0  # since it began, or was reset
        self._before: VideoFrame | None = None  # the one to be drawn when the next comes
        self._takes_mask = False  # whether masks were asked for that the pictures do not need
        self.renderer = ""
        self._check(model, settings, self._given)
        self._compile_network()

    # Frames -----------------------------------------------------------------------------------------------------------

    @property
    def next_index(self) -> int:
        """The number of the next frame, since the beginning or the last reset."""
        return self._frames

    @property
    def keeps_frames(self) -> bool:
        """Whether the memory of a frame is still read when the next one comes."""
        parts = self._open
        return parts is None or parts.delays or not parts.canvas.look.needs_mask

    def run(self, frame: VideoFrame, give: Give) -> None:
        """Draw the picture of a frame, or with `delay_video` that of the one before it, and give it to the caller.

        Frames have numbers that count up; a number of 0 begins anew. Raises TexelflowError.
        """
        parts = self._open
        if parts is None or parts.format != frame.picture.format:
            self._before = None
            parts = self._opened(frame.picture.format)
        if isinstance(frame.picture, TexturePicture):
            self._check_textures(parts)
        self._frames = frame.index + 1
        before, self._before = self._before, frame
        if before and parts.delays:
            due = Due(before, frame if parts.looks_ahead else None, upcoming=(frame,))
        else:
            due = Due(frame, cut=frame.index == 0)
        self._run(parts, due, give)

    def run_last(self, give: Give) -> bool:
        """Draw the last frame itself, where pictures come a frame later; False if there is none that is due."""
        parts, last = self._open, self._before
        if parts is None or last is None or not parts.delays:
            return False
        self._before = None
        self._run(parts, Due(last), give)
        return True

    @property
    def picture_size(self) -> ImageSize:
        """(width, height) of the last picture."""
        return self._now_open().canvas.target.size

    def copy_picture(self, texture: moderngl.Texture) -> None:
        """Copy the last picture to a texture of its size, row 0 on top. Raises DeviceError."""
        parts, context = self._now_open(), self._compute.context
        assert context, "textures are OpenGL's"
        copy_out(context, on_opengl(parts.canvas.target), texture)
        context.check_errors("copying a picture to a texture")

    def mask(self) -> Floats:
        """The mask of the last picture's frame as the effect `mask` shows it, (H, W), from 0 to 1.

        Raises UsageError before the first frame, and for a network that puts out a picture without transparency.
        """
        parts = self._now_open()
        if not parts.stages.has_mask:
            finds = isinstance(self.model, FindingModel)
            what, instead = ("finds things", "findings has them, and ") if finds else ("puts out a picture", "")
            raise UsageError(f"{self.model.name} {what} and has no mask; {instead}model='selfie' makes masks of people")
        if not self._takes_mask and parts.lacks_mask:
            self._takes_mask = True
            assert parts.drawn, "a frame was drawn"
            parts.runner.draw_again(parts.drawn)
        return parts.mask(self._pictures)

    @property
    def findings(self) -> tuple[Finding, ...]:
        """What was found in the last picture's frame; nothing before there is one."""
        return self._open.stages.findings if self._open and self._open.drawn else ()

    def begin_anew(self) -> None:
        """The next frame has nothing to do with those before."""
        self._before, self._frames, self._takes_mask = None, 0, False
        if self._open:
            self._open.runner.begin_anew()

    # Settings ---------------------------------------------------------------------------------------------------------

    def change(self, settings: Settings, given: Mapping[str, object]) -> None:
        """Follow other settings from the next frame on; `given` are those that were asked for.

        Raises TexelflowError; then all is as it was.
        """
        given = {**self._given, **given}
        loaded = None
        if (settings.model, spec_of(settings, settings.model)) != (
            self.settings.model, spec_of(self.settings, self.settings.model)
        ):  # fmt: skip
            loaded = settings_model(settings, self._console, self._cache)
        elif companions_of(settings) != companions_of(self.settings):
            loaded = self.model
            fetch_companions(companions_of(settings), loaded)
        self._check(loaded or self.model, settings, given, self.settings)
        if loaded:
            self._switch(loaded, settings)
        self.settings, self._given = settings, given
        if parts := self._open:
            parts.follow(settings)

    def _check(
        self, model: ShownModel, settings: Settings, given: Mapping[str, object], before: Settings | None = None
    ) -> None:
        """Raise UsageError for what the model cannot follow, MediaError for a background that cannot be shown."""
        check_abilities(model, settings, given)
        background = chosen_look_of(settings).background
        is_new = before is None or {"background", "effect"} & {*changed(before, settings)}
        if background and is_new and settings.effect == "replace":
            check_background(background)

    def _switch(self, model: ShownModel, settings: Settings) -> None:
        """To another model. Raises TexelflowError; then the one before stays."""
        before, self.model = self.model, model
        try:
            if parts := self._open:
                steps = self._steps(parts.shared, settings)
                parts.stages.take_over(compiled_at_once(steps, self._console), settings.model)
                parts.follow_stages()
                parts.runner.begin_model()
                parts.runner.begin_anew()
                self._before = None
                self._tell_of(parts.stages.current.segmenter.note, parts.stages.current.segmenter.on_cpu)
            else:
                self._compile_network()
        except BaseException:
            self.model = before
            raise

    # Opening ----------------------------------------------------------------------------------------------------------

    def _compile_network(self) -> None:
        """For frames of its own size: others come later, and errors at once. Raises TexelflowError."""
        made_for = self._compute, self.model, rgba_format(self.model.input_size), self._options, KEPT_FRAMES
        steps = self._kept.in_steps(*made_for)
        with self._console.compilation() as progress:
            while True:
                try:
                    progress(*next(steps))
                except StopIteration as finished:
                    segmenter = finished.value
                    break
        self._tell_of(segmenter.note, segmenter.on_cpu)
        self._kept.keep(segmenter, *made_for)

    def _tell_of(self, note: str, on_cpu: str) -> None:
        self.renderer = self._compute.renderer(on_cpu)
        if note:
            self._console.note_once(note)

    def _steps(self, shared: SharedParts, settings: Settings) -> StageSteps:
        looks = chosen_look_of(settings), refinement_of(settings)
        return stages_in_steps(shared, self.model, *looks, companions_of(settings))

    def _opened(self, format: PictureFormat) -> "_OpenParts":
        """All that frames of a format run through, in place of what is open. Raises TexelflowError."""
        self._close_parts()
        compute, settings = self._compute, self.settings
        with contextlib.ExitStack() as stack:
            drawn = drawn_on(self._pictures, format.upright_size, settings, True, stack)
            shared = SharedParts(compute, format, self._options, drawn, self._kept)
            compiled = compiled_at_once(self._steps(shared, settings), self._console)
            stages = SwitchableStages(compiled, settings.model, framing_of(settings))
            stack.callback(stages.release)
            readers = readers_of(compute.native or compute.context, stages, keeps_all=True)
            stack.callback(readers.release)
            reader = readers.open(None, None)
            stack.callback(reader.release)
            parts = _OpenParts(shared, stages, reader, settings)
            parts.behind = (Stage(READ, parts.read),)
            stack.callback(parts.open_pipeline(compute.context).release)
            stack.callback(parts.free_mask)
            parts.runner = FrameRunner(parts, True, lambda: Takers(self._takes_mask, True))
            parts.close = stack.pop_all().close
        self._open = parts
        return parts

    def _check_textures(self, parts: "_OpenParts") -> None:
        """Raise UsageError where frames have to be in RAM."""
        segmenter = parts.stages.current.segmenter
        if isinstance(segmenter, CpuSegmenter) or (isinstance(segmenter, FindingPath) and segmenter.reads_ram):
            where = f"{self.model.name} runs on the CPU, wholly or in parts"
            raise UsageError(f"a texture stays on the GPU, and {where}; give arrays")
        if self.settings.skip_still:
            raise UsageError("skip_still compares frames in RAM: leave it out, or give arrays in place of textures")
        if self.settings.keep_held:
            raise UsageError("keep_held compares frames in RAM: leave it out, or give arrays in place of textures")

    def _run(self, parts: "_OpenParts", due: Due, give: Give) -> None:
        parts.begin(due.frame, give)
        parts.runner.run(due, self.settings)
        for record in parts.pipeline.completed():
            self.figures = MappingProxyType(_times(record))
        if line := parts.news():
            self._console.warn(line)

    def _now_open(self) -> "_OpenParts":
        if self._open is None or self._open.drawn is None:
            raise UsageError("no frame has come yet: there is neither a mask nor a picture")
        return self._open

    def _close_parts(self) -> None:
        if self._open:
            parts, self._open = self._open, None
            parts.close()

    def release(self) -> None:
        """Free everything but what computes and draws."""
        self._close_parts()
        self._kept.release()


class _OpenParts(FrameParts):
    """What frames of one format run through, and the last of them."""

    def __init__(self, shared: SharedParts, stages: SwitchableStages, reader: FrameReader, settings: Settings) -> None:
        workload = Workload(work_of(settings), has_small_model=False)
        super().__init__(shared=shared, stages=stages, pipeline=FramePipeline(()), workload=workload)
        self.delays = settings.delay_video  # whether pictures come a frame later, as asked for, of use or not
        self._has_use = refinement_of(settings).delay > 0
        self.format = shared.format
        self.drawn: VideoFrame | None = None
        self.runner: FrameRunner
        self.close: Callable[[], None]  # frees all
        self._reader = reader
        self._give: Give = _leave
        self._mask: Floats | None = None  # of the last picture, once somebody has asked for it
        self._mask_target: Target | None = None
        self._told = ""

    @property
    def canvas(self) -> Canvas:
        """What draws."""
        return self.stages.canvas

    @property
    def lacks_mask(self) -> bool:
        """Whether the last picture needed no mask, or none that was refined."""
        return not self.canvas.look.needs_mask or not self.stages.refines

    @property
    def looks_ahead(self) -> bool:
        """Whether the mask of a frame is made of the one after it, too."""
        return self._has_use and self.stages.current.uses_hindsight

    def begin(self, frame: VideoFrame, give: Give) -> None:
        """A frame is to be drawn."""
        self.drawn, self._mask, self._give = frame, None, give

    def follow(self, settings: Settings) -> None:
        """Draw and work by other settings from the next frame on."""
        refinement = refinement_of(settings)
        self.stages.set_look(chosen_look_of(settings), refinement)
        self.delays, self._has_use = settings.delay_video, refinement.delay > 0
        if (work := work_of(settings)) != self.workload.work:
            self.workload.work = work

    def read(self, frame: VideoFrame) -> None:
        """The stage that gives the picture to the caller."""
        self._give(self._picture)

    def _picture(self) -> Rgba:
        """It in RAM, (H, W, 4), its top row first; its memory is the caller's."""
        assert self.drawn, "a frame was drawn"
        self._reader.request(FrameStamp(self.drawn.index, self.drawn.pts))
        ((_, data),) = self._reader.drain()
        return data.reshape(self._reader.size[1], self._reader.size[0], 4)

    def mask(self, pictures: PictureDevice) -> Floats:
        """See PictureMaker.mask."""
        if self._mask is None:
            if self._mask_target is None:
                self._mask_target = pictures.target(self.canvas.target.size, "floats")
            self.canvas.drawing.draw(self._mask_target, "mask")
            pictures.finish()
            self._mask = pictures.read_red(self._mask_target)
        return self._mask

    def news(self) -> str:
        """What is wrong with the background, once; '' if there is nothing new to say."""
        before, self._told = self._told, self.canvas.message
        return self._told if self._told != before else ""

    def free_mask(self) -> None:
        """Free where masks are drawn."""
        if self._mask_target:
            self._mask_target.release()


def _leave(read: Callable[[], Rgba]) -> None:
    """Nobody takes the picture."""


def settings_model(settings: Settings, console: Console, weights_cache: ModelSharing | None = None) -> ShownModel:
    """The model of the settings, fetched if need be. Raises as load_shown_model."""
    read = weights_cache.read_model if weights_cache else read_model
    with console.download() as progress:
        return session_model(settings, progress, read)


def _times(record: FrameRecord) -> dict[str, float]:
    """Of each stage in ms: the device's where it tells them, else the CPU's."""
    return {stage.name: stage.cpu_ms if stage.gpu_ms is None else stage.gpu_ms for stage in record.stages}
