"""Pictures through quantized networks, on the GPU, in code of the CPU's own and in TensorFlow Lite: the same steps."""

from dataclasses import replace
from pathlib import Path
from typing import get_args

import numpy as np
import pytest

from tests.helpers.markers import exhaustive, one_in
from tests.helpers.picture_formats import PLANAR, noise
from tests.model_files.quantized_models import HEIGHT, SCHEMES, WIDTH, small_quantized
from tests.model_files.sketch import Sketch
from tests.quantized.quantizer import hybrid_twin
from tests.quantized.runs import TfliteRun
from texelflow.app.frame.backend_choice.frame_job import FrameJob, frame_job
from texelflow.app.frame.inference.backends import CpuChoice
from texelflow.app.frame.inference.cpu_choice import chosen_cpu_path
from texelflow.app.frame.inference.cpu_path import CpuPath, preprocessor_of
from texelflow.app.frame.inference.gl_path import GlPath
from texelflow.app.frame.inference.native_path import NativePath
from texelflow.app.models.model_loading import FrameModel, PictureModel, input_values, load_frame_model
from texelflow.app.models.spec import SpecOptions
from texelflow.app.picture.picture import Orientation, Picture, PictureFormat, rgba_format
from texelflow.app.picture.preprocess import Floats
from texelflow.app.session.derived import spec_of
from texelflow.app.settings.flags import flag_of
from texelflow.app.settings.settings import Settings, with_values
from texelflow.gpu_delegate.base.errors import UsageError
from texelflow.gpu_delegate.cpu.reference import Reference
from texelflow.gpu_delegate.model.graph import Hybrid
from texelflow.gpu_delegate.model.packing import in_file_type
from texelflow.gpu_delegate.reading.reader import load_model
from texelflow.gpu_delegate.targets.gl.context import Context

FORMATS = (rgba_format((64, 48)), replace(PLANAR, orientation=Orientation(True, False, True)))
SEGMENTING = SpecOptions(activation="softmax", channel=1, task="segmentation")


def loaded(folder: Path, name: str, options: SpecOptions = SEGMENTING) -> FrameModel:
    file = folder / f"{name}.tflite"
    file.write_bytes(small_quantized(SCHEMES[name]))
    return load_frame_model(str(file), options)


def tensor_on_gpu(
    context: Context, model: FrameModel, picture: Picture
) -> np.ndarray[tuple[int, ...], np.dtype[np.generic]]:
    path = GlPath(context, model, picture.format)
    path.upload(picture)
    path.image_to_tensor()
    found = path.program.read(path.program.compiled.graph.inputs[0])
    path.release()
    return found


@exhaustive
@one_in(3, ("context", "name"), [("gl", "int8"), ("gl", "uint8"), ("gles", "uint8 around int8")], indirect=["context"])
def test_pictures_become_steps_and_masks_what_they_mean(context: Context, name: str, tmp_path: Path) -> None:
    model = loaded(tmp_path, name)
    source, cpu = model.graph.tensors[model.graph.inputs[0]], CpuPath(model, FORMATS[0], as_read=True)
    for form in FORMATS:
        cpu.take(form)
        picture, native = noise(form), NativePath(model, form, threads=1)
        tensor = cpu.image_to_tensor(picture)
        wanted = in_file_type(tensor, source)
        np.testing.assert_array_equal(tensor, np.round(tensor))
        assert len(np.unique(wanted)) > 60
        for found in (in_file_type(native.image_to_tensor(picture), source), tensor_on_gpu(context, model, picture)):
            assert np.abs(found.astype(np.int64) - wanted).max() <= 1  # what lies amid two steps, to float32's rounding
            assert (found == wanted).mean() > 0.99
        job: FrameJob = frame_job(context, model, form)
        mask = cpu.network(tensor)
        for here in (job.network(tensor), native.network(tensor)):
            assert (np.abs(here - mask) > 1e-5).mean() < 0.02  # a step that is rounded the other way
            assert np.abs(here - mask).max() < 0.1
        np.testing.assert_allclose(native.run(picture), job.run(picture), atol=0.1)
        assert np.abs(native.run(picture) - job.run(picture)).mean() < 1e-3
        assert np.ptp(mask) > 0.1
        job.release()
        native.close()


def test_a_byte_of_a_picture_is_the_byte_of_an_input(context: Context, tmp_path: Path) -> None:
    """Where nothing else says what black and white are, they are the ends of what the input can say."""
    picture = noise(PictureFormat((WIDTH, HEIGHT)))
    for name, least in (("int8", -128), ("uint8", 0)):
        model = loaded(tmp_path, name)
        (low, high), steps = input_values(model).range, input_values(model).steps
        assert steps
        np.testing.assert_allclose((low, high), (steps.low, steps.high))
        wanted = picture.planes[0][None, ..., :3].astype(np.int64) + least
        np.testing.assert_array_equal(tensor_on_gpu(context, model, picture), wanted)
        source = model.graph.tensors[model.graph.inputs[0]]
        cpu = preprocessor_of(model, picture.format, "stretch", "plain")
        np.testing.assert_array_equal(in_file_type(cpu.image_to_tensor(picture), source), wanted)


def test_settings_say_how_hybrid_ops_are_computed(tmp_path: Path) -> None:
    net, file, form = Sketch(0), tmp_path / "hybrid.tflite", rgba_format((64, 48))
    net.output(net.conv(net.conv(net.image(HEIGHT, WIDTH, 3), 8, (3, 3), activation="RELU"), 2))
    file.write_bytes(hybrid_twin(net))
    given = {"model": str(file), "input_range": "0,1", "activation": "none", "channel": "1", "task": "segmentation"}
    masks = {}
    for way in get_args(Hybrid):
        settings = with_values(Settings(), {**given, "hybrid": way}, flag_of)
        model = load_frame_model(settings.model, spec_of(settings, settings.model))
        path, note = chosen_cpu_path(model, form, CpuChoice("native", 1))
        tensor = path.image_to_tensor(noise(form))
        masks[way] = path.network(tensor)
        assert not note
        path.close()
    (right,) = TfliteRun(file.read_bytes())([tensor])
    np.testing.assert_array_equal(masks["reference"], right[0, ..., 1])
    assert np.abs(masks["expanded"] - right[0, ..., 1]).max() > 1e-3
    _, note = chosen_cpu_path(model, form, CpuChoice("tflite", 1))
    assert note == "--hybrid reference: TensorFlow Lite runs hybrid.tflite in its own kernels"


@exhaustive
def test_the_class_of_each_pixel_is_a_mask_of_the_one_that_is_asked_for(context: Context, tmp_path: Path) -> None:
    file, form = tmp_path / "classes.tflite", rgba_format((WIDTH, HEIGHT))
    file.write_bytes(small_quantized(gives_classes=True))
    model, picture = load_frame_model(str(file), SpecOptions(channel=1)), noise(form)
    source, path = model.graph.tensors[model.graph.inputs[0]], CpuPath(model, form, as_read=True)
    tensor = path.image_to_tensor(picture)
    (classes,) = Reference(load_model(file), judges=True).run(in_file_type(tensor, source))
    np.testing.assert_array_equal(path.network(tensor), classes[0] == 1)
    assert 1 in classes
    assert len(np.unique(classes)) > 1
    job, native = frame_job(context, model, form), NativePath(model, form, threads=1)
    for found in (job.network(tensor), native.network(tensor)):
        assert set(np.unique(found)) == {0, 1}
        assert (found != (classes[0] == 1)).mean() < 0.02
    job.release()
    native.close()
    for options, complaint in (
        (SpecOptions(), "give --channel 0..255"),
        (SpecOptions(channel=0, activation="softmax"), "its output is the class of each pixel, which is no picture"),
    ):
        with pytest.raises(UsageError, match=complaint):
            load_frame_model(str(file), options)


def test_a_quantized_picture_is_drawn_in_its_own_range(context: Context, tmp_path: Path) -> None:
    model = loaded(tmp_path, "int8", SpecOptions(task="picture"))
    assert isinstance(model, PictureModel)
    form = rgba_format((WIDTH, HEIGHT))
    job, cpu, native = frame_job(context, model, form), CpuPath(model, form, as_read=True), NativePath(model, form)
    picture = noise(form)
    wanted: Floats = cpu.run(picture)
    assert np.ptp(wanted[..., :3]) > 0.5
    for found in (job.run(picture), native.run(picture)):
        assert np.abs(found - wanted).mean() < 2e-3
    job.release()
    native.close()
