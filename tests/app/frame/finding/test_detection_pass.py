"""Detections that the GPU makes of a network's raw numbers, against suppression.py, and what is read back of them."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from tests.helpers.markers import exhaustive_if, on_both_apis
from texelflow.app.frame.finding.detection_pass import DetectionPass
from texelflow.app.models.decoders.anchors import grid_anchors
from texelflow.app.models.decoders.decoding import AnchorForm
from texelflow.app.models.decoders.suppression import detections_by_anchors, overlap_with
from texelflow.gpu_delegate.model.layout import PHWC4, PLAIN, MapShape, Storage
from texelflow.gpu_delegate.model.packing import to_memory
from texelflow.gpu_delegate.targets.gl.context import Context
from texelflow.gpu_delegate.targets.gl.gl_buffers import device_buffer, read_buffer, write_buffer
from texelflow.gpu_delegate.targets.gl.opengl import BUFFER_UPDATE_BARRIER_BIT
from texelflow.gpu_delegate.targets.gl.runtime import TensorRange

Floats = npt.NDArray[np.float32]
LEAST = 0.45  # scores of steps of a quarter keep away from it


@dataclass(frozen=True)
class Numbers:
    """How many anchors there are, and how outputs with their scores and boxes are shaped and stored."""

    size: int
    strides: tuple[int, ...]
    columns: int
    scores: MapShape
    boxes: MapShape
    stored: Storage = PHWC4
    most: int = 8

    @property
    def form(self) -> AnchorForm:
        anchors = grid_anchors((self.size, self.size), self.strides)
        scale = (float(self.size), float(self.size))
        return AnchorForm(anchors, (0,), (1,), scale, self.columns, least_score=LEAST, most=self.most)


CASES = {
    "faces": Numbers(64, (8, 16, 16, 16), 16, MapShape(1, 1, 224, 1), MapShape(1, 1, 224, 16), PLAIN),
    "bodies": Numbers(56, (8, 16, 32, 32, 32), 12, MapShape(1, 1, 154, 1), MapShape(1, 1, 154, 12), PHWC4, 3),
    "maps": Numbers(20, (4, 4), 18, MapShape(1, 5, 5, 4), MapShape(1, 5, 5, 72), PHWC4, 20),
    "few": Numbers(8, (8, 8), 4, MapShape(1, 1, 4, 1), MapShape(1, 1, 4, 4), PLAIN),
}


class Device:
    """A pass with the outputs that it reads."""

    def __init__(self, context: Context, numbers: Numbers) -> None:
        self.context, self.form = context, numbers.form
        self.scores = self._range(numbers.scores, numbers.stored)
        self.boxes = self._range(numbers.boxes, PHWC4)
        self.made = DetectionPass(context, self.form, self.scores, self.boxes)

    def _range(self, shape: MapShape, storage: Storage) -> TensorRange:
        size_bytes = storage.size_bytes(shape)
        return TensorRange(device_buffer(self.context, size_bytes), 0, size_bytes, 0, shape, storage)

    def detections(self, scores: Floats, boxes: Floats) -> Floats:
        for place, values in ((self.scores, scores), (self.boxes, boxes)):
            shape = place.shape
            stored = to_memory(values.reshape(shape.rows, shape.width, shape.channels), place.storage)
            self.context.gl.glMemoryBarrier(BUFFER_UPDATE_BARRIER_BIT)
            write_buffer(self.context, place, np.ascontiguousarray(stored).ctypes.data)
        self.made.run()
        return self.made.rows(read_buffer(self.context, self.made.result))

    def release(self) -> None:
        self.made.release()
        for place in (self.scores, self.boxes):
            self.context.gl.delete("Buffers", place.buffer)


@pytest.fixture(params=[exhaustive_if(name in ("bodies", "few"), name) for name in CASES])
def device(request: pytest.FixtureRequest, context: Context) -> Iterator[Device]:
    made = Device(context, CASES[request.param])
    yield made
    made.release()


def raw(form: AnchorForm, seed: int, share: float) -> tuple[Floats, Floats]:
    """Scores and boxes of which a share are detections; many scores are equal, many boxes overlap."""
    rng, count = np.random.default_rng(seed), len(form.anchors)
    scores = np.where(rng.random(count) < share, rng.integers(0, 12, count), -8) / 4
    boxes = rng.normal(0, form.scale[0] / 4, (count, form.columns))
    boxes[:, 2:4] = rng.uniform(-form.scale[0] / 8, form.scale[0], (count, 2))
    return scores.astype(np.float32), boxes.astype(np.float32)


def is_decided(form: AnchorForm, boxes: Floats) -> bool:
    """Whether no overlap is so near to the limit that rounding decides."""
    places = boxes[:, :4].reshape(-1, 2, 2) / form.scale
    places[:, 0] += form.anchors[:, :2]
    rows = places.reshape(-1, 4).astype(np.float32)
    return all((np.abs(overlap_with(row, rows) - form.least_iou) > 1e-5).all() for row in rows)


@on_both_apis
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=6)
@given(seed=st.integers(0, 1 << 32), share=st.sampled_from([0.0, 0.02, 0.2, 1.0]))
def test_detections_are_those_of_numpy(device: Device, seed: int, share: float) -> None:
    scores, boxes = raw(device.form, seed, share)
    assume(is_decided(device.form, boxes))
    expected = detections_by_anchors(device.form, [boxes, scores])
    found = device.detections(scores, boxes)
    assert found.shape == expected.shape
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("wrong", [np.nan, np.inf, 3e38])
def test_what_is_no_number_is_no_detection(device: Device, wrong: float) -> None:
    scores, boxes = raw(device.form, 7, 1.0)
    scores[::2] = np.nan
    boxes[1::4, -1] = wrong
    expected = detections_by_anchors(device.form, [boxes, scores])
    np.testing.assert_allclose(device.detections(scores, boxes), expected, rtol=1e-5, atol=1e-5)
    assert not len(device.detections(np.full_like(scores, np.nan), boxes))


def test_thousands_that_are_alike_are_one(context: Context) -> None:
    """Each pair of them overlaps; software renderers end loops that are long."""
    numbers = replace(CASES["faces"], size=256, scores=MapShape(1, 1, 3584, 1), boxes=MapShape(1, 1, 3584, 16))
    device, rng = Device(context, numbers), np.random.default_rng(0)
    scores = rng.normal(3, 0.5, 3584).astype(np.float32)
    boxes = rng.normal(0, 1, (3584, 16)).astype(np.float32)
    boxes[:, :2] = (0.5 - device.form.anchors[:, :2]) * 256 + boxes[:, :2]
    boxes[:, 2:4] = 60
    expected = detections_by_anchors(device.form, [boxes, scores])
    assert len(expected) == 1
    np.testing.assert_allclose(device.detections(scores, boxes), expected, rtol=1e-3, atol=1e-3)
    device.release()


def test_some_hundred_bytes_are_read_back(context: Context) -> None:
    device = Device(context, CASES["faces"])
    scores, boxes = raw(device.form, 1, 0.5)
    before = context.readback.bytes
    assert len(device.detections(scores, boxes)) == 8
    assert context.readback.bytes - before == 4 * (1 + 8 * (1 + 16)) == 548
    device.release()
