"""The pass that cuts a rotated region out of the frame's textures, as app/picture/region_cut.py defines it.

One dispatch, which waits for nothing and reads nothing back: the region is a matrix, given as uniforms.
"""

import numpy as np
import numpy.typing as npt

from texelflow.gpu_delegate.model.graph import Steps
from texelflow.gpu_delegate.model.layout import ceil_div
from texelflow.gpu_delegate.targets.gl import opengl, program_log
from texelflow.gpu_delegate.targets.gl.context import Context, compile_compute
from texelflow.gpu_delegate.targets.gl.opengl import BufferSpan
from texelflow.gpu_delegate.targets.glsl.roofline import Cost
from texelflow.gpu_delegate.targets.glsl.shader import load

from ...picture.picture import ImageSize
from ...picture.region_cut import cut_places
from .upload import FrameTextures

_GROUP = 16, 8  # OpenGL ES 3.1 promises 128 invocations


class RegionToTensor:
    """Makes a network's input of a region: PHWC4 with one slice, vec4(r, g, b, 0) for each pixel."""

    def __init__(
        self,
        context: Context,
        frame: FrameTextures,
        tensor_size: ImageSize,
        value_range: tuple[float, float] = (0, 1),
        repeats_edges: bool = False,
        steps: Steps | None = None,
        gain: int | None = None,
    ) -> None:
        """value_range is what bytes 0 and 255 become, `steps` the whole numbers that the input takes, if no others.

        `gain` is a buffer with the factor for the frame's light (frame_exposure.py).

        Raises DeviceError if the shader does not compile.
        """
        defines = {
            **dict(zip(("GROUP_X", "GROUP_Y"), _GROUP, strict=True)),
            **dict(zip(("TENSOR_W", "TENSOR_H"), tensor_size, strict=True)),
            **frame.defines(),
            "LOW": float(value_range[0]),
            "HIGH": float(value_range[1]),
            "REPEATS": int(repeats_edges),
            "LIGHTENS": int(gain is not None),
            **({"WHOLE": 1, "LEAST": float(steps.low), "MOST": float(steps.high)} if steps else {}),
        }
        self.size_bytes = tensor_size[0] * tensor_size[1] * 16
        self._context, self._gl, self._frame, self._size = context, context.gl, frame, tensor_size
        self._gain = gain
        self._groups = ceil_div(tensor_size[0], _GROUP[0]), ceil_div(tensor_size[1], _GROUP[1])
        self._matrices = 1 if frame.format.layout in ("rgba", "gray") else 2
        self._cost = Cost(0, self.size_bytes, self.size_bytes)
        self._program = compile_compute(context, load("region_to_tensor.comp", defines), "region_to_tensor")

    def run(self, to_frame: npt.NDArray[np.float64], tensor: BufferSpan) -> None:
        """Write the tensor from what was uploaded last; what follows sees it, as a buffer texture or as storage.

        `to_frame` is FrameRegion.to_frame's matrix. Raises ValueError as cut_places.
        """
        gl, places = self._gl, cut_places(self._frame.format, self._size, to_frame)
        self._context.calls.flush()  # uniforms come at once
        gl.glUseProgram(self._program)
        rows = [row for matrix in places[: self._matrices] for row in matrix.tolist()]
        for location, row in enumerate(rows):
            gl.glUniform4i(location, *row)
        self._frame.bind()
        if self._gain is not None:
            gl.glBindBufferBase(opengl.SHADER_STORAGE_BUFFER, 1, self._gain)
        gl.glBindBufferRange(opengl.SHADER_STORAGE_BUFFER, 0, tensor.buffer, tensor.offset_bytes, tensor.size_bytes)
        gl.glMemoryBarrier(opengl.SHADER_STORAGE_BARRIER_BIT)  # those who read the bytes before must be done
        groups, size = (*self._groups, 1), (*_GROUP, 1)
        with program_log.logged_pass(self._context, "region_to_tensor", groups, size, self._cost):
            gl.glDispatchCompute(*groups)
        gl.glMemoryBarrier(opengl.SHADER_STORAGE_BARRIER_BIT | opengl.TEXTURE_FETCH_BARRIER_BIT)

    def release(self) -> None:
        """Delete the program."""
        self._gl.glDeleteProgram(self._program)
