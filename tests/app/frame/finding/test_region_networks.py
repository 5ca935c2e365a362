"""Networks on regions in every way against TensorFlow Lite: what they find, what they share, and what comes back."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.helpers.frame_regions import regions
from tests.helpers.markers import on_both_apis, one_in
from tests.helpers.picture_formats import FORMATS, PLANAR, noise
from tests.model_files.finding_models import seeing_network
from tests.model_files.model_builder import ModelBuilder
from texelflow.app.frame.finding.cpu_regions import CpuRegions
from texelflow.app.frame.finding.native_regions import NativeRegions
from texelflow.app.frame.finding.region_networks import FrameRegions, finished, open_regions, regions_in_steps
from texelflow.app.frame.finding.seen_frames import SeenFrames
from texelflow.app.frame.inference.backends import ComputeBackend, CpuChoice
from texelflow.app.models.decoders.anchors import grid_anchors
from texelflow.app.models.decoders.found import Finding
from texelflow.app.models.finding_loading import load_finding_model
from texelflow.app.models.finding_model import FindingModel
from texelflow.app.picture.picture import rgba_format
from texelflow.app.picture.video_frame import VideoFrame
from texelflow.gpu_delegate.targets.gl.context import Context

SIZE, STRIDES = 64, (8, 16, 16, 16)
CPU = ComputeBackend("cpu", None, CpuChoice("native", 1))


@pytest.fixture(scope="module")
def faces(tmp_path_factory: pytest.TempPathFactory) -> FindingModel:
    """A detector whose boxes and scores depend on the color that it sees."""
    rng, count = np.random.default_rng(0), len(grid_anchors((SIZE, SIZE), STRIDES))
    boxes = rng.normal(0, 8, (1, count, 16)).astype(np.float32)
    boxes[..., 2:4] = rng.uniform(4, 40, (1, count, 2))
    scores = rng.normal(-1, 1, (1, count, 1)).astype(np.float32)
    path = tmp_path_factory.mktemp("models") / "faces.tflite"
    path.write_bytes(seeing_network([boxes, scores], (SIZE, SIZE), 3.0))
    return load_finding_model(str(path))


@pytest.fixture(scope="module")
def hands(tmp_path_factory: pytest.TempPathFactory) -> FindingModel:
    """Landmarks that depend on it."""
    rng = np.random.default_rng(2)
    points = rng.uniform(0, SIZE, (1, 63)).astype(np.float32)
    path = tmp_path_factory.mktemp("models") / "hand_landmark.tflite"
    outputs = [points, np.ones((1, 1), np.float32), np.zeros((1, 1), np.float32), points / 100]
    path.write_bytes(seeing_network(outputs, (SIZE, SIZE), 1.0))
    return load_finding_model(str(path))


@pytest.fixture
def released() -> Iterator[list[FrameRegions]]:
    """What is freed behind the test."""
    opened = list[FrameRegions]()
    yield opened
    for each in opened:
        each.release()


def assert_same(found: tuple[Finding, ...], expected: tuple[Finding, ...]) -> None:
    assert len(found) == len(expected)
    for one, other in zip(found, expected, strict=True):
        assert (one.kind, one.label) == (other.kind, other.label)
        assert abs(one.score - other.score) < 1e-5
        np.testing.assert_allclose(one.box, other.box, rtol=1e-4, atol=0.02)
        np.testing.assert_allclose(one.points, other.points, rtol=1e-4, atol=0.02)


def check(network: FrameRegions, model: FindingModel, form_number: int) -> None:
    """One frame of a format, in several regions."""
    judge = CpuRegions(model, 1, as_read=True)
    picture = noise(FORMATS[form_number])
    for region in regions(picture.format)[:4]:
        expected = judge.find(VideoFrame(0, 0, 0.0, picture), region)
        assert_same(network.find(VideoFrame(0, 0, 0.0, picture), region), expected)
        assert expected or model.decoding.anchors is None
        tensors = network.outputs(picture, region)
        for found, wanted in zip(tensors, judge.outputs(picture, region), strict=True):
            np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-3)
    judge.release()


@pytest.mark.parametrize("engine", ["native", "tflite"])
def test_the_cpu_finds_what_tensorflow_lite_does(
    engine: str, faces: FindingModel, hands: FindingModel, released: list[FrameRegions]
) -> None:
    for model in (faces, hands):
        network = open_regions(replace(CPU, cpu=CpuChoice("native" if engine == "native" else "tflite", 1)), model,
                               PLANAR)  # fmt: skip
        released.append(network)
        assert isinstance(network, NativeRegions) == (engine == "native")
        for form in (0, -1, 6):  # the last is of one column, which NumPy cuts
            check(network, model, form)


@on_both_apis
def test_opengl_finds_what_tensorflow_lite_does(
    context: Context, faces: FindingModel, hands: FindingModel, released: list[FrameRegions]
) -> None:
    seen = SeenFrames(context)
    for model in (faces, hands):
        released.append(open_regions(ComputeBackend("gl", context), model, PLANAR, seen=seen))
        for form in (0, -1):
            check(released[-1], model, form)
    seen.release()


def test_a_frame_goes_up_once_and_little_comes_back(
    context: Context, faces: FindingModel, hands: FindingModel, released: list[FrameRegions]
) -> None:
    frame, seen = VideoFrame(0, 0, 0.0, noise(rgba_format((37, 23)))), SeenFrames(context)
    machine = ComputeBackend("gl", context)
    released += [open_regions(machine, model, frame.picture.format, seen=seen) for model in (faces, hands)]
    context.readback.bytes = 0
    read = []
    for network in released:
        for region in regions(frame.picture.format)[:2]:
            network.find(frame, region)
        read.append(context.readback.bytes)
    assert read == [2 * 548, 2 * 548 + 2 * 544]  # rows of 17 and a count; 34 texels of four
    assert seen.uploaded_bytes == 37 * 23 * 4
    while released:
        released.pop().release()
        assert bool(seen.uploaded_bytes) == bool(released)  # textures go with the last one


def test_textures_may_be_lent(context: Context, faces: FindingModel, released: list[FrameRegions]) -> None:
    owner, frame = SeenFrames(context), VideoFrame(0, 0, 0.0, noise(PLANAR))
    lent = SeenFrames(context, lambda: owner.see(frame.picture))
    released.append(open_regions(ComputeBackend("gl", context), faces, PLANAR, seen=lent))
    check_region = regions(PLANAR)[1]
    judge = CpuRegions(faces, 1, as_read=True)
    assert_same(released[0].find(frame, check_region), judge.find(frame, check_region))
    assert lent.uploaded_bytes == 0
    with pytest.raises(ValueError, match="is not in textures of"):
        released[0].find(VideoFrame(0, 0, 0.0, noise(FORMATS[-1])), check_region)
    owner.release()
    judge.release()


def test_networks_share_a_pool(faces: FindingModel, hands: FindingModel, released: list[FrameRegions]) -> None:
    machine = replace(CPU, cpu=CpuChoice("native", 2))
    made = finished(regions_in_steps(machine, [faces, hands], PLANAR))
    released += made
    pools = [each.pool for each in made if isinstance(each, NativeRegions)]
    assert len(pools) == 2
    assert pools[0] is pools[1]
    for network, model in zip(made, (faces, hands), strict=True):
        check(network, model, 0)


def steps_in(dtype: str, zero: int) -> bytes:
    """21 points of a hand, of a network whose input is whole numbers: steps of a 64th from a zero point."""
    model, rng = ModelBuilder(), np.random.default_rng(5)
    model.inputs.append(model.tensor((1, SIZE, SIZE, 3), dtype, scales=(1 / 64,), zero_points=(zero,)))
    real = model.op("DEQUANTIZE", model.inputs, (1, SIZE, SIZE, 3))
    color = model.op("MEAN", [real, model.constant([1, 2], "int32")], (1, 3))
    for count, around in ((63, 20.0), (1, 1.0), (1, 0.0)):
        ways = model.constant(rng.uniform(-1, 1, (count, 3)).astype(np.float32) * (count > 1))
        bias = model.constant(np.full(count, around, np.float32))
        model.output(model.op("FULLY_CONNECTED", [color, ways, bias], (1, count)))
    return model.build()


@one_in(2, ("dtype", "zero"), [("uint8", 3), ("int8", -128)])
def test_inputs_of_whole_numbers(
    context: Context, tmp_path: Path, released: list[FrameRegions], dtype: str, zero: int
) -> None:
    path = tmp_path / "hand.tflite"
    path.write_bytes(steps_in(dtype, zero))
    model = load_finding_model(str(path))
    for compute in (ComputeBackend("gl", context), CPU):
        released.append(open_regions(compute, model, PLANAR))
        check(released[-1], model, 0)
