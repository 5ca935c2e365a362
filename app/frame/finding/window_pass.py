"""The pass that takes out of heat maps, on the GPU, what a decoder reads of them: pixels around its points."""

import numpy as np

from texelflow.gpu_delegate.model.layout import ceil_div
from texelflow.gpu_delegate.targets.gl.context import Context
from texelflow.gpu_delegate.targets.gl.gl_buffers import BufferBytes
from texelflow.gpu_delegate.targets.gl.runtime import TensorRange
from texelflow.gpu_delegate.targets.glsl.shader import ParameterValue

from ...models.decoders.decoding import PointWindows
from ...picture.color_planes import Floats
from .output_pass import OutputPass, buffer_of, place_defines

_GROUP = 64
_ABSENT = -100.0  # of raw scores: what is not read


class WindowPass(OutputPass):
    """Windows of one network's heat maps. release() frees its buffer."""

    def __init__(self, context: Context, form: PointWindows, points: TensorRange, maps: TensorRange) -> None:
        """One pixel more to each side than is read: rounding may put a point into the next one. Raises DeviceError."""
        shape = maps.shape
        self._size, self._reach, self._points = (shape.width, shape.height), form.reach + 1, shape.channels
        self._side = 2 * self._reach + 1
        defines: dict[str, ParameterValue] = {
            "POINTS": self._points,
            "COLUMNS": form.columns,
            "SIZE": f"vec2({float(form.size[0])!r}, {float(form.size[1])!r})",
            "MAP_W": shape.width,
            "MAP_H": shape.height,
            "REACH": self._reach,
            **place_defines("POINT", points),
            **place_defines("MAP", maps),
        }
        values = self._points * self._side**2
        own, groups = (buffer_of(context, 2 * self._points + values),), ceil_div(values, _GROUP)
        super().__init__(context, "point_windows", defines, own, (points, maps), _GROUP, groups)

    def maps(self, data: BufferBytes) -> Floats:
        """Heat maps (1, H, W, N) of which the windows that were read have their values; others are far below 0."""
        (width, height), side, reach = self._size, self._side, self._reach
        found = data.view(np.float32)
        centers = found[: 2 * self._points].reshape(-1, 2).astype(np.int64)
        windows = found[2 * self._points :].reshape(-1, side, side)
        whole = np.full((1, height + 2 * reach, width + 2 * reach, self._points), _ABSENT, np.float32)
        for number, ((column, row), values) in enumerate(zip(centers.tolist(), windows, strict=True)):
            if -reach <= column < width + reach and -reach <= row < height + reach:
                left, top = max(column, 0), max(row, 0)
                part = whole[0, top : row + side, left : column + side, number]
                part[:] = values[top - row :, left - column :][: part.shape[0], : part.shape[1]]
        return np.ascontiguousarray(whole[:, reach : reach + height, reach : reach + width])
