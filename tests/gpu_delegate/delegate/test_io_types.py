"""What the caller writes and reads: tensors of other types than float32 and of other ranks than 4, on the GPU."""

from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from tests.helpers.io_bindings import product_graph
from tests.model_files.graphs import GraphBuilder
from texelflow.gpu_delegate.base.errors import UsageError
from texelflow.gpu_delegate.device.device import SOFTWARE
from texelflow.gpu_delegate.model.graph import Graph, Node, Shape, Tensor
from texelflow.gpu_delegate.model.layout import PHWC4, PHWC4_HALVES
from texelflow.gpu_delegate.model.packing import as_type
from texelflow.gpu_delegate.plan.compile_options import CompileOptions
from texelflow.gpu_delegate.targets.gl.context import Context
from texelflow.gpu_delegate.targets.gl.runtime import Program
from texelflow.gpu_delegate.targets.glsl.compiled_graph import compile_graph

SHAPES: tuple[Shape, ...] = ((), (5,), (3, 5), (3, 4, 1), (2, 3, 4, 13), (2, 1, 3, 4, 5))


def random_values(dtype: str, shape: Shape) -> npt.NDArray[Any]:
    rng = np.random.default_rng(1)
    if dtype == "bool":
        return np.asarray(rng.random(shape) < 0.5)
    return np.asarray(rng.integers(-5_000_000, 5_000_000, shape) if "int" in dtype else rng.random(shape)).astype(dtype)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("dtype", ["bool", "int32", "float16", "float32"])
def test_values_keep_their_type_and_shape(context: Context, dtype: str, shape: Shape) -> None:
    values = random_values(dtype, shape)
    wanted = values.astype(np.float64) * 3
    with Program(context, compile_graph(product_graph(shape, dtype), SOFTWARE)) as program:
        program.write(0, values)
        program.run()
        found, given = program.read(2), program.read(0)
    assert (found.dtype, found.shape) == (np.dtype(dtype), shape)
    np.testing.assert_array_equal(given, values)
    if "float" in dtype:
        np.testing.assert_allclose(found, wanted, rtol=1e-3)
    else:
        np.testing.assert_array_equal(found, wanted.astype(dtype))


@pytest.mark.parametrize(("dtype", "large"), [("int32", 1 << 24), ("int64", 1 << 53)])
def test_integers_that_float32_does_not_have(context: Context, dtype: str, large: int) -> None:
    """Of any rank, as inputs, constants and outputs."""
    limits = np.iinfo(dtype)
    for shape in SHAPES[:-1]:
        g = GraphBuilder()
        x = g.input(*shape, dtype=dtype)
        out = g.node("MAXIMUM", [x, g.constant(np.array(large + 1, dtype), dtype)], shape, dtype=dtype)
        values = np.random.default_rng(3).integers(limits.min, limits.max, shape, np.dtype(dtype), endpoint=True)
        values = np.where(values > limits.max // 2, np.array(large, dtype), values)
        with Program(context, compile_graph(g.graph(out), SOFTWARE)) as program:
            program.write(x, values)
            program.run()
            np.testing.assert_array_equal(program.read(x), values)
            np.testing.assert_array_equal(
                program.read(out), np.maximum(values, np.array(large + 1, dtype)), strict=True
            )
            with pytest.raises(UsageError, match=rf"takes an array of {dtype} of shape .*, not float32"):
                program.write(x, values.astype(np.float32))


def test_integers_are_not_stored_as_halves() -> None:
    shape = (1, 5, 6, 3)
    tensors = {i: Tensor(i, f"t{i}", shape, "int32" if i == 1 else "float32") for i in range(4)}
    nodes = (Node("ABS", (0,), (1,)), Node("NEG", (1,), (2,)), Node("NEG", (2,), (3,)))
    graph = Graph("g", MappingProxyType(tensors), nodes, (0,), (3,))
    compiled = compile_graph(graph, SOFTWARE, CompileOptions(fuse=False, precision="fp16"))
    assert [compiled.storages[i] for i in (1, 2)] == [PHWC4, PHWC4_HALVES]


def test_results_in_types_that_do_not_have_them_are_the_nearest() -> None:
    values = np.array([np.nan, np.inf, -np.inf, 2.5, -0.4, 3e9], np.float32)
    limits = np.iinfo(np.int32)
    np.testing.assert_array_equal(as_type(values, "int32"), [0, limits.max, limits.min, 2, 0, limits.max])
    np.testing.assert_array_equal(as_type(values, "bool"), [True, True, True, True, True, True])
