"""What a matte remembers stays where it runs, and is what TensorFlow Lite makes of arrays that are handed on."""

from pathlib import Path

import numpy as np
import pytest

from tests.helpers.markers import exhaustive, one_in
from tests.helpers.pictures import Image, noise
from tests.model_files.matte_models import RVM_INPUTS, RVM_OUTPUTS, open_matte, recurrent_matte
from texelflow.app.frame.inference.backends import CpuChoice
from texelflow.app.frame.inference.cpu_engine import AnyCpuPath, open_cpu_path
from texelflow.app.frame.inference.cpu_path import CpuPath
from texelflow.app.frame.inference.gl_path import GlPath
from texelflow.app.frame.inference.mask_sampler import network_mask
from texelflow.app.frame.inference.native_path import NativePath
from texelflow.app.frame.inference.network_options import NetworkOptions
from texelflow.app.models.model_loading import SegmentationModel, load_segmentation
from texelflow.app.models.spec import SpecOptions
from texelflow.app.picture.picture import Picture, rgba_format, rgba_picture
from texelflow.app.picture.preprocess import Floats
from texelflow.gpu_delegate.cpu.interpreter_module import load_interpreter_module
from texelflow.gpu_delegate.model.layout import Precision
from texelflow.gpu_delegate.plan.compile_options import CompileOptions
from texelflow.gpu_delegate.targets.gl.context import Context

SIZE, FRAMES, CUT = (80, 60), 100, 50


@pytest.fixture
def matte(tmp_path: Path) -> SegmentationModel:
    path = tmp_path / "matte.tflite"
    path.write_bytes(recurrent_matte(foreground=False))
    return load_segmentation(str(path), SpecOptions(input_range=(0.0, 1.0)))


def film() -> list[Picture]:
    first: Image = noise(SIZE)
    return [rgba_picture(np.ascontiguousarray(np.roll(first, 2 * number, 1))) for number in range(FRAMES)]


class OnGpu:
    """GlPath as the CPU's paths are asked."""

    def __init__(self, path: GlPath) -> None:
        self._path, self.begin_anew = path, path.begin_anew

    def mask(self, picture: Picture) -> Floats:
        self._path.upload(picture)
        self._path.image_to_tensor()
        self._path.network()
        return network_mask(self._path)


def apart(path: "OnGpu | AnyCpuPath", model: SegmentationModel, cut: int = CUT) -> tuple[float, float]:
    """The largest differences to TensorFlow Lite, of all frames with a cut among them; and what the cut did."""
    reference, worst = CpuPath(model, rgba_format(SIZE), as_read=True), 0.0
    for number, picture in enumerate(film()[: 2 * cut]):
        if number == cut:
            unaware = reference.network(reference.image_to_tensor(picture)).copy()
            reference.begin_anew()
            path.begin_anew()
        expected = reference.network(reference.image_to_tensor(picture))
        found = path.mask(picture) if isinstance(path, OnGpu) else path.network(path.image_to_tensor(picture))
        worst = max(worst, float(np.abs(found - expected).max()))
        if number == cut:
            forgot = float(np.abs(expected - unaware).max())
    return worst, forgot


def test_native_code_remembers_as_tensorflow_lite(matte: SegmentationModel) -> None:
    path = NativePath(matte, rgba_format(SIZE), threads=1)
    worst, forgot = apart(path, matte)
    assert worst < 1e-4
    assert forgot > 0.1
    path.close()


class AsConverted:
    """TensorFlow Lite on a file that leaves sizes open: what came out of a frame goes in with the next one's sizes."""

    def __init__(self, data: bytes, ratio: float) -> None:
        self._run = load_interpreter_module(False).Interpreter(model_content=data)
        self._inputs = {each["name"]: each["index"] for each in self._run.get_input_details()}
        self._outputs = {each["name"]: each["index"] for each in self._run.get_output_details()}
        self._ratio, self._states = np.array([ratio], np.float32), [np.zeros((1, 1, 1, 1), np.float32)] * 4

    def mask(self, tensor: Floats) -> Floats:
        values = zip(RVM_INPUTS, [tensor, *self._states], strict=True)
        given = {**dict(values), "downsample_ratio": self._ratio}
        for name, value in given.items():
            self._run.resize_tensor_input(self._inputs[name], value.shape)
        self._run.allocate_tensors()
        for name, value in given.items():
            self._run.set_tensor(self._inputs[name], value)
        self._run.invoke()
        alpha, *self._states = (self._run.get_tensor(self._outputs[name]) for name in RVM_OUTPUTS[1:])
        return np.asarray(alpha[0, :, :, 0], np.float32)


def of_no_size(folder: Path) -> tuple[SegmentationModel, AsConverted]:
    """A matte whose states are [1, 1, 1, 1] in the file, and whose ratio leaves 512 of 576 columns."""
    data, path = open_matte((576, 16), order=(5, 3, 1, 2, 4)), folder / "open.tflite"
    path.write_bytes(data)
    return load_segmentation(str(path), SpecOptions(input_range=(0.0, 1.0))), AsConverted(data, 512 / 576)


def apart_from_file(path: "OnGpu | AnyCpuPath", model: SegmentationModel, file: AsConverted, frames: int) -> float:
    """The largest difference of all frames, from the first on, whose states are one zero."""
    resampling, worst = CpuPath(model, rgba_format(SIZE), as_read=True), 0.0
    for picture in film()[:frames]:
        tensor = resampling.image_to_tensor(picture)
        expected = file.mask(tensor.reshape(1, *tensor.shape[-3:]))
        found = path.mask(picture) if isinstance(path, OnGpu) else path.network(path.image_to_tensor(picture))
        worst = max(worst, float(np.abs(found - expected).max()))
    return worst


@one_in(2, "frames", [8, FRAMES])
def test_states_without_a_size_in_native_code(tmp_path: Path, frames: int) -> None:
    model, file = of_no_size(tmp_path)
    path = NativePath(model, rgba_format(SIZE), threads=1)
    assert apart_from_file(path, model, file, frames) < 1e-4
    path.close()


@pytest.mark.gl
@one_in(2, "frames", [8, FRAMES])
def test_states_without_a_size_in_opengl(context: Context, tmp_path: Path, frames: int) -> None:
    model, file = of_no_size(tmp_path)
    path = GlPath(context, model, rgba_format(SIZE), NetworkOptions(CompileOptions()))
    assert apart_from_file(OnGpu(path), model, file, frames) < 1e-4
    path.release()


@exhaustive
def test_parts_in_native_code_remember_as_tensorflow_lite(tmp_path: Path) -> None:
    """States go through RAM there: parts of a network are run by TensorFlow Lite."""
    path = tmp_path / "matte.tflite"
    path.write_bytes(recurrent_matte((160, 144), on_cpu=True))
    model = load_segmentation(str(path), SpecOptions(input_range=(0.0, 1.0)))
    parts = open_cpu_path(model, rgba_format(SIZE), CpuChoice("auto", 1))
    assert "TensorFlow Lite" in parts.renderer
    worst, forgot = apart(parts, model, cut=2)
    assert worst < 1e-4
    assert forgot > 0.01
    parts.close()


@pytest.mark.gl
@one_in(3, ("precision", "most", "cut"), [("fp32", 1e-4, 8), ("fp32", 1e-4, CUT), ("fp16", 0.03, CUT)])
def test_opengl_remembers_as_tensorflow_lite(
    context: Context, matte: SegmentationModel, precision: Precision, most: float, cut: int
) -> None:
    options = NetworkOptions(CompileOptions(precision=precision))
    path = GlPath(context, matte, rgba_format(SIZE), options)
    readback = context.readback.bytes
    path.upload(film()[0])
    path.image_to_tensor()
    path.network()
    path.begin_anew()
    assert context.readback.bytes == readback  # states never leave the device
    worst, forgot = apart(OnGpu(path), matte, cut)
    assert worst < most
    assert forgot > 0.1
    path.release()
