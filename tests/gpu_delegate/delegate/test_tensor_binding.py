"""The caller's textures and buffers as inputs and outputs: the right content, and nothing read back."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import moderngl
import numpy as np
import numpy.typing as npt
import pytest

from tests.helpers.io_bindings import (
    bytes_graph,
    give,
    io_of,
    larger_of_neighbors,
    numbers,
    product_graph,
    random_bytes,
    stored_bits,
    take,
    two_graph,
)
from tests.helpers.markers import one_in
from tests.helpers.pictures import byte_rounding
from texelflow.gpu_delegate.base.errors import UsageError
from texelflow.gpu_delegate.delegate.gl_objects import BufferLayout
from texelflow.gpu_delegate.delegate.io_binding import IoBinding
from texelflow.gpu_delegate.model.graph import Shape
from texelflow.gpu_delegate.model.layout import map_shape
from texelflow.gpu_delegate.model.packing import from_phwc4, phwc4
from texelflow.gpu_delegate.model.quantization import zero_point_of
from texelflow.gpu_delegate.targets.gl.context import Context
from texelflow.gpu_delegate.targets.gl.runtime import device_of

Floats = npt.NDArray[np.float32]
MOST_CODE = {"f1": 255, "nu2": 65535}  # of normalized formats
TYPES = {name: np.dtype(kind) for name, kind in (("f1", "u1"), ("nu2", "u2"), ("f2", "f2"), ("f4", "f4"))}
HEIGHT, WIDTH = 5, 7
EGL: dict[str, Any] = {"backend": "egl"}  # which mypy takes for the type of other arguments


def picture(dtype: str, components: int) -> tuple[npt.NDArray[Any], Floats]:
    """What is stored in a texture, and the values that a shader reads: (5, 7, components)."""
    rng = np.random.default_rng(components)
    size = HEIGHT, WIDTH, components
    if dtype not in MOST_CODE:
        stored = rng.normal(0, 9, size).astype(TYPES[dtype])
        return stored, stored.astype(np.float32)
    stored = rng.integers(0, MOST_CODE[dtype], size, endpoint=True).astype(TYPES[dtype])
    return stored, (stored / np.float64(MOST_CODE[dtype])).astype(np.float32)


def texture_of(context: Context, stored: npt.NDArray[Any], dtype: str) -> moderngl.Texture:
    height, width, components = stored.shape
    return context.mgl.texture((width, height), components, stored.tobytes(), alignment=1, dtype=dtype)


def in_texture(texture: moderngl.Texture) -> npt.NDArray[Any]:
    shape = texture.height, texture.width, texture.components
    return np.frombuffer(texture.read(alignment=1), TYPES[texture.dtype]).reshape(shape)


def in_buffer(buffer: moderngl.Buffer, shape: Shape, layout: BufferLayout, offset_bytes: int = 0) -> Floats:
    values, own = np.frombuffer(buffer.read(), np.float32)[offset_bytes // 4 :], map_shape(shape)
    if layout == "BHWC":
        return values[: np.prod(shape)].reshape(shape)
    texels = values[: 4 * own.texels].reshape(own.slices, own.rows, own.width, 4)
    return from_phwc4(texels, own.channels).reshape(shape)


@pytest.mark.parametrize("channels", [1, 2, 3, 4])
@one_in(4, "dtype", TYPES)
def test_a_texture_is_read_as_shaders_read_it(context: Context, dtype: str, channels: int) -> None:
    for components in range(channels, 5):
        stored, values = picture(dtype, components)
        wanted = values[None, :, :, :channels] * np.float32(3)
        texture = texture_of(context, stored, dtype)
        with io_of(context, product_graph(wanted.shape)) as (_, io):
            io.bind_input(0, texture)
            io.run()
            np.testing.assert_allclose(take(io, 2, wanted), wanted, rtol=3e-7 if dtype in MOST_CODE else 0)
        texture.release()


def test_a_texture_without_the_mipmaps_of_its_filter_is_read_all_the_same(context: Context) -> None:
    stored, values = picture("f4", 4)
    texture = texture_of(context, stored, "f4")
    texture.filter = moderngl.LINEAR_MIPMAP_LINEAR, moderngl.LINEAR
    with io_of(context, product_graph((HEIGHT, WIDTH, 4))) as (_, io):
        io.bind_input(0, texture)
        io.run()
        np.testing.assert_array_equal(take(io, 2, values), values * np.float32(3))
    texture.release()


def test_what_a_texture_has_more_than_the_tensor_is_not_seen(context: Context) -> None:
    """Lanes behind the last channel are zeros, whatever alpha is."""
    stored = np.full((HEIGHT, WIDTH, 4), np.nan, np.float32)
    stored[..., :3] = values = numbers((HEIGHT, WIDTH, 3))
    texture = texture_of(context, stored, "f4")
    with io_of(context, product_graph((HEIGHT, WIDTH, 3))) as (program, io):
        io.bind_input(0, texture)
        io.run()
        np.testing.assert_array_equal(program.read(0), values)
        lanes = stored_bits(context, program.range_of(0)).view(np.float32).reshape(-1, 4)
        np.testing.assert_array_equal(lanes[:, 3], 0)
    texture.release()


@pytest.mark.parametrize("is_small", [False, True], ids=["through textures", "through storage"])
@one_in(3, "channels", [1, 2, 3, 4])
@pytest.mark.parametrize("dtype", ["f1", "f2", "f4"])
def test_an_output_goes_to_a_texture(
    context: Context, dtype: str, channels: int, is_small: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if is_small:
        monkeypatch.setattr(context, "limits", replace(context.limits, texture_buffer_texels=2))
    values = np.random.default_rng(0).uniform(-0.1, 0.5, (1, HEIGHT, WIDTH, channels)).astype(np.float32)
    wanted = values[0] * np.float32(3)
    for components in (each for each in (1, 2, 4) if each >= channels):
        texture = context.mgl.texture((WIDTH, HEIGHT), components, dtype=dtype)
        with io_of(context, product_graph(values.shape), device_of(context)) as (_, io):
            io.bind_output(2, texture)
            give(io, 0, values)
            io.run()
        found = in_texture(texture).astype(np.float64)
        if dtype == "f1":  # rounded to the nearest of 256 steps
            off = np.abs(found[..., :channels] - np.clip(wanted, 0, 1) * 255.0)
            assert off.max() <= byte_rounding(context) + 1e-4
        else:
            np.testing.assert_allclose(found[..., :channels], wanted, rtol=0 if dtype == "f4" else 1e-3, atol=1e-6)
        rest = [0, 0, 0, 255 if dtype == "f1" else 1][channels:components]
        np.testing.assert_array_equal(found[..., channels:], np.broadcast_to(rest, (HEIGHT, WIDTH, len(rest))))
        texture.release()


@pytest.mark.parametrize("layout", ["BHWC", "PHWC4"])
@pytest.mark.parametrize("shape", [(5,), (3, 5), (1, 5, 7, 1), (2, 3, 5, 13), (1, 9, 5, 4)], ids=str)
def test_buffers_hold_inputs_and_outputs(context: Context, shape: Shape, layout: BufferLayout) -> None:
    values, own, offset_bytes = numbers(shape), map_shape(shape), 20
    texels = phwc4(values.reshape(own.rows, own.width, own.channels)) if layout == "PHWC4" else values
    source = context.mgl.buffer(bytes(offset_bytes) + texels.tobytes())
    target = context.mgl.buffer(np.full(texels.size, 7, np.float32).tobytes())
    with io_of(context, product_graph(shape)) as (_, io):
        io.bind_input(0, (source.glo, offset_bytes), layout)
        io.bind_output(2, target, layout)
        before = context.readback.calls
        io.run()
        assert context.readback.calls == before
        np.testing.assert_array_equal(in_buffer(target, shape, layout), values * np.float32(3))
        source.write(bytes(texels.nbytes), offset_bytes)  # each run reads again
        io.run()
        np.testing.assert_array_equal(in_buffer(target, shape, layout), np.zeros(shape))
    source.release()
    target.release()


@pytest.mark.parametrize("layout", ["BHWC", "PHWC4"])
def test_buffers_hold_bytes_or_steps(context: Context, layout: BufferLayout) -> None:
    graph, offset_bytes = bytes_graph([(1, 5, 7, 3), (1, 3, 4, 1), (1, 1, 1, 5)]), 20
    with io_of(context, graph) as (program, io):
        for tensor, output in zip(graph.inputs, graph.outputs, strict=True):
            own, values = graph.tensors[tensor], random_bytes(graph.tensors[tensor])
            wanted = larger_of_neighbors(values)
            size_bytes = values.nbytes if layout == "BHWC" else 16 * map_shape(own.shape).texels
            program.write(tensor, values)
            inside = values.tobytes() if layout == "BHWC" else stored_bits(context, program.range_of(tensor)).tobytes()
            source = context.mgl.buffer(bytes(offset_bytes) + inside)
            target = context.mgl.buffer(bytes([77]) * (size_bytes + 8))
            program.write(tensor, np.zeros_like(values))
            io.bind_input(tensor, (source.glo, offset_bytes), layout)
            io.bind_output(output, target, layout)
            io.run()
            found = target.read()
            assert found[size_bytes:] == bytes([77]) * 8
            if layout == "BHWC":
                np.testing.assert_array_equal(np.frombuffer(found, own.dtype, values.size), wanted.ravel())
            else:
                steps = in_buffer(target, own.shape, layout)
                np.testing.assert_array_equal(steps + zero_point_of(own), wanted)
            io.unbind(tensor)
            io.unbind(output)
            source.release()
            target.release()


def test_textures_of_bytes_hold_those_of_a_tensor_without_a_sign(context: Context) -> None:
    graph = bytes_graph([(1, HEIGHT, WIDTH, 3)])
    signed, unsigned = graph.inputs[:2]
    stored, _ = picture("f1", 4)
    texture, other = texture_of(context, stored, "f1"), texture_of(context, stored.astype("f4"), "f4")
    target = context.mgl.texture((WIDTH, HEIGHT), 4, dtype="f1")
    with io_of(context, graph) as (_, io):
        io.bind_input(unsigned, texture)
        io.bind_output(graph.outputs[1], target)
        io.run()
        wanted = larger_of_neighbors(stored[None])[0]
        wanted[..., 3] = 255
        np.testing.assert_array_equal(in_texture(target), wanted)
        with pytest.raises(UsageError, match="t0 is int8, and textures have bytes without a sign; bind a buffer"):
            io.bind_input(signed, texture)
        with pytest.raises(UsageError, match="t2: a texture has one of the formats R8, RG8, RGBA8, RGB8, not 0x8814"):
            io.bind_input(unsigned, other)
    for each in (texture, other, target):
        each.release()


def test_arrays_and_objects_side_by_side(context: Context) -> None:
    shape = (1, HEIGHT, WIDTH, 4)
    stored, values = picture("f4", 4)
    more, texture = numbers(shape), texture_of(context, stored, "f4")
    target = context.mgl.buffer(reserve=values.nbytes)
    with io_of(context, two_graph(shape)) as (_, io):
        io.bind_input(1, texture)
        io.bind_output(2, target)
        assert ([*io._bound_inputs], [*io._bound_outputs]) == ([1], [2])
        give(io, 0, more)
        io.run()
        np.testing.assert_array_equal(take(io, 3, more), more - values)
        np.testing.assert_array_equal(in_buffer(target, shape, "BHWC"), more + values)
        io.unbind(1)
        io.unbind(2)
        give(io, 1, more)
        io.run()
        np.testing.assert_array_equal(take(io, 2, more), more + more)
        np.testing.assert_array_equal(in_buffer(target, shape, "BHWC"), more + values)  # as it was left
    texture.release()
    target.release()


WRONG: dict[str, tuple[Callable[[moderngl.Context], Any], str]] = {
    "a picture of another size": (lambda gl: gl.texture((5, 7), 3), "t0 takes a texture of 7x5 with at least 3 compo"),
    "too few components": (lambda gl: gl.texture((7, 5), 2), "at least 3 components, not 7x5 RG8"),
    "integers": (lambda gl: gl.texture((7, 5), 4, dtype="u1"), "one of the formats R8, .*, not 0x8d7c"),
    "signed values": (lambda gl: gl.texture((7, 5), 4, internal_format=0x8F97), "not 0x8f97"),
    "depths": (lambda gl: gl.depth_texture((7, 5)), "one of the formats R8"),
    "several samples": (lambda gl: gl.texture((7, 5), 4, samples=4), "several samples"),
    "a small buffer": (lambda gl: gl.buffer(reserve=416), r"t0 \[1, 5, 7, 3\] takes 420 bytes as BHWC, the .* has 416"),
    "an array of textures": (lambda gl: gl.texture_array((7, 5, 1), 4), "moderngl.Texture, .*, not TextureArray"),
    "an array": (lambda gl: np.zeros((5, 7, 3)), "moderngl.Texture, .*, not ndarray"),
    "nothing": (lambda gl: None, "moderngl.Texture, .*, not NoneType"),
    "no buffer": (lambda gl: (4_000_000_000, 0), "no buffer 4000000000 in this OpenGL context"),
    "a negative name": (lambda gl: (-1, 0), "no buffer -1"),
    "half a pair": (lambda gl: (1,), "not tuple"),
    "an odd offset": (lambda gl: (gl.buffer(reserve=999).glo, 2), "multiple of 4 bytes, not 2"),
    "a negative offset": (lambda gl: (gl.buffer(reserve=999).glo, -4), "multiple of 4 bytes, not -4"),
    "an offset behind the end": (lambda gl: (gl.buffer(reserve=999).glo, 1 << 40), "the buffer has 0"),
}


@pytest.mark.parametrize(("make", "complaint"), WRONG.values(), ids=WRONG.keys())
def test_what_does_not_fit_is_refused(context: Context, make: Callable[..., Any], complaint: str) -> None:
    with io_of(context, product_graph((1, HEIGHT, WIDTH, 3))) as (_, io):
        wrong = make(context.mgl)
        with pytest.raises(UsageError, match=complaint):
            io.bind_input(0, wrong)
        assert not io._bound_inputs
        if hasattr(wrong, "release"):
            wrong.release()


@pytest.mark.parametrize(("components", "dtype"), [(3, "f4"), (3, "f1"), (4, "nu2")])
def test_an_output_needs_a_format_that_shaders_write(context: Context, components: int, dtype: str) -> None:
    texture = context.mgl.texture((WIDTH, HEIGHT), components, dtype=dtype)
    complaint = "t2: a texture has one of the formats R8, RG8, RGBA8, R16F"
    with (
        io_of(context, product_graph((HEIGHT, WIDTH, 3))) as (_, io),
        pytest.raises(UsageError, match=complaint),
    ):
        io.bind_output(2, texture)
    texture.release()


def test_other_misuse_is_refused(context: Context) -> None:
    texture = context.mgl.texture((WIDTH, HEIGHT), 4)
    with io_of(context, product_graph((2, HEIGHT, WIDTH, 3))) as (_, io):
        with pytest.raises(UsageError, match="is a batch of 2: a texture holds one picture"):
            io.bind_input(0, texture)
        for bind, tensor in ((io.bind_input, 2), (io.bind_input, 9), (io.bind_output, 0)):
            with pytest.raises(UsageError, match=f"tensor {tensor} is no (in|out)put"):
                bind(tensor, texture)
        with pytest.raises(UsageError, match="a texture has no layout"):
            io.bind_input(0, texture, "PHWC4")
        with pytest.raises(UsageError, match="layout is BHWC or PHWC4, not 'NCHW'"):
            io.bind_input(0, texture, "NCHW")  # type: ignore[arg-type]
        io.unbind(0)
    other = product_graph((3, 5), "int32")
    with io_of(context, other) as (_, io), pytest.raises(UsageError, match="t0 is int32: only tensors of"):
        io.bind_input(0, texture)
    texture.release()


def test_an_object_of_another_context_is_refused(context: Context) -> None:
    with io_of(context, product_graph((HEIGHT, WIDTH, 3))) as (_, io):
        other = moderngl.create_context(standalone=True, **EGL)
        with other:
            objects = other.texture((WIDTH, HEIGHT), 4), other.buffer(reserve=4096)
        context.make_current()
        for given in objects:
            with pytest.raises(UsageError, match="of another OpenGL context than the one that runs the model"):
                io.bind_input(0, given)
        other.release()
        context.make_current()


def test_an_object_that_is_gone_is_refused_when_it_is_bound_and_when_it_is_used(context: Context) -> None:
    def objects() -> list[Any]:
        return [context.mgl.texture((WIDTH, HEIGHT), 4), context.mgl.buffer(reserve=420)]

    with io_of(context, product_graph((HEIGHT, WIDTH, 3))) as (_, io):
        for given in objects():
            given.release()
            with pytest.raises(UsageError, match=r"t0 is bound to a (Texture|Buffer) that has been released"):
                io.bind_input(0, given)
        for bind, tensor in ((io.bind_input, 0), (io.bind_output, 2)):
            for given in objects():
                bind(tensor, given)
                io.run()
                given.release()
                assert_run_fails(io, f"t{tensor} is bound to a (Texture|Buffer) that has been released")
                io.unbind(tensor)
        named = context.mgl.buffer(reserve=420)
        io.bind_input(0, (named.glo, 0))
        named.orphan(400)
        assert_run_fails(io, "takes 420 bytes as BHWC, the buffer has 400")
        named.release()
        assert_run_fails(io, "t0: there is no buffer")


def assert_run_fails(io: IoBinding, complaint: str) -> None:
    with pytest.raises(UsageError, match=complaint):
        io.run()
