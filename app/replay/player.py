"""A window, a playback and a pipeline go in; they run together until the end: keys, the frame that is due, figures."""

from collections.abc import Callable
from dataclasses import replace
from time import perf_counter_ns

from ..frame.canvas import Canvas
from ..frame.effects import EFFECTS, effect_by_number
from ..frame.pipeline import FrameRecord, Pipeline
from ..media.sources import VideoFrame
from ..overlay import panel
from ..window.keys import Command, Key, action_of, help_rows
from ..window.screen import Part, Screen
from ..window.screenshots import Screenshots
from ..window.toast import Toast
from ..window.window import Window
from .pacing import Shown
from .playback import Playback

_IDLE_S = 0.25  # how long a signal may go unheard while nothing moves
_SHOT_S = 0.02


class Player:
    """Plays in one window. All of it happens in the thread of the window's context."""

    def __init__(
        self,
        window: Window,
        screen: Screen,
        playback: Playback,
        pipeline: Pipeline,
        canvas: Canvas,
        screenshots: Screenshots,
        figures: Callable[[], None],
        observe: Callable[[FrameRecord], None],
    ) -> None:
        """`figures` draws the overlay; `observe` gets the record of each frame that went through the pipeline."""
        self._window, self._screen, self.playback = window, screen, playback
        self._pipeline, self._canvas, self._screenshots = pipeline, canvas, screenshots
        self._figures, self._observe = figures, observe
        self._drawn: VideoFrame | None = None  # the frame that the screen shows
        self.stale = False  # whether it has to be drawn again
        self.caption = Toast()
        self.overlay, self.help, self._quit = False, False, False
        self.records_opaque = False  # whether pictures are recorded without their transparency
        self._touched = False  # whether any key has done anything
        self._commands: dict[Command, Callable[[int], str]] = {
            "pause": lambda _: playback.pause(perf_counter_ns()),
            "step": playback.step,
            "jump": playback.jump_by,
            "seek": playback.seek_by,
            "go": playback.go,
            "speed": lambda direction: playback.change_speed(direction, perf_counter_ns()),
            "mark": playback.mark,
            "loop": lambda _: playback.toggle_loop(),
            "effect": self._change_effect,
            "overlay": lambda _: self._toggle_overlay(),
            "help": lambda _: self._toggle_help(),
            "screenshot": lambda _: self._take_screenshot(),
            "fullscreen": lambda _: self._toggle_fullscreen(),
            "leave": lambda _: self._leave(),
            "quit": lambda _: self._end(),
        }

    def run(self, stopped: Callable[[], bool]) -> None:
        """Until the person quits or closes the window, or `stopped` says so. Raises what decoding and drawing raise."""
        while not (self._quit or self._window.closed or stopped()):
            for key in self._window.events(self._patience_s()):
                self._obey(key)
            was_paused, due = self.playback.paused, self.playback.due(perf_counter_ns())
            if self.playback.paused and not was_paused:
                self._say("the end")
            if due:
                self._show(*due)
            elif self._to_be_redrawn:
                self._redraw()
            for line in self._screenshots.collect():
                self._say(line)
            self.stale |= self.caption.expired()
        for record in self._pipeline.drain():
            self._observe(record)

    @property
    def untouched_at_end(self) -> bool:
        """Whether all has been shown to somebody who did no more than watch."""
        return self.playback.at_end and not self._touched

    @property
    def _to_be_redrawn(self) -> bool:
        seen = self.playback.frame is not None and not self._window.minimised
        return seen and (self.stale or self._window.damaged)

    def _patience_s(self) -> float:
        """How long nothing but events can happen."""
        if self._to_be_redrawn:
            return 0.0
        shot_s = _SHOT_S if self._screenshots.pending else None
        waits = self.playback.wait_s(perf_counter_ns()), self.caption.left_s, shot_s
        return min([_IDLE_S, *(wait for wait in waits if wait is not None)])

    # Pictures -------------------------------------------------------------------------------------------------------

    def _show(self, frame: VideoFrame, shown: Shown) -> None:
        """A new frame through the pipeline; in a window that nobody sees only if it is being recorded."""
        if self._window.minimised and not self.playback.pacer.keeps_all:
            return
        self._lay_out()
        self._pipeline.submit(frame, shown.dropped, shown.repeated)
        self._drawn, self.stale = frame, False
        for record in self._pipeline.completed():
            self._observe(record)

    def _redraw(self) -> None:
        """The frame at hand again, which counts for nothing."""
        frame = self.playback.frame
        assert frame is not None
        if frame is not self._drawn:  # it came while the window was minimised
            self._show(frame, Shown(0, 0))
            return
        self._lay_out()
        self._canvas.stage.run(frame)
        self._screen.redraw()
        self.stale = False

    def _lay_out(self) -> None:
        """What is written over the picture now."""
        parts: list[Part] = []
        if self.overlay:
            status = self.playback.describe(self._canvas.look.effect)
            parts += [self._figures, lambda: panel.status(status)]
        if message := self.caption.words:
            parts.append(lambda: panel.message(message))
        if self.help:
            parts.append(lambda: panel.key_list(help_rows()))
        self._screen.parts = tuple(parts)

    # Commands -------------------------------------------------------------------------------------------------------

    def _obey(self, key: Key) -> None:
        action = action_of(key)
        if action and not (key.repeated and self.playback.busy):
            self._touched = True
            self._say(self._commands[action.command](action.value))
            self.stale = True

    def _say(self, words: str) -> None:
        """Show a few words for a while."""
        if words:
            self.caption.say(words)
            self.stale = True

    def _change_effect(self, number: int) -> str:
        look = self._canvas.look
        effect = effect_by_number(number, look.effect)
        if effect is None:
            return f"there are effects 1 to {len(EFFECTS)}"
        self._canvas.look = replace(look, effect=effect)
        whole = effect == "cutout" and self.records_opaque
        return f"effect {effect}" + ("; the recording keeps the whole picture" if whole else "")

    def _take_screenshot(self) -> str:
        if self._drawn is None:
            return ""
        self._canvas.stage.run(self._drawn)  # the effect may have changed since it was drawn
        self._screenshots.take(self._drawn.index, alpha=self._canvas.look.effect == "cutout")
        return ""

    def _toggle_overlay(self) -> str:
        self.overlay = not self.overlay
        return ""

    def _toggle_help(self) -> str:
        self.help = not self.help
        return ""

    def _toggle_fullscreen(self) -> str:
        self._window.toggle_fullscreen()
        return ""

    def _leave(self) -> str:
        return self._toggle_fullscreen() if self._window.fullscreen else self._end()

    def _end(self) -> str:
        self._quit = True
        return ""
