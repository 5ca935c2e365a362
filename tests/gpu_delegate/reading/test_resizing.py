"""Operators read again for other shapes of their inputs: as if the file had been written for those."""

from collections.abc import Callable
from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.model_files.delegate_models import any_size
from tests.model_files.model_builder import CUSTOM_TRANSPOSE, ModelBuilder
from texelflow.gpu_delegate.base.errors import UnsupportedError
from texelflow.gpu_delegate.model.graph import Graph, Shape
from texelflow.gpu_delegate.reading.reader import read_model
from texelflow.gpu_delegate.reading.resizing import read_resized


def upsampling(rows: int, columns: int, padding: str = "SAME") -> bytes:
    """MediaPipe's transposed convolution, and sizes that are computed from a shape."""
    builder, rng = ModelBuilder(), np.random.default_rng(5)
    x = builder.input((1, rows, columns, 3))
    weights, bias = builder.constant(rng.normal(0, 0.3, (2, 3, 3, 3))), builder.constant(rng.normal(0, 1, 2))
    grown = (2 * rows, 3 * columns) if padding == "SAME" else (2 * rows + 1, 3 * columns)
    y = builder.op(CUSTOM_TRANSPOSE, [x, weights, bias], (1, *grown, 2), stride=(2, 3), padding=padding)
    shape = builder.op("SHAPE", [y], (4,), "int32", out_type=2)
    builder.output(builder.op("RESHAPE", [builder.op("NEG", [y], (1, *grown, 2)), shape], (1, *grown, 2)))
    return builder.build()


def all_but_names(graph: Graph) -> object:
    nodes = [(node.op, node.inputs, node.outputs, node.attributes) for node in graph.nodes]
    return nodes, {index: (tensor.shape, tensor.dtype) for index, tensor in graph.tensors.items()}


@settings(max_examples=20)
@given(st.integers(1, 20), st.integers(1, 20))
def test_as_if_written_for_these_shapes(rows: int, columns: int) -> None:
    shape = (1, 2 * rows, 2 * columns, 3)
    builders: list[Callable[[int, int], bytes]] = [any_size, upsampling, partial(upsampling, padding="VALID")]
    for build in builders:
        file = build(6, 8)
        found = read_resized(file, read_model(file), {0: shape})
        assert all_but_names(found) == all_but_names(read_model(build(*shape[1:3])))


@pytest.mark.parametrize(
    ("shape", "reason"),
    [
        ((1, 6, 8, 4), "weights for 3 channels, input with 4"),
        ((1, 6, 8), "input 0 has 3 dimensions instead of 4"),
        ((1, 0, 8, 3), r"tensor 0 would have the shape \[1, 0, 8, 3\]"),
    ],
)
def test_refuses_shapes_that_an_operator_does_not_take(shape: Shape, reason: str) -> None:
    file = any_size()
    with pytest.raises(UnsupportedError, match=reason) as caught:
        read_resized(file, read_model(file), {0: shape})
    assert "damaged" not in str(caught.value)


def test_refuses_what_stays_one_size() -> None:
    """A transposed convolution of TensorFlow Lite has its output's size as a constant."""
    builder = ModelBuilder()
    x = builder.input((1, 4, 4, 3))
    weights = builder.constant(np.ones((2, 3, 3, 3)))
    size = builder.constant((1, 8, 8, 2), "int32")
    builder.output(builder.op("TRANSPOSE_CONV", [size, weights, x], (1, 8, 8, 2), stride=(2, 2), padding="SAME"))
    file = builder.build()
    with pytest.raises(UnsupportedError, match=r"TRANSPOSE_CONV.*\[1, 10, 8, 2\].*\[1, 8, 8, 2\]"):
        read_resized(file, read_model(file), {0: (1, 5, 4, 3)})
