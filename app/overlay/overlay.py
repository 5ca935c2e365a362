"""Records of frames go in; a picture that is to be recorded gets their figures written over it, as a stage."""

from app.frame.pipeline import FrameRecord, Stage
from app.frame.targets import OffscreenTarget
from app.media.sources import VideoFrame
from app.overlay import panel
from app.overlay.figures import OVERLAY, Figures
from app.overlay.gui import Gui
from app.overlay.panel import Facts
from gpu_delegate.context import Context


class Overlay:
    """Draws into one target, in the context's thread."""

    def __init__(self, context: Context, target: OffscreenTarget, facts: Facts) -> None:
        """Raises DeviceError if Dear ImGui cannot be loaded."""
        self._gui, self._target, self._facts = Gui(context), target, facts
        self._figures = Figures()
        self.stage = Stage(OVERLAY, self._draw)

    def add(self, record: FrameRecord) -> None:
        """One more frame to be told of; what is drawn is about those before."""
        self._figures.add(record)

    def _draw(self, frame: VideoFrame) -> None:
        target = self._target
        self._gui.draw(target.framebuffer, target.size, 1.0, [lambda: panel.performance(self._figures, self._facts)])

    def release(self) -> None:
        """Free what draws."""
        self._gui.release()
