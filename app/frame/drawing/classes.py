"""Draws a frame in the colors of the classes that a network finds in it.

This is the written definition, which classes.frag follows. A pixel of the frame samples the scores of each class as it
samples a mask (app/picture/preprocess.py): bilinear, clamped at the edges. Its class is the first of those with the
highest score; activations do not change which that is. Its color is mix(frame, color of the class, 0.6), or the
frame's where the network never saw it. Colors are those of PASCAL VOC's development kit, all different.
"""

from texelflow.gpu_delegate.model.layout import ceil_div

from ...models.decoders.region import FrameRegion
from ...picture.preprocess import Fit, ImageSize, sampling
from ..inference.network_output import ClassScores
from ..looks.effects import LegendSide
from ..looks.legend import legend_picture, legend_place
from ..looks.looks import Look
from ..textures.picture_device import FRAME_SAMPLERS, PictureDevice, ReadablePlanes, ShaderDrawing, ShaderImage, Target
from ..textures.resample import all_inside, axis_defines
from .cropped_frame import placed_of

_SHARE = 0.6
_SCORES_UNIT, _LEGEND_UNIT = 3, 4
_SAMPLERS = {**FRAME_SAMPLERS, "texels": _SCORES_UNIT, "legend": _LEGEND_UNIT}


class ClassesCompositor:
    """Draws what is in a frame's textures in the colors of its classes, with a legend."""

    def __init__(
        self, pictures: PictureDevice, frame: ReadablePlanes, scores: ClassScores, fit: Fit = "stretch",
        crop: FrameRegion | None = None,
    ) -> None:  # fmt: skip
        """`crop` as in Compositor. Raises DeviceError if the shader does not compile."""
        self._pictures, self._frame, self._scores, self.crop = pictures, frame, scores, crop
        self._frame_size = frame.format.upright_size
        self._covering = sampling(self._frame_size, scores.size, fit).inverse()
        self._drawings: dict[LegendSide, ShaderDrawing] = {}
        self._tensor = pictures.texels(scores.size[0] * scores.size[1] * ceil_div(scores.classes, 4), stride=4)
        self._legend: ShaderImage | None = None

    def draw(self, target: Target, look: Look, age: int = 0, size: ImageSize | None = None) -> None:
        """Draw the frame of that age, to (width, height) at the target's lower left. Raises DeviceError."""
        size = size or target.size
        self._frame.bind(age=age)
        self._tensor.bind(_SCORES_UNIT, self._scores.span())
        drawing = self._drawing(look.legend)
        if self._legend:
            self._pictures.bind(_LEGEND_UNIT, self._legend.texture)
        drawing.use()
        drawing.set_ints("mirror", *((-1, self._frame_size[0]) if look.mirror else (0, 0)))
        drawing.set_ints("height", size[1])
        if self.crop:
            drawing.set_floats("placed", *placed_of(self.crop, self._frame_size, self._covering))
        drawing.draw(target, size)

    def _drawing(self, legend: LegendSide) -> ShaderDrawing:
        """Compiled, and its legend drawn, when it is first asked for."""
        if legend not in self._drawings:
            scores, back = self._scores, self._covering
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
                "CROPPED": int(self.crop is not None),
            }
            label = f"classes, legend {legend}"
            self._drawings[legend] = self._pictures.drawing("classes.frag", defines, _SAMPLERS, label)
        return self._drawings[legend]

    def _legend_defines(self, side: LegendSide) -> dict[str, int]:
        """Upload the legend, once; the parameters of classes.frag about it."""
        picture = legend_picture(self._scores.labels, self._scores.classes, self._frame_size)
        if picture is None:
            return {}
        height, width = picture.shape[:2]
        if self._legend is None:
            self._legend = self._pictures.image(picture, "legend of classes")
        x, y = legend_place((width, height), self._frame_size, side)
        return {"LEGEND_X": x, "LEGEND_Y": y, "LEGEND_W": width, "LEGEND_H": height}

    def release(self) -> None:
        """Delete what was made here; the frame and the scores stay."""
        for drawing in self._drawings.values():
            drawing.release()
        if self._legend:
            self._legend.release()
        self._tensor.release()
