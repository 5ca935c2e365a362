"""A frame's textures and its mask on the device go in; a picture with an effect comes out in a target, as a stage."""

from app.frame.looks import Choice
from app.frame.pipeline import Stage
from app.frame.preprocess import Fit
from app.frame.render import Compositor, Target
from app.frame.segmenter import DrawableMask
from app.media.sources import VideoFrame
from gpu_delegate.context import Context


class Canvas:
    """Draws what a segmenter made of the last frame into a target: off the screen, or a window."""

    def __init__(
        self, context: Context, segmenter: DrawableMask, target: Target, fit: Fit, choice: Choice
    ) -> None:
        """Raises DeviceError if the shaders do not compile."""
        self.target = target
        self._segmenter = segmenter
        self._compositor = Compositor(context, segmenter.frame, segmenter.layout, fit, choice.look)
        if choice.background is not None:
            self._compositor.set_background(choice.background)
        self.stage = Stage("composite", self._draw)

    def _draw(self, frame: VideoFrame) -> None:
        self._compositor.draw(self._segmenter.mask, self.target)

    def release(self) -> None:
        """Free the compositor; the target is its maker's."""
        self._compositor.release()
