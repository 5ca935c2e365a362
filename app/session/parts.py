"""The parts of a session as one object, and the facts and captions that the overlay shows of them."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter_ns

from ..frame.stages.frame_figures import Figures
from ..outputs.frame_outputs import Outputs
from ..outputs.screenshots import Screenshots
from ..overlay.captions import captions, cell_on_screen
from ..overlay.gallery import Gallery
from ..overlay.overlay import Overlay
from ..overlay.overlay_placement import ScreenArea
from ..overlay.performance import Facts
from ..settings.settings import Verb
from ..window.screen import Part
from .clock import FrameClock
from .frame_parts import FrameParts
from .grid_clock import GridClock
from .playback import Playback
from .view import View


@dataclass(kw_only=True)
class SessionParts(FrameParts):
    """What a session is made of; whoever opened it frees it, and replaces what belongs to a context that is lost."""

    verb: Verb
    view: View
    clock: FrameClock
    outputs: Outputs
    figures: Figures
    screenshots: Screenshots | None = None  # None without a window
    overlay: Overlay | None = None  # in recordings, where there is no window
    gallery: Gallery | None = None  # None without a window
    time_ns: Callable[[], int] = perf_counter_ns  # by which words are shown, and keys pressed a second time

    @property
    def playback(self) -> Playback | None:
        """The clock, where the user controls it."""
        return self.clock if isinstance(self.clock, Playback) else None

    @property
    def cameras(self) -> GridClock | None:
        """The clock, where it is that of several cameras."""
        return self.clock if isinstance(self.clock, GridClock) else None


def facts_of(parts: SessionParts) -> Facts:
    """What the overlay tells besides figures."""
    compute, segmenter = parts.stages.current.compute, parts.stages.current.segmenter
    return Facts(
        compute.renderer(segmenter.on_cpu), compute.backend, Path(parts.stages.name).name, segmenter.precision,
        segmenter.dispatches, parts.clock.budget_ms, parts.pipeline.timer_note,
    )  # fmt: skip


def areas_of(parts: SessionParts) -> tuple[ScreenArea, ...]:
    """Where the picture of each camera is in the window."""
    area, cameras = parts.view.picture_area, parts.cameras
    if cameras is None:
        return (area,)
    return tuple(cell_on_screen(place, cameras.grid, area) for place in cameras.grid.places)


def captions_of(parts: SessionParts, area: Callable[[], ScreenArea]) -> Callable[[bool], Part | None]:
    """What is to be written over each camera's picture, where there are several: what is wrong, or, if asked, rates.

    All of them together fill the area.
    """
    cameras = parts.cameras

    def captions_now(with_rates: bool) -> Part | None:
        if cameras is None or not (with_rates or cameras.state.troubles):
            return None
        return lambda: captions(cameras.camera("").cameras, cameras.grid, area(), with_rates)

    return captions_now
