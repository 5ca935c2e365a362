"""Windows of heat maps from the GPU: a decoder finds with them what it finds with all of the maps."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.helpers.markers import on_both_apis
from tests.model_files.finding_models import network_of
from texelflow.app.frame.finding.region_networks import open_regions
from texelflow.app.frame.finding.window_pass import WindowPass
from texelflow.app.frame.inference.backends import ComputeBackend, CpuChoice
from texelflow.app.models.decoders.body_points import sharpened
from texelflow.app.models.decoders.decoding import PointWindows
from texelflow.app.models.decoders.region import FrameRegion
from texelflow.app.models.finding_loading import load_finding_model
from texelflow.app.picture.picture import rgba_picture
from texelflow.app.picture.video_frame import VideoFrame
from texelflow.gpu_delegate.model.layout import PHWC4, MapShape
from texelflow.gpu_delegate.model.packing import to_memory
from texelflow.gpu_delegate.targets.gl.context import Context
from texelflow.gpu_delegate.targets.gl.gl_buffers import device_buffer, read_buffer
from texelflow.gpu_delegate.targets.gl.runtime import TensorRange

WIDTH, HEIGHT, POINTS, COLUMNS = 13, 9, 6, 5
SIZE = (64, 48)  # of the input


@on_both_apis
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=5)
@given(seed=st.integers(0, 1 << 32), far=st.sampled_from([0.0, 0.3, 1e9]))
def test_points_are_sharpened_as_by_all_of_the_maps(context: Context, seed: int, far: float) -> None:
    rng = np.random.default_rng(seed)
    maps = rng.normal(0, 2, (1, HEIGHT, WIDTH, POINTS)).astype(np.float32)
    points = rng.uniform(-far, 1 + far, (POINTS, COLUMNS)).astype(np.float32)
    points[:, :2] *= SIZE
    points[0, 0] = rng.choice([0, np.nan, np.inf, SIZE[0]])
    shapes = MapShape(1, 1, 1, POINTS * COLUMNS), MapShape(1, HEIGHT, WIDTH, POINTS)
    places = []
    for shape, values in zip(shapes, (points, maps), strict=True):
        stored = to_memory(values.reshape(shape.rows, shape.width, shape.channels), PHWC4)
        buffer = device_buffer(context, stored.nbytes, np.ascontiguousarray(stored))
        places.append(TensorRange(buffer, 0, stored.nbytes, 0, shape))
    made = WindowPass(context, PointWindows(0, COLUMNS, 1, SIZE, 3), *places)
    made.run()
    found = made.maps(read_buffer(context, made.result))
    made.release()
    for place in places:
        context.gl.delete("Buffers", place.buffer)
    fractions = points[:, :2] / np.array(SIZE, np.float32)
    np.testing.assert_array_equal(sharpened(fractions, found), sharpened(fractions, maps))
    assert found.shape == maps.shape


def test_a_pose_is_read_without_its_maps(context: Context, tmp_path_factory: pytest.TempPathFactory) -> None:
    rng, size = np.random.default_rng(4), 32
    points = rng.uniform(4, 28, (1, 195)).astype(np.float32)
    maps = rng.normal(0, 1, (1, 16, 16, 39)).astype(np.float32)
    outputs = [points, np.ones((1, 1), np.float32), maps, points[:, :117] / 50]
    path = tmp_path_factory.mktemp("models") / "pose_landmark.tflite"
    path.write_bytes(network_of(outputs, (size, size)))
    model = load_finding_model(str(path))
    frame = VideoFrame(0, 0, 0.0, rgba_picture(np.zeros((20, 30, 4), np.uint8)))
    region = FrameRegion(15, 10, 20, 20, 0.4)
    read = []
    for compute in (ComputeBackend("gl", context), ComputeBackend("cpu", None, CpuChoice("native", 1))):
        network = open_regions(compute, model, frame.picture.format)
        before = context.readback.bytes
        read.append(network.find(frame, region))
        if compute.context:
            windows = 4 * (2 * 39 + 39 * 11 * 11)
            assert context.readback.bytes - before == windows + 16 * (49 + 1 + 30) < maps.nbytes
        network.release()
    (ours,), (expected,) = read
    np.testing.assert_allclose(ours.points, expected.points, rtol=0, atol=1e-4)
