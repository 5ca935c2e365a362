"""Computes the exposure gain of frames on the device, into a buffer that is never read back.

app/picture/exposure.py is the other implementation of what app/picture/preprocess.py defines.
"""

import numpy as np

from texelflow.gpu_delegate.targets.gl import opengl, program_log
from texelflow.gpu_delegate.targets.gl.context import Context, compile_compute
from texelflow.gpu_delegate.targets.glsl.roofline import Cost
from texelflow.gpu_delegate.targets.glsl.shader import ParameterValue, load

from ...picture import exposure
from ...picture.color_planes import Indices
from ...picture.sampling import Sampling
from .upload import FrameTextures

_THREADS = 64  # of the one work-group


class ExposurePass:
    """The pass that finds the gain, a float in `buffer`."""

    def __init__(self, context: Context, frame: FrameTextures, stored: Sampling) -> None:
        """`stored` is what the network sees of the stored picture. Raises DeviceError if there is no such shader."""
        self._context, self._gl, self._frame = context, context.gl, frame
        self._program = compile_compute(context, load("exposure.comp", _defines(frame, stored)), "exposure")
        self.buffer = self._gl.generate("Buffers")
        self._gl.glBindBuffer(opengl.COPY_WRITE_BUFFER, self.buffer)
        self._gl.glBufferData(opengl.COPY_WRITE_BUFFER, 4, None, opengl.DYNAMIC_COPY)
        self.begin_anew()

    def run(self) -> None:
        """Go on to the gain of what was uploaded last; storage buffers see it."""
        gl, groups = self._gl, (1, 1, 1)
        gl.glUseProgram(self._program)
        self._frame.bind()
        gl.glBindBufferBase(opengl.SHADER_STORAGE_BUFFER, 0, self.buffer)
        cost = Cost(0, exposure.COLUMNS * exposure.ROWS * self._frame.format.sample_bytes, 4)
        with program_log.logged_pass(self._context, "exposure", groups, (_THREADS, 1, 1), cost):
            gl.glDispatchCompute(*groups)
        gl.glMemoryBarrier(opengl.SHADER_STORAGE_BARRIER_BIT)

    def begin_anew(self) -> None:
        """The next frame has nothing to do with those before."""
        zero = np.zeros(1, np.float32)
        self._gl.glMemoryBarrier(opengl.BUFFER_UPDATE_BARRIER_BIT)
        self._gl.glBindBuffer(opengl.COPY_WRITE_BUFFER, self.buffer)
        self._gl.glBufferSubData(opengl.COPY_WRITE_BUFFER, 0, 4, zero.ctypes.data)

    def release(self) -> None:
        """Delete the program and the buffer."""
        self._gl.glDeleteProgram(self._program)
        self._gl.delete("Buffers", self.buffer)


def _defines(frame: FrameTextures, stored: Sampling) -> dict[str, ParameterValue]:
    form = frame.format
    black, white = exposure.level_range(form)
    return {
        **frame.defines(),
        "GROUP_X": _THREADS,
        "COLUMNS": _array(stored.x.spread(exposure.COLUMNS)),
        "ROWS": _array(stored.y.spread(exposure.ROWS)),
        "SHIFT": form.bits - 8,
        "LARGEST": float((1 << 8 * form.sample_bytes) - 1),
        "BLACK": black,
        "WHITE": white,
        **{name: getattr(exposure, name) for name in ("SHARE", "BRIGHT", "MOST_GAIN", "STEADY", "JUMP")},
    }


def _array(numbers: Indices) -> str:
    return f"int[]({', '.join(map(str, numbers.tolist()))})"
