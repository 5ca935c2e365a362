"""The pass that takes out of heat maps, on the GPU, what a decoder reads of them: pixels around its points."""

import numpy as np

from texelflow.gpu_delegate.model.layout import FLOAT_BYTES, ceil_div
from texelflow.gpu_delegate.targets.gl import opengl, program_log
from texelflow.gpu_delegate.targets.gl.calls import CallCache
from texelflow.gpu_delegate.targets.gl.context import Context, compile_compute
from texelflow.gpu_delegate.targets.gl.gl_buffers import BufferBytes, device_buffer
from texelflow.gpu_delegate.targets.gl.opengl import BufferRange, BufferSpan
from texelflow.gpu_delegate.targets.gl.runtime import TensorRange
from texelflow.gpu_delegate.targets.glsl.roofline import Cost
from texelflow.gpu_delegate.targets.glsl.shader import load

from ...models.decoders.decoding import PointWindows
from ...picture.color_planes import Floats
from .detection_pass import place_defines

_GROUP = 64
_ABSENT = -100.0  # of raw scores: what is not read


class WindowPass:
    """Windows of one network's heat maps. release() frees its buffer."""

    def __init__(self, context: Context, form: PointWindows, points: TensorRange, maps: TensorRange) -> None:
        """One pixel more to each side than is read: rounding may put a point into the next one. Raises DeviceError."""
        shape = maps.shape
        self._size, self._reach, self._points = (shape.width, shape.height), form.reach + 1, shape.channels
        self._side = 2 * self._reach + 1
        defines = {
            "GROUP": _GROUP,
            "POINTS": self._points,
            "COLUMNS": form.columns,
            "SIZE": f"vec2({float(form.size[0])!r}, {float(form.size[1])!r})",
            "MAP_W": shape.width,
            "MAP_H": shape.height,
            "REACH": self._reach,
            **place_defines("POINT", points),
            **place_defines("MAP", maps),
        }
        self._context, self._gl, self._calls = context, context.gl, CallCache(context.calls)
        self._program = compile_compute(context, load("point_windows.comp", defines), "point_windows")
        values = self._points * self._side**2
        size_bytes = FLOAT_BYTES * (2 * self._points + values)
        self.windows = BufferRange(device_buffer(context, size_bytes), 0, size_bytes)
        self._ranges: tuple[BufferSpan, ...] = (self.windows, points, maps)
        self._groups = ceil_div(values, _GROUP)
        context.check_errors("making room for windows of heat maps")

    def run(self) -> None:
        """Take the windows of what the network has put out; who reads them puts the barrier."""
        self._calls.run(None, self._dispatch)

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

    def release(self) -> None:
        """Delete the program and the buffer."""
        self._gl.glDeleteProgram(self._program)
        self._gl.delete("Buffers", self.windows.buffer)

    def _dispatch(self) -> None:
        gl = self._gl
        gl.glUseProgram(self._program)
        for binding, place in enumerate(self._ranges):
            span = place.buffer, place.offset_bytes, place.size_bytes
            gl.glBindBufferRange(opengl.SHADER_STORAGE_BUFFER, binding, *span)
        gl.glMemoryBarrier(opengl.SHADER_STORAGE_BARRIER_BIT)
        cost = Cost(0, self.windows.size_bytes, self.windows.size_bytes)
        with program_log.logged_pass(self._context, "point_windows", (self._groups, 1, 1), (_GROUP, 1, 1), cost):
            gl.glDispatchCompute(self._groups, 1, 1)
