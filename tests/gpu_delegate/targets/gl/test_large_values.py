"""Finite inputs of any size: where results are finite, OpenGL and native code agree with TensorFlow Lite.

What happens where float32 does not hold a result is told in docs/gpu.md.
"""

from typing import Any

import numpy as np
import pytest

from tests.helpers.engine import DEVICES, on_gpu
from tests.helpers.markers import exhaustive, one_in
from tests.helpers.native import native_networks
from tests.model_files.model_builder import ModelBuilder, selfie_like
from texelflow.gpu_delegate.cpu.reference import Reference
from texelflow.gpu_delegate.reading.reader import read_model
from texelflow.gpu_delegate.targets.gl.context import Context
from texelflow.gpu_delegate.targets.glsl.compiled_graph import compile_graph

UNARY = (
    *("RELU", "RELU6", "RELU_N1_TO_1", "HARD_SWISH", "LOGISTIC", "TANH", "SOFTMAX", "LOG_SOFTMAX", "L2_NORMALIZATION"),
    *("ELU", "GELU", "EXP", "SQRT", "RSQRT", "SQUARE", "LOG", "ABS", "NEG", "FLOOR", "ROUND", "LEAKY_RELU"),
)
BINARY = ("ADD", "SUB", "MUL", "DIV", "MAXIMUM", "MINIMUM", "SQUARED_DIFFERENCE")
OPTIONS: dict[str, dict[str, Any]] = {"LEAKY_RELU": {"alpha": 0.1}, "SOFTMAX": {"beta": 1.0}}
VALUES = np.array([3e38, 3.4e38, 1e30, 2e19, 1e10, 88.8, 1000, 1, 1e-30, 0, -1, -88.8, -1e10, -2e19, -1e30, -3e38])
DIVISOR = 2.0**126  # beyond, GLSL promises nothing of a quotient (its section 4.7.1), and NVIDIA's is 0
SHAPE = (1, 1, len(VALUES), 4)


def all_ops() -> tuple[bytes, tuple[str, ...]]:
    """A model with every op on the same inputs, and the names of its outputs."""
    m = ModelBuilder()
    x, y = m.input(SHAPE), m.input(SHAPE)
    m.output(*(m.op(op, [x], SHAPE, **OPTIONS.get(op, {})) for op in UNARY))
    m.output(*(m.op(op, [x, y], SHAPE) for op in BINARY))
    return m.build(), (*UNARY, *BINARY)


@pytest.mark.gl
@pytest.mark.parametrize("backend", ["OpenGL", "native"])
def test_each_op_agrees_where_results_are_finite(context: Context, backend: str) -> None:
    model, names = all_ops()
    given = VALUES if backend == "native" or context.is_software else np.clip(VALUES, -DIVISOR, DIVISOR)
    graph, column = read_model(model), given.astype(np.float32)[:, None]
    inputs = [np.broadcast_to(each, SHAPE[1:]).reshape(SHAPE).copy() for each in (column, column[::-1])]
    wanted = Reference(graph, keep_all_tensors=True).run(inputs)  # TensorFlow Lite's own kernels
    compiled = compile_graph(graph, DEVICES["software"])
    found = on_gpu(context, compiled, inputs) if backend == "OpenGL" else native_networks({0: graph})[0].run(inputs)
    largest = np.finfo(np.float32).max
    for name, ours, theirs in zip(names, found, wanted, strict=True):
        fits = np.isfinite(theirs) & (np.abs(theirs) < largest)  # which their clamps make of infinity
        assert fits.any(), name
        np.testing.assert_allclose(ours[fits], theirs[fits], rtol=1e-4, atol=1e-6, err_msg=name)


@exhaustive
@pytest.mark.gl
@one_in(3, "size", [1e3, 1e10, 1e18])
def test_a_network_agrees_while_its_sums_fit(context: Context, size: float) -> None:
    graph = read_model(selfie_like(1, size=(32, 16)))
    x = np.random.default_rng(0).uniform(-size, size, graph.tensors[graph.inputs[0]].shape).astype(np.float32)
    (wanted,) = Reference(graph, keep_all_tensors=True).run(x)
    (ours,) = on_gpu(context, compile_graph(graph, DEVICES["software"]), [x])
    native = np.asarray(native_networks({0: graph})[0].run([x])[0])
    assert np.isfinite(wanted).all()
    for found in (ours, native):
        assert (np.abs(found - wanted) < 1e-3).mean() > 0.99  # masks are 0 or 1 but at their edges
