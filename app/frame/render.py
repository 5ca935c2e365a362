"""A frame's textures and the network's output tensor go in, a picture with an effect comes out in a target."""

from dataclasses import dataclass
from types import TracebackType

import numpy as np
import numpy.typing as npt

from app.frame.blur import BLUR_UNIT, Blur
from app.frame.drawing import Drawing
from app.frame.effects import EFFECTS as EFFECTS
from app.frame.effects import Effect as Effect
from app.frame.picture import rgba_format, rgba_picture
from app.frame.preprocess import Fit, sampling
from app.frame.resample import BufferTexture, MaskLayout, all_inside, axis_defines
from app.frame.targets import OffscreenTarget
from app.frame.upload import FrameTextures
from app.media.background import cover
from gpu_delegate import opengl
from gpu_delegate.context import Context
from gpu_delegate.opengl import BufferSpan
from gpu_delegate.shader import Value

Color = tuple[float, float, float]  # red, green, blue from 0 to 1

_SHADERS = (*EFFECTS, "checker")  # in the order of composite.frag's numbers; the last is cutout for a screen
_TINT_STRENGTH = 0.5
_BLUR_RADIUS = 0.05  # of the frame's height
_MASK_UNIT, _BACKGROUND_UNIT = 3, 4
_SAMPLERS = {
    **{f"frame_{plane}": plane for plane in range(3)},
    "mask_tensor": _MASK_UNIT,
    "background": _BACKGROUND_UNIT,
    "blurred": BLUR_UNIT,
}


@dataclass(frozen=True)
class Look:
    """What the picture looks like."""

    effect: Effect = "tint"
    color: Color = (0.1, 0.75, 0.45)
    radius: float | None = None  # of blur, in pixels of the frame; None goes by its height


class Compositor:
    """Draws what is in a frame's textures with the mask of one output tensor.

    `look` may be replaced between any two pictures; what an effect needs is made when it is first seen.
    """

    def __init__(
        self,
        context: Context,
        frame: FrameTextures,
        layout: MaskLayout,
        fit: Fit = "stretch",
        look: Look = Look(),
    ) -> None:
        """Raises DeviceError if the shaders do not compile."""
        self.look = look
        self.frame_size = frame.format.upright_size
        self._context, self._frame = context, frame
        back = sampling(self.frame_size, layout.size, fit).inverse()
        sizes = dict(zip(("FRAME_W", "FRAME_H"), self.frame_size, strict=True))
        seen = {"UNSEEN": int(not all_inside(back))}
        self._defines: dict[str, Value] = {**sizes, **seen, **axis_defines(back), **layout.defines(), **frame.defines()}
        self._drawings: dict[str, Drawing] = {}
        self._mask = BufferTexture(context, layout.stride)
        self._background: FrameTextures | None = None
        self._blur: Blur | None = None
        self._drawing(look.effect)

    def set_background(self, rgba: npt.NDArray[np.uint8]) -> None:
        """The picture (H, W, 4) behind the person of the effect `replace`; it is cut to cover the frame."""
        if self._background is None:
            self._background = FrameTextures(self._context, rgba_format(self.frame_size))
        self._background.upload(rgba_picture(cover(rgba, self.frame_size)))

    def draw(self, tensor: BufferSpan, target: OffscreenTarget, for_screen: bool = False) -> None:
        """Draw the frame; `for_screen` shows what is transparent as a checkerboard.

        Raises ValueError if the look needs a background and there is none.
        """
        look = self.look
        if look.effect == "replace" and self._background is None:
            raise ValueError("the effect replace needs a background")
        self._bind(tensor)
        factor = self._blurred() if look.effect == "blur" else 1
        drawing = self._drawing("checker" if for_screen and look.effect == "cutout" else look.effect)
        drawing.use()
        self._context.gl.glUniform4f(drawing.place("color"), *look.color, _TINT_STRENGTH)
        self._context.gl.glUniform1i(drawing.place("factor"), factor)
        self._context.gl.glUniform1i(drawing.place("height"), target.size[1])
        drawing.draw(target.framebuffer, target.size)

    def _bind(self, tensor: BufferSpan) -> None:
        """Everything to its texture unit, to be seen by fragment shaders."""
        self._frame.bind()
        self._mask.bind(_MASK_UNIT, tensor)
        if self._background:
            self._background.bind(_BACKGROUND_UNIT)
        if self._context.can_compute:
            self._context.gl.glMemoryBarrier(opengl.TEXTURE_FETCH_BARRIER_BIT)

    def _blurred(self) -> int:
        """Blur the background; the factor by which it is smaller than the frame."""
        if self._blur is None:
            self._blur = Blur(self._context, self.frame_size, self._defines, _SAMPLERS)
        return self._blur.run(self.look.radius or _BLUR_RADIUS * self.frame_size[1])

    def _drawing(self, effect: str) -> Drawing:
        """The shader of an effect, compiled when it is first seen."""
        if effect not in self._drawings:
            defines = {**self._defines, "EFFECT": _SHADERS.index(effect)}
            self._drawings[effect] = Drawing(self._context, "composite.frag", defines, _SAMPLERS, f"composite {effect}")
        return self._drawings[effect]

    def release(self) -> None:
        """Delete what was made here; frames, tensors and targets stay."""
        for part in (*self._drawings.values(), self._mask, self._background, self._blur):
            if part:
                part.release()

    def __enter__(self) -> "Compositor":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()
