"""Rows that the GPU takes out of outputs with many boxes: a decoder finds with them what it finds with all."""

from pathlib import Path

import numpy as np
import numpy.typing as npt

from tests.helpers.markers import on_both_apis, one_in
from tests.model_files.finding_models import network_of
from texelflow.app.frame.finding.region_networks import open_regions
from texelflow.app.frame.inference.backends import ComputeBackend, CpuChoice
from texelflow.app.models.decoders.anchors import ssd_anchors
from texelflow.app.models.decoders.decoding import ReadsRows
from texelflow.app.models.decoders.region import FrameRegion
from texelflow.app.models.finding_loading import load_finding_model
from texelflow.app.picture.picture import rgba_picture
from texelflow.app.picture.video_frame import VideoFrame
from texelflow.gpu_delegate.targets.gl.context import Context

Floats = npt.NDArray[np.float32]
SIZE, BOXES = 64, 84
CPU = ComputeBackend("cpu", None, CpuChoice("native", 1))
FRAME = VideoFrame(0, 0, 0.0, rgba_picture(np.zeros((20, 30, 4), np.uint8)))


def yolo(rng: np.random.Generator, boxes: int, values: int, sure: int) -> Floats:
    """Rows of which some are sure of one of their classes; some numbers of others are none."""
    found = np.asarray(rng.uniform(0, 0.45, (boxes, values)), np.float32)
    found[:, 2:4] = rng.uniform(0.05, 0.3, (boxes, 2))
    rows = rng.permutation(boxes)[:sure]
    found[rows, 4] = 0.95
    found[rows, rng.integers(5, 8, sure)] = rng.uniform(0.55, 0.99, sure)
    found[(rows[0] + 1) % boxes, 7:] = np.nan
    return found[None]


def ssd(rng: np.random.Generator, sure: int) -> list[Floats]:
    count = len(ssd_anchors((300, 300)))
    boxes, scores = rng.normal(0, 2, (1, count, 4)), rng.uniform(-9, -1, (1, count, 5))
    scores[0, rng.permutation(count)[:sure], 3] = 2.5
    return [boxes.astype(np.float32), scores.astype(np.float32)]


def outputs_of(name: str, sure: int) -> tuple[list[Floats], int]:
    """A network's outputs, and the side of its input."""
    rng = np.random.default_rng(3)
    if name == "ssd":
        return ssd(rng, sure), 300
    if name == "poses":
        return [yolo(rng, BOXES, 56, sure)], SIZE
    if name == "older":
        return [yolo(rng, 3 * BOXES, 9, sure)], SIZE
    return [np.ascontiguousarray(yolo(rng, BOXES, 9, sure).transpose(0, 2, 1))], SIZE


@on_both_apis
@one_in(3, ("name", "row"), [("yolo", 7), ("older", 8), ("poses", 58), ("ssd", 7)])
def test_sure_rows_are_all_that_is_read(context: Context, tmp_path: Path, name: str, row: int) -> None:
    bytes_of = 4 * (1 + max(32, 2000 // row) * row)
    for sure in (1, 20):
        outputs, side = outputs_of(name, sure)
        path = tmp_path / f"{name}{sure}.tflite"
        path.write_bytes(network_of(outputs, (side, side)))
        model = load_finding_model(str(path))
        assert isinstance(model.decoding, ReadsRows)
        found = []
        for compute in (ComputeBackend("gl", context), CPU):
            network = open_regions(compute, model, FRAME.picture.format)
            before = context.readback.bytes
            found.append(network.find(FRAME, FrameRegion(15, 10, 20, 20, 0.4)))
            assert context.readback.bytes - before == (bytes_of if compute.context else 0)
            network.release()
        assert len(found[0]) == len(found[1]) > 0
        for one, other in zip(*found, strict=True):
            assert (one.kind, one.label, one.score) == (other.kind, other.label, other.score)
            np.testing.assert_allclose(one.box, other.box, rtol=1e-5, atol=1e-4)
            np.testing.assert_allclose(one.points, other.points, rtol=1e-5, atol=1e-4)


def test_all_is_read_where_rows_are_too_many(context: Context, tmp_path: Path) -> None:
    outputs, side = outputs_of("poses", 60)
    path = tmp_path / "poses.tflite"
    path.write_bytes(network_of(outputs, (side, side)))
    model, found = load_finding_model(str(path)), []
    for compute in (ComputeBackend("gl", context), CPU):
        network = open_regions(compute, model, FRAME.picture.format)
        found.append(network.find(FRAME, FrameRegion(15, 10, 20, 20, 0.4)))
        network.release()
    assert [each.score for each in found[0]] == [each.score for each in found[1]]
    assert len(found[0]) > 5
