"""A matte's own colors over other backgrounds: OpenGL and the CPU's own code, against TensorFlow Lite and NumPy."""

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import numpy as np
import pytest

from tests.helpers.markers import exhaustive_if, one_in
from tests.helpers.pictures import Doubles, Floats, Image, sampled
from tests.model_files.matte_models import recurrent_matte
from texelflow.app.console import Console
from texelflow.app.frame.drawing.render import Compositor
from texelflow.app.frame.inference.backends import ComputeBackend, CpuChoice
from texelflow.app.frame.inference.cpu_path import CpuPath
from texelflow.app.frame.inference.frame_segmenter import make_segmenter
from texelflow.app.frame.inference.network_options import NetworkOptions
from texelflow.app.frame.looks.effects import Effect
from texelflow.app.frame.looks.looks import Look
from texelflow.app.frame.refinement.refine import Refinement, Refiner
from texelflow.app.frame.textures.native_pictures import NativePictures
from texelflow.app.models.model_loading import SegmentationModel, load_segmentation
from texelflow.app.models.spec import SpecOptions
from texelflow.app.picture.picture import rgba_format, rgba_picture
from texelflow.app.picture.preprocess import Fit, sampling
from texelflow.app.picture.video_frame import VideoFrame
from texelflow.gpu_delegate.targets.gl.context import Context

pytestmark = pytest.mark.gl

SIZE = (97, 71)
COLOR = (0.2, 0.5, 0.9)


@pytest.fixture
def matte(tmp_path: Path) -> SegmentationModel:
    path = tmp_path / "matte.tflite"
    path.write_bytes(recurrent_matte())
    return load_segmentation(str(path), SpecOptions(input_range=(0.0, 1.0)))


def frames(count: int) -> list[Image]:
    first = np.random.default_rng(1).integers(0, 256, (SIZE[1], SIZE[0], 4), np.uint8)
    first[..., 3] = 255
    return [np.ascontiguousarray(np.roll(first, 3 * number, 1)) for number in range(count)]


def expected(rgba: Image, output: Floats, fit: Fit, effect: Effect) -> Doubles:
    """The docstring of own_colors.py, for a network's output (H, W, 4): (h, w, 4) from 0 to 255."""
    back = sampling(SIZE, (output.shape[1], output.shape[0]), fit).inverse()
    made = sampled(output, back)
    alpha = np.clip(made[..., 3:], 0, 1)
    person = np.clip(rgba[..., :3] / 255 + made[..., :3], 0, 1)
    if effect == "cutout":
        return np.asarray(255 * np.concatenate([person, alpha], -1))
    shown = person * alpha + np.array(COLOR) * (1 - alpha)
    return np.asarray(255 * np.concatenate([shown, np.ones_like(alpha)], -1))


def outputs(model: SegmentationModel, pictures: list[Image], fit: Fit) -> Iterator[Floats]:
    path = CpuPath(model, rgba_format(SIZE), fit, as_read=True)
    for picture in pictures:
        path.run(rgba_picture(picture))
        yield path.scores[0]


def differences(
    compute: ComputeBackend, model: SegmentationModel, fit: Fit, effect: Effect, delay: int
) -> Iterator[float]:
    """Of each picture to the definition; the last frame is not shown where pictures come a frame later."""
    assert compute.pictures
    shown, made = frames(4), ExitStack()
    segmenter = make_segmenter(compute, model, rgba_format(SIZE), NetworkOptions(fit=fit), Console(quiet=True), 3)
    made.callback(segmenter.release)
    refiner = Refiner(compute.pictures, segmenter, fit, Refinement(edges=False, smooth=0.0, delay=delay))
    made.callback(refiner.release)
    look = Look(effect, COLOR)
    compositor = Compositor(compute.pictures, segmenter.frame, segmenter.layout, fit, look, refiner=refiner)
    made.callback(compositor.release)
    target = compute.pictures.target(SIZE)
    made.callback(target.release)
    truth = list(outputs(model, shown, fit))
    with made:
        for number, rgba in enumerate(shown):
            for stage in segmenter.stages:
                stage.run(VideoFrame(number, 0, 0.0, rgba_picture(rgba)))
            refiner.run()
            compositor.draw(segmenter.mask, target)
            drawn = compute.pictures.read(target)
            if number or not delay:
                seen = number - delay
                yield float(np.abs(drawn - expected(shown[seen], truth[seen], fit, effect)).max())


@pytest.mark.parametrize("context", ["gl", exhaustive_if(True, "gles")], indirect=True)
@one_in(2, ("effect", "fit", "delay"), [("cutout", "letterbox", 1), ("color", "stretch", 0)])
def test_opengl_draws_own_colors(
    context: Context, matte: SegmentationModel, effect: Effect, fit: Fit, delay: int
) -> None:
    compute = ComputeBackend("gl", context)
    assert max(differences(compute, matte, fit, effect, delay)) <= 1.5  # of 255, of 8 bits and halves


@one_in(2, ("effect", "fit", "delay"), [("color", "crop", 1), ("cutout", "stretch", 0)])
def test_native_code_draws_own_colors(matte: SegmentationModel, effect: Effect, fit: Fit, delay: int) -> None:
    compute = ComputeBackend("cpu", None, CpuChoice("native", 1), NativePictures(1))
    assert max(differences(compute, matte, fit, effect, delay)) <= 1.0
    compute.end_drawing()
