"""Textures and buffers of the caller's as the interpreter's inputs and outputs, in the caller's context."""

import asyncio
import copy
import gc
import threading
from collections.abc import Iterator
from typing import Any

import moderngl
import numpy as np
import numpy.typing as npt
import pytest

import texelflow
from tests.model_files.partial_models import segments
from tests.model_files.sketch import Sketch
from texelflow.gpu_delegate.interpreter.own_way import OwnWay
from texelflow.gpu_delegate.targets.gl.context import Context

EGL: dict[str, Any] = {"backend": "egl"}  # which mypy takes for the type of other arguments
HEIGHT, WIDTH = 6, 9


@pytest.fixture(scope="module")
def own() -> Iterator[moderngl.Context]:
    context = moderngl.create_context(standalone=True, require=430, **EGL)
    with context:
        yield context
    context.release()


def picture_to_mask() -> bytes:
    """A picture of four channels to one of one, and a vector."""
    m = Sketch(6)
    convolved = m.conv(m.image(HEIGHT, WIDTH, 4), 1, (3, 3))
    m.output(convolved, m.mean(convolved))
    return m.build()


MODEL = picture_to_mask()


@pytest.fixture
def made(own: moderngl.Context) -> Iterator[Any]:
    with texelflow.Interpreter(model_content=MODEL, context=own) as interpreter:
        interpreter.allocate_tensors()
        yield interpreter


def pictures(number: int) -> npt.NDArray[np.float32]:
    return np.random.default_rng(0).normal(size=(number, 1, HEIGHT, WIDTH, 4)).astype(np.float32)


def expected(values: npt.NDArray[np.float32]) -> list[Any]:
    with texelflow.Interpreter(model_content=MODEL, backend="tflite") as other:
        return [*other(values).values()]


def texture_of(context: moderngl.Context, values: npt.NDArray[np.float32], components: int = 4) -> moderngl.Texture:
    return context.texture((WIDTH, HEIGHT), components, values.tobytes(), dtype="f4")


def indices(made: Any) -> tuple[int, list[int]]:
    return made.get_input_details()[0]["index"], [detail["index"] for detail in made.get_output_details()]


def values_in(given: moderngl.Texture | moderngl.Buffer) -> npt.NDArray[np.float32]:
    return np.frombuffer(given.read(), np.float32)


def read_back(made: Any) -> int:
    """Bytes that came back from the GPU since the interpreter was made."""
    way = made._way
    assert isinstance(way, OwnWay)
    found: int = way._maker._worker.call(lambda context: context.readback.bytes)  # type: ignore[attr-defined]
    return found


def test_textures_go_in_and_out_and_nothing_comes_back(own: moderngl.Context, made: Any) -> None:
    (index, (mask_index, mean_index)), given = indices(made), pictures(3)
    source, mask, mean = texture_of(own, given[0]), own.texture((WIDTH, HEIGHT), 1, dtype="f4"), own.buffer(reserve=4)
    made.bind_input(index, source)
    made.bind_output(mask_index, mask)
    made.bind_output(mean_index, mean)
    before = read_back(made)
    for values in given:
        source.write(values.tobytes())
        made.invoke()
    assert read_back(made) == before
    wanted = expected(given[-1])
    np.testing.assert_allclose(values_in(mask), wanted[0].ravel(), atol=1e-5)
    np.testing.assert_allclose(values_in(mean), wanted[1].ravel(), atol=1e-5)
    np.testing.assert_allclose(made.get_tensor(mask_index), expected(given[-1])[0], atol=1e-5)  # which reads it back
    for each in (index, mask_index, mean_index):
        made.unbind(each)
    made.set_tensor(index, given[0])
    made.invoke()
    np.testing.assert_allclose(made.get_tensor(mask_index), expected(given[0])[0], atol=1e-5)
    np.testing.assert_allclose(values_in(mask), expected(given[-1])[0].ravel(), atol=1e-5)


def test_an_input_in_ram_is_read_again_once_nothing_is_bound(own: moderngl.Context, made: Any) -> None:
    (index, (mask_index, _)), given = indices(made), pictures(2)
    made.set_tensor(index, given[0])
    made.invoke()
    made.bind_input(index, texture_of(own, given[1]))
    made.invoke()
    np.testing.assert_allclose(made.get_tensor(mask_index), expected(given[1])[0], atol=1e-5)
    made.unbind(index)
    made.invoke()
    np.testing.assert_allclose(made.get_tensor(mask_index), expected(given[0])[0], atol=1e-5)


def test_the_short_form_takes_them_too(own: moderngl.Context, made: Any) -> None:
    given = pictures(1)[0]
    source, mask = texture_of(own, given), own.texture((WIDTH, HEIGHT), 1, dtype="f4")
    wanted = expected(given)
    for found, other in zip(made(source).values(), wanted, strict=True):
        np.testing.assert_allclose(found, other, atol=1e-5)
    mean = np.zeros(1, np.float32)
    targets = [mask, mean.reshape(wanted[1].shape)]
    before = read_back(made)
    assert made(own.buffer(given.tobytes()), out=targets) is targets
    assert read_back(made) - before <= 16, "the vector alone"
    np.testing.assert_allclose(values_in(mask), wanted[0].ravel(), atol=1e-5)
    np.testing.assert_allclose(mean, wanted[1].ravel(), atol=1e-5)
    mask.write(np.zeros((HEIGHT, WIDTH), np.float32).tobytes())
    made(given)  # nothing is bound behind the call
    assert not values_in(mask).any()


def test_names_of_textures_and_buffers_are_enough(own: moderngl.Context, made: Any) -> None:
    (index, (mask_index, _)), given = indices(made), pictures(1)[0]
    source, mask = texture_of(own, given), own.buffer(bytes(16) + np.zeros((HEIGHT, WIDTH), np.float32).tobytes())
    made.bind_input(index, source.glo)
    made.bind_output(mask_index, (mask.glo, 16))
    made.invoke()
    np.testing.assert_allclose(values_in(mask)[4:], expected(given)[0].ravel(), atol=1e-5)
    cube = own.texture_cube((4, 4), 4)
    for wrong, said in (
        (4_000_000_000, "there is no texture 4000000000 in two dimensions"),
        (cube.glo, f"there is no texture {cube.glo} in two dimensions"),
        (0, "there is no texture 0"),
        (-1, "there is no texture -1"),
        (own.texture((WIDTH, HEIGHT + 1), 4, dtype="f4").glo, "takes a texture of 9x6 with at least 4 components"),
    ):
        with pytest.raises(texelflow.UsageError, match=said):
            made.bind_input(index, wrong)
    name = source.glo
    source.release()
    with pytest.raises(texelflow.UsageError, match=f"there is no texture {name}"):
        made.invoke()


def test_what_does_not_go_is_said_in_one_line(own: moderngl.Context, made: Any) -> None:
    source = texture_of(own, pictures(1)[0])
    backends: tuple[Any, ...] = "native", "gl", "tflite"
    for backend in backends:
        other = texelflow.Interpreter(model_content=MODEL, backend=backend)
        with other, pytest.raises(texelflow.TexelflowError, match=r"take Interpreter\(context=\.\.\.\)"):
            other(source)
    with pytest.raises(ValueError, match="context is for backend 'gl', not 'native'"):
        texelflow.Interpreter(model_content=MODEL, context=own, backend="native")
    with pytest.raises(TypeError, match=r"context is a moderngl\.Context, not str"):
        texelflow.Interpreter(model_content=MODEL, context="egl")  # type: ignore[arg-type]
    with pytest.raises(texelflow.UsageError, match="with delegates, custom ops or a context cannot be copied"):
        copy.copy(made)
    with pytest.raises(texelflow.UsageError, match="belongs to the thread that made it: call it there"):
        asyncio.run(made.run_async(source))
    errors: list[str] = []

    def elsewhere() -> None:
        with pytest.raises(texelflow.UsageError) as caught:
            made.invoke()
        errors.append(str(caught.value))

    thread = threading.Thread(target=elsewhere)
    thread.start()
    thread.join()
    assert errors == ["what works in a context of yours belongs to the thread that made it; run the interpreter there"]
    unready = texelflow.Interpreter(model_content=MODEL, context=own)
    with pytest.raises(RuntimeError, match="call allocate_tensors"):
        unready.bind_input(0, source)


def test_another_size_lets_go_of_what_is_bound(own: moderngl.Context, made: Any) -> None:
    (index, (mask_index, _)), given = indices(made), pictures(1)[0]
    made.bind_input(index, texture_of(own, np.zeros_like(given)))
    made.resize_tensor_input(index, (1, HEIGHT + 2, WIDTH, 4))
    made.allocate_tensors()
    made.resize_tensor_input(index, given.shape)
    made.allocate_tensors()
    made.set_tensor(index, given)
    made.invoke()
    np.testing.assert_allclose(made.get_tensor(mask_index), expected(given)[0], atol=1e-5)


def test_of_a_model_in_parts_what_the_gpu_reads_is_bound(own: moderngl.Context) -> None:
    model = segments(24, 8, in_parts=True)
    with texelflow.Interpreter(model_content=model, backend="tflite") as other:
        other.allocate_tensors()
        detail = other.get_input_details()[0]
        values = np.random.default_rng(1).normal(size=detail["shape"].tolist()).astype(np.float32)
        wanted = other(values)
    with texelflow.Interpreter(model_content=model, context=own) as mixed:
        assert mixed(values).shape == wanted.shape
        assert mixed.report().places["on the GPU"] < mixed.report().operators
        found = mixed(own.buffer(values.tobytes()))
    np.testing.assert_allclose(found, wanted, atol=1e-4)


@pytest.mark.parametrize("closes", [True, False])
def test_nothing_stays_in_the_callers_context(own: moderngl.Context, closes: bool) -> None:
    gl = Context.from_moderngl(own).gl

    def objects() -> tuple[int, int]:
        """Buffers and textures that are there."""
        return sum(map(gl.glIsBuffer, range(1, 2000))), sum(map(gl.glIsTexture, range(1, 2000)))

    before = objects()
    made = texelflow.Interpreter(model_content=MODEL, context=own)
    source = texture_of(own, pictures(1)[0])
    made(source)
    source.release()
    assert objects() > before
    if closes:
        made.close()
    del made
    gc.collect()
    assert objects() == before
