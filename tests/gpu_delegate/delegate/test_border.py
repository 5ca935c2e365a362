"""Tensors between RAM and a program's memory: bit by bit what the engine's own, slower way gives."""

from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from tests.graphs import GraphBuilder
from texelflow.gpu_delegate import opengl
from texelflow.gpu_delegate.context import Context
from texelflow.gpu_delegate.delegate.border import ProgramBorder
from texelflow.gpu_delegate.delegate.repacking import RepackingPrograms
from texelflow.gpu_delegate.device import SOFTWARE, Device
from texelflow.gpu_delegate.errors import UsageError
from texelflow.gpu_delegate.graph import Activated, Graph, Shape
from texelflow.gpu_delegate.layout import PLAIN
from texelflow.gpu_delegate.program import compile_graph
from texelflow.gpu_delegate.runtime import Program, TensorRange, device_of

SHAPES: tuple[Shape, ...] = (
    (), (5,), (8,), (1, 1, 1, 13), (3, 5), (7, 1), (3, 4, 1), (5, 7, 3), (1, 9, 5, 4), (1, 1, 3, 8), (2, 3, 5, 13),
    (3, 1, 1, 5), (2, 1, 3, 4, 5), (1, 3, 86, 6),
)  # fmt: skip


def product_graph(shape: Shape, dtype: str = "float32") -> Graph:
    """y = 3 * x; input 0, output 2."""
    g = GraphBuilder()
    return g.graph(g.node("MUL", [g.input(*shape, dtype=dtype), g.constant(3.0)], shape, Activated(), dtype))


def two_graph(shape: Shape) -> Graph:
    """a + b and a - b, in which the inputs of the border are told apart; inputs 0 and 1, outputs 2 and 3."""
    g = GraphBuilder()
    a, b = g.input(*shape), g.input(*shape)
    return g.graph(*(g.node(op, [a, b], shape, Activated()) for op in ("ADD", "SUB")))


def numbers(shape: Shape, seed: int = 0) -> npt.NDArray[np.float32]:
    return np.asarray(np.random.default_rng(seed).normal(0, 100, shape), np.float32)


def give(border: ProgramBorder, tensor: int, values: npt.NDArray[Any]) -> None:
    held = np.ascontiguousarray(values)
    border.upload(tensor, held.ctypes.data, held.nbytes)


def take(border: ProgramBorder, tensor: int, like: npt.NDArray[Any]) -> npt.NDArray[Any]:
    found = np.full_like(like, 77)
    border.read(tensor, found.ctypes.data, found.nbytes)
    return found


def stored_bits(context: Context, place: TensorRange) -> npt.NDArray[np.uint32]:
    """All bytes of a stored tensor, padding lanes included."""
    found = np.empty(place.size_bytes // 4, np.uint32)
    gl = context.gl
    gl.glMemoryBarrier(opengl.BUFFER_UPDATE_BARRIER_BIT)
    gl.glBindBuffer(opengl.COPY_READ_BUFFER, place.buffer)
    gl.glGetBufferSubData(opengl.COPY_READ_BUFFER, place.offset_bytes, place.size_bytes, found.ctypes.data)
    return found


def fill_with_nan(context: Context, place: TensorRange) -> None:
    nans = np.full(place.size_bytes // 4, np.nan, np.float32)
    context.gl.glBindBuffer(opengl.COPY_WRITE_BUFFER, place.buffer)
    context.gl.glBufferSubData(opengl.COPY_WRITE_BUFFER, place.offset_bytes, place.size_bytes, nans.ctypes.data)


@pytest.fixture(params=["textures", "storage", "few groups"])
def cramped(request: pytest.FixtureRequest, context: Context, monkeypatch: pytest.MonkeyPatch) -> Context:
    """The context, of a device that shows large tensors as SSBOs alone, or that allows few work-groups."""
    limits = {
        "textures": context.limits,
        "storage": replace(context.limits, texture_buffer_texels=2),
        "few groups": replace(context.limits, work_group_count=(2, 99, 1)),
    }
    monkeypatch.setattr(context, "limits", limits[request.param])
    return context


def kernels_for(cramped: Context) -> Device:
    """The network's own kernels run wherever it is read as the context shows it."""
    return SOFTWARE if cramped.limits.work_group_count[0] == 2 else device_of(cramped)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_what_is_uploaded_and_read_is_what_the_engine_writes_and_reads(cramped: Context, shape: Shape) -> None:
    values, more = numbers(shape), numbers(shape, 1)
    shaders = RepackingPrograms(cramped)
    with Program(cramped, compile_graph(product_graph(shape), kernels_for(cramped))) as program:
        place = program.range_of(0)
        program.write(0, values)
        program.run()
        stored, wanted = stored_bits(cramped, place), program.read(2)
        fill_with_nan(cramped, place)
        border = ProgramBorder(program, shaders)
        for given in (more, values):  # what a first run leaves does not matter
            give(border, 0, given)
            border.run()
            found = take(border, 2, given)
        np.testing.assert_array_equal(stored_bits(cramped, place), stored)
        np.testing.assert_array_equal(found.view(np.uint32), wanted.view(np.uint32))
        border.release()
    shaders.release()


def test_large_tensors_take_several_work_groups(cramped: Context) -> None:
    values = numbers((1, 67, 131, 5))
    shaders = RepackingPrograms(cramped)
    with Program(cramped, compile_graph(product_graph(values.shape), kernels_for(cramped))) as program:
        border = ProgramBorder(program, shaders)
        give(border, 0, values)
        border.run()
        np.testing.assert_array_equal(take(border, 2, values), values * np.float32(3))
        border.release()
    shaders.release()


def test_several_inputs_and_outputs(context: Context) -> None:
    a, b = numbers((1, 5, 3, 7)), numbers((1, 5, 3, 7), 1)
    shaders = RepackingPrograms(context)
    with Program(context, compile_graph(two_graph(a.shape), SOFTWARE)) as program:
        border = ProgramBorder(program, shaders)
        give(border, 1, b)
        give(border, 0, a)
        border.run()
        np.testing.assert_array_equal(take(border, 2, a), a + b)
        np.testing.assert_array_equal(take(border, 3, a), a - b)
        give(border, 1, a)
        border.run()
        np.testing.assert_array_equal(take(border, 3, a), a - a)
        border.release()
    shaders.release()


def test_a_plain_output_is_read_as_it_is(context: Context) -> None:
    shape = (1, 5, 7, 1)
    g = GraphBuilder()
    graph = g.graph(g.node("RELU", [g.node("SUB", [g.input(*shape), g.random(*shape)], shape, Activated())]))
    values = numbers(shape)
    shaders = RepackingPrograms(context)
    with Program(context, compile_graph(graph, SOFTWARE)) as program:
        assert program.output.storage == PLAIN
        border = ProgramBorder(program, shaders)
        give(border, 0, values)
        border.run()
        np.testing.assert_array_equal(take(border, graph.outputs[0], values), program.read(graph.outputs[0]))
        border.release()
    shaders.release()


@pytest.mark.parametrize("dtype", ["bool", "int32", "float16"])
def test_other_types(context: Context, dtype: str) -> None:
    values = np.asarray(np.random.default_rng(0).integers(0, 2 if dtype == "bool" else 500, (3, 5))).astype(dtype)
    shaders = RepackingPrograms(context)
    with Program(context, compile_graph(product_graph((3, 5), dtype), SOFTWARE)) as program:
        border = ProgramBorder(program, shaders)
        give(border, 0, values)
        border.run()
        np.testing.assert_array_equal(take(border, 2, values), (values.astype(np.float64) * 3).astype(dtype))
        border.release()
    shaders.release()


def test_what_cannot_be_taken_is_refused(context: Context) -> None:
    shaders = RepackingPrograms(context)
    values = numbers((2, 3))
    with Program(context, compile_graph(product_graph((2, 3)), SOFTWARE)) as program:
        border = ProgramBorder(program, shaders)
        for size_bytes in (0, 20, 28):
            with pytest.raises(UsageError, match=r"t0 \[2, 3\] takes 24 bytes, not"):
                border.upload(0, values.ctypes.data, size_bytes)
            with pytest.raises(UsageError, match=r"t2 \[2, 3\] takes 24 bytes, not"):
                border.read(2, values.ctypes.data, size_bytes)
        with pytest.raises(UsageError, match="t0 has no memory"):
            border.upload(0, 0, 24)
        values[1, 2] = np.nan
        with pytest.raises(UsageError, match="t0 takes finite numbers"):
            give(border, 0, values)
        border.release()
    with Program(context, compile_graph(product_graph((3,), "int32"), SOFTWARE)) as program:
        border = ProgramBorder(program, shaders)
        with pytest.raises(UsageError, match="t0 takes integers from -16777215 to 16777215 on the GPU"):
            give(border, 0, np.array([1, 2, 1 << 24], np.int32))
        border.release()
    shaders.release()
