"""Composites a frame and its mask into a picture with an effect, in a target."""

from dataclasses import replace
from types import TracebackType

from texelflow.gpu_delegate.targets.gl.opengl import BufferSpan
from texelflow.gpu_delegate.targets.glsl.shader import ParameterValue

from ...models.decoders.region import FrameRegion
from ...picture.preprocess import Fit, ImageSize, sampling
from ..looks.effects import EFFECTS, Effect
from ..looks.looks import LOOK_DEFAULTS, Look
from ..refinement.refine import Refiner
from ..textures.picture_device import FRAME_SAMPLERS, PictureDevice, ReadablePlanes, ShaderDrawing, Target
from ..textures.resample import MaskLayout, all_inside, axis_defines
from .backdrop import Backdrop
from .blur import Blur, gaussian
from .cropped_frame import placed_of
from .foreground import Foreground
from .mask_edge import MaskEdge

_TINT_STRENGTH = 0.5
_BLUR_RADIUS, _WRAP_RADIUS = 0.05, 0.04  # of the frame's height
_BLUR_TAPS, _LIGHT_TAPS = 4, 2  # along a side of a cell
_BEHIND: dict[Effect, int] = {"blur": 0, "replace": 1, "color": 2}  # blur_shrink.frag's numbers
_MASK_UNIT, _BACKGROUND_UNIT, _BLUR_UNIT, _LIGHT_UNIT, _COEFFICIENTS_UNIT = 3, 4, 5, 6, 7
_EDGE_UNIT, _APART_UNIT, _COLORS_UNIT = 8, 9, 10
_SAMPLERS = {
    **FRAME_SAMPLERS,
    "texels": _MASK_UNIT,
    "background": _BACKGROUND_UNIT,
    "blurred": _BLUR_UNIT,
    "light": _LIGHT_UNIT,
    "coefficients": _COEFFICIENTS_UNIT,
    "edged": _EDGE_UNIT,
    "apart": _APART_UNIT,
    "own_colors": _COLORS_UNIT,
}


class Compositor:
    """Draws what is in a frame's textures with the mask of one output tensor.

    `look` may be replaced between any two pictures; what it needs is created at its first use.
    """

    def __init__(
        self,
        pictures: PictureDevice,
        frame: ReadablePlanes,
        layout: MaskLayout,
        fit: Fit = "stretch",
        look: Look = LOOK_DEFAULTS,
        backdrop: Backdrop | None = None,
        refiner: Refiner | None = None,
        crop: FrameRegion | None = None,
    ) -> None:
        """`backdrop` is what the effect `replace` shows; a refiner's mask is drawn instead of the tensor's. `crop` says
        of which part of the frame `frame` is; that may change.

        Raises DeviceError if the shaders do not compile.
        """
        self.look, self.crop = look, crop
        self.frame_size = frame.format.upright_size
        self._pictures, self._frame, self._backdrop, self._refiner = pictures, frame, backdrop, refiner
        self._covering = back = sampling(self.frame_size, refiner.size if refiner else layout.size, fit).inverse()
        sizes = dict(zip(("FRAME_W", "FRAME_H"), self.frame_size, strict=True))
        seen = {"UNSEEN": int(not all_inside(back))}
        self._mask = pictures.texels(layout.texels, layout.stride)
        self._defines: dict[str, ParameterValue] = {
            **sizes,
            **seen,
            **axis_defines(back),
            **layout.defines(),
            **frame.defines(),
            **self._mask.defines(),
            "CROPPED": int(crop is not None),
        }
        self._has_colors = refiner is not None and layout.has_own_colors
        if refiner:
            self._defines |= refiner.defines()
        self._calls = pictures.calls()
        self._drawings: dict[tuple[object, ...], ShaderDrawing] = {}
        self._blurs: dict[int, Blur] = {}  # by texture unit
        self._edge: MaskEdge | None = None
        self._foreground: Foreground | None = None
        self._edge_factor = 1  # pixels along a side of a cell of the mask with its edge
        self._picture(look)

    def draw(
        self, tensor: BufferSpan, target: Target, effect: Effect | None = None, size: ImageSize | None = None
    ) -> None:
        """Draw the frame; with another effect than the look's, or to (width, height) at the target's lower left alone.

        Raises ValueError if the effect needs a background and there is none.
        """
        look = self.look if effect in (None, self.look.effect) else replace(self.look, effect=effect)
        size, refiner, backdrop = size or target.size, self._refiner, self._backdrop
        mask = (refiner.texture, refiner.colors) if refiner else (tensor.buffer, tensor.offset_bytes)
        planes = self._frame.textures_of(refiner.age if refiner else 0)
        behind = backdrop.texture if backdrop else 0
        if not refiner:
            self._mask.show(tensor)
        depends_on = look, target, size, planes, mask, behind, self.crop
        self._calls.run(depends_on, lambda: self._draw(tensor, target, look, size))

    def _draw(self, tensor: BufferSpan, target: Target, look: Look, size: ImageSize) -> None:
        self._bind(tensor, look)
        self._edge_factor = self._edged(look) if look.edges_mask else 1
        steps_per_pixel = self._compared(look) if look.parts_person and not self._has_colors else 1.0
        factor = self._blurred(look) if look.effect == "blur" else 1
        light_factor = self._light(look) if look.wraps else 1
        drawing = self._picture(look)
        drawing.set_ints("factor", factor)
        drawing.set_ints("light_factor", light_factor)
        drawing.set_floats("steps_per_pixel", steps_per_pixel)
        drawing.set_floats("light_wrap", look.light_wrap)
        drawing.set_ints("height", size[1])
        drawing.draw(target, size)

    def _bind(self, tensor: BufferSpan, look: Look) -> None:
        """Everything to its texture unit, to be seen by fragment shaders."""
        self._frame.bind(age=self._refiner.age if self._refiner else 0)
        if self._refiner:
            self._refiner.bind(_COEFFICIENTS_UNIT)
            if self._refiner.colors:
                self._pictures.bind(_COLORS_UNIT, self._refiner.colors)
        else:
            self._mask.bind(_MASK_UNIT, tensor)
        shown = self._backdrop is not None and self._backdrop.bind(_BACKGROUND_UNIT)
        if look.effect == "replace" and not shown:
            raise ValueError("the effect replace needs a background")

    def _edged(self, look: Look) -> int:
        """Give the mask its edge; the pixels along a side of a cell of it."""
        self._edge = self._edge or MaskEdge(self._pictures, self.frame_size, _EDGE_UNIT)
        return self._edge.run(
            look.grow, look.feather, self._prepared("edge_mask.frag", replace(look, effect="mask", grow=0, feather=0))
        )

    def _compared(self, look: Look) -> float:
        """See how far the colors of person and background are apart; the texels of that per pixel of the frame."""
        self._foreground = self._foreground or Foreground(self._pictures, self.frame_size, _APART_UNIT)
        return self._foreground.run(self._prepared("foreground_cells.frag", replace(look, grow=0, feather=0)))

    def _blurred(self, look: Look) -> int:
        """Blur the frame's background; the factor by which it is smaller than the frame."""
        return self._blur(_BLUR_UNIT, look.radius or _BLUR_RADIUS * self.frame_size[1], look, behind=0, taps=_BLUR_TAPS)

    def _light(self, look: Look) -> int:
        """Blur the new background for the light wrap; returns the factor likewise."""
        return self._blur(_LIGHT_UNIT, _WRAP_RADIUS * self.frame_size[1], look, _BEHIND[look.effect], _LIGHT_TAPS)

    def _blur(self, unit: int, radius: float, look: Look, behind: int, taps: int) -> int:
        if unit not in self._blurs:
            self._blurs[unit] = Blur(self._pictures, self.frame_size, unit)
        return self._blurs[unit].run(
            gaussian(radius), self._prepared("blur_shrink.frag", look, BEHIND=behind, MOST_TAPS=taps)
        )

    def _picture(self, look: Look) -> ShaderDrawing:
        number, parts = EFFECTS.index(look.effect), int(look.parts_person) * (2 if self._has_colors else 1)
        clears = {"CLEARS": 1} if look.clears and look.effect == "cutout" else {}
        return self._prepared("composite.frag", look, EFFECT=number, WRAPS=int(look.wraps), UNMIXED=parts, **clears)

    def _prepared(self, shader: str, look: Look, **variant: int) -> ShaderDrawing:
        """A shader, compiled when it is first seen, in use and with the look in its uniforms, but for its own."""
        variant |= {"SHAPED": int(look.curves_mask), "EDGED": int(look.edges_mask)}
        key = (shader, *variant.items())
        if key not in self._drawings:
            label = " ".join(map(str, (shader.removesuffix(".frag"), *variant.values())))
            self._drawings[key] = self._pictures.drawing(shader, {**self._defines, **variant}, _SAMPLERS, label)
        drawing = self._drawings[key]
        drawing.use()
        drawing.set_floats("curve", 0.5 - look.threshold, look.gamma)
        drawing.set_ints("edge_factor", self._edge_factor)
        drawing.set_ints("mirror", *((-1, self.frame_size[0]) if look.mirror else (0, 0)))
        drawing.set_floats("color", *look.color, _TINT_STRENGTH)
        if self.crop:
            drawing.set_floats("placed", *placed_of(self.crop, self.frame_size, self._covering))
        return drawing

    def release(self) -> None:
        """Delete what was made here; frames, tensors, targets and the backdrop stay."""
        for drawing in self._drawings.values():
            drawing.release()
        for part in (*self._blurs.values(), self._edge, self._foreground, self._mask):
            if part:
                part.release()

    def __enter__(self) -> "Compositor":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()
