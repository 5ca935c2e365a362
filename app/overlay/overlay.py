"""A stage that draws the performance panel into a target, without any window."""

from collections.abc import Callable

from texelflow.gpu_delegate.targets.gl.context import Context

from ..frame.stages.frame_figures import OVERLAY, Figures
from ..frame.stages.frame_pipeline import Stage
from ..frame.textures.offscreen_target import on_opengl
from ..frame.textures.picture_device import Target
from ..media.sources import VideoFrame
from . import panel
from .gui import Gui, free_area
from .performance import Facts, FigureLook, performance

_USUAL_HEIGHT = 720  # of pictures; in larger ones text grows with them, since people see them as large as these


class Overlay:
    """Draws the performance panel into a target. `stage` comes after the one that draws the picture."""

    def __init__(
        self, context: Context, target: Target, figures: Figures, facts: Callable[[], Facts], look: FigureLook,
        captions: Callable[[bool], Callable[[], None] | None] = lambda with_rates: None,
    ) -> None:  # fmt: skip
        """`facts`, and what several cameras' pictures are to have on them, are asked for each picture.

        Raises DeviceError if Dear ImGui cannot be loaded.
        """
        self.look = look
        self.stage = Stage(OVERLAY, self._draw)
        self._gui, self._target, self._figures, self._facts = Gui(context), target, figures, facts
        self._captions = captions

    def release(self) -> None:
        """Free Dear ImGui."""
        self._gui.release()

    def _draw(self, frame: VideoFrame) -> None:
        target, facts = self._target, self._facts()
        where = f"frame {frame.index}   {frame.time_ms / 1e3:.3f} s"
        scale = max(1.0, target.size[1] / _USUAL_HEIGHT)
        captions = self._captions(True)
        parts = (
            *([captions] if captions else []),
            lambda: performance(self._figures, facts, self.look, free_area(footer_em=panel.STATUS_EM)),
            lambda: panel.status(where),
        )
        picture = on_opengl(target)
        self._gui.draw(picture.framebuffer, picture.size, scale, parts)
        picture.overdrawn += 1
