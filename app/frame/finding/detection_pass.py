"""The pass that makes a few detections of a network's raw numbers on the GPU, as suppression.py defines it.

One dispatch of one work-group; what is read back of it are as many rows as there may be detections.
"""

import numpy as np

from texelflow.gpu_delegate.targets.gl.context import Context
from texelflow.gpu_delegate.targets.gl.gl_buffers import BufferBytes
from texelflow.gpu_delegate.targets.gl.runtime import TensorRange
from texelflow.gpu_delegate.targets.glsl.shader import ParameterValue

from ...models.decoders.decoding import AnchorForm
from ...models.decoders.suppression import MOST_FRACTION
from ...picture.color_planes import Floats
from .output_pass import OutputPass, buffer_of, place_defines

MOST_ANCHORS = 1 << 14  # with more of them, all alike, one work-group would take so long that GPUs are reset
_GROUP = 128  # OpenGL ES 3.1 promises so many invocations
_KEPT_FLOATS = 11  # of each anchor: itself, a candidate's box, score and number, and a number that joins


class DetectionPass(OutputPass):
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
        self._form = form
        kept = np.zeros(_KEPT_FLOATS * count, np.float32)
        kept[: 4 * count] = form.anchors.ravel()
        found = buffer_of(context, 1 + form.most * (1 + columns))
        own = found, buffer_of(context, kept.size, kept)
        super().__init__(context, "detections", defines, own, (scores, boxes), _GROUP)

    def rows(self, data: BufferBytes) -> Floats:
        """Detections (n, 1 + C), best first, in the bytes of the result."""
        found = data.view(np.float32)
        return found[1:].reshape(self._form.most, -1)[: int(found[0])].copy()
