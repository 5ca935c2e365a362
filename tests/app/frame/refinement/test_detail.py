"""Looking at people once more: sums of looks against NumPy on both devices, and the same masks from both."""

from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

import numpy as np
import pytest

from tests.helpers.picture_devices import needs_code
from tests.helpers.refined import Doubles, bilinear, smooth
from texelflow import assets
from texelflow.app.console import Console
from texelflow.app.frame.backend_choice.compute import open_compute
from texelflow.app.frame.inference.backends import ComputeChoice, CpuChoice
from texelflow.app.frame.inference.frame_segmenter import make_segmenter
from texelflow.app.frame.inference.network_options import NetworkOptions
from texelflow.app.frame.refinement.detail import Detail
from texelflow.app.frame.textures.picture_device import FramePlanes, PictureDevice
from texelflow.app.frame.textures.resample import MaskLayout
from texelflow.app.media.sources import FileSource, VideoFrame
from texelflow.app.models.decoders.region import FrameRegion
from texelflow.app.models.model_loading import load_segmentation
from texelflow.app.picture.picture import rgba_format, rgba_picture
from texelflow.app.picture.preprocess import Floats
from texelflow.gpu_delegate.targets.gl.context import Context
from texelflow.gpu_delegate.targets.gl.opengl import BufferRange

CLIP = Path(assets.__file__).parent / "people.mp4"
FRAME, GRID = (90, 60), (64, 48)


@dataclass
class Looks:
    """A segmenter whose masks are given, and what it was asked to look at."""

    pictures: PictureDevice
    frame: FramePlanes
    mask: BufferRange
    region_mask: BufferRange
    layout: MaskLayout = field(default_factory=lambda: MaskLayout(GRID, stride=1))
    regions: list[FrameRegion] = field(default_factory=list)

    def mask_of_region(self, frame: VideoFrame, region: FrameRegion) -> BufferRange:
        self.regions.append(region)
        return self.region_mask


def standing(left: int, right: int, top: int) -> Floats:
    """Somebody, and noise where nobody is."""
    mask = np.random.default_rng(left).uniform(0, 0.4, GRID[::-1]).astype(np.float32)
    mask[top:, left:right] = np.random.default_rng(right).uniform(0.6, 1, (GRID[1] - top, right - left))
    return mask


def sums(masks: list[tuple[Floats, tuple[float, float, float, float]]]) -> Doubles:
    """Of logits, by the docstring of detail.py, of masks of parts (left, top, right, bottom)."""
    width, height = 96, 72
    total, weights = np.zeros((height, width)), np.zeros((height, width))
    for number, (mask, (left, top, right, bottom)) in enumerate(masks):
        x, y = ((np.arange(width) + 0.5) / width - left) / (right - left), (np.arange(height) + 0.5) / height
        y = (y - top) / (bottom - top)
        values = bilinear(
            mask.astype(np.float64)[..., None], np.clip(x, 0, 1) * GRID[0] - 0.5, np.clip(y, 0, 1) * GRID[1] - 0.5
        )[..., 0].clip(0.001, 0.999)
        ways = []
        for part, low, high in ((x, left, right), (y, top, bottom)):
            from_low = np.where(part > 0, 1, 0) if low == 0 else np.clip(part / 0.12, 0, 1)
            from_high = np.where(part < 1, 1, 0) if high == 1 else np.clip((1 - part) / 0.12, 0, 1)
            ways.append(np.minimum(from_low, from_high))
        zoom = 1 / ((right - left) * (bottom - top))
        weight = smooth(0, 1, ways[1][:, None] * ways[0]) * zoom
        if number:
            weight *= trust(total / weights, mask, (left, top, right, bottom))
        total += weight * np.log(values / (1 - values))
        weights += weight
    return total


def trust(before: Doubles, mask: Floats, view: tuple[float, float, float, float]) -> Doubles:
    """Of a part (left, top, right, bottom) of which the network made a mask, with the logits of those before it."""
    (height, width), (left, top, right, bottom) = before.shape, view
    more = np.zeros((32, 32))
    for across, down in np.ndindex(6, 6):
        x, y = (np.clip(np.arange(32) + moved - 2, 0, 32 - 1e-6) / 32 for moved in (across, down))
        columns, rows = ((x - left) / (right - left) * GRID[0], (y - top) / (bottom - top) * GRID[1])
        seen = mask[
            np.ix_(
                *(
                    np.clip(np.floor(each), 0, last - 1).astype(int)
                    for each, last in ((rows, GRID[1]), (columns, GRID[0]))
                )
            )
        ]
        known = before[np.ix_((y * height).astype(int), (x * width).astype(int))]
        more += (seen - 1 / (1 + np.exp(-known))) / 36
    x, y = ((np.arange(count) + 0.5) * 32 / count - 0.5 for count in (width, height))
    more = bilinear(more[..., None], x, y)[..., 0]
    return np.asarray((1 - smooth(0.2, 0.4, -more)) * (1 - smooth(0.2, 0.5, more)))


def test_looks_are_summed_as_is_defined_on_both_devices(pictures: PictureDevice) -> None:
    size_bytes = 4 * GRID[0] * GRID[1]
    planes = pictures.planes(rgba_format(FRAME), 1)
    looks = Looks(pictures, planes, pictures.memory(GRID, size_bytes), pictures.memory(GRID, size_bytes))
    detail = Detail(pictures, looks)
    rgba = np.zeros((*FRAME[::-1], 4), np.uint8)
    frame = VideoFrame(0, 0, 0.0, rgba_picture(rgba))
    whole, again = standing(20, 40, 10), standing(12, 50, 5)
    pictures.write(looks.mask, whole)
    pictures.write(looks.region_mask, again)
    planes.upload(frame.picture)
    detail.run(frame)
    assert len(looks.regions) == 2
    views = [
        (
            (each.center_x - each.width / 2) / FRAME[0], (each.center_y - each.height / 2) / FRAME[1],
            (each.center_x + each.width / 2) / FRAME[0], (each.center_y + each.height / 2) / FRAME[1],
        )
        for each in looks.regions
    ]  # fmt: skip
    assert views[0][3] == pytest.approx(1)
    rounded = [tuple(round(side, 9) for side in view) for view in views]
    wanted = sums([(whole, (0, 0, 1, 1)), *((again, (a, b, c, d)) for a, b, c, d in rounded)])
    found = pictures.read_red(detail.merged)[::-1]  # row 0 is the top row here
    np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=2e-3)
    pictures.write(looks.mask, np.zeros_like(whole))
    detail.run(frame)  # nobody is there now, which the next frame knows
    assert len(looks.regions) == 4
    detail.run(frame)
    assert len(looks.regions) == 4
    detail.begin_anew()
    pictures.write(looks.mask, whole)
    detail.run(frame)
    assert len(looks.regions) == 6
    for part in (detail, planes):
        part.release()


@pytest.mark.gl
@needs_code
def test_regions_have_the_same_masks_wherever_the_network_runs(context: Context) -> None:
    model, console = load_segmentation("selfie"), Console(quiet=True)
    with FileSource(CLIP) as source:
        frame = next(islice(source, 24, None))
        format = source.format
    found = list[Floats]()
    for choice in (ComputeChoice("gl"), ComputeChoice("cpu"), ComputeChoice("cpu", CpuChoice("tflite"))):
        with open_compute(choice, model, True, console) as compute:
            segmenter = make_segmenter(compute, model, format, NetworkOptions(preprocessing="auto"), console)
            for stage in segmenter.stages:
                stage.run(frame)
            assert compute.pictures is not None
            detail = Detail(compute.pictures, segmenter)
            detail.run(frame)
            found.append(compute.pictures.read_red(detail.merged))
            detail.release()
            segmenter.release()
    for other in found[1:]:
        np.testing.assert_allclose(np.tanh(other / 2), np.tanh(found[0] / 2), rtol=0, atol=0.04)
    assert 0.05 < np.mean(found[0] > 0) < 0.9
