"""What a person wants goes in, by keys, by the panel and by the file of settings; the parts of a session do it.

Whatever can be a setting is one: keys and the panel change settings, and the difference is what is done.
"""

import contextlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from texelflow.gpu_delegate.errors import TexelflowError

from ..files import settle
from ..frame.effects import EFFECTS, effect_by_number
from ..live.outputs import Kind, LiveOutputs
from ..settings.settings import Settings, Value, changed, specs, while_running
from ..settings.watch import Watch
from ..window.keys import LIVE, Action, Command, Key, action_of
from ..window.window import Window
from .derived import choice_of, files_of, refinement_of, work_of
from .hud import Hud
from .model_stages import Scenes
from .workload import Workload

_OUTPUTS: Mapping[str, tuple[Kind, Callable[[LiveOutputs, Path], None]]] = {  # by setting: what it is, what begins it
    "record": ("recording", LiveOutputs.begin_recording),
    "mattes": ("mattes", LiveOutputs.begin_mattes),
    "cutouts": ("cutouts", LiveOutputs.begin_cutouts),
    "virtual_camera": ("virtual camera", lambda outputs, _: outputs.begin_virtual_camera()),
}
_SEEN = {"overlay", "panel", "fullscreen", "model", "small_model", *_OUTPUTS}  # what needs no words when it changes
_REOPENING = {spec.name for spec in specs() if spec.changes == "reopens camera"}
_COMPLAINT_S = 6.0


class Controller:
    """Keeps the settings, and has the parts of one session follow them. Belongs to the context's thread.

    `left`: the person has seen enough; `reopens`: there are settings for which the session has to begin anew.
    """

    def __init__(
        self,
        settings: Settings,
        watch: Watch,
        window: Window,
        board: Hud,
        scenes: Scenes,
        outputs: LiveOutputs,
        workload: Workload,
        screenshot: Callable[[], None],
    ) -> None:
        """`screenshot` takes one. The scene has been made by these settings; outputs are begun here."""
        self.settings = settings
        self.left = self.reopens = False
        self.stale = True  # whether the screen has to be drawn again
        self._watch, self._window, self._board = watch, window, board
        self._scenes, self._outputs, self._workload = scenes, outputs, workload
        self._commands: dict[Command, Callable[[Action], None]] = {
            "effect": self._change_effect,
            "toggle": self._toggle,
            "overlay": self._toggle,
            "fullscreen": self._toggle,
            "model": self._change_model,
            "record": self._toggle_recording,
            "screenshot": lambda _: screenshot(),
            "help": self._toggle_help,
            "leave": self._leave,
            "quit": self._quit,
        }
        self._do_at_start()

    def obey(self, key: Key) -> None:
        """Do what a key is for."""
        if action := action_of(key, LIVE):
            self._commands[action.command](action)
            self.stale = True

    def follow(self, now_ns: int) -> None:
        """Do what has come to stand in the file."""
        found = self._watch.poll(now_ns, self.settings)
        if isinstance(found, str):
            self._complain(found)
        elif found is not None:
            settings, waiting = while_running(self.settings, found)
            self._say("settings read again")
            self.adopt(settings)
            if waiting:
                self._complain(f"settings read again; what changes only with the next start: {', '.join(waiting)}")

    def change(self, **values: Value) -> None:
        """Have other values of some settings, which must be valid."""
        self.adopt(replace(self.settings, **values))  # type: ignore[arg-type]  # any of them

    def adopt(self, settings: Settings) -> None:
        """Have these settings, and do what makes the difference."""
        before, self.settings = self.settings, settings
        names = {*changed(before, settings)}
        if not names:
            return
        self.stale = True
        if names & _REOPENING:
            self.reopens = True
            return
        self.dress()
        if (work := work_of(settings)) != self._workload.work:
            self._workload.work = work
        self._workload.has_small_model = bool(settings.small_model)
        for name in _OUTPUTS:
            if name in names:
                self._follow_output(name)
        if names & _OUTPUTS.keys():
            self.forget_ended()
        if "fullscreen" in names and settings.fullscreen != self._window.fullscreen:
            self._window.toggle_fullscreen()
        self._tell(names)

    def _do_at_start(self) -> None:
        """What settings ask for before the first frame. Raises TexelflowError: it cannot be had."""
        for name in _OUTPUTS:
            if getattr(self.settings, name):
                self._begin(name)
        if self.settings.fullscreen and not self._window.fullscreen:
            self._window.toggle_fullscreen()

    # Pictures -------------------------------------------------------------------------------------------------------

    def dress(self) -> None:
        """Have the scene that runs look as settings say; one that takes over was begun by those of that time."""
        choice, scene = choice_of(self.settings), self._scenes.current
        scene.canvas.look = choice.look
        scene.canvas.set_background(choice.background)
        scene.refiner.refinement = refinement_of(self.settings)

    def _change_effect(self, action: Action) -> None:
        effect = effect_by_number(action.value, self.settings.effect)
        if effect:
            self.change(effect=effect)
        else:
            self._say(f"there are effects 1 to {len(EFFECTS)}")

    def _change_model(self, _: Action) -> None:
        if not self.settings.small_model:
            self._say("no small model is set")
            return
        self.change(model=self.settings.small_model, small_model=self.settings.model)

    def do_without(self, model: str, complaint: str) -> None:
        """A model that settings name cannot be had; the one that runs goes on."""
        settings, running = self.settings, self._scenes.name
        if model != settings.model:  # the automatic mode has asked for it
            self.change(small_model="")
        elif running == settings.small_model:  # a key has
            self.change(model=running, small_model=model)
        else:
            self.change(model=running)
        self._complain(complaint)

    # Outputs --------------------------------------------------------------------------------------------------------

    def _toggle_recording(self, _: Action) -> None:
        if "recording" in self._outputs.active:
            self._outputs.end("recording")
            self.forget_ended()
        else:
            with self._complaining():
                self._outputs.begin_recording()

    def _follow_output(self, name: str) -> None:
        """Begin or end one whose setting has changed."""
        try:
            if getattr(self.settings, name):
                self._begin(name)
            else:
                self._outputs.end(_OUTPUTS[name][0])
        except TexelflowError as error:
            self._complain(str(error))

    def forget_ended(self) -> None:
        """Have settings say what is so of outputs that have ended by themselves."""
        self.settings = replace(self.settings, **self._idle())

    def _begin(self, name: str) -> None:
        """Raises TexelflowError: the output cannot be had, or its file is one that is read, or written already."""
        settings, begin = self.settings, _OUTPUTS[name][1]
        settle(files_of(replace(settings, **self._idle(besides=name)), self._watch.path))
        begin(self._outputs, Path(str(getattr(settings, name))))

    def _idle(self, besides: str = "") -> dict[str, Any]:
        """Settings without the outputs that do not run."""
        active = self._outputs.active
        return {
            name: getattr(Settings, name)
            for name, (kind, _) in _OUTPUTS.items()
            if kind not in active and name != besides
        }

    # Words ----------------------------------------------------------------------------------------------------------

    def _tell(self, names: set[str]) -> None:
        """What a key or the file has changed, in a few words; what is seen by itself is not told."""
        told = [*(names - _SEEN)]
        if len(told) == 1 and not self.settings.panel:
            value = getattr(self.settings, told[0])
            shown = ("off", "on")[value] if isinstance(value, bool) else value if value != "" else "none"
            self._say(f"{told[0].replace('_', ' ')} {shown}")

    def _say(self, words: str) -> None:
        self._board.caption.say(words)
        self.stale = True

    def _complain(self, words: str) -> None:
        self._board.caption.add(words, _COMPLAINT_S)
        self.stale = True

    @contextlib.contextmanager
    def _complaining(self) -> Iterator[None]:
        try:
            yield
        except TexelflowError as error:
            self._complain(str(error))

    def _toggle_help(self, _: Action) -> None:
        self._board.help = not self._board.help

    def _toggle(self, action: Action) -> None:
        """A setting that is on or off; some commands have its name."""
        name = action.name or action.command
        self.change(**{name: not getattr(self.settings, name)})

    def _leave(self, action: Action) -> None:
        if self.settings.fullscreen:
            self.change(fullscreen=False)
        else:
            self._quit(action)

    def _quit(self, _: Action) -> None:
        self.left = True
