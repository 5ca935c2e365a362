"""Draws a frame in the colors of the classes that a network finds in it.

This is the written definition, which classes.frag follows. A pixel of the frame samples the scores of each class as it
samples a mask (app/picture/preprocess.py): bilinear, clamped at the edges. Its class is the first of those with the
highest score; activations do not change which that is. Its color is mix(frame, color of the class, 0.6), or the
frame's where the network never saw it. Colors are those of PASCAL VOC's development kit, all different.
"""

from typing import Any

from texelflow.gpu_delegate.model.layout import ceil_div
from texelflow.gpu_delegate.targets.gl import opengl
from texelflow.gpu_delegate.targets.gl.context import Context

from ...picture.preprocess import Fit, ImageSize, sampling
from ..inference.network_output import ClassScores
from ..looks.effects import LegendSide
from ..looks.legend import legend_picture, legend_place
from ..looks.looks import Look
from ..textures.fullscreen_drawing import FRAME_SAMPLERS, Drawing
from ..textures.offscreen_target import OffscreenTarget
from ..textures.resample import all_inside, axis_defines
from ..textures.tensor_view import TensorTexels
from ..textures.upload import FrameTextures

_SHARE = 0.6
_SCORES_UNIT, _LEGEND_UNIT = 3, 4
_SAMPLERS = {**FRAME_SAMPLERS, "texels": _SCORES_UNIT, "legend": _LEGEND_UNIT}


class ClassesCompositor:
    """Draws what is in a frame's textures in the colors of its classes, with a legend."""

    def __init__(self, context: Context, frame: FrameTextures, scores: ClassScores, fit: Fit = "stretch") -> None:
        """Raises DeviceError if the shader does not compile."""
        self._context, self._frame, self._scores, self._fit = context, frame, scores, fit
        self._frame_size = frame.format.upright_size
        self._drawings: dict[LegendSide, Drawing] = {}
        self._tensor = TensorTexels(context, scores.size[0] * scores.size[1] * ceil_div(scores.classes, 4), stride=4)
        self._legend: Any = None

    def draw(self, target: OffscreenTarget, look: Look, age: int = 0, size: ImageSize | None = None) -> None:
        """Draw the frame of that age, to (width, height) at the target's lower left. Raises DeviceError."""
        size, gl = size or target.size, self._context.gl
        self._frame.bind(age=age)
        self._tensor.bind(_SCORES_UNIT, self._scores.span())
        drawing = self._drawing(look.legend)
        if self._legend:
            gl.bind_texture(_LEGEND_UNIT, opengl.TEXTURE_2D, self._legend.glo)
        drawing.use()
        drawing.set_ints("mirror", *((-1, self._frame_size[0]) if look.mirror else (0, 0)))
        drawing.set_ints("height", size[1])
        drawing.draw(target.framebuffer, size)

    def _drawing(self, legend: LegendSide) -> Drawing:
        """Compiled, and its legend drawn, when it is first asked for."""
        if legend not in self._drawings:
            scores = self._scores
            back = sampling(self._frame_size, scores.size, self._fit).inverse()
            defines = {
                **dict(zip(("FRAME_W", "FRAME_H"), self._frame_size, strict=True)),
                **dict(zip(("SCORES_W", "SCORES_H"), scores.size, strict=True)),
                **axis_defines(back),
                **self._frame.defines(),
                **self._tensor.defines(),
                **(self._legend_defines(legend) if legend != "none" else {}),
                "CLASSES": scores.classes,
                "SHARE": _SHARE,
                "UNSEEN": int(not all_inside(back)),
            }
            label = f"classes, legend {legend}"
            self._drawings[legend] = Drawing(self._context, "classes.frag", defines, _SAMPLERS, label)
        return self._drawings[legend]

    def _legend_defines(self, side: LegendSide) -> dict[str, int]:
        """Upload the legend, once; the parameters of classes.frag about it."""
        picture = legend_picture(self._scores.labels, self._scores.classes, self._frame_size)
        if picture is None:
            return {}
        height, width = picture.shape[:2]
        if self._legend is None:
            self._legend = self._context.mgl.texture((width, height), 4, picture.tobytes(), alignment=1)
            self._context.label(opengl.TEXTURE, self._legend.glo, "legend")
            self._context.check_errors("making the legend of classes")
        x, y = legend_place((width, height), self._frame_size, side)
        return {"LEGEND_X": x, "LEGEND_Y": y, "LEGEND_W": width, "LEGEND_H": height}

    def release(self) -> None:
        """Delete what was made here; the frame and the scores stay."""
        for drawing in self._drawings.values():
            drawing.release()
        if self._legend:
            self._legend.release()
        self._tensor.release()
