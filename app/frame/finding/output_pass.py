"""What passes over a network's outputs on the GPU have in common: one dispatch, on ranges of buffers in a row."""

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from texelflow.gpu_delegate.base.errors import DeviceError
from texelflow.gpu_delegate.model.layout import FLOAT_BYTES
from texelflow.gpu_delegate.targets.gl import opengl, program_log
from texelflow.gpu_delegate.targets.gl.calls import CallCache
from texelflow.gpu_delegate.targets.gl.context import Context, compile_compute
from texelflow.gpu_delegate.targets.gl.gl_buffers import device_buffer
from texelflow.gpu_delegate.targets.gl.opengl import BufferRange, BufferSpan
from texelflow.gpu_delegate.targets.gl.runtime import TensorRange
from texelflow.gpu_delegate.targets.glsl.roofline import Cost
from texelflow.gpu_delegate.targets.glsl.shader import ParameterValue, load


class OutputPass:
    """A compute shader with buffers of its own, the first of which has the result, and what it reads of a network."""

    def __init__(
        self,
        context: Context,
        shader: str,
        defines: Mapping[str, ParameterValue],
        own: Sequence[BufferSpan],
        read: Sequence[BufferSpan],
        group: int,
        groups: int = 1,
    ) -> None:
        """`shader` is a file's name without its ending, with a parameter GROUP; `own` is freed here, later or if this
        raises DeviceError.
        """
        self._context, self._gl, self._calls = context, context.gl, CallCache(context.calls)
        self._name, self._group, self._groups = shader, group, groups
        self._own, self._ranges, self._program = tuple(own), (*own, *read), 0
        self._cost = Cost(0, sum(place.size_bytes for place in self._ranges[1:]), own[0].size_bytes)
        try:
            context.check_errors(f"making room for {shader}")
            self._program = compile_compute(context, load(f"{shader}.comp", {**defines, "GROUP": group}), shader)
        except DeviceError:
            self.release()
            raise

    @property
    def result(self) -> BufferSpan:
        """What it writes."""
        return self._own[0]

    def run(self) -> None:
        """Dispatch it on what the network has put out; who reads its result puts the barrier."""
        self._calls.run(None, self._dispatch)

    def release(self) -> None:
        """Delete the program and the buffers of its own."""
        self._gl.glDeleteProgram(self._program)
        for place in self._own:
            self._gl.delete("Buffers", place.buffer)

    def _dispatch(self) -> None:
        gl, grid = self._gl, (self._groups, 1, 1)
        gl.glUseProgram(self._program)
        for binding, place in enumerate(self._ranges):
            span = place.buffer, place.offset_bytes, place.size_bytes
            gl.glBindBufferRange(opengl.SHADER_STORAGE_BUFFER, binding, *span)
        gl.glMemoryBarrier(opengl.SHADER_STORAGE_BARRIER_BIT)
        with program_log.logged_pass(self._context, self._name, grid, (self._group, 1, 1), self._cost):
            gl.glDispatchCompute(*grid)


def buffer_of(context: Context, floats: int, content: npt.NDArray[np.float32] | None = None) -> BufferRange:
    """A buffer of so many floats for a pass."""
    size_bytes = FLOAT_BYTES * floats
    return BufferRange(device_buffer(context, size_bytes, content), 0, size_bytes)


def place_defines(name: str, place: TensorRange) -> dict[str, ParameterValue]:
    """How a tensor lies in memory, for tensor_places.glsl."""
    return {
        f"{name}_CHANNELS": place.shape.channels,
        f"{name}_PIXELS": place.shape.pixels,
        f"{name}_LANES": place.stride,
    }
