"""Segmenter(refine=True): the masks that the command line draws, to the bit, of frames that follow each other."""

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import texelflow
from tests.helpers.markers import exhaustive
from texelflow.app.bench.quality.mask_ways import MaskWays
from texelflow.app.bench.quality.python_way import PythonWay
from texelflow.app.bench.quality.scene_data import choose_rows, read_scenes, scenes_folder
from texelflow.app.bench.quality.scene_frames import SceneFrame, scene_frames
from texelflow.app.bench.quality.scene_layers import read_portrait
from texelflow.app.bench.quality.scenes import FRAME_MS
from texelflow.app.console import Console
from texelflow.app.frame.backend_choice.compute import open_compute
from texelflow.app.frame.inference.backends import ComputeChoice
from texelflow.app.media.sources import VideoFrame
from texelflow.app.models.model_loading import load_segmentation
from texelflow.app.picture.picture import rgba_format, rgba_picture

GL = pytest.param("gl", marks=pytest.mark.gl)
SIZE = (640, 480)


@pytest.fixture(scope="module")
def scene() -> tuple[SceneFrame, ...]:
    """Some frames of somebody who moves in a room."""
    (chosen,) = choose_rows(read_scenes(scenes_folder()).rows, "all", ("motion",), ("hopper chelsea",))
    folder = scenes_folder()
    return tuple(scene_frames(chosen.shortened(3), folder, partial(read_portrait, folder=folder)))


@pytest.fixture(scope="module", params=[GL, "cpu"])
def refining(request: pytest.FixtureRequest) -> Iterator[texelflow.Segmenter]:
    with texelflow.Segmenter("selfie", request.param, refine=True) as segment:
        yield segment


def assert_same(found: npt.NDArray[np.float32], wanted: npt.NDArray[np.float32]) -> None:
    """Drivers of GPUs compile shaders anew while they run; a number's last bit may then round it to the next step."""
    off = np.abs(found - wanted)
    assert off.max() <= 1.001 / 255
    assert np.mean(off > 1e-6) < 1e-3


@pytest.mark.parametrize("backend", [pytest.param("gl", marks=[pytest.mark.gl, exhaustive]), "cpu"])
def test_masks_are_those_that_the_bench_judges(scene: tuple[SceneFrame, ...], backend: str) -> None:
    model, console = load_segmentation("selfie"), Console(quiet=True)
    with open_compute(ComputeChoice(backend), model, True, console) as compute:
        ways = MaskWays(compute, model, rgba_format(SIZE), ("both",), console, "fp32", "auto")
        with PythonWay("selfie", backend, "fp32", "auto") as in_python:
            for number, each in enumerate(scene):
                frame = VideoFrame(number, number, number * FRAME_MS, rgba_picture(each.rgba))
                ways.run(frame)
                ways.by_name["both"].refine(frame)
                wanted = ways.by_name["both"].mask(frame)
                assert in_python.mask(frame).tobytes() == wanted.tobytes()
                assert 0.2 < wanted.mean() < 0.8
        ways.release()


def test_frames_are_of_one_video_until_it_is_reset(
    refining: texelflow.Segmenter, scene: tuple[SceneFrame, ...]
) -> None:
    refining.reset()
    first, *_, last = [refining(each.rgba) for each in scene]
    assert (last.dtype.name, last.shape) == ("float32", (480, 640))
    assert last.flags.writeable
    refining.reset()
    alone = refining(scene[-1].rgba)
    assert np.abs(alone - last).max() > 0.02  # the frames before it are seen in it
    refining.reset()
    assert_same(refining(scene[0].rgba), first)


def test_another_size_begins_another_video(refining: texelflow.Segmenter, scene: tuple[SceneFrame, ...]) -> None:
    refining.reset()
    wanted = refining(scene[0].rgba)
    assert refining(scene[1].rgba[:300, :401, :3]).shape == (300, 401)
    assert_same(refining(scene[0].rgba), wanted)


def test_it_says_what_it_is(refining: texelflow.Segmenter) -> None:
    assert refining.refine
    assert repr(refining).startswith(f"<texelflow.Segmenter 'selfie', refined for video: {refining.backend}, ")


def test_it_refuses_what_is_no_choice() -> None:
    wanted: Any = "edges"
    with pytest.raises(texelflow.UsageError, match="refine is True, for frames of a video, or False, not 'edges'"):
        texelflow.Segmenter(refine=wanted)


@exhaustive
def test_masks_of_many_instances_share_weights(scene: tuple[SceneFrame, ...]) -> None:
    cache = texelflow.WeightsCache()
    with (
        texelflow.Segmenter(backend="cpu", refine=True, weights_cache=cache) as one,
        texelflow.Segmenter(backend="cpu", refine=True, weights_cache=cache) as other,
        texelflow.Segmenter(backend="cpu", refine=True) as alone,
    ):
        cache.finalize_hard()
        for each in scene:
            wanted = alone(each.rgba).tobytes()
            assert one(each.rgba).tobytes() == other(each.rgba).tobytes() == wanted
