"""Several regions of a frame at once: what each gives alone, to the bit; the GPU is waited for when all are asked."""

from collections.abc import Callable, Iterator, Sequence

import numpy as np
import pytest

from tests.helpers.frame_regions import regions
from tests.helpers.picture_formats import FORMATS, PLANAR, noise
from tests.model_files.finding_models import seeing_network
from texelflow.app.frame.finding.cpu_regions import CpuRegions
from texelflow.app.frame.finding.region_networks import FrameRegions, open_regions
from texelflow.app.frame.inference.backends import ComputeBackend, CpuChoice
from texelflow.app.models.decoders.anchors import grid_anchors
from texelflow.app.models.decoders.found import Finding
from texelflow.app.models.finding_loading import load_finding_model
from texelflow.app.models.finding_model import FindingModel
from texelflow.app.picture.video_frame import VideoFrame
from texelflow.app.tracking.finder import found_in_each
from texelflow.gpu_delegate.targets.gl.context import Context
from texelflow.gpu_delegate.targets.gl.gl_buffers import WayOut
from texelflow.gpu_delegate.targets.gl.runtime import Program

SIZE = 64


@pytest.fixture(scope="module")
def hands(tmp_path_factory: pytest.TempPathFactory) -> FindingModel:
    """Points that depend on the color that is seen."""
    points = np.random.default_rng(4).uniform(0, SIZE, (1, 63)).astype(np.float32)
    path = tmp_path_factory.mktemp("models") / "hand_landmark.tflite"
    outputs = [points, np.ones((1, 1), np.float32), np.zeros((1, 1), np.float32), points / 100]
    path.write_bytes(seeing_network(outputs, (SIZE, SIZE), 1.0))
    return load_finding_model(str(path))


@pytest.fixture(scope="module")
def faces(tmp_path_factory: pytest.TempPathFactory) -> FindingModel:
    """A detector whose boxes depend on it."""
    rng, count = np.random.default_rng(0), len(grid_anchors((SIZE, SIZE), (8, 16, 16, 16)))
    boxes = rng.normal(0, 8, (1, count, 16)).astype(np.float32)
    boxes[..., 2:4] = rng.uniform(4, 40, (1, count, 2))
    path = tmp_path_factory.mktemp("models") / "faces.tflite"
    scores = rng.normal(-1, 1, (1, count, 1)).astype(np.float32)
    path.write_bytes(seeing_network([boxes, scores], (SIZE, SIZE), 3.0))
    return load_finding_model(str(path))


@pytest.fixture
def opened() -> Iterator[Callable[[ComputeBackend, FindingModel], FrameRegions]]:
    made = list[FrameRegions]()

    def opening(compute: ComputeBackend, model: FindingModel) -> FrameRegions:
        made.append(open_regions(compute, model, PLANAR))
        return made[-1]

    yield opening
    for each in made:
        each.release()


def check_together(network: FrameRegions, form_number: int) -> None:
    """Any number of regions, in frames of a format."""
    frame = VideoFrame(0, 0, 0.0, noise(FORMATS[form_number]))
    places = regions(frame.picture.format)[:4]
    alone = [network.find(frame, place) for place in places]
    assert any(not np.array_equal(one[0].points, alone[0][0].points) for one in alone[1:])
    for many in (4, 1, 3, 2, 0):
        assert_equal(found_in_each(network, frame, places[:many]), alone[:many])
    assert_equal(found_in_each(network, frame, places[::-1]), alone[::-1])


def assert_equal(found: tuple[tuple[Finding, ...], ...], wanted: list[tuple[Finding, ...]]) -> None:
    assert len(found) == len(wanted)
    for these, those in zip(found, wanted, strict=True):
        assert [each.score for each in these] == [each.score for each in those]
        for one, other in zip(these, those, strict=True):
            np.testing.assert_array_equal(one.points, other.points)
            np.testing.assert_array_equal(one.world, other.world)


@pytest.mark.parametrize("threads", [1, 2, 3, 5])
def test_threads_have_a_region_each(
    threads: int,
    hands: FindingModel,
    faces: FindingModel,
    opened: Callable[[ComputeBackend, FindingModel], FrameRegions],
) -> None:
    check_together(opened(ComputeBackend("cpu", None, CpuChoice("native", threads)), faces), 0)
    network = opened(ComputeBackend("cpu", None, CpuChoice("native", threads)), hands)
    for form in (0, -1, 6, 0):  # that before the last is of one column, which NumPy cuts
        check_together(network, form)


def test_tensorflow_lite_has_one_after_the_other(hands: FindingModel) -> None:
    judge = CpuRegions(hands, 1)
    check_together(judge, 0)
    judge.release()


def test_opengl_is_waited_for_once_all_are_asked(
    context: Context,
    hands: FindingModel,
    faces: FindingModel,
    opened: Callable[[ComputeBackend, FindingModel], FrameRegions],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    network, detector = (opened(ComputeBackend("gl", context), model) for model in (hands, faces))
    check_together(network, 0)  # what software renders is read where it is: one after the other
    if not context.gl.buffer_storage:
        pytest.skip("this driver has no buffers that the CPU cannot reach")
    for module in ("texelflow.gpu_delegate.targets.gl.gl_buffers", "texelflow.app.frame.finding.gl_outputs"):
        monkeypatch.setattr(f"{module}.is_device_only", lambda context: True)
    asked = list[str]()
    run, give = Program.run, WayOut.give

    def noted_run(program: Program) -> None:
        asked.append("run")
        run(program)

    def noted_give(way_out: WayOut, addresses: Sequence[int]) -> None:
        asked.append("read")
        give(way_out, addresses)

    monkeypatch.setattr(Program, "run", noted_run)
    monkeypatch.setattr(WayOut, "give", noted_give)
    frame = VideoFrame(0, 0, 0.0, noise(PLANAR))
    found_in_each(network, frame, regions(PLANAR)[:3])
    assert asked == ["run"] * 3 + ["read"] * 3
    for form in (0, -1):
        check_together(network, form)
        check_together(detector, form)
