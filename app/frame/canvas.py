"""A frame's textures and its mask on the device go in; a picture with an effect comes out in a target, as a stage."""

from app.frame.looks import Choice, default_background
from app.frame.pipeline import Stage
from app.frame.preprocess import Fit
from app.frame.render import Compositor, Look
from app.frame.segmenter import DrawableMask
from app.frame.targets import OffscreenTarget
from app.media.sources import VideoFrame
from gpu_delegate.context import Context


class Canvas:
    """Draws what a segmenter made of the last frame into a target. `look` may be set between any two frames."""

    def __init__(
        self, context: Context, segmenter: DrawableMask, target: OffscreenTarget, fit: Fit, choice: Choice
    ) -> None:
        """Raises DeviceError if the shaders do not compile, MediaError if there is no background."""
        self.target = target
        self.stage = Stage("composite", self._draw)
        self._context, self._segmenter = context, segmenter
        self._compositor = Compositor(context, segmenter.frame, segmenter.layout, fit, choice.look)
        self._has_background = choice.background is not None
        self._checkered: OffscreenTarget | None = None
        if choice.background is not None:
            self._compositor.set_background(choice.background)

    @property
    def look(self) -> Look:
        """What the next pictures look like."""
        return self._compositor.look

    @look.setter
    def look(self, look: Look) -> None:
        self._compositor.look = look

    def shown(self) -> OffscreenTarget:
        """The last picture as a screen shows it: the target, or for `cutout` a copy over a checkerboard."""
        if self.look.effect != "cutout":
            return self.target
        if self._checkered is None:
            self._checkered = OffscreenTarget(self._context, self.target.size)
        self._compositor.draw(self._segmenter.mask, self._checkered, for_screen=True)
        return self._checkered

    def _draw(self, frame: VideoFrame) -> None:
        if self.look.effect == "replace" and not self._has_background:
            self._compositor.set_background(default_background())
            self._has_background = True
        self._compositor.draw(self._segmenter.mask, self.target)

    def release(self) -> None:
        """Free the compositor; the target is its maker's."""
        self._compositor.release()
        if self._checkered:
            self._checkered.release()
