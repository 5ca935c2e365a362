"""What a finder finds beside masks is of the frame that is drawn, and comes and goes with the stages of a model."""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest

from texelflow.app.frame.finding.finding_stage import FIND, FindingStage
from texelflow.app.frame.inference.backends import ComputeBackend
from texelflow.app.frame.inference.network_options import NetworkOptions
from texelflow.app.models.decoders.found import Finding, moved_finding
from texelflow.app.models.decoders.region import FrameRegion
from texelflow.app.models.model_loading import load_segmentation
from texelflow.app.picture.picture import rgba_format, rgba_picture
from texelflow.app.picture.video_frame import VideoFrame
from texelflow.app.session.derived import chosen_look_of, refinement_of
from texelflow.app.session.frame_parts import FrameParts
from texelflow.app.session.model_stages import ModelStages, SharedParts, SwitchableStages, stages_in_steps
from texelflow.app.session.workload import Work, Workload
from texelflow.app.settings.settings import Settings
from texelflow.gpu_delegate.targets.gl.context import Context

SIZE = (64, 48)


class Brightest:
    """Finds the brightest pixel of a frame; its score is how many frames it has seen."""

    def __init__(self) -> None:
        self.seen = 0

    def find(self, frame: VideoFrame) -> tuple[Finding, ...]:
        self.seen += 1
        y, x = np.unravel_index(frame.rgba[..., 0].argmax(), frame.rgba.shape[:2])
        return (Finding("object", self.seen / 100, FrameRegion(float(x) + 0.5, float(y) + 0.5, 1, 1)),)

    def begin_anew(self) -> None:
        self.seen = 0


def frame(index: int) -> VideoFrame:
    """Bright at the pixel whose x is its number."""
    pixels = np.zeros((SIZE[1], SIZE[0], 4), np.uint8)
    pixels[7, index, 0] = 255
    return VideoFrame(index, index, index * 40.0, rgba_picture(pixels))


@pytest.fixture(params=["gl", "cpu"])
def made(request: pytest.FixtureRequest, context: Context) -> Iterator[ModelStages]:
    """Of a segmentation, with nothing beside it."""
    shared = SharedParts(ComputeBackend(request.param, context), rgba_format(SIZE), NetworkOptions(), None)
    settings = Settings()
    steps = stages_in_steps(shared, load_segmentation("selfie"), chosen_look_of(settings), refinement_of(settings))
    while True:
        try:
            next(steps)
        except StopIteration as end:
            stages: ModelStages = end.value
            break
    yield stages
    stages.segmenter.release()


def places(findings: tuple[Finding, ...]) -> list[float]:
    return [finding.box[0] for finding in findings]


def test_what_is_found_is_of_the_frame_that_is_drawn(made: ModelStages, context: Context) -> None:
    finder = FindingStage(Brightest(), kept=3)
    finding = replace(made, finder=finder, stages=(*made.stages, finder.stage), free_segmenter=lambda: None)
    stages = SwitchableStages(finding, "selfie")
    parts = FrameParts(
        shared=None, stages=stages, pipeline=None, workload=Workload(Work(), False),  # type: ignore[arg-type]
    )  # fmt: skip
    pipeline = parts.open_pipeline(context if made.compute.backend == "gl" else None)
    assert FIND in pipeline.names
    for index in range(3):
        pipeline.submit(frame(index))
        assert places(stages.findings) == [index]
    stages.age = 1  # the frame before it is drawn
    pipeline.submit(frame(3))
    assert places(stages.findings) == [2]
    stages.age, stages.finds = 0, False  # a frame that the finder does not see has what was found before
    pipeline.submit(frame(4))
    assert places(stages.findings) == [3]
    assert [places(record.findings) for record in pipeline.drain()] == [[0], [1], [2], [2], [3]]
    stages.begin_anew()
    assert stages.findings == ()
    pipeline.submit(frame(5))
    stages.take_over(replace(made, free_segmenter=lambda: None), "selfie")  # without a finder
    (left,) = parts.follow_stages()
    assert (left.index, FIND in pipeline.names, parts.follow_stages()) == (5, False, [])
    pipeline.submit(frame(6))
    assert [record.findings for record in pipeline.drain()] == [()]
    pipeline.release()


def test_what_is_found_moves_with_its_picture() -> None:
    points = np.array([[1, 2, 3]], np.float32)
    found = moved_finding(Finding("hand", 0.5, FrameRegion(10, 20, 4, 6, 0.5), points=points), 100, 50, 0.5)
    assert found.region == FrameRegion(105, 60, 2, 3, 0.5)
    assert found.points.tolist() == [[100.5, 51, 1.5]]
