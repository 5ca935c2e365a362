"""Frames whose masks are compared with TensorFlow Lite's: which ones, and that what differs is found."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.helpers.clips import moving
from tests.model_files.frame_models import class_network
from texelflow.app.frame.inference.backends import CpuChoice
from texelflow.app.frame.inference.cpu_engine import open_cpu_path
from texelflow.app.frame.inference.frame_segmenter import CpuSegmenter
from texelflow.app.frame.inference.mask_sampler import MaskSampler, SampleSchedule, open_reference
from texelflow.app.frame.inference.network_options import NetworkOptions
from texelflow.app.models.model_loading import FrameModel, load_frame_model
from texelflow.app.models.spec import SpecOptions
from texelflow.app.picture.picture import rgba_format, rgba_picture
from texelflow.app.picture.video_frame import VideoFrame

FRAMES = 130
SIZE = (48, 32)
OPTIONS = NetworkOptions(preprocessing="auto")


def test_long_recordings_are_sampled_evenly_and_short_ones_share() -> None:
    schedule = SampleSchedule()
    assert [schedule.offset(frames, 300) for frames in (3000, 200, 60)] == [150, 100, 30]
    pictures = [schedule.offset(1, 300) for _ in range(700)]
    assert [number for number, offset in enumerate(pictures) if offset is not None] == [0, 300, 600]
    assert schedule.offset(None, 300) is None, "of some frames at least, and too few"


@pytest.fixture
def model(tmp_path: Path) -> FrameModel:
    (tmp_path / "classes.tflite").write_bytes(class_network(SIZE))
    return load_frame_model(str(tmp_path / "classes.tflite"), SpecOptions(channel="1"))


def sampled(model: FrameModel, spoilt: int | None = None) -> MaskSampler:
    """A recording that is dark, and then light; the weights of one frame's mask may be spoilt."""
    frame = rgba_format(SIZE)
    segmenter = CpuSegmenter(None, open_cpu_path(model, frame, CpuChoice(), OPTIONS), frame)
    reference = open_reference(model, frame, OPTIONS.fit, OPTIONS.preprocessing)
    assert reference
    sampler = MaskSampler(reference, frame, 40, 20)
    stages = sampler.watching(segmenter)
    for index, rgb in enumerate(moving(FRAMES, *SIZE)):
        light = 0.2 + 0.6 * index / FRAMES
        rgba = np.dstack([(rgb * light).astype(np.uint8), np.full(rgb.shape[:2], 255, np.uint8)])
        picture = VideoFrame(index, index, 0.0, rgba_picture(rgba))
        stages[0].run(picture)
        if index == spoilt:
            segmenter._tensor[:] = 0.5
        stages[1].run(replace(picture))
    segmenter.release()
    return sampler


def test_masks_that_agree(model: FrameModel) -> None:
    found = sampled(model).differences
    assert [each.frame for each in found] == [20, 60, 100]
    assert max(each.max_error for each in found) < 1e-4
    assert min(each.iou for each in found) > 0.99


def test_a_mask_that_differs(model: FrameModel) -> None:
    found = sampled(model, spoilt=60).differences
    assert [each.max_error > 0.01 for each in found] == [False, True, False]
