"""What a decoder takes of a network's outputs on the GPU: reduced there where they are many, and read back at once."""

from collections.abc import Mapping, Sequence

import numpy as np

from texelflow.gpu_delegate.model.layout import FLOAT_BYTES
from texelflow.gpu_delegate.model.packing import from_memory, in_file_type
from texelflow.gpu_delegate.model.quantization import dequantized
from texelflow.gpu_delegate.targets.gl import opengl
from texelflow.gpu_delegate.targets.gl.gl_buffers import BufferBytes, WayOut, is_device_only
from texelflow.gpu_delegate.targets.gl.opengl import BufferSpan
from texelflow.gpu_delegate.targets.gl.runtime import Program

from ...models.decoders.decoding import ReadsRows, ReadsWindows
from ...models.decoders.suppression import detections_by_anchors
from ...models.finding_model import FindingModel
from ...picture.color_planes import Floats
from .detection_pass import MOST_ANCHORS, DetectionPass
from .row_pass import RowPass
from .window_pass import WindowPass


class GlOutputs:
    """Outputs of a program. release() frees what they are read through."""

    def __init__(self, program: Program, model: FindingModel) -> None:
        """Raises DeviceError."""
        self._program, self._model, context = program, model, program.context
        self._context, self._way_out = context, WayOut(context)
        self._ways: list[WayOut] = []  # of what is read later, by number
        self._tensors = [model.graph.outputs[place] for place in model.reads]
        self._detections: DetectionPass | None = None
        self._windows: dict[int, WindowPass] = {}  # in place of heat maps, by their places among what is read
        form, decoding = model.decoding.anchors, model.decoding
        is_one = form and len(form.scores) == len(form.boxes) == 1 and len(form.anchors) <= MOST_ANCHORS
        if form and is_one and self._are_floats(form.scores[0], form.boxes[0]):
            places = (program.range_of(self._tensors[place]) for place in (form.scores[0], form.boxes[0]))
            self._detections = DetectionPass(context, form, *places)
        windows = decoding.windows if isinstance(decoding, ReadsWindows) else None
        if windows and self._are_floats(windows.points, windows.maps):
            places = (program.range_of(self._tensors[place]) for place in (windows.points, windows.maps))
            self._windows[windows.maps] = WindowPass(context, windows, *places)
        rows = decoding.rows if isinstance(decoding, ReadsRows) else None
        self._rows: RowPass | None = None
        if rows and self._are_floats(rows.scores, rows.boxes):
            tensors = [self._tensors[place] for place in (rows.scores, rows.boxes)]
            shapes = [program.compiled.tensor(tensor).shape for tensor in tensors]
            self._rows = RowPass(context, rows, [program.range_of(tensor) for tensor in tensors], shapes)

    def read(self) -> list[Floats]:
        """What `decode` takes, of the last run; waits for the GPU. Raises InferenceError as Program.check_run."""
        form = self._model.decoding.anchors
        if self._detections:
            self._detections.run()
            data = self._bytes([self._detections.result])
            self._program.check_run()
            return [self._detections.rows(data[0])]
        if self._rows and (rows := self._sure_rows(self._rows)):
            return rows
        found = self._read(self._tensors, self._windows)
        return [detections_by_anchors(form, found)] if form else found

    @property
    def waits(self) -> bool:
        """Whether what one run puts out can wait to be read until others have run."""
        is_joined_here = self._model.decoding.anchors and not self._detections
        at_once = is_joined_here or self._rows or self._model.graph.faults
        return is_device_only(self._context) and not at_once

    def keep(self, number: int) -> None:
        """Have what read() gives copied on the GPU, where it waits until read_kept(number)."""
        while len(self._ways) <= number:
            self._ways.append(WayOut(self._context))
        if self._detections:
            self._detections.run()
        spans = [self._detections.result] if self._detections else self._spans(self._tensors, self._windows)
        self._context.gl.glMemoryBarrier(opengl.BUFFER_UPDATE_BARRIER_BIT)
        self._ways[number].take(spans)

    def read_kept(self, number: int) -> list[Floats]:
        """What keep() put aside last under that number; waits for the GPU. Raises DeviceError."""
        joined = self._detections
        spans = [joined.result] if joined else self._places(self._tensors, self._windows)
        data = [np.empty(span.size_bytes, np.uint8) for span in spans]
        self._ways[number].give([each.ctypes.data for each in data])
        return [joined.rows(data[0])] if joined else self._values(self._tensors, self._windows, data)

    def read_all(self) -> tuple[Floats, ...]:
        """All outputs of the graph, whole."""
        return tuple(self._read(self._model.graph.outputs, {}))

    def release(self) -> None:
        """Delete all buffers and programs of its own."""
        for way in (self._way_out, *self._ways):
            way.release()
        for each in (self._detections, self._rows, *self._windows.values()):
            if each:
                each.release()

    def _are_floats(self, *places: int) -> bool:
        """Whether passes can read outputs: floats in the file and in memory."""
        program, tensors = self._program, [self._tensors[place] for place in places]
        is_real = all(program.compiled.tensor(tensor).dtype == "float32" for tensor in tensors)
        return is_real and all(program.range_of(tensor).storage.value_bytes == FLOAT_BYTES for tensor in tensors)

    def _sure_rows(self, taken: RowPass) -> list[Floats] | None:
        """What `decode` takes, with no more than sure rows; None where they are too many."""
        taken.run()
        (data,) = self._bytes([taken.result])
        self._program.check_run()
        return taken.outputs(data)

    def _read(self, tensors: Sequence[int], windows: Mapping[int, WindowPass]) -> list[Floats]:
        """Some tensors, of which heat maps may have no more than windows."""
        data = self._bytes(self._spans(tensors, windows))
        self._program.check_run()
        return self._values(tensors, windows, data)

    def _spans(self, tensors: Sequence[int], windows: Mapping[int, WindowPass]) -> list[BufferSpan]:
        """Where they are, once passes have run."""
        for taken in windows.values():
            taken.run()
        return self._places(tensors, windows)

    def _places(self, tensors: Sequence[int], windows: Mapping[int, WindowPass]) -> list[BufferSpan]:
        places = [self._program.range_of(tensor) for tensor in tensors]
        return [windows[number].result if number in windows else place for number, place in enumerate(places)]

    def _values(
        self, tensors: Sequence[int], windows: Mapping[int, WindowPass], data: Sequence[BufferBytes]
    ) -> list[Floats]:
        """What bytes of them mean, in the shapes of the file."""
        found = list[Floats]()
        for number, (tensor, each) in enumerate(zip(tensors, data, strict=True)):
            if number in windows:
                found.append(windows[number].maps(each))
                continue
            place, own = self._program.range_of(tensor), self._program.compiled.tensor(tensor)
            values = in_file_type(from_memory(each, place.shape, place.storage), own).reshape(own.shape)
            found.append(dequantized(values, own))
        return found

    def _bytes(self, spans: Sequence[BufferSpan]) -> list[BufferBytes]:
        """The bytes of spans, in one way out."""
        data = [np.empty(span.size_bytes, np.uint8) for span in spans]
        self._context.gl.glMemoryBarrier(opengl.BUFFER_UPDATE_BARRIER_BIT)
        self._way_out.take(spans)
        self._way_out.give([each.ctypes.data for each in data])
        return data
