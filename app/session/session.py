"""The one loop of live and replay: runs each frame that the clock gives through the stages to the view and the outputs.

Everything happens in the thread of the context but capturing, decoding, encoding and reading files.
"""

from collections.abc import Callable
from pathlib import Path
from time import perf_counter_ns

from texelflow.gpu_delegate.base.errors import ContextLostError, MediaError, TexelflowError

from ..capture.supervise import CapturePhase, CaptureState
from ..frame.looks.effects import nearest_effect
from ..frame.stages.frame_pipeline import FrameRecord
from ..frame.stages.run_stats import RunStats
from ..models.finding_loading import ShownModel, load_shown_model
from ..overlay.controls import controls
from ..picture.video_frame import VideoFrame
from ..settings.settings import with_background
from ..tracking.gestures import GestureTrigger
from .abilities import lacks_effect
from .clock import LIVE, Due, NewestWins
from .controller import Controller
from .derived import chosen_look_of, companions_of, figure_look_of, gestures_of, refinement_of, spec_of
from .drop import DroppedFiles
from .frame_runner import FrameRunner, Takers
from .grid_clock import GridClock
from .grid_stages import all_stages_in_steps
from .hud import Hud
from .model_stages import StageSteps
from .model_switch import ModelSwitch
from .parts import SessionParts, areas_of, captions_of, facts_of
from .recovery import Rebuild, Recovery
from .seek_bar import SeekBar
from .workload import busy_ms

_IDLE_S = 0.25  # until a signal is noticed while nothing moves
_PANEL_S = 1 / 60  # between two pictures of the panel, while nothing else moves
_SHOT_S = 0.02  # between two looks at what other threads do


class Session:
    """One source, from its first frame until the user quits or it ends. run() it once."""

    def __init__(
        self, parts: SessionParts, controller: Controller, stats: RunStats, observe: Callable[[FrameRecord], None],
        note: Callable[[str], None], rebuild: Rebuild,
    ) -> None:  # fmt: skip
        """`observe` gets the record of each frame, as `stats` do; `note` what is to be read outside of a window.

        `rebuild` makes all anew that belongs to a context.

        Raises TexelflowError for outputs that cannot be had.
        """
        self.parts, self.controller = parts, controller
        self._stats, self._observe, self._note = stats, observe, note
        self.written: list[str] = []  # a line for each output that has ended
        seeks = SeekBar(parts.playback, parts.time_ns) if parts.playback and not parts.playback.keeps_all else None
        over = captions_of(parts, lambda: parts.view.picture_area)
        self._hud = Hud(parts.figures, lambda: facts_of(parts), parts.verb, seeks, over, parts.time_ns)
        self._recovery = Recovery(rebuild)
        self._switch = self._new_switch()
        self._asked_models: tuple[object, ...] = ()  # what decides on models, as it was last
        self._runner = FrameRunner(parts, parts.clock.keeps_all, self._takers)
        self._drawn: VideoFrame | None = None  # what the view shows
        self._gestures = GestureTrigger(())
        self._recorded = -1  # the number of the frame whose record was taken last
        self._laid_out_ns = 0  # when the view was drawn last
        self._dropped = DroppedFiles()
        self._state: CaptureState = LIVE
        self._of_background = ""  # what was said of it last
        controller.begin(self._hud, self._take_screenshot, note)
        parts.view.watch_mouse()
        if parts.clock.keeps_all:
            parts.outputs.lines()  # that they begin is no news: nobody can begin others

    def run(self, stopped: Callable[[], bool]) -> None:
        """Until the user quits, other settings need another session, the source ends, or `stopped` says so.

        Raises TexelflowError for what cannot go on.
        """
        while not self._run_to_end(stopped):
            pass
        for record in self.parts.pipeline.drain():
            self._take_record(record)

    def _run_to_end(self, stopped: Callable[[], bool]) -> bool:
        """The same; False if the GPU was reset in between, and all is ready to go on."""
        try:
            while not stopped() and (self._recovery.again or not self._over):
                self.step()
            if self.parts.clock.keeps_all:
                self._count_readback(self.parts.outputs.deliver)
            return True
        except ContextLostError as lost:
            self._recover(lost)
            return False

    def step(self) -> None:
        """Wait for something to happen, and do what is due."""
        parts, playback = self.parts, self.parts.playback
        for key in parts.view.keys(self._patience_s()):
            self.controller.press(key)
        if pointed := parts.view.pointed():
            self.controller.point(pointed, areas_of(parts))
        if parts.view.stirred and self._hud.seek_bar:
            self._hud.seek_bar.stir()
            self.controller.touched |= self._hud.seek_bar.held
        self.controller.poll(perf_counter_ns())
        self._switch_models()
        self._watch_source()
        self._take_dropped()
        was_paused = playback is not None and playback.paused
        again = self._recovery.again
        if due := again.popleft() if again else parts.clock.due(perf_counter_ns()):
            self._take(due)
        elif self._to_be_redrawn(self._words_wait_s):
            self._redraw()
        if playback and playback.paused and not was_paused and playback.at_end:
            self.say("the end")
        for line in parts.outputs.lines():
            self.say(line)
            self._note(line)
            self.controller.forget_ended()
        for line in parts.screenshots.collect() if parts.screenshots and parts.screenshots.pending else ():
            self.say(line)
        if line := self._news_of_background():
            self.controller.complain(line)
        self.controller.stale |= self._hud.toast.expired()

    def finish(self) -> None:
        """End outputs, and tell what was written; harmless when repeated.

        Raises what went wrong where every frame counts, MediaError or DeviceError.
        """
        outputs = self.parts.outputs
        try:
            self._count_readback(lambda: outputs.finish(complete=self.parts.clock.complete))
        finally:
            lines = outputs.lines()
            self.written += lines
            for line in lines:
                self._note(line)

    def release(self) -> None:
        """Let go of all frames: the session itself may stay in memory for a while."""
        self._drawn = None
        self._recovery.forget()

    def _count_readback(self, act: Callable[[], None]) -> None:
        """Have outputs do what belongs to no frame; what that reads back counts."""
        parts, before = self.parts, self.parts.pipeline.readback_bytes
        try:
            act()
        finally:
            self._stats.add_readback(parts.outputs.stage.name, parts.pipeline.readback_bytes - before)

    @property
    def dispatches(self) -> int:
        """Of one frame."""
        return self.parts.stages.current.segmenter.dispatches

    @property
    def model(self) -> str:
        """The name of the model that runs."""
        return self.parts.stages.name

    @property
    def phase(self) -> CapturePhase:
        """Whether the source delivers pictures, as of the last step."""
        return self._state.phase

    @property
    def _over(self) -> bool:
        controller, parts = self.controller, self.parts
        return controller.left or controller.reopens or parts.view.closed or parts.clock.ended

    def _to_be_redrawn(self, words_s: float | None) -> bool:
        """Whether there is a picture that has to be drawn again; words change in words_s, as _words_wait_s says."""
        view = self.parts.view
        waits = self.controller.stale or view.damaged or words_s == 0
        return waits and self._shown is not None and view.seen

    @property
    def _shown(self) -> VideoFrame | None:
        """The frame that the view is to show: playback may have gone on while nobody saw it."""
        playback = self.parts.playback
        return (playback.frame if playback else None) or self._drawn

    def _patience_s(self) -> float:
        """How long nothing but events can happen; a picture that comes is one."""
        parts = self.parts
        words_s = self._words_wait_s
        if self._to_be_redrawn(words_s) or parts.stages.changing or self._recovery.again:
            return 0.0
        busy = self._switch.busy or self._dropped.busy or (parts.screenshots is not None and parts.screenshots.pending)
        clock_s = parts.clock.wait_s(perf_counter_ns())
        waits = clock_s, _SHOT_S if busy else None, words_s, self._hud.toast.left_s
        return min([_IDLE_S, *[wait for wait in waits if wait is not None]])

    @property
    def _words_wait_s(self) -> float | None:
        """How long what is over the picture looks as it does, however the mouse moves; None: until something else."""
        if not self.parts.view.seen or self._drawn is None:
            return None
        seen_s = self._laid_out_ns / 1e9
        changes_s = seen_s + _PANEL_S if self.controller.settings.panel else self._hud.changes_s(seen_s)
        return None if changes_s is None else max(0.0, changes_s - self.parts.time_ns() / 1e9)

    # Pictures -------------------------------------------------------------------------------------------------------

    def _take(self, due: Due) -> None:
        """A new frame through the pipeline, unless nobody would see it."""
        parts, tells = self.parts, bool(self.controller.settings.json_lines)
        if not (parts.view.seen or parts.outputs.active or parts.clock.keeps_all or tells):
            self._begin_anew()
            return
        if due.cut:
            self._begin_anew()
        if parts.clock.keeps_all:
            self._recovery.keep(due)
        frame = self._runner.prepare(due, self.controller.settings)
        if frame is None:
            return
        self.controller.stale = False  # the panel may set it again while it is drawn
        self._lay_out()
        self._runner.submit(frame, due)
        self._drawn = due.frame
        self._obey_gestures(due.frame)
        for record in parts.pipeline.completed():
            self._take_record(record)

    def _obey_gestures(self, frame: VideoFrame) -> None:
        """Do what hands ask for in the frame that was drawn last."""
        wanted = tuple(gestures_of(self.controller.settings))
        if wanted != tuple(self._gestures.wanted):
            self._gestures = GestureTrigger(wanted)
        if wanted and (gesture := self._gestures.see(self.parts.stages.findings, frame.time_ms / 1000)):
            self.controller.obey(gesture)

    def _takers(self) -> Takers:
        """Who takes what is made of frames: the view, which has screenshots, and the outputs."""
        parts = self.parts
        shows = parts.screenshots is not None or parts.outputs.show_picture
        frozen = self.controller.settings.freeze and self._drawn is not None
        return Takers(parts.outputs.need_mask, shows and not frozen)

    def _redraw(self) -> None:
        """The current frame again, which is not counted; or one that came while nobody saw it."""
        parts, shown = self.parts, self._shown
        assert shown is not None
        if self._drawn is None or shown.index != self._drawn.index:
            self._take(Due(shown))
            return
        self._lay_out()
        stale, self.controller.stale = self.controller.stale, False  # the panel may set it again while it is drawn
        if stale:
            self._runner.draw_again(self._drawn)
        parts.view.redraw()

    def _lay_out(self) -> None:
        settings, parts = self.controller.settings, self.parts
        if not parts.view.seen:
            return
        self._laid_out_ns = parts.time_ns()
        if self._drawn is None and settings.start_hint and not self._stats.frames:
            self._hud.hint.show()
        self._hud.recording = parts.outputs.status
        if parts.playback:
            self._hud.status = parts.playback.describe(nearest_effect(settings.effect, parts.stages.canvas.effects))
        look = figure_look_of(settings) if settings.overlay else None
        parts.view.lay_out(self._hud.parts(look, self._panel if settings.panel else None))

    def _panel(self) -> None:
        """Drawn with Dear ImGui; what the user changes there is applied."""
        parts, height = self.parts, self.parts.shared.format.upright_size[1]
        effects = self.controller.effects
        self.controller.adopt(controls(self.controller.settings, parts.verb, parts.gallery, height, effects))

    def _take_screenshot(self) -> None:
        """Take one of what is on the screen."""
        if self._drawn is not None and self.parts.screenshots:
            alpha = self.controller.settings.effect == "cutout"
            self._runner.draw_again(self._drawn)
            self.parts.screenshots.take(self._drawn.index, alpha)

    def _recover(self, lost: ContextLostError) -> None:
        """Go on with another context; frames that were not written yet come once more. Raises DeviceError."""
        for record in self.parts.pipeline.abandon():
            self._take_record(record)
        self._recovery.recover(lost)
        self._asked_models = ()
        self._switch = self._new_switch()
        self.controller.change(freeze=False)  # the picture is gone
        self._begin_model()
        self.say(str(lost))

    def _new_switch(self) -> ModelSwitch:
        stages, settings = self.parts.stages, self.controller.settings
        spec = spec_of(settings, stages.name)
        return ModelSwitch(stages, spec, load_shown_model, self._steps_of, companions_of(settings))

    # What goes on beside --------------------------------------------------------------------------------------------

    def _switch_models(self) -> None:
        """Have the model that settings, a key, or the automatic mode ask for."""
        parts, settings = self.parts, self.controller.settings
        asked = settings, parts.workload.level.small_model, self.controller.uses_small_model, parts.stages.name
        if asked == self._asked_models and not self._switch.busy:
            return
        self._asked_models = asked
        small = (parts.workload.level.small_model or self.controller.uses_small_model) and bool(settings.small_model)
        wanted = settings.small_model if small else settings.model
        if wanted not in (self._switch.wanted, parts.stages.name):
            self.say(f"loading model {wanted}")
        self._switch.want(wanted, spec_of(settings, wanted), companions_of(settings))
        try:
            if stages := self._switch.advance():
                self._begin_model()
                self.say(f"model {stages.segmenter.note or parts.stages.name}")
        except ContextLostError:
            raise
        except TexelflowError as error:
            self.controller.reject_setting(wanted, str(error))

    def _begin_model(self) -> None:
        """Show the current frame by a new model; it may have to be drawn again before the next one comes."""
        for record in self.parts.follow_stages():
            self._take_record(record)
        self.controller.set_look()
        self._runner.begin_model()
        self._end_masks()
        self.controller.end_what_shows_room()
        if self._drawn is not None:
            self.parts.stages.prepare(self._drawn, age=0)
            self.controller.stale = True
        self._begin_anew()

    def _end_masks(self) -> None:
        """End recordings of masks where the new model has none."""
        outputs, without = self.parts.outputs, not self.parts.stages.has_mask
        name = Path(self.parts.stages.name).name
        for kind in [kind for kind in outputs.active if without and kind in ("masks", "cutouts")]:
            outputs.end(kind)
            self.controller.complain(f"{name} has no mask: {kind} end here")
        self.controller.forget_ended()

    def _news_of_background(self) -> str:
        """What is wrong with it, once; '' if there is nothing new to say."""
        canvas, before = self.parts.stages.current.canvas, self._of_background
        self._of_background = message = canvas.message if canvas else ""
        return message if message != before else ""

    def _take_dropped(self) -> None:
        """Put what was dropped onto the window behind the person, or say why that cannot be."""
        self._dropped.look_at(self.parts.view.dropped())
        if not self._dropped.busy:
            return
        try:
            if background := self._dropped.collect():
                settings = with_background(self.controller.settings, background)
                able = self.parts.stages.canvas.effects
                if settings.effect not in able:
                    raise MediaError(lacks_effect(settings.effect, Path(self.model).name, able))
                self.controller.adopt(settings)
                self.say(f"background {Path(background).name}")
        except MediaError as error:
            self.controller.complain(str(error))

    def _watch_source(self) -> None:
        """Tell what is wrong with the camera, and begin anew when it is back."""
        before, state = self._state, self.parts.clock.state
        self._state = state
        if state == before:
            return
        self.controller.stale = True
        self._hud.signal = "" if state.phase == "live" or self.parts.cameras else state.message
        if state.phase == "live":
            self.say(state.message)
            if before.phase != "live":
                self._begin_anew()
        if not self.parts.view.seen:
            for line in state.troubles:
                if line not in before.troubles:
                    self._note(line)

    def _begin_anew(self) -> None:
        """The next frame has nothing to do with those before."""
        parts = self.parts
        if isinstance(parts.clock, NewestWins | GridClock):
            parts.clock.begin_anew()
        self._runner.begin_anew()
        self._gestures.begin_anew()

    def _take_record(self, record: FrameRecord) -> None:
        parts = self.parts
        if parts.clock.keeps_all and record.index <= self._recorded:
            return  # it is drawn once more
        self._recorded = record.index
        if parts.workload.work.auto:
            parts.workload.observe(record.index, busy_ms(record), parts.clock.budget_ms, record.dropped)
        parts.figures.add(record)
        self._stats.add(record)
        self._observe(record)

    def say(self, words: str) -> None:
        """Show a few words for a while, below those that are there."""
        if words:
            self._hud.toast.add(words)
            self.controller.stale = True

    def _steps_of(self, model: ShownModel) -> StageSteps:
        settings = self.controller.settings
        self.controller.check_model(model)
        looks = chosen_look_of(settings), refinement_of(settings)
        return all_stages_in_steps(self.parts.shared, model, *looks, companions_of(settings))
