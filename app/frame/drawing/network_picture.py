"""Draws the picture that a network puts out, mixed with the frame, into a target.

This is the written definition, which picture.frag and, for the network's picture in RAM, cpu_path.py follow. A value v
of the output tensor becomes c = clamp((v - low) / (high - low), 0, 1); a network of three channels has alpha 1. A pixel
of the frame samples that as it samples a mask (app/picture/preprocess.py): bilinear, clamped at the edges, and, where
the network never saw it, alpha 0. With strength s and the frame's color f the effects are

    picture                  mix(f, c.rgb, s * c.a)
    replace, color, checker  mix(behind, mix(f, c.rgb, s), c.a)
    cutout                   mix(f, c.rgb, s) with alpha c.a; a look that clears has shaders/cleared.glsl besides
    mask                     c.a
"""

from texelflow.gpu_delegate.targets.gl.opengl import BufferSpan
from texelflow.gpu_delegate.targets.glsl.shader import ParameterValue

from ...models.decoders.region import FrameRegion
from ...picture.preprocess import Fit, ImageSize, sampling
from ..inference.network_output import PictureLayout
from ..looks.effects import EFFECTS, Effect
from ..looks.looks import Look
from ..textures.picture_device import FRAME_SAMPLERS, PictureDevice, ReadablePlanes, ShaderDrawing, Target
from ..textures.resample import all_inside, axis_defines
from .backdrop import Backdrop
from .cropped_frame import placed_of

_OUTPUT_UNIT, _BACKGROUND_UNIT = 3, 4
_SAMPLERS = {**FRAME_SAMPLERS, "texels": _OUTPUT_UNIT, "background": _BACKGROUND_UNIT}


class PictureCompositor:
    """Draws what is in a frame's textures with a network's picture. `look` may be replaced between any two pictures."""

    def __init__(
        self,
        pictures: PictureDevice,
        frame: ReadablePlanes,
        layout: PictureLayout,
        fit: Fit = "stretch",
        look: Look | None = None,
        backdrop: Backdrop | None = None,
        crop: FrameRegion | None = None,
    ) -> None:
        """`backdrop` is what the effect `replace` shows, `crop` as in Compositor.

        Raises DeviceError if the shader does not compile.
        """
        self.look = look = look or Look("picture")
        self._pictures, self._frame, self._backdrop = pictures, frame, backdrop
        self._frame_size, self.crop = frame.format.upright_size, crop
        self._covering = back = sampling(self._frame_size, layout.size, fit).inverse()
        self._tensor = pictures.texels(layout.size[0] * layout.size[1], stride=4)
        self._defines: dict[str, ParameterValue] = {
            **dict(zip(("FRAME_W", "FRAME_H"), self._frame_size, strict=True)),
            **axis_defines(back),
            **layout.defines(),
            **frame.defines(),
            **self._tensor.defines(),
            "UNSEEN": int(not all_inside(back)),
            "CROPPED": int(crop is not None),
        }
        self._drawings: dict[tuple[Effect, bool], ShaderDrawing] = {}
        self._drawing(look.effect, look.clears)

    def draw(
        self, tensor: BufferSpan, target: Target, effect: Effect | None = None, size: ImageSize | None = None
    ) -> None:
        """As Compositor has it; `tensor` is the network's output. Raises ValueError if a background is missing."""
        look, size = self.look, size or target.size
        effect = effect or look.effect
        self._frame.bind()
        self._tensor.bind(_OUTPUT_UNIT, tensor)
        shown = self._backdrop is not None and self._backdrop.bind(_BACKGROUND_UNIT)
        if effect == "replace" and not shown:
            raise ValueError("the effect replace needs a background")
        drawing = self._drawing(effect, look.clears)
        drawing.use()
        drawing.set_floats("strength", look.strength)
        drawing.set_floats("color", *look.color, 1.0)
        drawing.set_ints("mirror", *((-1, self._frame_size[0]) if look.mirror else (0, 0)))
        drawing.set_ints("height", size[1])
        if self.crop:
            drawing.set_floats("placed", *placed_of(self.crop, self._frame_size, self._covering))
        drawing.draw(target, size)

    def _drawing(self, effect: Effect, clears: bool) -> ShaderDrawing:
        """Compiled when it is first asked for."""
        key = effect, clears
        if key not in self._drawings:
            defines = {**self._defines, "EFFECT": EFFECTS.index(effect), "CLEARS": int(clears)}
            label = f"network's picture {effect}"
            self._drawings[key] = self._pictures.drawing("picture.frag", defines, _SAMPLERS, label)
        return self._drawings[key]

    def release(self) -> None:
        """Delete what was made here; frames, tensors, targets and the backdrop stay."""
        for drawing in self._drawings.values():
            drawing.release()
        self._tensor.release()
