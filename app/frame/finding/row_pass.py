"""The pass that takes the rows that a network is sure of out of its outputs, on the GPU, for decoders of many boxes."""

from collections.abc import Sequence

import numpy as np

from texelflow.gpu_delegate.model.graph import Shape
from texelflow.gpu_delegate.model.layout import FLOAT_BYTES, ceil_div
from texelflow.gpu_delegate.targets.gl import opengl
from texelflow.gpu_delegate.targets.gl.context import Context
from texelflow.gpu_delegate.targets.gl.gl_buffers import BufferBytes, clear_buffer
from texelflow.gpu_delegate.targets.gl.opengl import BufferRange
from texelflow.gpu_delegate.targets.gl.runtime import TensorRange
from texelflow.gpu_delegate.targets.glsl.shader import ParameterValue

from ...models.decoders.decoding import SureRows
from ...picture.color_planes import Floats
from .output_pass import OutputPass, buffer_of, place_defines

_GROUP = 64
_FLOATS = 2000  # of all rows together, that are read back
_HEAD = 3  # numbers in front of a row's own: its number, its class, and that one's score
_MARGIN = 1e-3  # below the least score: what rounding decides is left to the decoder


class RowPass(OutputPass):
    """Sure rows of one network's outputs. release() frees its buffer."""

    def __init__(
        self, context: Context, form: SureRows, outputs: Sequence[TensorRange], shapes: Sequence[Shape]
    ) -> None:
        """Of an output with scores and one with boxes, with their shapes in the file. Raises DeviceError."""
        scores, boxes = outputs
        (count, self._score_columns), (_, self._box_columns) = (
            shape[:-3:-1] if form.rows_last else shape[-2:] for shape in shapes
        )
        self._form, self._count, self._row = form, count, _HEAD + sum(last - first for first, last in form.kept)
        self.most = max(32, _FLOATS // self._row)
        ranges = [*form.kept, (0, 0)][:2]
        defines: dict[str, ParameterValue] = {
            "ROWS": count,
            "FIRST": form.first,
            "CLASSES": form.classes,
            "SCORE_COLUMNS": self._score_columns,
            "FACTOR": form.factor,
            "LEAST": float(form.least) - _MARGIN,
            "BOX_COLUMNS": self._box_columns,
            **{f"FROM_{name}": first for name, (first, _) in zip("AB", ranges, strict=True)},
            **{f"COUNT_{name}": last - first for name, (first, last) in zip("AB", ranges, strict=True)},
            "ROWS_LAST": int(form.rows_last),
            "MOST": self.most,
            **place_defines("SCORE", scores),
            **place_defines("BOX", boxes),
        }
        own, groups = (buffer_of(context, 1 + self.most * self._row),), ceil_div(count, _GROUP)
        super().__init__(context, "sure_rows", defines, own, outputs, _GROUP, groups)

    def run(self) -> None:
        """Also sets the number of rows to 0 first."""
        self._gl.glMemoryBarrier(opengl.BUFFER_UPDATE_BARRIER_BIT)
        clear_buffer(self._context, BufferRange(self.result.buffer, 0, FLOAT_BYTES))
        super().run()

    def outputs(self, data: BufferBytes) -> list[Floats] | None:
        """The network's outputs in its order, (1, N, V) or (1, V, N), in which rows that were not read are nothing.

        Of each row its best class alone has a score. None where there are more rows than were read.
        """
        form, count = self._form, int(data[:FLOAT_BYTES].view(np.uint32)[0])
        if count > self.most:
            return None
        rows = data[FLOAT_BYTES:].view(np.float32)[: count * self._row].reshape(count, self._row)
        numbers, classes = (rows[:, column].astype(np.intp) for column in (0, 1))
        found = {form.scores: np.full((self._count, self._score_columns), form.nothing, np.float32)}
        boxes = found.setdefault(form.boxes, np.zeros((self._count, self._box_columns), np.float32))
        start = _HEAD
        for first, last in form.kept:
            boxes[:, first:last] = 0
            boxes[numbers, first:last] = rows[:, start : start + last - first]
            start += last - first
        found[form.scores][numbers, form.first + classes] = rows[:, 2]
        return [found[place].T[None] if form.rows_last else found[place][None] for place in sorted(found)]
