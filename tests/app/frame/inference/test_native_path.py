"""The frame job in machine code against the one in TensorFlow Lite, and what of it NumPy does."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tests.helpers.picture_formats import PLANAR, noise
from tests.model_files.model_builder import ModelBuilder
from tests.model_files.partial_models import quick_with_an_end
from texelflow.app.frame.inference.backends import CpuChoice, CpuEngine
from texelflow.app.frame.inference.cpu_engine import AnyCpuPath, open_cpu_path
from texelflow.app.frame.inference.cpu_path import CpuPath
from texelflow.app.frame.inference.native_path import NativePath
from texelflow.app.models.model_loading import FrameModel, PictureModel, SegmentationModel
from texelflow.app.models.spec import ModelSpec, PictureSpec
from texelflow.app.picture.picture import Orientation, Picture, rgba_format, rgba_picture
from texelflow.gpu_delegate.base.errors import UnsupportedError
from texelflow.gpu_delegate.programs.model_sharing import ModelSharing
from texelflow.gpu_delegate.reading.reader import read_model

TURNED = replace(PLANAR, size=(38, 50), orientation=Orientation(True, False, True))


def segmenting(activation: str, classes: int) -> SegmentationModel:
    """From pictures of 26x18 to scores of 13x9."""
    m, rng = ModelBuilder(), np.random.default_rng(classes)
    x, weights = m.input((1, 18, 26, 3)), m.constant(rng.normal(0, 1, (classes, 3, 3, 3)))
    inputs = [x, weights, m.constant(rng.normal(0, 1, classes))]
    m.output(m.op("CONV_2D", inputs, (1, 9, 13, classes), padding="SAME", stride=(2, 2)))
    spec = ModelSpec((-1.0, 1.0), activation, classes - 1)
    return SegmentationModel(activation, read_model(m.build()), spec, (26, 18), (13, 9))


def remembering() -> SegmentationModel:
    """A score that is a variable as well: a mean of what there was and what is seen, as another frame finds it."""
    m, before = ModelBuilder(), ModelBuilder()
    names: dict[str, Any] = {"container": "", "shared_name": "mean"}
    handle = before.op("VAR_HANDLE", [], (), "resource", **names)
    before.op_of("ASSIGN_VARIABLE", [handle, before.constant(np.full((1, 18, 26, 1), 0.25))], [])
    m.further.append(before)
    m.op_of("CALL_ONCE", [], [], init_subgraph_index=1)
    weights = m.constant(np.full((1, 1, 1, 3), 0.2))
    seen = m.op("CONV_2D", [m.input((1, 18, 26, 3)), weights], (1, 18, 26, 1), padding="SAME", stride=(1, 1))
    handle = m.op("VAR_HANDLE", [], (), "resource", **names)
    mean = m.op("READ_VARIABLE", [handle], (1, 18, 26, 1))
    m.op_of(
        "ASSIGN_VARIABLE",
        [handle, m.op("MINIMUM", [m.op("ADD", [mean, seen], (1, 18, 26, 1)), mean], (1, 18, 26, 1))],
        [],
    )
    m.output(m.op("ADD", [mean, seen], (1, 18, 26, 1)))
    return SegmentationModel("mean", read_model(m.build()), ModelSpec((-1.0, 1.0), "none", 0), (26, 18), (26, 18))


def test_what_a_model_remembers_is_that_of_tensorflow_lite() -> None:
    """Frame by frame; another video knows nothing of it."""
    model, form = remembering(), rgba_format((64, 48))
    found, rng = NativePath(model, form, threads=2), np.random.default_rng(3)
    pictures = [rgba_picture(rng.integers(0, 120, (48, 64, 4), np.uint8)) for _ in range(4)]
    for _ in range(2):
        wanted = CpuPath(model, form)
        for picture in pictures:
            np.testing.assert_allclose(found.run(picture), wanted.run(picture), rtol=0, atol=1e-4)
        found.begin_anew()
    found.close()


def assert_alike(found: AnyCpuPath, wanted: AnyCpuPath, picture: Picture) -> None:
    """The whole job, and its parts one by one."""
    mask = wanted.run(picture)
    np.testing.assert_allclose(found.run(picture), mask, rtol=0, atol=1e-4)
    tensor = found.image_to_tensor(picture)
    np.testing.assert_allclose(tensor, wanted.image_to_tensor(picture), rtol=0, atol=1e-5)
    parts = found.mask_to_frame(found.network(tensor))
    np.testing.assert_allclose(parts, mask, rtol=0, atol=1e-4)
    np.testing.assert_array_equal(found.network(np.array(tensor)), found.network(tensor))
    wanted.network(np.array(tensor))
    np.testing.assert_allclose(found.scores, wanted.scores, rtol=1e-4, atol=1e-4)
    assert found.scores is found.scores


@pytest.mark.parametrize(("activation", "classes"), [("none", 1), ("sigmoid", 2), ("softmax", 6)])
def test_masks_are_those_of_tensorflow_lite(activation: str, classes: int) -> None:
    model = segmenting(activation, classes)
    found = NativePath(model, rgba_format((64, 48)), threads=2)
    assert_alike(found, CpuPath(model, rgba_format((64, 48))), noise(rgba_format((64, 48))))
    for form in (TURNED, rgba_format((9000, 2))):  # the second one's rows are too long for the kernel
        found.take(form)
        assert_alike(found, CpuPath(model, form), noise(form))
    found.close()


def test_paths_of_a_cache_take_turns_and_keep_their_scores() -> None:
    model, cache, form = segmenting("softmax", 6), ModelSharing(), rgba_format((64, 48))
    paths = [NativePath(model, form, threads=1, weights_cache=cache) for _ in range(2)]
    cache.finalize_soft()
    drawn = np.random.default_rng(0).integers(0, 256, (2, 48, 64, 4), np.uint8)
    pictures, apart = [*map(rgba_picture, drawn)], NativePath(model, form, threads=1)
    masks = [apart.run(picture).tobytes() for picture in pictures]
    assert [path.run(picture).tobytes() for path, picture in zip(paths, pictures, strict=True)] == masks
    for path, picture in zip(paths, pictures, strict=True):
        apart.run(picture)
        np.testing.assert_array_equal(path.scores, apart.scores)
    tensors = [path.image_to_tensor(picture) for path, picture in zip(paths, pictures, strict=True)]
    for path, tensor in zip(paths, tensors, strict=True):
        path.network(tensor)
    for path, tensor in zip(paths, tensors, strict=True):
        apart.network(tensor.copy())
        np.testing.assert_array_equal(path.scores, apart.scores)


@pytest.mark.parametrize("engine", ["native", "auto"])
def test_a_model_with_an_op_that_has_no_native_code_runs_in_parts(engine: CpuEngine) -> None:
    graph, form = read_model(quick_with_an_end()), rgba_format((64, 48))
    model = SegmentationModel("parts", graph, ModelSpec((0.0, 1.0), "sigmoid", 0), (96, 96), (12, 12))
    found = open_cpu_path(model, form, CpuChoice(engine, 1))
    assert "code on the CPU, 1 thread and TensorFlow Lite on the CPU, 9 of 10 operators" in found.renderer
    assert found.delegation is None, "nothing runs on the GPU"
    np.testing.assert_allclose(found.run(noise(form)), CpuPath(model, form).run(noise(form)), rtol=0, atol=1e-4)
    found.close()


def test_pictures_that_follow_each_other_become_as_light() -> None:
    model = segmenting("none", 1)
    found, wanted = (path(model, TURNED, "crop", preprocessing="auto") for path in (NativePath, CpuPath))
    first = noise(TURNED)
    for shade in (4, 3, 2, 1):
        picture = Picture(TURNED, tuple(plane // np.uint8(shade) for plane in first.planes))
        np.testing.assert_allclose(found.run(picture), wanted.run(picture), rtol=0, atol=1e-4)
    for path in (found, wanted):
        path.begin_anew()
    np.testing.assert_allclose(found.run(first), wanted.run(first), rtol=0, atol=1e-4)


def test_a_networks_picture_is_shown_as_the_other_way_shows_it() -> None:
    graph = segmenting("none", 3).graph
    model: FrameModel = PictureModel("picture", graph, PictureSpec((0.0, 1.0), (-1.0, 1.0)), (26, 18), (13, 9))
    form = rgba_format((31, 20))
    found, wanted = (open_cpu_path(model, form, choice) for choice in (CpuChoice("native", 1), CpuChoice("tflite")))
    assert_alike(found, wanted, noise(form))
    assert (found.renderer.partition(" ")[2], wanted.renderer) == (
        "code on the CPU, 1 thread", "TensorFlow Lite on the CPU",
    )  # fmt: skip


def test_pictures_of_another_format_are_not_read() -> None:
    path = NativePath(segmenting("none", 1), rgba_format((64, 48)), threads=1)
    with pytest.raises(ValueError, match="instead of"):
        path.run(noise(rgba_format((64, 47))))


def test_models_without_native_code_go_to_tensorflow_lite() -> None:
    m = ModelBuilder()
    x = m.input((1, 8, 8, 3))
    m.output(m.cpu_op(x))
    model = replace(segmenting("none", 3), graph=read_model(m.build()), input_size=(8, 8), output_size=(8, 8))
    with pytest.raises(UnsupportedError):
        open_cpu_path(model, rgba_format((8, 8)), CpuChoice("native"))
    assert isinstance(open_cpu_path(model, rgba_format((8, 8)), CpuChoice()), CpuPath)
