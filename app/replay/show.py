"""A recording, a model and a person's wishes go in; a window opens, everything is compiled in its sight, it plays.

with open_show(source, model, wishes, console) as show:
    pipeline = show.pipeline(outputs)
    with show.player(pipeline, figures, observe) as player:
        player.run(stopped)
"""

import contextlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

from texelflow.gpu_delegate.context import DRAWING, REQUIRED
from texelflow.gpu_delegate.errors import DeviceError
from texelflow.gpu_delegate.layout import Precision

from ..console import Console
from ..frame.backdrop import Backdrop
from ..frame.canvas import Canvas
from ..frame.gl_path import GlPath
from ..frame.looks import Choice
from ..frame.machine import Machine, machine_in
from ..frame.pipeline import FrameRecord, Pipeline, Stage
from ..frame.segmenter import CpuSegmenter, segmenter_in_steps
from ..frame.targets import OffscreenTarget
from ..media.feed import Feed
from ..media.seeking import SeekableSource
from ..models.loading import SegmentationModel
from ..overlay.gui import Gui
from ..picture.preprocess import Fit
from ..window.loading_screen import LoadingScreen
from ..window.screen import Part, Screen
from ..window.screenshots import Screenshots
from ..window.window import Window
from .pacing import Pacer
from .playback import Playback
from .player import Player


@dataclass(frozen=True)
class Wishes:
    """How a recording is to be played."""

    backend: str
    fit: Fit
    precision: Precision
    choice: Choice
    speed: float = 1.0
    loop: bool = False
    overlay: bool = False
    recorded: bool = False  # then no frame is dropped, and there is no seeking
    records_opaque: bool = False  # pictures are recorded without their transparency


class Show:
    """An open window with everything in it compiled; made by open_show."""

    def __init__(
        self, source: SeekableSource, feed: Feed, window: Window, gui: Gui, machine: Machine,
        segmenter: GlPath | CpuSegmenter, wishes: Wishes, stack: contextlib.ExitStack,
    ) -> None:  # fmt: skip
        """What it makes is freed by the stack. Raises DeviceError."""
        context, size = window.context, source.format.upright_size
        self.machine, self.segmenter = machine, segmenter
        self.target = OffscreenTarget(context, size)
        stack.callback(self.target.release)
        backdrop = Backdrop(context, size, wishes.choice.background, waits=wishes.recorded)
        stack.callback(backdrop.release)
        self.canvas = Canvas(context, segmenter, self.target, wishes.fit, wishes.choice, backdrop=backdrop)
        stack.callback(self.canvas.release)
        self.source, self.window = source, window
        self._feed, self._wishes = feed, wishes
        self._screen = Screen(window, gui, self.canvas, _aspect(source))

    def pipeline(self, outputs: Sequence[Stage] = ()) -> Pipeline:
        """The way of a frame to the screen; outputs take its picture before it is drawn there."""
        stages = [*self.segmenter.stages, self.canvas.stage, *outputs, *self._screen.stages]
        return Pipeline(stages, self.window.context, lambda: self.segmenter.uploaded_bytes + self.canvas.uploaded_bytes)

    @contextlib.contextmanager
    def player(self, pipeline: Pipeline, figures: Part, observe: Callable[[FrameRecord], None]) -> Iterator[Player]:
        """What plays the recording in the window: call its run(), once.

        `figures` draws the overlay; `observe` gets a record for each new frame that went through the pipeline.
        """
        wishes, path = self._wishes, Path(self.source.info.path)
        pacer = Pacer(wishes.speed, keeps_all=wishes.recorded)
        shots = Screenshots(self.window.context, self.target, path, Path())
        with contextlib.closing(shots):
            playback = Playback(self.source, self._feed, pacer, wishes.loop)
            player = Player(self.window, self._screen, playback, pipeline, self.canvas, shots, figures, observe)
            player.overlay, player.records_opaque = wishes.overlay, wishes.records_opaque
            yield player


@contextlib.contextmanager
def open_show(source: SeekableSource, model: SegmentationModel, wishes: Wishes, console: Console) -> Iterator[Show]:
    """Open a window and compile there. Raises WindowClosedError if the person closes it before that is done.

    Raises TexelflowError: no display, OpenGL too old, a model that does not run on the GPU.
    """
    with contextlib.ExitStack() as stack:
        window = stack.enter_context(_open_window(source, wishes))
        feed = stack.enter_context(contextlib.closing(Feed(source)))
        gui = Gui(window.context)
        stack.callback(gui.release)
        machine = machine_in(window.context, wishes.backend, console)
        steps = segmenter_in_steps(machine, model, source.format, wishes.fit, wishes.precision)
        with LoadingScreen(window, gui, feed.peek, _aspect(source)) as start:
            segmenter = start.run(steps, f"compiling shaders for {model.name}")
        stack.callback(segmenter.release)
        yield Show(source, feed, window, gui, machine, segmenter, wishes, stack)


def _aspect(source: SeekableSource) -> Fraction:
    """Width divided by height of the whole frame as displayed."""
    return Fraction(*source.format.upright_size) * source.info.sample_aspect_ratio


def _open_window(source: SeekableSource, wishes: Wishes) -> Window:
    """With OpenGL that computes, or where the network runs elsewhere or may do so, with OpenGL that draws."""
    (width, height), aspect = source.format.upright_size, source.info.sample_aspect_ratio
    size = (round(width * aspect), height) if aspect > 1 else (width, round(height / aspect))
    title = Path(source.info.path).name
    if wishes.backend == "cpu":
        return Window(size, title, DRAWING)
    try:
        return Window(size, title, REQUIRED)
    except DeviceError:
        if wishes.backend == "gl":
            raise
        return Window(size, title, DRAWING)
