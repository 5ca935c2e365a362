"""What a session has to tell goes in; it stands on the screen, over the picture."""

from collections.abc import Callable

from ..frame.figures import Figures
from ..overlay import panel
from ..settings.settings import Verb
from ..window.keys import TABLES, help_rows
from ..window.screen import Part
from ..window.toast import Toast


class Hud:
    """Everything that is written over the picture. What is to be seen is set before each picture."""

    def __init__(self, figures: Figures, facts: Callable[[], panel.Facts], verb: Verb) -> None:
        self.toast = Toast()
        self.help = False
        self.signal = ""  # what is wrong with the camera
        self.status, self.recording = "", ""  # one line, and what is being recorded
        self._figures, self._facts, self._keys = figures, facts, TABLES[verb]

    def parts(self, overlay: bool, controls: Part | None) -> tuple[Part, ...]:
        """What to draw now, from the bottom to the top: with figures, and with the panel of settings, if wanted."""
        parts: list[Part] = []
        if overlay:
            facts = self._facts()
            parts.append(lambda: panel.performance(self._figures, facts))
        if (overlay and self.status) or self.recording:
            status = self.status if overlay else ""
            parts.append(lambda: panel.status(status, self.recording))
        if self.signal:
            parts.append(lambda: panel.signal(self.signal))
        if self.toast.words:
            parts.append(lambda: panel.message(self.toast.words))
        if self.help:
            parts.append(lambda: panel.key_list(help_rows(self._keys)))
        if controls:
            parts.append(controls)
        return tuple(parts)
