"""Chooses the sound of live recordings: a microphone's, else the source's own."""

from dataclasses import dataclass

from ..capture.microphone import Microphone
from ..capture.sound_device import open_microphone
from ..media.sound_encoder import SoundTrack
from ..session.clock import NewestWins
from ..session.grid_clock import GridClock
from ..settings.settings import Settings


@dataclass
class LiveSound:
    """What is heard while a source is open, whose capture may be another one after it was closed for a while.

    While it is `muted`, recordings have silence.
    """

    clock: NewestWins | GridClock
    microphone: Microphone | None = None
    muted: bool = False

    def track(self) -> SoundTrack | None:
        """For a recording that begins now; None where there is nothing to hear. The first picture has come."""
        history = self.microphone.history if self.microphone else self.clock.sound
        if not history or not history.expected:
            return None
        return SoundTrack(history, self.clock.start_ns, lambda: self.muted)

    def lines(self) -> list[str]:
        """Lines for the user since the last call."""
        return self.microphone.lines() if self.microphone else []


def microphone_of(settings: Settings) -> Microphone | None:
    """The one that is wanted, open. Raises SourceError."""
    return open_microphone(settings.microphone) if settings.sound and settings.microphone else None
