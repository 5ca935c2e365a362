"""A source's pictures go in as they come; the newest one is on the screen, until the person has seen enough.

Everything happens in the thread of the window's context but capturing, encoding and reading files.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from time import perf_counter_ns

from texelflow.gpu_delegate.errors import TexelflowError

from ..capture.capture import Capture
from ..capture.supervise import CaptureState, Phase
from ..frame.figures import CameraFigures, Figures
from ..frame.gpu_timer import timer_health
from ..frame.pipeline import FrameRecord, Pipeline
from ..live.outputs import LiveOutputs
from ..media.sources import VideoFrame
from ..models.loading import SegmentationModel
from ..overlay.controls import controls
from ..overlay.panel import Facts
from ..settings.settings import Settings
from ..settings.watch import Watch
from ..window.screen import Screen
from ..window.screenshots import Screenshots
from ..window.window import Window
from .controller import Controller
from .derived import choice_of, refinement_of
from .hud import Hud
from .model_stages import Ground, Scenes, Steps, scene_in_steps
from .model_switch import ModelSwitch
from .motion import Still
from .workload import Workload, busy_ms

_IDLE_S = 0.25  # how long a signal may go unheard while nothing moves
_PANEL_S = 1 / 60  # between two pictures of the panel, while nothing else moves
_SHOT_S = 0.02  # between two looks at what other threads do


@dataclass(frozen=True)
class Parts:
    """What a session is made of; whoever opened it frees it."""

    window: Window
    screen: Screen
    capture: Capture
    ground: Ground
    scenes: Scenes
    outputs: LiveOutputs
    pipeline: Pipeline
    screenshots: Screenshots
    workload: Workload


class Session:
    """One source in the window. run() it once."""

    def __init__(
        self,
        parts: Parts,
        settings: Settings,
        watch: Watch,
        first: VideoFrame,
        observe: Callable[[FrameRecord], None],
        note: Callable[[str], None],
    ) -> None:
        """`first` has been taken from the capture; `observe` gets the record of each frame.

        `note` gets what is still to be read when the window is gone: lines on what was recorded.

        Raises TexelflowError for outputs that cannot be had.
        """
        self._parts, self._observe, self._note = parts, observe, note
        self._figures = Figures(camera=self._camera)
        self._board = Hud(self._figures, self._facts)
        self.desk = Controller(
            settings,
            watch,
            parts.window,
            self._board,
            parts.scenes,
            parts.outputs,
            parts.workload,
            self._take_screenshot,
        )
        self._switch = ModelSwitch(parts.scenes, self._steps_of)
        self._timer_note = timer_health(parts.window.context)
        self._waiting: VideoFrame | None = first
        self._drawn: VideoFrame | None = None  # what the screen shows
        self._laid_out_ns = 0  # when the screen was drawn last
        self._masked = True  # whether the last frame needed a mask
        self._before: VideoFrame | None = None  # the newest frame, which is shown next if pictures wait for masks
        self._still = Still()
        self._state = CaptureState("live")
        self._of_background = ""  # what was said of it last

    def run(self, stopped: Callable[[], bool]) -> None:
        """Until the person quits, other settings need another session, the source ends, or `stopped` says so.

        Raises TexelflowError for what cannot go on.
        """
        while not (self._over or stopped()):
            self.step()
        for record in self._parts.pipeline.drain():
            self._take_record(record)

    def step(self) -> None:
        """Wait for something to happen, and do what is due."""
        parts = self._parts
        for key in parts.screen.keys(self._patience_s()):
            self.desk.obey(key)
        self.desk.follow(perf_counter_ns())
        self._switch_models()
        self._watch_source()
        frame, self._waiting = self._waiting or parts.capture.take(), None
        if frame:
            self._show(frame)
        elif self._to_be_redrawn:
            self._redraw()
        for line in parts.outputs.lines():
            self.say(line)
            self._note(line)
            self.desk.forget_ended()
        for line in (*parts.screenshots.collect(), self._news_of_background()):
            self.say(line)
        self.desk.stale |= self._board.caption.expired()

    @property
    def model(self) -> str:
        """The name of the model that runs."""
        return self._parts.scenes.name

    @property
    def phase(self) -> Phase:
        """How the source fares, as far as that was noticed."""
        return self._state.phase

    @property
    def _over(self) -> bool:
        desk, parts = self.desk, self._parts
        return desk.left or desk.reopens or parts.window.closed or parts.capture.state.phase == "ended"

    @property
    def _to_be_redrawn(self) -> bool:
        window, desk = self._parts.window, self.desk
        return (
            self._drawn is not None
            and not window.minimised
            and (desk.stale or window.damaged or self._panel_wait_s == 0)
        )

    def _patience_s(self) -> float:
        """How long nothing but events can happen; a picture that comes is one."""
        parts = self._parts
        if self._waiting or self._to_be_redrawn or parts.scenes.changing:
            return 0.0
        shot_s = _SHOT_S if parts.screenshots.pending or self._switch.busy else None
        waits = shot_s, self._panel_wait_s, self._board.caption.left_s
        return min([_IDLE_S, *(wait for wait in waits if wait is not None)])

    @property
    def _panel_wait_s(self) -> float | None:
        """How long the panel stays as it is, however the mouse moves; None where nobody sees one."""
        if self._parts.window.minimised or self._drawn is None or not self.desk.settings.panel:
            return None
        return max(0.0, _PANEL_S - (perf_counter_ns() - self._laid_out_ns) / 1e9)

    # Pictures -------------------------------------------------------------------------------------------------------

    def _show(self, frame: VideoFrame) -> None:
        """A new frame through the pipeline; in a window that nobody sees only if an output takes it."""
        parts = self._parts
        counts = parts.capture.take_counts()
        if parts.window.minimised and not parts.outputs.active:
            self._begin_afresh()
            return
        shown = self._in_time(frame)
        parts.scenes.fresh = self._runs_network(frame)
        self._lay_out()
        parts.pipeline.submit(shown, counts.dropped, counts.repeated)
        self._drawn, self.desk.stale = shown, False
        for record in parts.pipeline.completed():
            self._take_record(record)

    def _in_time(self, frame: VideoFrame) -> VideoFrame:
        """The frame that is shown when this one goes up: itself, or the one before, which had to wait for its mask."""
        before, self._before = self._before, frame
        if before is None or not self.desk.settings.delay_video:
            return frame
        return replace(before, picture=frame.picture, convert=frame.convert)

    def _runs_network(self, frame: VideoFrame) -> bool:
        """Whether the network sees the frame."""
        parts, settings = self._parts, self.desk.settings
        masked_before = self._masked
        self._masked = parts.scenes.current.canvas.look.needs_mask or parts.outputs.need_mask
        if not self._masked:
            parts.workload.reset()
            return False
        if not masked_before:
            parts.scenes.current.refiner.reset()
        similarity = self._still.similarity_db(frame.picture) if parts.workload.compares else None
        small = parts.scenes.name != settings.model
        fresh = parts.workload.decide(frame.index, frame.time_ms, similarity, small) == "fresh"
        if fresh and parts.workload.compares:
            self._still.keep(frame.picture)
        return fresh

    def _redraw(self) -> None:
        """The frame at hand again, which counts for nothing."""
        parts = self._parts
        assert self._drawn is not None
        self._lay_out()
        stale, self.desk.stale = self.desk.stale, False  # the panel may say so again while it is drawn
        if stale:
            parts.scenes.composite(self._drawn)
        parts.screen.redraw()

    def _lay_out(self) -> None:
        settings = self.desk.settings
        self._laid_out_ns = perf_counter_ns()
        self._board.recording = self._parts.outputs.status
        self._parts.screen.parts = self._board.parts(settings.overlay, self._panel if settings.panel else None)

    def _panel(self) -> None:
        """Drawn with Dear ImGui; what the person changes there is done."""
        self.desk.adopt(controls(self.desk.settings))

    def _take_screenshot(self) -> None:
        """Take one of what is on the screen."""
        if self._drawn is not None:
            alpha = self.desk.settings.effect == "cutout"
            self._parts.scenes.composite(self._drawn)  # the look may have changed since it was drawn
            self._parts.screenshots.take(self._drawn.index, alpha)

    # What goes on beside --------------------------------------------------------------------------------------------

    def _switch_models(self) -> None:
        """Have the model that settings, or the automatic mode, ask for."""
        parts, settings = self._parts, self.desk.settings
        small = parts.workload.level.small_model and bool(settings.small_model)
        wanted = settings.small_model if small else settings.model
        if wanted not in (self._switch.wanted, parts.scenes.name):
            self.say(f"loading model {wanted}")
        self._switch.want(wanted)
        try:
            if self._switch.advance():
                self._begin_scene()
                self.say(f"model {parts.scenes.name}")
        except TexelflowError as error:
            self.desk.do_without(wanted, str(error))

    def _begin_scene(self) -> None:
        """Show a new scene the frame at hand, which may have to be drawn again before the next one comes."""
        scenes = self._parts.scenes
        self.desk.dress()
        self._before = None
        self._still.forget()
        self._parts.workload.reset()
        if self._drawn is not None:
            scenes.fresh = True
            for stage in scenes.stages:
                stage.run(self._drawn)
            scenes.current.refiner.reset()

    def _news_of_background(self) -> str:
        """What is wrong with it, once; '' if there is nothing new to say."""
        message, before = self._parts.scenes.current.canvas.message, self._of_background
        self._of_background = message
        return message if message != before else ""

    def _watch_source(self) -> None:
        """Tell what is wrong with the camera, and begin afresh when it is back."""
        parts, before = self._parts, self._state
        state = self._state = parts.capture.state
        if state == before:
            return
        self.desk.stale = True
        self._board.signal = "" if state.phase == "live" else state.message
        if state.phase == "live":
            self.say(state.message)
            if before.phase != "live":
                self._begin_afresh()

    def _begin_afresh(self) -> None:
        """The next frame has nothing to do with those before."""
        self._before = None
        self._parts.scenes.current.refiner.reset()
        self._parts.workload.reset()

    def _take_record(self, record: FrameRecord) -> None:
        parts = self._parts
        if parts.workload.work.auto:
            fps = parts.capture.fps
            parts.workload.observe(record.index, busy_ms(record), 1000 / fps if fps else 0.0, record.dropped)
        self._figures.add(record)
        self._observe(record)

    def say(self, words: str) -> None:
        """Show a few words for a while, below those that are there."""
        if words:
            self._board.caption.add(words)
            self.desk.stale = True

    def _camera(self) -> CameraFigures:
        """What the overlay tells of the camera."""
        capture, counts = self._parts.capture, self._parts.capture.counts
        return CameraFigures(
            capture.description, capture.stamps, capture.fps, counts.used, counts.dropped, counts.repeated,
            counts.lost, str(self._parts.workload.counts),
        )  # fmt: skip

    def _facts(self) -> Facts:
        """What it tells besides figures."""
        machine, scenes, capture = self._parts.ground.machine, self._parts.scenes, self._parts.capture
        segmenter, fps = scenes.current.segmenter, capture.nominal_fps or round(capture.fps)
        budget_ms = 1000 / fps if fps else 0.0
        return Facts(
            machine.renderer, machine.backend, scenes.name, segmenter.precision, segmenter.dispatches, budget_ms,
            self._timer_note,
        )  # fmt: skip

    def _steps_of(self, model: SegmentationModel) -> Steps:
        settings = self.desk.settings
        return scene_in_steps(self._parts.ground, model, choice_of(settings), refinement_of(settings))
