"""Keeps a person's own colors, as a matte's network has put them out, for the frame that is drawn.

The network says how much lighter a person is than the picture that it saw (app/models/mattes.py). The definition, which
tests/app/frame/refinement/test_own_colors.py has in NumPy: that difference d is interpolated bilinearly over the frame,
its edges repeated, and the person's color is clamp(c + d, 0, 1) for the frame's color c, in place of an estimate
(app/frame/drawing/foreground.py).
"""

from texelflow.gpu_delegate.targets.gl.opengl import BufferSpan
from texelflow.gpu_delegate.targets.glsl.shader import ParameterValue

from ..textures.picture_device import PictureDevice
from ..textures.resample import MaskLayout

_TEXELS_UNIT = 3  # of texture units that others use in turn


class KeptColors:
    """Those of the newest frame that the network saw, and of the one before: `newest` and `before` are textures."""

    def __init__(self, pictures: PictureDevice, layout: MaskLayout) -> None:
        """`layout` is that of the network's output, which has own colors. Raises DeviceError."""
        self._tensor = pictures.texels(layout.texels, layout.stride)
        sizes = dict(zip(("MASK_W", "MASK_H"), layout.size, strict=True))
        defines: dict[str, ParameterValue] = {**sizes, "STRIDE": layout.stride}
        samplers = {"texels": _TEXELS_UNIT}
        self._drawing = pictures.drawing(
            "own_colors.frag", {**defines, **self._tensor.defines()}, samplers, "own colors"
        )
        self._newest, self._before = (pictures.target(layout.size, "halves") for _ in range(2))
        self._calls = pictures.calls()

    @property
    def newest(self) -> int:
        """The name of the texture."""
        return self._newest.texture

    @property
    def before(self) -> int:
        """The same of the frame before."""
        return self._before.texture

    def take(self, tensor: BufferSpan) -> None:
        """Go on to what is in the network's output."""
        self._newest, self._before = self._before, self._newest
        self._tensor.show(tensor)
        depends_on = self._newest.texture, tensor.buffer, tensor.offset_bytes
        self._calls.run(depends_on, lambda: self._draw(tensor))

    def _draw(self, tensor: BufferSpan) -> None:
        self._tensor.bind(_TEXELS_UNIT, tensor)
        self._drawing.use()
        self._drawing.draw(self._newest, self._newest.size)

    def release(self) -> None:
        """Delete shader and colors; the tensor stays."""
        for part in (self._drawing, self._newest, self._before, self._tensor):
            part.release()
