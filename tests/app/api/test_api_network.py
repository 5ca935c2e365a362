"""The public Model and Program: any model runs in OpenGL, in a context opened for it or in one's own, and says no."""

import copy
import ctypes
import os
import pickle
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import moderngl
import numpy as np
import numpy.typing as npt
import pytest

import texelflow
from tests.helpers.clips import DEMO_CLIP
from tests.helpers.display import Display
from tests.helpers.markers import exhaustive
from tests.helpers.waiting import PATIENCE_S
from tests.model_files.model_builder import ModelBuilder
from texelflow.gpu_delegate.targets.gl import opengl
from texelflow.gpu_delegate.targets.gl.library import CurrentContext

pytestmark = pytest.mark.gl

Floats = npt.NDArray[np.float32]

EGL: Any = {"backend": "egl"}
SHAPE = (1, 5, 7, 6)  # two slices of channels, the second half empty
DOUBLE = """
#version 430
layout(local_size_x = 1) in;
layout(std430, binding = 2) buffer Values { float values[]; };
void main() { values[gl_GlobalInvocationID.x] = float(gl_GlobalInvocationID.x); }
"""
GATHER = """
#version 430
layout(local_size_x = 1) in;
layout(binding = 3) uniform samplerBuffer tensor;
layout(std430, binding = 4) buffer Found { vec4 found[]; };
void main() { found[gl_GlobalInvocationID.x] = texelFetch(tensor, int(gl_GlobalInvocationID.x)); }
"""


def network(factor: float = 3.0, shape: tuple[int, ...] = SHAPE) -> bytes:
    """factor * x - 1."""
    model = ModelBuilder()
    channels = shape[-1]
    product = model.op("MUL", [model.input(shape), model.constant(np.full(channels, factor))], shape)
    model.output(model.op("ADD", [product, model.constant(np.full(channels, -1))], shape))
    return model.build()


def noise(shape: tuple[int, ...] = SHAPE) -> Floats:
    return np.random.default_rng(3).random(shape, np.float32)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> texelflow.Model:
    path = tmp_path_factory.mktemp("models") / "affine.tflite"
    path.write_bytes(network())
    return texelflow.Model.load(path)


@pytest.fixture
def own() -> Iterator[moderngl.Context]:
    """Somebody's own moderngl context, current in this thread."""
    gl = moderngl.create_context(standalone=True, require=430, **EGL)
    yield gl
    gl.release()


def once(program: texelflow.Program, values: Floats) -> Floats:
    program.write(program.model.inputs[0], values)
    program.run()
    return program.read(program.model.outputs[0])


def test_a_model_says_what_it_takes_and_gives(model: texelflow.Model, selfie_model: Path) -> None:
    assert (model.name, model.inputs[0].shape, model.outputs[0].shape) == ("affine.tflite", SHAPE, SHAPE)
    by_name, by_path = texelflow.Model.load("selfie"), texelflow.Model.load(str(selfie_model), quiet=True)
    assert by_name.name == by_path.name == "selfie"
    assert [tensor.shape for tensor in (*by_name.inputs, *by_name.outputs)] == [(1, 256, 256, 3), (1, 256, 256, 1)]


@pytest.mark.parametrize(
    ("content", "kind"),
    [(b"", texelflow.ModelError), (b"1234TFL3", texelflow.ModelError), (None, texelflow.CatalogueError)],
)
def test_what_is_no_model_is_refused(tmp_path: Path, content: bytes | None, kind: type[Exception]) -> None:
    path = tmp_path / "some.tflite"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(kind, match=r"some\.tflite"):
        texelflow.Model.load(path)


def test_it_computes_in_a_context_of_its_own_and_in_anybodys(model: texelflow.Model, own: moderngl.Context) -> None:
    values = noise()
    with texelflow.Program(model, own) as program:
        np.testing.assert_allclose(once(program, values), 3 * values - 1, rtol=1e-6)
        assert program.context is own
    assert own.buffer(b"whole").read() == b"whole"
    with texelflow.Program(model) as first, texelflow.Program(model) as second:  # each is made current in turn
        results = [once(program, values + k) for k in range(2) for program in (first, second)]
        np.testing.assert_allclose(results[0], 3 * values - 1, rtol=1e-6)
        assert [result.tobytes() for result in results[0::2]] == [result.tobytes() for result in results[1::2]]
        assert first.context is not second.context
        assert first.renderer in repr(first)
    assert repr(first) == "<texelflow.Program 'affine.tflite': closed>"
    first.close()


def test_own_shaders_write_its_input_and_read_its_output(model: texelflow.Model, own: moderngl.Context) -> None:
    with texelflow.Program(model, own, precision="fp16") as program:
        place, stride = program.input, program.input.stride
        texels = place.size_bytes // (4 * stride)
        assert stride == 4
        program.bind_storage(model.inputs[0], 2)
        own.compute_shader(DOUBLE).run(4 * texels)
        program.run()
        found = own.buffer(reserve=16 * texels)
        found.bind_to_storage_buffer(4)
        program.bind_texture(model.outputs[0], 3)
        own.compute_shader(GATHER).run(texels)
        own.memory_barrier()
        read = np.frombuffer(found.read(), np.float32).reshape(2, 5, 7, 4).transpose(1, 2, 0, 3).reshape(5, 7, 8)
        counted = program.read(model.inputs[0])
        slices, rows, columns, lanes = np.indices((2, 5, 7, 4))
        numbers = ((slices * 5 + rows) * 7 + columns) * 4 + lanes
        np.testing.assert_array_equal(counted[0], numbers.transpose(1, 2, 0, 3).reshape(5, 7, 8)[..., :6])
        np.testing.assert_allclose(read[..., :6], 3 * counted[0] - 1, rtol=1e-6)


def test_somebodys_messages_stay_theirs(model: texelflow.Model, own: moderngl.Context) -> None:
    gl, function = opengl.GL(CurrentContext().load), ctypes.c_void_p()
    listener = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 7)(lambda *_: None)
    address = ctypes.cast(listener, ctypes.c_void_p)
    gl.glDebugMessageCallback(address, None)
    with texelflow.Program(model, own):
        gl.glGetPointerv(opengl.DEBUG_CALLBACK_FUNCTION, ctypes.byref(function))
        assert function.value == address.value
    gl.glGetPointerv(opengl.DEBUG_CALLBACK_FUNCTION, ctypes.byref(function))
    assert function.value == address.value
    gl.glDebugMessageCallback(None, None)


IN_A_WINDOW = """
import glfw, moderngl, numpy as np, sys, texelflow
glfw.init()
for name, value in ((glfw.VISIBLE, False), (glfw.CONTEXT_VERSION_MAJOR, 4), (glfw.CONTEXT_VERSION_MINOR, 3),
                    (glfw.OPENGL_PROFILE, glfw.OPENGL_CORE_PROFILE)):
    glfw.window_hint(name, value)
glfw.make_context_current(glfw.create_window(64, 64, "somebody's", None, None))
gl = moderngl.create_context(require=430)
model = texelflow.Model.load(sys.argv[1])
values = np.ones(model.inputs[0].shape, np.float32)
with texelflow.Segmenter(backend="gl") as segment, texelflow.Program(model, gl) as program:
    program.write(model.inputs[0], values)
    segment(np.zeros((48, 64, 3), np.uint8))  # on a thread of its own
    program.run()
    print(program.read(model.outputs[0]).mean(), gl.buffer(b"whole").read().decode())
"""


@exhaustive
def test_in_a_window_of_somebodys(display: Display, tmp_path: Path) -> None:
    (tmp_path / "affine.tflite").write_bytes(network())
    command = [sys.executable, "-c", IN_A_WINDOW, str(tmp_path / "affine.tflite")]
    environment = {**os.environ, "DISPLAY": display.name}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    assert (done.stdout, done.stderr) == ("2.0 whole\n", "")


@pytest.mark.parametrize(
    ("values", "said"),
    [
        (noise().astype(np.float64), "tensor0 takes an array of float32 of shape (1, 5, 7, 6), not float64 of shape"),
        (noise()[0], "not float32 of shape (5, 7, 6)"),
        (noise((1, 7, 5, 6)), "not float32 of shape (1, 7, 5, 6)"),
        (noise().astype(">f4"), "not >f4"),
        (noise().tolist(), "not list"),
        (np.where(noise() > 0.5, noise(), np.float32(np.nan)), "tensor0 takes finite numbers, not infinities or NaN"),
        (noise() * np.float32(np.inf), "tensor0 takes finite numbers"),
    ],
)
def test_refuses_values_that_do_not_fit(program: texelflow.Program, values: Any, said: str) -> None:
    wanted = once(program, noise()).tobytes()
    with pytest.raises(texelflow.UsageError) as refused:
        program.write(program.model.inputs[0], values)
    assert said in str(refused.value)
    program.run()
    assert program.read(program.model.outputs[0]).tobytes() == wanted


def test_takes_values_of_any_layout_in_memory(program: texelflow.Program, tmp_path: Path) -> None:
    values = noise()
    wanted = once(program, values).tobytes()
    assert once(program, np.asfortranarray(values)).tobytes() == wanted
    assert once(program, np.ascontiguousarray(values[:, ::-1])[:, ::-1]).tobytes() == wanted
    path = tmp_path / "plain.tflite"
    path.write_bytes(network(shape=(1, 5, 7, 1)))
    with texelflow.Program(texelflow.Model.load(path)) as plain:
        flipped = noise((1, 5, 7, 1))[:, ::-1, ::-1]
        np.testing.assert_allclose(once(plain, flipped), 3 * flipped - 1, rtol=1e-6)
        assert plain.output.stride == 1  # one channel, stored as it is
        plain.write(plain.model.outputs[0], flipped)
        np.testing.assert_array_equal(plain.read(plain.model.outputs[0]), flipped)


@pytest.fixture(scope="module")
def program(model: texelflow.Model) -> Iterator[texelflow.Program]:
    with texelflow.Program(model) as opened:
        yield opened


def test_refuses_what_it_cannot_do(program: texelflow.Program, tmp_path: Path) -> None:
    anything: Any = texelflow
    with pytest.raises(
        texelflow.UsageError, match=r"a tensor is one of model\.inputs .* \(tensor0, tensor4\), not 'texelflow'"
    ):
        program.read(anything.__name__)
    inner = program.model._graph.tensors[2]
    with pytest.raises(texelflow.UsageError, match="not tensor2"):
        program.range_of(inner)
    with pytest.raises(texelflow.UsageError, match=r"model is what Model\.load gives, not str"):
        texelflow.Program(anything.__name__)
    with pytest.raises(texelflow.UsageError, match=r"context is a moderngl\.Context, not module"):
        texelflow.Program(program.model, anything)
    sums = ModelBuilder()
    sums.output(sums.op("BITCAST", [sums.input((1, 4, 4, 3))], (1, 4, 4, 3)))
    (tmp_path / "sums.tflite").write_bytes(sums.build())
    with pytest.raises(texelflow.UnsupportedError, match=r"sums.*BITCAST"):
        texelflow.Program(texelflow.Model.load(tmp_path / "sums.tflite"))


def test_takes_and_gives_tensors_by_name(tmp_path: Path) -> None:
    """Two inputs, two outputs; then with names that repeat."""
    builder = ModelBuilder()
    a, b = builder.input((1, 5)), builder.input((1, 5))
    builder.output(builder.op("SUB", [a, b], (1, 5)), builder.op("MUL", [a, b], (1, 5)))
    path = tmp_path / "two.tflite"
    path.write_bytes(builder.build())
    model = texelflow.Model.load(path)
    names = [[tensor.name for tensor in side] for side in (model.inputs, model.outputs)]
    assert names == [["tensor0", "tensor1"], ["tensor2", "tensor3"]]
    assert {tensor.dtype for tensor in (*model.inputs, *model.outputs)} == {"float32"}
    first, second = noise((1, 5)), noise((1, 5)) + 1
    with texelflow.Program(model) as program:
        program.write("tensor1", second)
        program.write("tensor0", first)
        program.run()
        np.testing.assert_allclose(program.read("tensor2"), first - second, rtol=1e-6)
        np.testing.assert_allclose(program.read("tensor3"), first * second, rtol=1e-6)
        assert program.range_of("tensor3") == program.range_of(model.outputs[1])
    path.write_bytes(builder.build().replace(b"tensor1", b"tensor0").replace(b"tensor3", b"tensor0"))
    model = texelflow.Model.load(path)
    with texelflow.Program(model) as program:
        with pytest.raises(texelflow.UsageError, match="2 tensors are called tensor0; give the one"):
            program.write("tensor0", first)
        for tensor, values in zip(model.inputs, (first, second), strict=True):
            program.write(tensor, values)
        program.run()
        np.testing.assert_allclose(program.read("tensor0"), first * second, rtol=1e-6)


def test_models_are_copied_and_what_runs_refuses(model: texelflow.Model) -> None:
    values = np.random.default_rng(0).random(model.inputs[0].shape).astype(np.float32)

    def result(of: texelflow.Model) -> Any:
        with texelflow.Program(of) as program:
            program.write(of.inputs[0], values)
            program.run()
            return program.read(of.outputs[0])

    again = pickle.loads(pickle.dumps(model))
    assert (again.name, again.inputs, again.outputs) == (model.name, model.inputs, model.outputs)
    np.testing.assert_array_equal(result(again), result(model))
    assert copy.copy(model) is copy.deepcopy(model) is model
    with (
        texelflow.Program(model) as program,
        texelflow.Segmenter(backend="cpu") as segmenter,
        texelflow.Pipeline(backend="cpu") as pipeline,
        texelflow.video(DEMO_CLIP, effect="none", backend="cpu") as video,
    ):
        for each in (program, segmenter, pipeline, video, texelflow.WeightsCache(), texelflow.Delegate()):
            for attempt in (pickle.dumps, copy.copy, copy.deepcopy):
                with pytest.raises(texelflow.UsageError, match="cannot be copied or pickled"):
                    attempt(each)


def test_belongs_to_its_thread_and_its_time(model: texelflow.Model) -> None:
    program, errors = texelflow.Program(model), list[str]()

    def elsewhere() -> None:
        try:
            program.run()
        except texelflow.UsageError as error:
            errors.append(str(error))

    thread = threading.Thread(target=elsewhere)
    thread.start()
    thread.join()
    program.close()
    with pytest.raises(texelflow.UsageError, match="this Program is closed; make another one"):
        program.run()
    assert errors == ["a Program belongs to the thread that made it; use it there, or make one in each thread"]


def test_without_a_context_that_is_current(model: texelflow.Model) -> None:
    own, errors = moderngl.create_context(standalone=True, require=430, **EGL), list[str]()

    def elsewhere() -> None:  # where none is
        try:
            texelflow.Program(model, own)
        except texelflow.DeviceError as error:
            errors.append(str(error))

    thread = threading.Thread(target=elsewhere)
    thread.start()
    thread.join()
    own.release()
    assert errors == ["no OpenGL context is current in this thread; make yours current first"]
