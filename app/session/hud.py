"""Shows on the screen, over the picture, what a session has to tell."""

from collections.abc import Callable, Iterator
from time import perf_counter_ns

from ..frame.stages.frame_figures import Figures
from ..overlay import panel
from ..overlay.controls import SETTINGS_TITLE
from ..overlay.gui import free_area
from ..overlay.performance import Facts, FigureLook, performance
from ..overlay.timeline import TIMELINE_EM
from ..settings.settings import Verb
from ..window.fading import Fading
from ..window.keys import TABLES, help_rows
from ..window.screen import Part
from ..window.toast import Toast
from .seek_bar import SeekBar

_HINT = "? shows the keys, p the settings"
_HINT_S = 4.0


class Hud:
    """Everything that is written over the picture. What is to be seen is set before each picture."""

    def __init__(
        self, figures: Figures, facts: Callable[[], Facts], verb: Verb, seek_bar: SeekBar | None = None,
        captions: Callable[[bool], Part | None] = lambda with_rates: None,
        time_ns: Callable[[], int] = perf_counter_ns,
    ) -> None:  # fmt: skip
        """`captions` are over the pictures of a grid: what is wrong, and rates if figures are to be seen.

        `time_ns` tells how long words have been seen.
        """
        self.toast, self.hint, self.seek_bar = Toast(time_ns), Fading(_HINT_S, time_ns), seek_bar
        self.help = False
        self.signal = ""  # what is wrong with the camera
        self.status, self.recording = "", ""  # one line, and what is being recorded
        self._figures, self._facts, self._keys, self._captions = figures, facts, TABLES[verb], captions

    def changes_s(self, seen_s: float) -> float | None:
        """When it looks different by itself from how it looked at a time, in seconds of its clock; None: never."""
        times_s = self.hint.changes_s(seen_s), self.seek_bar.changes_s(seen_s) if self.seek_bar else None
        return min((at_s for at_s in times_s if at_s is not None), default=None)

    def parts(self, look: FigureLook | None, controls: Part | None) -> tuple[Part, ...]:
        """What to draw now: with figures, unless there is the help, and with the panel of settings, if wanted."""
        taken_by = SETTINGS_TITLE if controls else ""
        bar = self.seek_bar if self.seek_bar and self.seek_bar.alpha and not self.help else None
        status = self.status if look and not (bar or self.help) else ""
        parts: list[Part] = [controls] if controls else []  # others make room for it
        if captions := self._captions(look is not None and not self.help):
            parts.append(captions)
        if look and not self.help:
            facts = self._facts()
            footer_em = TIMELINE_EM if bar or status or self.recording else 0.0
            parts.append(lambda: performance(self._figures, facts, look, free_area(taken_by, footer_em)))
        if bar:
            parts.append(lambda: bar.draw(free_area(taken_by, row_em=TIMELINE_EM)))
        if status or self.recording:
            parts.append(lambda: panel.status(status, self.recording))
        at_top = look is not None and look.corner.startswith("bottom") and not self.help

        def message(words: str, alpha: float = 1.0) -> None:
            panel.message(words, alpha, free_area(taken_by) if taken_by else None, at_top)

        return (*parts, *self._messages(bar is not None and bar.pointed, message))

    def _messages(self, pointed: bool, message: Callable[..., None]) -> Iterator[Part]:
        """What is in front of everything; `pointed`: the bar says something where the hint would be."""
        if self.signal:
            yield lambda: panel.signal(self.signal)
        if self.toast.words:
            yield lambda: message(self.toast.words)
        elif (alpha := self.hint.alpha) and not (self.help or self.signal or pointed):
            yield lambda: message(_HINT, alpha)
        if self.help:
            yield lambda: panel.key_list(help_rows(self._keys))
