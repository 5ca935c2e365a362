"""Applies keys, changes in the panel and in the file of settings to the parts of a session.

Whatever can be a setting is one: keys and the panel change settings, and the difference is what is done. Keys that
control playback go to it, where there is one.
"""

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from time import perf_counter_ns
from typing import Any

from texelflow.gpu_delegate.base.errors import TexelflowError, UsageError

from ..frame.looks.effects import BUILT_IN_BACKGROUNDS, HIDING_FACES, Effect, effect_by_number, shows_room
from ..models.finding_loading import ShownModel
from ..outputs.frame_outputs import OutputKind
from ..overlay.input_events import Input
from ..overlay.overlay_placement import ScreenArea
from ..settings.config_watch import ConfigWatch
from ..settings.gesture_actions import GESTURE_ACTIONS
from ..settings.settings import (
    MOST_ZOOM,
    PRIVATE_EFFECT,
    Settings,
    SettingValue,
    changed,
    parse_faces,
    parse_point,
    specs,
    while_running,
    with_background,
)
from ..tracking.auto_framing import FramingMode
from ..tracking.gesture_names import Gesture
from ..window.keys import TABLES, Action, Command, Key, action_of
from .abilities import effects_of_model, lacks_effect
from .derived import (
    chosen_look_of,
    figure_look_of,
    gestures_of,
    keeps_alpha,
    reach_of,
    refinement_of,
    seek_lead_of,
    work_of,
    writing_of,
)
from .hud import Hud
from .model_stages import makes_masks
from .parts import SessionParts
from .picture_mouse import ZOOM_STEP, PictureMouse, Pointed, ZoomedPart
from .playback import Playback
from .room_guard import RoomGuard, Shown, hiding, opened_by, shown_to

_OUTPUTS: Mapping[str, OutputKind] = {  # by setting
    "out": "recording",
    "masks": "masks",
    "cutouts": "cutouts",
    "virtual_camera": "virtual camera",
}
_OF_FIGURES = {"overlay", "overlay_style", "overlay_corner", "overlay_scale"}
_SEEN = {*_OF_FIGURES, "panel", "fullscreen", "pan", "model", "small_model", *_OUTPUTS}  # what needs no words
_OF_PICTURES = {spec.name for spec in specs() if spec.section in ("picture", "framing")} - {"gestures"}
_REOPENING = {spec.name for spec in specs() if spec.changes == "reopens camera"}
_LABELS = {spec.name: spec.label for spec in specs()}
_COMPLAINT_S = 6.0
_NEXT_FRAMING: Mapping[FramingMode, FramingMode] = {"off": "person", "person": "group", "group": "off"}
_PAN_STEP = 0.08  # by one press: of what is seen


class Controller:
    """Keeps the settings, and has the parts of one session follow them. Belongs to the context's thread.

    `left`: the user has quit; `reopens`: there are settings for which the session has to begin anew; `touched`: a key
    or the seek bar has done something; uses_small_model: the user wants the small model for now.
    """

    def __init__(
        self,
        settings: Settings,
        watch: ConfigWatch,
        parts: SessionParts,
        check_files: Callable[[Settings], None],
    ) -> None:
        """The stages have been made by these settings. check_files raises for outputs that may not be written."""
        self.settings = settings
        self.left = self.reopens = self.touched = self.uses_small_model = False
        self.stale = True  # whether the screen has to be drawn again
        self._watch, self._parts, self._check_files = watch, parts, check_files
        self._keys = TABLES[parts.verb]
        self._guard = RoomGuard(settings.private, watch.settings.effect)
        self._cycles = False  # whether the effect that was asked for last is the next one, not one by its number
        self._mouse = PictureMouse()
        self._hud: Hud
        self._note: Callable[[str], None]
        self._commands: dict[Command, Callable[[Action], None]] = {
            "effect": self._change_effect,
            "toggle": self._toggle,
            "overlay": self._change_overlay,
            "fullscreen": self._toggle,
            "model": self._change_model,
            "zoom": self._change_zoom,
            "pan": self._change_pan,
            "frame": self._change_frame,
            "background": self._change_background,
            "record": self._toggle_recording,
            "help": self._toggle_help,
            "leave": self._leave,
            "quit": self._quit,
        }
        if parts.playback:
            self._commands |= self._of_playback(parts.playback)

    def begin(self, hud: Hud, screenshot: Callable[[], None], note: Callable[[str], None]) -> None:
        """Do what settings ask for before the first frame. Raises TexelflowError.

        `screenshot` takes one; `note` gets what is to be read outside of a window.
        """
        self._hud, self._note = hud, note
        self._commands["screenshot"] = lambda _: screenshot()
        self._set_clock()
        self._parts.outputs.mute(self.settings.mute)
        for name in _OUTPUTS:
            if getattr(self.settings, name):
                self._begin(name)
        self._guard.allow(self._shown_by(self.settings))
        if self.settings.fullscreen and not self._parts.view.fullscreen:
            self._parts.view.toggle_fullscreen()

    def press(self, key: Key) -> None:
        """Do what a key is for."""
        self._hud.hint.fade()
        action, playback = action_of(key, self._keys), self._parts.playback
        if action and not (key.repeated and playback and playback.busy):
            self.touched = self.stale = True
            self._commands[action.command](action)

    def point(self, inputs: Sequence[Input], areas: Sequence[ScreenArea]) -> None:
        """Do what the mouse did to the picture, or to one of several, which are there in the window."""
        settings = self.settings
        before = ZoomedPart(settings.zoom, parse_point(settings.pan))
        part, clicks = self._mouse.follow(inputs, areas, before)
        if part != before:
            self.touched = True
            self.change(zoom=round(part.zoom, 3), pan=f"{part.center[0]:.4f},{part.center[1]:.4f}")
        for click in clicks:
            self._turn_face(click)

    def _turn_face(self, click: Pointed) -> None:
        """Open the hidden face that was clicked, or close it.

        A window may be clicked to get at it: what uncovers somebody takes a second click, once numbers are shown.
        """
        number = self._parts.stages.face_at(click.x, click.y)
        if self.settings.effect not in HIDING_FACES or not number:
            return
        self.touched = True
        if not self.settings.face_numbers:
            self.change(face_numbers=True)
            self._say("click a face to open it, or to close it again")
        else:
            opened = sorted(parse_faces(self.settings.open_faces) ^ {number})
            self.change(open_faces=",".join(map(str, opened)))

    def obey(self, gesture: Gesture) -> None:
        """Do what a gesture is for, and say so."""
        name = gestures_of(self.settings)[gesture]
        action = action_of(Key(GESTURE_ACTIONS[name], ""), self._keys)
        if action:
            self.touched = self.stale = True
            self._commands[action.command](action)
            self._hud.toast.add(f"{gesture.replace('-', ' ')}: {name.replace('-', ' ')}")

    def poll(self, now_ns: int) -> None:
        """Apply what has changed in the file."""
        found = self._watch.poll(now_ns, self.settings)
        if isinstance(found, str):
            self.complain(found)
        elif found is not None:
            settings, waiting = while_running(self.settings, found)
            self._say("settings read again")
            if settings.private and not self.settings.private:
                self._become_private()
            self.adopt(self._without_room(settings))
            if waiting:
                self.complain(f"settings read again; what takes effect after restart: {', '.join(waiting)}")

    def _become_private(self) -> None:
        """Go on as a session that began as a private one; what shows the room with any effect is not recorded on."""
        self._guard.is_private = True
        self.settings = replace(self.settings, private=True, freeze=False)
        self.adopt(hiding(self.settings, self._shown_by(self.settings), PRIVATE_EFFECT))
        self.set_look()
        self.end_what_shows_room()

    def _without_room(self, settings: Settings) -> Settings:
        """What the file says, but for what a private session cannot have, of which it is told."""
        before, shown = self.settings, self._shown_by(settings)
        is_named = (settings.effect, settings.side_by_side) != (before.effect, before.side_by_side)
        line = self._guard.name(shown) if is_named or settings.private else ""
        if not line:
            return settings
        self.complain(line)
        return hiding(settings, shown, before.effect)

    def change(self, **values: SettingValue) -> None:
        """Change some settings; values must be valid."""
        self.adopt(replace(self.settings, **values))  # type: ignore[arg-type]  # any of them

    def adopt(self, settings: Settings) -> None:
        """Apply other settings: only what differs is done."""
        before = self.settings
        names = {*changed(before, settings)}
        if not names:
            return
        self.stale = True
        if line := self._guard.objection(self._shown_by(settings), self._parts.time_ns()):
            self._say(line)
            return
        if names & _OF_PICTURES - {"freeze"}:  # a held picture cannot follow, and may show what is to be seen no more
            settings = replace(settings, freeze=False)
        self.settings = settings
        if names & _REOPENING:
            self.reopens = True
            return
        self.set_look()
        workload = self._parts.workload
        if (work := work_of(settings)) != workload.work:
            workload.work = work
        writing = self._parts.outputs.writing
        self._parts.outputs.writing = writing_of(settings, writing.made_by, writing.pipes_pictures)
        self._parts.outputs.mute(settings.mute)
        self._follow_outputs(names)
        if self._parts.overlay:
            self._parts.overlay.look = figure_look_of(settings)
        if "fullscreen" in names and settings.fullscreen != self._parts.view.fullscreen:
            self._parts.view.toggle_fullscreen()
        self._tell(names)

    def complain(self, words: str) -> None:
        """Tell what is wrong: on the screen, and outside of it where nobody sees that."""
        self._hud.toast.add(words, _COMPLAINT_S)
        self.stale = True
        if not self._parts.view.seen:
            self._note(words)

    # Pictures -------------------------------------------------------------------------------------------------------

    def set_look(self) -> None:
        """Have the stages that run draw as settings say."""
        stages, settings = self._parts.stages, self.settings
        stages.set_look(chosen_look_of(settings), refinement_of(settings))
        if stages.name == settings.model or not settings.small_model:  # masks are no smaller form of a picture
            has_masks = makes_masks(stages.current.segmenter)
            self._parts.workload.has_small_model = has_masks and bool(settings.small_model)
        self._set_clock()

    def _set_clock(self) -> None:
        clock, playback = self._parts.clock, self._parts.playback
        current = self._parts.stages.current
        clock.reach = reach_of(self.settings)
        clock.looks_ahead = current.uses_hindsight and refinement_of(self.settings).delay > 0
        if playback:
            playback.lead = seek_lead_of(self.settings, current.remembers) if current.refiner else 0

    def _change_effect(self, action: Action) -> None:
        stages, outputs = self._parts.stages, self._parts.outputs
        passed = self._guard.passed_over(self._parts.time_ns()) if self._cycles else None
        effect = effect_by_number(action.value, passed or self.settings.effect, self.effects)
        self._cycles = not action.value
        if effect not in (able := stages.canvas.effects):
            self._say(f"effect {effect}: {lacks_effect(effect, Path(stages.name).name, able)}")
            return
        self.change(effect=effect)
        if self.settings.effect == "cutout" and "recording" in outputs.active and not outputs.keeps_alpha:
            self._say(f"effect {effect}; the recording keeps the whole picture")

    @property
    def effects(self) -> tuple[Effect, ...]:
        """Those that may be chosen here, of those that the network is able to have."""
        able = self._parts.stages.canvas.effects
        return tuple(effect for effect in able if not (self._guard.is_private and shows_room(effect)))

    def check_model(self, model: ShownModel) -> None:
        """Raise UsageError for a model with which the room would be seen, unasked, by those who take pictures."""
        shown = self._shown_by(self.settings, effects_of_model(model))
        if not self._guard.may_show(shown):
            raise UsageError(f"{model.name} with effect {shown.effect} shows the room: end recordings first")

    def end_what_shows_room(self) -> None:
        """End what takes pictures where another model shows the room in them, unasked."""
        shown = self._shown_by(self.settings)
        if not self._guard.may_show(shown):
            for kind in shown.takers:
                self._parts.outputs.end(kind)
                self.complain(f"{Path(self._parts.stages.name).name} shows the room: {kind} ended")
            self.forget_ended()

    def _shown_by(
        self, settings: Settings, able: Sequence[Effect] | None = None, begins: OutputKind | None = None
    ) -> Shown:
        """What settings show to whom, by the network that runs, or one with other abilities."""
        outputs, stages = self._parts.outputs, self._parts.stages
        if able is None:
            able = stages.canvas.effects if stages.current.canvas else (settings.effect,)
        new = {name for name in changed(self.settings, settings) if getattr(settings, name)}
        begun = {*(kind for name, kind in _OUTPUTS.items() if name in new), *([begins] if begins else [])}
        alpha = outputs.keeps_alpha
        if "recording" in begun - {*outputs.active}:
            alpha = not begins and keeps_alpha(settings, outputs.writing.pipes_pictures)
        opened = opened_by(settings)
        return shown_to(settings.effect, able, {*outputs.active, *begun}, alpha, settings.side_by_side, opened)

    def _change_zoom(self, action: Action) -> None:
        """By steps, or back to all of the picture."""
        if action.value:
            self.change(zoom=round(min(max(self.settings.zoom * ZOOM_STEP**action.value, 1.0), MOST_ZOOM), 3))
        else:
            self.change(zoom=1.0, pan=Settings.pan)

    def _change_pan(self, action: Action) -> None:
        """As far as there is something to be seen."""
        zoom, point = self.settings.zoom, dict(zip("xy", parse_point(self.settings.pan), strict=True))
        moved = point[action.name] + action.value * _PAN_STEP / zoom
        point[action.name] = min(max(moved, 0.5 / zoom), 1 - 0.5 / zoom)
        self.change(pan=f"{point['x']:.3f},{point['y']:.3f}")

    def _change_frame(self, _: Action) -> None:
        self.change(frame=_NEXT_FRAMING[self.settings.frame])

    def _change_background(self, _: Action) -> None:
        """Of those that the model can be seen before."""
        if "replace" not in self.effects:
            self._say(f"effect replace: {lacks_effect('replace', Path(self._parts.stages.name).name, self.effects)}")
            return
        there, now = (*BUILT_IN_BACKGROUNDS,), self.settings.background
        following = there[(there.index(now) + 1) % len(there)] if now in there else there[0]
        self.adopt(with_background(self.settings, following))
        self._say(f"background {following}")

    def _change_overlay(self, _: Action) -> None:
        """None, a few, all, and none again."""
        is_on, style = self.settings.overlay, self.settings.overlay_style
        if is_on and style == "compact":
            self.change(overlay_style="full")
        else:
            self.change(overlay=not is_on, overlay_style="compact")

    def _change_model(self, _: Action) -> None:
        if not self.settings.small_model:
            self._say("no small model is set")
            return
        self.uses_small_model = not self.uses_small_model

    def reject_setting(self, model: str, complaint: str) -> None:
        """Take back a model that cannot be loaded; the one that runs goes on."""
        if self.uses_small_model:
            self.uses_small_model = False
        elif model != self.settings.model:  # the automatic mode has asked for it
            self.change(small_model="")
        else:
            self.change(model=self._parts.stages.name)
        self.complain(complaint)

    # Playback -------------------------------------------------------------------------------------------------------

    def _of_playback(self, playback: Playback) -> dict[Command, Callable[[Action], None]]:
        """What keys do that are for a recording; each answers with a few words, or with nothing to say."""
        commands: dict[Command, Callable[[int], str]] = {
            "pause": lambda _: playback.pause(perf_counter_ns()),
            "step": playback.step,
            "jump": playback.jump_by,
            "seek": playback.seek_by,
            "go": playback.go,
            "speed": lambda direction: playback.change_speed(direction, perf_counter_ns()),
            "mark": playback.mark,
            "loop": lambda _: playback.toggle_loop(),
        }

        def saying(command: Callable[[int], str]) -> Callable[[Action], None]:
            return lambda action: self._say(command(action.value))

        return {name: saying(command) for name, command in commands.items()}

    # Outputs --------------------------------------------------------------------------------------------------------

    def _toggle_recording(self, _: Action) -> None:
        outputs = self._parts.outputs
        if "recording" in outputs.active:
            outputs.end("recording", complete=True)
            self.forget_ended()
        elif line := self._guard.objection(self._shown_by(self.settings, begins="recording"), self._parts.time_ns()):
            self._say(line)
        else:
            with self._complaining():
                outputs.begin_recording()

    def _follow_outputs(self, names: set[str]) -> None:
        """Begin or end those whose settings have changed."""
        for name in [name for name in _OUTPUTS if name in names]:
            with self._complaining():
                if getattr(self.settings, name):
                    self._begin(name)
                else:
                    self._parts.outputs.end(_OUTPUTS[name], complete=True)
        if names & _OUTPUTS.keys():
            self.forget_ended()

    def forget_ended(self) -> None:
        """Take outputs that have ended out of the settings."""
        self.settings = replace(self.settings, **self._idle())

    def _begin(self, name: str) -> None:
        """Raises TexelflowError: the output cannot be had, or its file is one that is read, or written already."""
        settings, outputs = self.settings, self._parts.outputs
        self._check_files(replace(settings, **self._idle(besides=name)))
        path, replaces = Path(str(getattr(settings, name))), self._parts.clock.keeps_all
        if name in ("masks", "cutouts") and not self._parts.stages.has_mask:
            model = Path(self._parts.stages.name).name
            raise UsageError(f"{model} puts out a picture and has no mask: no {name} are recorded")
        if name == "out":
            outputs.begin_recording(
                path, replaces=replaces, alpha=keeps_alpha(settings, outputs.writing.pipes_pictures)
            )
        elif name == "masks":
            outputs.begin_masks(path, replaces=replaces)
        elif name == "cutouts":
            outputs.begin_cutouts(path, replaces=replaces)
        else:
            outputs.begin_virtual_camera()

    def _idle(self, besides: str = "") -> dict[str, Any]:
        """Settings without the outputs that do not run."""
        active = self._parts.outputs.active
        return {
            name: getattr(Settings, name) for name, kind in _OUTPUTS.items() if kind not in active and name != besides
        }

    # Words ----------------------------------------------------------------------------------------------------------

    def _tell(self, names: set[str]) -> None:
        """Say in a few words what a key or the file has changed, unless the picture shows it anyway."""
        told = [*(names - _SEEN)]
        if len(told) == 1 and not self.settings.panel:
            value = getattr(self.settings, told[0])
            shown = ("off", "on")[value] if isinstance(value, bool) else value if value != "" else "none"
            self._say(f"{_LABELS[told[0]]} {shown}")

    def _say(self, words: str) -> None:
        if words:
            self._hud.toast.say(words)
            self.stale = True

    @contextlib.contextmanager
    def _complaining(self) -> Iterator[None]:
        try:
            yield
        except TexelflowError as error:
            self.complain(str(error))

    def _toggle_help(self, _: Action) -> None:
        self._hud.help = not self._hud.help

    def _toggle(self, action: Action) -> None:
        """A setting that is on or off; some commands have its name."""
        name = action.name or action.command
        self.change(**{name: not getattr(self.settings, name)})

    def _leave(self, action: Action) -> None:
        if self.settings.fullscreen or self._parts.view.fullscreen:
            self.change(fullscreen=False)
        else:
            self._quit(action)

    def _quit(self, _: Action) -> None:
        self.left = True
