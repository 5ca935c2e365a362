"""The pass that makes a few detections of a network's raw numbers on the GPU, as suppression.py defines it.

One dispatch of one work-group; what is read back of it are as many rows as there may be detections.
"""

import numpy as np

from texelflow.gpu_delegate.model.layout import FLOAT_BYTES
from texelflow.gpu_delegate.targets.gl import opengl, program_log
from texelflow.gpu_delegate.targets.gl.calls import CallCache
from texelflow.gpu_delegate.targets.gl.context import Context, compile_compute
from texelflow.gpu_delegate.targets.gl.gl_buffers import BufferBytes, device_buffer
from texelflow.gpu_delegate.targets.gl.opengl import BufferRange, BufferSpan
from texelflow.gpu_delegate.targets.gl.runtime import TensorRange
from texelflow.gpu_delegate.targets.glsl.roofline import Cost
from texelflow.gpu_delegate.targets.glsl.shader import ParameterValue, load

from ...models.decoders.decoding import AnchorForm
from ...models.decoders.suppression import MOST_FRACTION
from ...picture.color_planes import Floats

_GROUP = 128  # OpenGL ES 3.1 promises so many invocations
_KEPT_FLOATS = 11  # of each anchor: itself, a candidate's box, score and number, and a number that joins


class DetectionPass:
    """Detections of one network. release() frees its buffers."""

    def __init__(self, context: Context, form: AnchorForm, scores: TensorRange, boxes: TensorRange) -> None:
        """Of an output with the scores of all anchors and one with their boxes. Raises DeviceError."""
        count, columns = len(form.anchors), form.columns
        if (scores.shape.pixels * scores.shape.channels, boxes.shape.pixels * boxes.shape.channels) != (
            count,
            count * columns,
        ):
            raise ValueError(f"boxes {boxes.shape} and scores {scores.shape} for {count} anchors")
        defines: dict[str, ParameterValue] = {
            "GROUP": _GROUP,
            "ANCHORS": count,
            "COLUMNS": columns,
            "MOST": form.most,
            "CLIP": float(form.clip),
            "LEAST_SCORE": float(form.least_score),
            "LEAST_IOU": float(form.least_iou),
            "MOST_FRACTION": float(MOST_FRACTION),
            "SCALE": f"vec2({float(form.scale[0])!r}, {float(form.scale[1])!r})",
            **place_defines("SCORE", scores),
            **place_defines("BOX", boxes),
        }
        self._context, self._gl, self._form = context, context.gl, form
        self._calls = CallCache(context.calls)
        self._program = compile_compute(context, load("detections.comp", defines), "detections")
        kept = np.zeros(_KEPT_FLOATS * count, np.float32)
        kept[: 4 * count] = form.anchors.ravel()
        size_bytes = FLOAT_BYTES * (1 + form.most * (1 + columns))
        self.found = BufferRange(device_buffer(context, size_bytes), 0, size_bytes)
        self._kept = BufferRange(device_buffer(context, kept.nbytes, kept), 0, kept.nbytes)
        self._ranges: tuple[BufferSpan, ...] = (self.found, self._kept, scores, boxes)
        self._cost = Cost(0, scores.size_bytes + boxes.size_bytes + kept.nbytes, size_bytes)
        context.check_errors("making room for detections")

    def run(self) -> None:
        """Make detections of what the network has put out; who reads them puts the barrier."""
        self._calls.run(None, self._dispatch)

    def rows(self, data: BufferBytes) -> Floats:
        """Detections (n, 1 + C), best first, in the bytes of `found`."""
        found = data.view(np.float32)
        return found[1:].reshape(self._form.most, -1)[: int(found[0])].copy()

    def release(self) -> None:
        """Delete the program and the buffers."""
        self._gl.glDeleteProgram(self._program)
        for place in (self.found, self._kept):
            self._gl.delete("Buffers", place.buffer)

    def _dispatch(self) -> None:
        gl = self._gl
        gl.glUseProgram(self._program)
        for binding, place in enumerate(self._ranges):
            span = place.buffer, place.offset_bytes, place.size_bytes
            gl.glBindBufferRange(opengl.SHADER_STORAGE_BUFFER, binding, *span)
        gl.glMemoryBarrier(opengl.SHADER_STORAGE_BARRIER_BIT)
        with program_log.logged_pass(self._context, "detections", (1, 1, 1), (_GROUP, 1, 1), self._cost):
            gl.glDispatchCompute(1, 1, 1)


def place_defines(name: str, place: TensorRange) -> dict[str, ParameterValue]:
    """How a tensor lies in memory, for tensor_places.glsl."""
    return {
        f"{name}_CHANNELS": place.shape.channels,
        f"{name}_PIXELS": place.shape.pixels,
        f"{name}_LANES": place.stride,
    }
