"""Integers of all sizes: the same as TensorFlow Lite's kernels give, in native code and on OpenGL."""

import numpy as np
import pytest

import texelflow
from tests.generators.wide_steps import Integers, edge_values, wide_graph
from tests.helpers.delegated import inferred, interpreter_of
from tests.helpers.engine import on_gpu
from tests.helpers.markers import one_in
from tests.model_files.model_builder import ModelBuilder
from texelflow.gpu_delegate.device.device import SOFTWARE
from texelflow.gpu_delegate.reading.reader import read_model
from texelflow.gpu_delegate.targets.gl.context import Context
from texelflow.gpu_delegate.targets.glsl.compiled_graph import compile_graph
from texelflow.gpu_delegate.targets.llvm.native_runtime import NativeNetwork

SEEDS = range(200)


@one_in(10, "seed", SEEDS)
def test_random_graphs_in_native_code(seed: int) -> None:
    model, inputs = wide_graph(seed)
    check_native(model, inputs)


@pytest.mark.gl
@one_in(20, "seed", SEEDS)
def test_random_graphs_on_opengl(seed: int, context: Context) -> None:
    model, inputs = wide_graph(seed)
    found = on_gpu(context, compile_graph(read_model(model), SOFTWARE), inputs)
    for ours, theirs in zip(found, inferred(interpreter_of(model, xnnpack=False), inputs), strict=True):
        np.testing.assert_array_equal(ours, theirs)


@pytest.mark.gl
@pytest.mark.parametrize("dtype", ["int32", "int64"])
def test_digits_cross_from_one_partition_to_the_next(dtype: str) -> None:
    """To one that computes with them, and to one that takes floats for them."""
    shape = (1, 3, 4, 5)
    m = ModelBuilder()
    x, y = m.input(shape, dtype), m.input(shape, dtype)
    total = m.op("ADD", [x, y], shape, dtype)
    there = m.cpu_op(m.op("CAST", [m.op("MINIMUM", [total, m.constant(9, dtype)], shape, dtype)], shape))
    floats = m.op("MUL", [m.op("CAST", [total], shape), there], shape)
    wrapped = m.op("SUB", [m.op("CAST", [there], shape, dtype), total], shape, dtype)
    m.output(floats, wrapped)
    rng, model = np.random.default_rng(4), m.build()
    inputs = [edge_values(rng, shape, dtype) // 2 for _ in range(2)]
    with texelflow.GpuDelegate(min_nodes_per_partition=1, strict=True, quiet=True) as delegate:
        interpreter = interpreter_of(model, delegate, xnnpack=False)
        found, wanted = inferred(interpreter, inputs), inferred(interpreter_of(model, xnnpack=False), inputs)
        assert len(delegate.partitions) == 2
        del interpreter
    for ours, theirs in zip(found, wanted, strict=True):
        np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize("dtype", ["int32", "int64"])
@pytest.mark.parametrize("shape", [(700, 3), (3, 257), (1, 5, 300, 2)])
def test_sums_of_many(dtype: str, shape: tuple[int, ...]) -> None:
    """More than float32 has the sums of as digits."""
    axis, m = int(np.argmax(shape)), ModelBuilder()
    x = m.input(shape, dtype)
    left = tuple(size for k, size in enumerate(shape) if k != axis)
    m.output(m.op("SUM", [x, m.constant([axis], "int32")], left, dtype))
    m.output(m.op("CUMSUM", [x, m.constant(axis, "int32")], shape, dtype))
    inputs = [edge_values(np.random.default_rng(5), shape, dtype)]
    check_native(m.build(), inputs)


def test_moves() -> None:
    """Each digit goes where the others go; what pads is as large as it is."""
    m, shape = ModelBuilder(), (2, 3, 4)
    x, places = m.input(shape, "int32"), m.input((5,), "int32")
    amounts, large = m.constant([[0, 1], [2, 0], [1, 1]], "int32"), m.constant(-(1 << 30) - 7, "int32")
    m.output(m.op("PADV2", [x, amounts, large], (3, 5, 6), "int32"))
    m.output(m.op("GATHER", [x, places], (2, 5, 4), "int32", axis=1))
    m.output(m.op("TRANSPOSE", [x, m.constant([2, 0, 1], "int32")], (4, 2, 3), "int32"))
    m.output(m.op("TILE", [x, m.constant([1, 2, 1], "int32")], (2, 6, 4), "int32"))
    m.output(*m.split("SPLIT", [m.constant(2, "int32"), x], [(2, 3, 2)] * 2, "int32", num_splits=2))
    m.output(*m.split("UNPACK", [x], [(2, 4)] * 3, "int32", axis=1, num=3))
    m.output(m.op("PACK", [places, places], (2, 5), "int32", axis=0, values_count=2))
    hot = m.op(
        "ONE_HOT", [places, m.constant(4, "int32"), large, m.constant(1 << 30, "int32")], (5, 4), "int32", axis=-1
    )
    m.output(hot)
    rng = np.random.default_rng(6)
    check_native(m.build(), [edge_values(rng, shape, "int32"), rng.integers(0, 3, 5, np.int32)])


def check_native(model: bytes, inputs: list[Integers]) -> None:
    """Against TensorFlow Lite."""
    found = NativeNetwork.load(read_model(model), threads=1).run(inputs)
    for ours, theirs in zip(found, inferred(interpreter_of(model, xnnpack=False), inputs), strict=True):
        np.testing.assert_array_equal(ours, theirs)


def test_states_hold_all_integers() -> None:
    model, rng = counting(), np.random.default_rng(7)
    network, interpreter = NativeNetwork.load(read_model(model), threads=1), interpreter_of(model, xnnpack=False)
    for _ in range(4):
        values = [rng.integers(-9, 1 << 29, 3, np.int32)]
        for ours, theirs in zip(network.run(values), inferred(interpreter, values), strict=True):
            np.testing.assert_array_equal(ours, theirs)


def counting() -> bytes:
    """A variable that each run multiplies and adds to, and one that stays small, which is read as floats."""
    m, before = ModelBuilder(), ModelBuilder()
    for number, start in enumerate(([3, -5, 1 << 30], [1, 2, 3])):
        handle = before.op("VAR_HANDLE", [], (), "resource", **_named(number))
        before.op_of("ASSIGN_VARIABLE", [handle, before.constant(start, "int32")], [])
    m.further.append(before)
    m.op_of("CALL_ONCE", [], [], init_subgraph_index=1, table="CallOnceOptions")
    x = m.input((3,), "int32")
    first, second = (m.op("VAR_HANDLE", [], (), "resource", **_named(number)) for number in range(2))
    total = m.op("ADD", [m.op("READ_VARIABLE", [first], (3,), "int32"), x], (3,), "int32")
    total = m.op("MUL", [total, m.constant(69069, "int32")], (3,), "int32")
    m.op_of("ASSIGN_VARIABLE", [first, total], [])
    small = m.op("READ_VARIABLE", [second], (3,), "int32")
    m.op_of("ASSIGN_VARIABLE", [second, m.op("MINIMUM", [small, x], (3,), "int32")], [])
    m.output(total, m.op("CAST", [small], (3,)))
    return m.build()


def _named(number: int) -> dict[str, str]:
    return {"shared_name": f"v{number}", "container": "", "table": "VarHandleOptions"}
