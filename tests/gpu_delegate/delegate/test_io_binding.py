"""I/O binding copies tensors between RAM and a program's memory, bit for bit as the engine's slower way does."""

import contextlib
from dataclasses import replace
from types import MappingProxyType
from typing import get_args

import numpy as np
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
from tests.model_files.graphs import GraphBuilder
from texelflow.gpu_delegate.base.errors import UsageError
from texelflow.gpu_delegate.delegate.io_binding import IoBinding
from texelflow.gpu_delegate.delegate.repacking import RepackingPrograms
from texelflow.gpu_delegate.delegate.synchronization import WaitType
from texelflow.gpu_delegate.device.device import SOFTWARE, Device
from texelflow.gpu_delegate.model.graph import Activated, Node, Shape
from texelflow.gpu_delegate.model.layout import PLAIN
from texelflow.gpu_delegate.ops.cast import Cast
from texelflow.gpu_delegate.targets.gl.context import Context
from texelflow.gpu_delegate.targets.gl.gl_buffers import write_buffer
from texelflow.gpu_delegate.targets.gl.runtime import Program, TensorRange
from texelflow.gpu_delegate.targets.glsl.compiled_graph import compile_graph

SHAPES: tuple[Shape, ...] = (
    (), (5,), (8,), (1, 1, 1, 13), (3, 5), (7, 1), (3, 4, 1), (5, 7, 3), (1, 9, 5, 4), (1, 1, 3, 8), (2, 3, 5, 13),
    (3, 1, 1, 5), (2, 1, 3, 4, 5), (1, 3, 86, 6),
)  # fmt: skip

SPECIAL = (-0.0, 1e-40, -1e-45, 1e38)  # that arithmetic, or a store of halves, would change


def fill_with_nan(context: Context, place: TensorRange) -> None:
    nans = np.full(place.size_bytes // 4, np.nan, np.float32)
    write_buffer(context, place, nans.ctypes.data)


@pytest.fixture(params=["software", "textures", "storage", "few groups"])
def cramped(request: pytest.FixtureRequest, context: Context, monkeypatch: pytest.MonkeyPatch) -> Context:
    """The context as it is, or as of a GPU, which may show large tensors as SSBOs alone, or allow few work-groups."""
    monkeypatch.setattr(Context, "is_software", request.param == "software")
    limits = {
        "software": context.limits,
        "textures": context.limits,
        "storage": replace(context.limits, texture_buffer_texels=2),
        "few groups": replace(context.limits, work_group_count=(2, 99, 1)),
    }
    monkeypatch.setattr(context, "limits", limits[request.param])
    return context


def kernels_for(cramped: Context) -> Device:
    """The network's own kernels run wherever it is read as the context shows it."""
    return SOFTWARE.with_limits(texture_buffer_texels=cramped.limits.texture_buffer_texels)


@one_in(4, "shape", SHAPES, ids=str)
def test_what_is_uploaded_and_read_is_what_the_engine_writes_and_reads(cramped: Context, shape: Shape) -> None:
    values, more = numbers(shape), numbers(shape, 1)
    values.flat[: len(SPECIAL)] = SPECIAL[: values.size]
    shaders = RepackingPrograms(cramped)
    with Program(cramped, compile_graph(product_graph(shape), kernels_for(cramped))) as program:
        place = program.range_of(0)
        program.write(0, values)
        program.run()
        stored, wanted = stored_bits(cramped, place), program.read(2)
        io = IoBinding(program, shaders)
        for given in (more, values):  # what lay there does not matter, nor what a first run leaves
            fill_with_nan(cramped, place)
            give(io, 0, given)
            io.run()
            found = take(io, 2, given)
        np.testing.assert_array_equal(stored_bits(cramped, place), stored)
        np.testing.assert_array_equal(found.view(np.uint32), wanted.view(np.uint32))
        io.release()
    shaders.release()


BYTE_SHAPES: tuple[Shape, ...] = (
    (1, 1, 1, 1), (1, 1, 1, 5), (1, 3, 4, 1), (1, 5, 7, 3), (1, 9, 5, 4), (2, 3, 5, 13), (1, 1, 3, 8),
)  # fmt: skip


@one_in(4, "context", ["gl", "gles"], indirect=True)
def test_bytes_become_steps_and_come_back(cramped: Context) -> None:
    """As those of the engine's own, slower way, whatever lay there; so do those that no scale makes steps of."""
    graph = bytes_graph(BYTE_SHAPES)
    given = {tensor: random_bytes(graph.tensors[tensor]) for tensor in graph.inputs}
    shaders = RepackingPrograms(cramped)
    with Program(cramped, compile_graph(graph, kernels_for(cramped))) as program:
        io = IoBinding(program, shaders)
        outputs = [np.full_like(values, 77) for values in given.values()]
        for tensor, values in given.items():
            program.write(tensor, values)
            np.testing.assert_array_equal(program.read(tensor), values)
            stored = stored_bits(cramped, program.range_of(tensor))
            fill_with_nan(cramped, program.range_of(tensor))
            give(io, tensor, values)
            np.testing.assert_array_equal(stored_bits(cramped, program.range_of(tensor)), stored)
        io.run()
        held = zip(graph.outputs, outputs, strict=True)
        io.read_all([(tensor, found.ctypes.data, found.nbytes) for tensor, found in held])
        for output, values, found in zip(graph.outputs, given.values(), outputs, strict=True):
            np.testing.assert_array_equal(found, larger_of_neighbors(values))
            np.testing.assert_array_equal(program.read(output), found)
        io.release()
    shaders.release()
    cramped.check_errors("bytes")


def test_large_tensors_take_several_work_groups(cramped: Context) -> None:
    values = numbers((1, 67, 131, 5))
    with io_of(cramped, product_graph(values.shape), kernels_for(cramped)) as (_, io):
        give(io, 0, values)
        io.run()
        np.testing.assert_array_equal(take(io, 2, values), values * np.float32(3))


def test_several_inputs_and_outputs(context: Context) -> None:
    a, b = numbers((1, 5, 3, 7)), numbers((1, 5, 3, 7), 1)
    with io_of(context, two_graph(a.shape)) as (_, io):
        give(io, 1, b)
        give(io, 0, a)
        io.run()
        added, subtracted = np.empty_like(a), np.empty_like(a)
        io.read_all([(2, added.ctypes.data, a.nbytes), (3, subtracted.ctypes.data, a.nbytes)])
        np.testing.assert_array_equal(added, a + b)
        np.testing.assert_array_equal(subtracted, a - b)
        give(io, 1, a)
        io.run()
        np.testing.assert_array_equal(take(io, 3, a), a - a)


@pytest.mark.parametrize("wait_type", get_args(WaitType))
def test_what_goes_to_ram_is_waited_for_in_every_way(context: Context, wait_type: WaitType) -> None:
    values = numbers((1, 9, 5, 3))
    shaders = RepackingPrograms(context)
    with Program(context, compile_graph(product_graph(values.shape), SOFTWARE)) as program:
        io = IoBinding(program, shaders, wait_type)
        give(io, 0, values)
        io.run()
        np.testing.assert_array_equal(take(io, 2, values), values * np.float32(3))
        io.release()
    shaders.release()


def test_a_plain_output_is_read_as_it_is(context: Context) -> None:
    values = numbers((1, 5, 7, 1))
    with io_of(context, product_graph(values.shape)) as (program, io):
        assert program.output.storage == PLAIN
        give(io, 0, values)
        io.run()
        np.testing.assert_array_equal(take(io, 2, values), values * np.float32(3))


@pytest.mark.parametrize("dtype", ["bool", "int32", "float16"])
def test_other_types(context: Context, dtype: str) -> None:
    values = np.asarray(np.random.default_rng(0).integers(0, 2 if dtype == "bool" else 500, (3, 5))).astype(dtype)
    with io_of(context, product_graph((3, 5), dtype)) as (_, io):
        give(io, 0, values)
        io.run()
        np.testing.assert_array_equal(take(io, 2, values), (values.astype(np.float64) * 3).astype(dtype))


def test_what_cannot_be_taken_is_refused(context: Context) -> None:
    values = numbers((2, 3))
    with io_of(context, product_graph((2, 3))) as (_, io):
        for size_bytes in (0, 20, 28):
            with pytest.raises(UsageError, match=r"t0 \[2, 3\] takes 24 bytes, not"):
                io.upload(0, values.ctypes.data, size_bytes)
            with pytest.raises(UsageError, match=r"t2 \[2, 3\] takes 24 bytes, not"):
                io.read(2, values.ctypes.data, size_bytes)
        with pytest.raises(UsageError, match="t0 has no memory"):
            io.upload(0, 0, 24)
        for wrong in (np.nan, np.inf, -np.inf):
            values[1, 2] = wrong
            with pytest.raises(UsageError, match="t0 takes finite numbers"):
                give(io, 0, values)
        values[1, 2] = 3e38  # finite, though its square is not
        give(io, 0, values)


def test_integers_that_float32_does_not_have_are_rounded(context: Context) -> None:
    """A delegate takes no operators for which that makes a difference, see test_exact_integers.py."""
    g = GraphBuilder()
    cast = g.node("CAST", [g.input(3, dtype="int32")], (3,), Cast("int32", "float32"))
    values = np.array([(1 << 24) + 1, -(1 << 30) - 1, 7], np.int32)
    with io_of(context, g.graph(cast)) as (_, io):
        give(io, 0, values)
        io.run()
        np.testing.assert_array_equal(take(io, cast, values.astype(np.float32)), values.astype(np.float32))


CHAINS = MappingProxyType({"both in PHWC4": (1, 5, 4, 7), "from a plain one": (1, 7, 5, 1), "vectors": (6,)})


@pytest.mark.parametrize("shape", CHAINS.values(), ids=CHAINS.keys())
def test_one_program_hands_its_output_to_the_next(context: Context, shape: Shape) -> None:
    """As its own input 0, whose number the output of the first one has."""
    values = numbers(shape)
    g = GraphBuilder()
    constant, middle = g.constant(0.5), g.tensor(shape)
    first = g.input(*shape)
    g.nodes.append(Node("MUL", (first, constant), (middle,), Activated(), 0))
    with io_of(context, g.graph(middle)) as (_, one):
        h = GraphBuilder()
        h.constant(0.25)
        h.inputs.append(middle)
        h.tensors[middle] = g.tensors[middle]
        last = h.node("MUL", [middle, 0], shape, Activated())
        with io_of(context, h.graph(last)) as (second, two):
            fill_with_nan(context, second.range_of(middle))
            before = context.readback.calls
            give(one, first, values)
            one.run()
            two.take(middle, one)
            two.run()
            assert context.readback.calls == before
            np.testing.assert_array_equal(take(two, last, values), values * np.float32(0.125))


def test_only_a_tensor_of_the_same_shape_is_handed_over(context: Context) -> None:
    complaint = r"t2 is float32 \[1, 3, 4, 6\], not float32 \[1, 3, 4, 5\]"
    graphs = product_graph((1, 3, 4, 5)), two_graph((1, 3, 4, 6))
    with contextlib.ExitStack() as stack:
        (_, one), (_, two) = (stack.enter_context(io_of(context, graph)) for graph in graphs)
        stack.enter_context(pytest.raises(UsageError, match=complaint))
        two.take(2, one)
