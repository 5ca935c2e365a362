"""Opens a session on a source, with settings and with or without a window, with everything compiled."""

import contextlib
import os
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import partial
from pathlib import Path
from time import perf_counter_ns, sleep

from texelflow.gpu_delegate.base.errors import ContextLostError, DeviceError
from texelflow.gpu_delegate.targets.gl.context import DRAWING, REQUIRED, Context, open_context
from texelflow.gpu_delegate.targets.gl.native_context import chosen_device

from ..console import Console
from ..frame.backend_choice.compute import compute_in, open_compute
from ..frame.inference.backends import ComputeBackend
from ..frame.inference.frame_segmenter import CpuSegmenter
from ..frame.inference.mask_sampler import MaskSampler
from ..frame.looks.looks import Look
from ..frame.stages.frame_figures import Figures
from ..frame.stages.frame_pipeline import FramePipeline, FrameRecord, Stage
from ..frame.stages.run_stats import RunStats
from ..frame.textures.native_pictures import NativePictures
from ..models.finding_loading import ShownModel, load_shown_model
from ..outputs.file_sinks import SoundSource, Timing
from ..outputs.frame_outputs import Outputs
from ..outputs.picture_readers import RamMasks, look_at_mask
from ..outputs.screenshots import Screenshots
from ..overlay.gallery import Gallery
from ..overlay.gui import Gui
from ..overlay.overlay import Overlay
from ..overlay.overlay_placement import ScreenArea
from ..picture.grid import PictureGrid
from ..picture.picture import PictureFormat
from ..picture.preprocess import Floats, ImageSize
from ..picture.video_frame import VideoFrame
from ..settings.config_watch import ConfigWatch
from ..settings.settings import Settings, Verb
from ..window.glfw_window import Window
from ..window.gpus import news_of_gpu, on_device, system_gpus
from ..window.loading_screen import LoadingScreen
from ..window.screen import Screen
from ..window.window_opening import open_window
from .clock import FrameClock
from .controller import Controller
from .derived import (
    chosen_look_of,
    companions_of,
    compute_of,
    figure_look_of,
    framing_of,
    network_options_of,
    refinement_of,
    spec_of,
    work_of,
    writing_of,
)
from .frame_parts import compiled_at_once, drawn_on, target_on
from .grid_stages import all_stages_in_steps
from .kept_network import KeptNetwork
from .model_stages import Drawn, ModelStages, SharedParts, SwitchableStages, makes_masks
from .parts import SessionParts, captions_of, facts_of
from .recovery import RESET_WAITS_S
from .session import Session
from .view import NoView, View, WindowView
from .workload import Workload


@dataclass(frozen=True)
class SessionSource:
    """What a session is about: the clock of its frames, their format, and what files made of them are called after.

    `peek` tells the first frame, to be shown meanwhile, once there is one.
    """

    clock: FrameClock
    format: PictureFormat
    timing: Timing
    title: str
    stem: Path
    peek: Callable[[], VideoFrame | None]
    sound: SoundSource | None = None  # of what is live
    cameras: tuple[PictureFormat, ...] = ()  # of each, where there are several; `format` is that of all together
    grid: PictureGrid | None = None  # where their pictures are
    made_by: str | None = None  # tags files that are finished
    pipes_pictures: bool = False  # a pipe gets PNG, not a video
    piece_first: int | None = None  # as of Writing, for a piece of a recording

    @property
    def aspect(self) -> Fraction:
        """Width divided by height of the whole frame as displayed."""
        return Fraction(*self.format.upright_size) * self.timing.sample_aspect_ratio


@dataclass
class SessionHost:
    """What is there before any session, and after it. Without a window there is no Dear ImGui, but `no_view`.

    `compute` is another one after its context was lost.
    """

    verb: Verb
    compute: ComputeBackend
    watch: ConfigWatch
    console: Console
    stats: RunStats
    note: Callable[[str], None]  # gets what is to be read outside of a window
    window: Window | None = None
    gui: Gui | None = None
    gallery: Gallery | None = None
    no_view: NoView = field(default_factory=NoView)
    observers: list[Callable[[FrameRecord], None]] = field(default_factory=list)  # get the record of each frame
    kept: KeptNetwork | None = None  # for sessions one after the other
    sampler: MaskSampler | None = None  # of the next session's masks
    time_ns: Callable[[], int] = perf_counter_ns  # as of SessionParts

    def observe(self, record: FrameRecord) -> None:
        """Hand the record of a frame on. Raises what observers raise."""
        for observer in self.observers:
            observer(record)

    def renew(self) -> None:
        """Another context in place of one that is lost, and in a window all that it is made of. Raises DeviceError."""
        compute, lost = self.compute, self.compute.context
        if self.window and self.gui and self.gallery:
            self.gui.release()
            self.gallery.release()
            self.window.reopen()
            context = self.window.context
            self.gui.renew(context)
            self.gallery.renew(context)
        else:
            if lost:
                lost.release()
            context = open_context(REQUIRED if compute.backend == "gl" else DRAWING)
        self.compute = compute.in_context(context)
        compute.end_drawing()

    def forget(self) -> None:
        """Keep nothing that a context holds."""
        if self.kept:
            self.kept.release()

    def wake(self) -> None:
        """Have the session look what has happened, from any thread."""
        (self.window or self.no_view).wake()


def _note_of(verb: Verb, console: Console) -> Callable[[str], None]:
    """What replay has written stands in its report; live tells of it as it happens."""
    return console.note if verb == "live" else lambda line: None


@contextlib.contextmanager
def open_host_with_window(
    source: SessionSource, model: ShownModel, verb: Verb, watch: ConfigWatch, console: Console
) -> Iterator[SessionHost]:
    """A window for the source's pictures; the model is the one that the settings name. Raises DeviceError."""
    size, aspect, choice = source.format.upright_size, source.timing.sample_aspect_ratio, compute_of(watch.settings)
    with contextlib.ExitStack() as stack:
        chosen = chosen_device()
        stack.enter_context(on_device(chosen))
        window = stack.enter_context(open_window(size, source.title, choice.backend, aspect))
        drawn_by = window.context.vendor, window.context.renderer
        if line := news_of_gpu(*drawn_by, chosen, system_gpus(), os.environ, sys.platform):
            console.note_once(line)
        gui = Gui(window.context)
        stack.callback(gui.release)
        gallery = Gallery(window.context)
        stack.callback(gallery.release)
        compute = compute_in(window.context, choice, model, console)
        host = SessionHost(verb, compute, watch, console, RunStats(), _note_of(verb, console), window, gui, gallery)
        stack.callback(lambda: host.compute.end_drawing())
        yield host


@contextlib.contextmanager
def open_host_without_window(
    needs_picture: bool, model: ShownModel, verb: Verb, watch: ConfigWatch, console: Console
) -> Iterator[SessionHost]:
    """What computes and, if that is needed, draws without a window. Raises UsageError, DeviceError."""
    settings = watch.settings
    with open_compute(compute_of(settings), model, needs_picture, console, has_overlay=settings.overlay) as compute:
        host = SessionHost(verb, compute, watch, console, RunStats(), _note_of(verb, console))
        try:
            yield host
        finally:
            host.compute.end_drawing()
            if host.compute.context:
                host.compute.context.release()


@contextlib.contextmanager
def open_session(
    host: SessionHost,
    source: SessionSource,
    model: ShownModel,
    settings: Settings,
    check_files: Callable[[Settings], None],
) -> Iterator[Session]:
    """Compile the model, which is that of the settings, and be ready to run; outputs are finished at the end.

    check_files raises for outputs that may not be written. Raises WindowClosedError if the user closes the window
    before that is done, TexelflowError.
    """
    with contextlib.ExitStack() as stack:
        device = stack.enter_context(contextlib.ExitStack())  # frees what a context holds
        shared = _shared_parts(host, source, settings, device)
        compiled = _compiled_stages(host, source, shared, model, settings)
        stages = SwitchableStages(compiled, settings.model, framing_of(settings))
        stack.callback(stages.release)
        parts = _parts(host, source, shared, stages, settings, stack)
        _open_device_parts(parts, host, source, settings, device)
        controller = Controller(settings, host.watch, parts, check_files)

        def rebuild(lost: ContextLostError) -> int | None:
            host.console.note(f"{lost}; all is built anew")
            return _rebuild(parts, host, source, controller.settings, device)

        session = Session(parts, controller, host.stats, host.observe, host.note, rebuild)
        stack.callback(session.release)
        yield session
        session.finish()


def _rebuild(
    parts: SessionParts, host: SessionHost, source: SessionSource, settings: Settings, device: contextlib.ExitStack
) -> int | None:
    """All that was in a context that is lost, in another one; the last frame that all outputs have. Raises DeviceError.

    Freeing what is lost may fail in many ways, of which none matters.
    """
    delivered = parts.outputs.lose_device()
    for free in (parts.stages.lose, host.forget, device.close):
        with contextlib.suppress(DeviceError):
            free()
    _renew_patiently(host)
    parts.shared = _shared_parts(host, source, settings, device)
    name = parts.stages.name
    model = load_shown_model(name, spec_of(settings, name))
    parts.stages.restore(_compiled_stages(host, source, parts.shared, model, settings))
    if readable := _readable(host, settings):
        parts.outputs.renew_device(readable, parts.stages)
    _open_device_parts(parts, host, source, settings, device)
    return delivered


def _renew_patiently(host: SessionHost) -> None:
    """Raises DeviceError if the GPU is not back in time."""
    for wait_s in RESET_WAITS_S:
        with contextlib.suppress(DeviceError):
            host.renew()
            return
        sleep(wait_s)
    host.renew()


def _shared_parts(
    host: SessionHost, source: SessionSource, settings: Settings, stack: contextlib.ExitStack
) -> SharedParts:
    """What stays when the model changes; cameras whose pictures have the same size are drawn in the same place."""

    def drawn(size: ImageSize) -> Drawn | None:
        return drawn_on(host.compute.pictures, size, settings, source.clock.keeps_all, stack)

    options = network_options_of(settings)
    parts = partial(SharedParts, host.compute, options=options, kept=host.kept, sampler=host.sampler)
    if not source.grid:
        return parts(format=source.format, drawn=drawn(source.format.upright_size))
    places = {size: drawn(size) for size in dict.fromkeys(format.upright_size for format in source.cameras)}
    cameras = tuple(parts(format=format, drawn=places[format.upright_size]) for format in source.cameras)
    first, pictures = cameras[0].drawn, host.compute.pictures
    whole = replace(first, target=target_on(pictures, source.grid.size, stack)) if first and pictures else None
    return parts(format=source.format, drawn=whole, cameras=cameras, grid=source.grid)


def _compiled_stages(
    host: SessionHost, source: SessionSource, shared: SharedParts, model: ShownModel, settings: Settings
) -> ModelStages:
    """Compiled while a window, or a terminal, shows how far that is."""
    looks = chosen_look_of(settings), refinement_of(settings)
    steps = all_stages_in_steps(shared, model, *looks, companions_of(settings))
    if host.window and host.gui:
        with LoadingScreen(host.window, host.gui, source.peek, source.aspect) as screen:
            stages = screen.run(steps, f"compiling shaders for {model.name}")
    else:
        stages = compiled_at_once(steps, host.console)
    if stages.segmenter.note:
        host.console.note_once(stages.segmenter.note)
    return stages


def _parts(
    host: SessionHost,
    source: SessionSource,
    shared: SharedParts,
    stages: SwitchableStages,
    settings: Settings,
    stack: contextlib.ExitStack,
) -> SessionParts:
    clock = source.clock
    has_masks = makes_masks(stages.current.segmenter)
    workload = Workload(work_of(settings), has_masks and bool(settings.small_model))
    figures = Figures(camera=lambda: clock.camera(str(workload.counts)))
    pictures = stages if shared.drawn else _masks_in_ram(stages, source, settings)
    writing = replace(writing_of(settings, source.made_by, source.pipes_pictures), piece_first=source.piece_first)
    outputs = Outputs(
        _readable(host, settings), pictures, source.timing, clock.keeps_all, writing=writing, sound=source.sound,
        found=lambda: stages.findings,
    )  # fmt: skip
    stack.callback(outputs.release)
    view: View = host.no_view
    if host.window and host.gui:
        view = WindowView(host.window, Screen(host.window, host.gui, stages, source.aspect))
    pipeline = FramePipeline(())  # until all are there that it runs
    return SessionParts(
        shared=shared, stages=stages, pipeline=pipeline, workload=workload, verb=host.verb, view=view, clock=clock,
        outputs=outputs, figures=figures, gallery=host.gallery, time_ns=host.time_ns,
    )  # fmt: skip


def _readable(host: SessionHost, settings: Settings) -> Context | NativePictures | None:
    """Where outputs read pictures: in RAM if they are drawn there, unless OpenGL draws an overlay over them."""
    compute = host.compute
    is_overdrawn = settings.overlay and not host.window and compute.context is not None
    return compute.context if is_overdrawn or not compute.native else compute.native


def _open_device_parts(
    parts: SessionParts, host: SessionHost, source: SessionSource, settings: Settings, device: contextlib.ExitStack
) -> None:
    """What runs frames, and what is drawn and taken besides, in the context that there is now. Raises DeviceError."""
    context, drawn = host.compute.context, parts.shared.drawn
    drawing = tuple[Stage, ...]()
    if settings.overlay and context and drawn and not host.window:
        look = figure_look_of(settings)
        over = captions_of(parts, lambda: ScreenArea(0, 0, *drawn.target.size))
        parts.overlay = Overlay(context, drawn.target, parts.figures, lambda: facts_of(parts), look, over)
        device.callback(parts.overlay.release)
        drawing = (parts.overlay.stage,)
    parts.behind = (*drawing, parts.outputs.stage, *parts.view.stages)
    device.callback(parts.open_pipeline(context).release)
    if host.window and drawn:
        shots = Screenshots(host.window.context, drawn.target, source.stem, Path())
        parts.screenshots = device.enter_context(contextlib.closing(shots))


def _masks_in_ram(stages: SwitchableStages, source: SessionSource, settings: Settings) -> RamMasks:
    """Of a network on the CPU, where nothing is drawn; of a picture its transparency, without curve and edge."""
    segmenter, look = stages.current.segmenter, chosen_look_of(settings).look

    def mask() -> Floats:
        if not isinstance(segmenter, CpuSegmenter):
            raise DeviceError(f"{Path(stages.name).name} has no mask in RAM")
        if segmenter.picture:
            return look_at_mask(segmenter.frame_mask()[..., 3], Look(mirror=look.mirror))
        return look_at_mask(segmenter.frame_mask(), look)

    return RamMasks(source.format.upright_size, mask)
