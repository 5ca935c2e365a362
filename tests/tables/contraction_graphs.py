"""Graphs of contractions: matrices that broadcast or that a model puts together, attention, biases alone computed.

A model has many products, each an output of its own: what compiles takes longer than what runs.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np

from tests.model_files.sketch import GraphCase, Shape, Sketch, slid


def contraction_graphs() -> Iterator[GraphCase]:
    """All of them."""
    yield GraphCase("BATCH_MATMUL", "batches that broadcast, constants, sides exchanged", _broadcast)
    yield GraphCase("BATCH_MATMUL", "rows of heads, and the same as columns", _heads)
    yield GraphCase("FULLY_CONNECTED", "with a computed bias", _connected)
    yield GraphCase(
        "CONV_2D",
        "computed weights in 33 groups",
        lambda m: _window(m, "CONV_2D", m.image(3, 3, 66), (33, 1, 1, 2), 33, False),
        refused="CONV_2D (operator 0): weights that the model computes in 33 groups",
    )
    yield GraphCase("CONV_2D", "groups that are whole slices", _groups)
    yield GraphCase("CONV_2D", "groups without a bias", lambda m: _group(m, 16, 24, 2, stride=(2, 1), bias=False))
    yield GraphCase("CONV_2D", "groups that are whole slices, batch 3", lambda m: _group(m, 24, 40, 2, batch=3))
    yield GraphCase("TRANSPOSE_CONV", "with a computed bias", _transposed)
    yield GraphCase("LSTM", "7 to 5 units, 1 and 3 rows", lambda m: (*_lstm(m, 1, 7, 5), *_lstm(m, 3, 7, 5)))
    yield GraphCase("LSTM", "computed weights, all outputs", lambda m: _lstm(m, 2, 3, 5, computed=True))
    yield GraphCase("fused", "attention of 3 heads, 7 rows and 5 channels", lambda m: _attention(m, 3, 7, 5))
    yield GraphCase("fused", "attention of 2 heads, 48 rows and 8 channels", lambda m: _attention(m, 2, 48, 8))
    yield GraphCase("fused", "a convolution with weights that the model computes", _dynamic_filter)
    yield GraphCase("fused", "a pixelwise convolution with computed weights over held values", _pixels_of_layers)
    yield GraphCase("fused", "products over held values and of one tensor with itself", _products_of_layers)


def _matmul(m: Sketch, x: int, y: int, adj_x: bool = False, adj_y: bool = False) -> int:
    """Of computed or constant matrices."""
    a, b = m.shape(x), m.shape(y)
    rows, columns = a[-1 if adj_x else -2], b[-2 if adj_y else -1]
    shape = (*np.broadcast_shapes(a[:-2], b[:-2]), rows, columns)
    return m.op("BATCH_MATMUL", [x, y], shape, adj_x=adj_x, adj_y=adj_y)


def _broadcast(m: Sketch) -> tuple[int, ...]:
    wide, deep, flat = m.input((2, 1, 5, 7)), m.input((1, 3, 7, 9)), m.input((5, 7))
    return (
        _matmul(m, wide, deep),
        _matmul(m, flat, deep),
        _matmul(m, wide, m.random(7, 4)),
        _matmul(m, wide, m.random(2, 1, 7, 4)),
        _matmul(m, m.random(3, 5, 7), deep),
        _matmul(m, m.random(1, 7), deep),
        _matmul(m, wide, m.input((2, 5, 9)), adj_x=True),
        _matmul(m, wide, m.input((2, 3, 9, 5)), adj_x=True, adj_y=True),
        _matmul(m, wide, m.random(1, 6, 7), adj_y=True),
        _matmul(m, m.random(5, 2), wide, adj_x=True),
        _matmul(m, m.input((1, 1)), m.input((1, 1))),
        m.mean(_matmul(m, m.input((1, 4, 37, 5)), m.input((1, 1, 5, 6)))),  # pixels of a thread past a row's end
    )


def _heads(m: Sketch) -> tuple[int, int]:
    """Matrices that a model has put together by RESHAPE and TRANSPOSE: kernels read through both."""
    x, y = m.input((12, 24)), m.input((12, 24))

    def split(tensor: int) -> int:
        parts = m.op("RESHAPE", [tensor, m.constant((1, 12, 3, 8), "int32")], (1, 12, 3, 8))
        return m.op("TRANSPOSE", [parts, m.constant((0, 2, 1, 3), "int32")], (1, 3, 12, 8))

    scores = _matmul(m, split(x), split(y), adj_y=True)
    return scores, _matmul(m, scores, split(y))


def _connected(m: Sketch) -> int:
    inputs = [m.input((1, 6)), m.random(5, 6), m.input((5,))]
    return m.op("FULLY_CONNECTED", inputs, (1, 5), activation="RELU")


def _window(m: Sketch, op: str, x: int, weights: Shape, channels: int, bias: bool, **options: Any) -> int:
    """A convolution whose weights are an input, and whose bias may be one."""
    settings: dict[str, Any] = {"stride": (1, 1), "dilation": (1, 1), "padding": "SAME"} | options
    shape = (m.shape(x)[0], *slid(m.shape(x)[1:3], (weights[1], weights[2]), **settings), channels)
    own = m.input((channels,)) if bias else m.random(channels)
    return m.op(op, [x, m.input(weights), own], shape, **settings)


def _group(m: Sketch, source: int, target: int, groups: int, batch: int = 1, **options: Any) -> int:
    x = m.unary("RELU", m.image(5, 7, source, batch))
    return m.unary("TANH", m.conv(x, target, (3, 2), groups=groups, activation="RELU6", **options))


def _groups(m: Sketch) -> tuple[int, ...]:
    """Of one slice each and of several, as many for outputs as for inputs or not."""
    sides = ((8, 8, 2), (24, 8, 2), (16, 48, 2), (24, 36, 3), (64, 64, 16))
    return *(_group(m, *each) for each in sides), _group(m, 16, 24, 2, stride=(2, 1))


def _transposed(m: Sketch) -> int:
    shape = (1, 8, 10, 3)
    inputs = [m.constant(shape, "int32"), m.random(3, 2, 2, 5), m.image(4, 5, 5), m.input((3,))]
    return m.op("TRANSPOSE_CONV", inputs, shape, stride=(2, 2), padding="SAME")


def _lstm(m: Sketch, rows: int, depth: int, units: int, computed: bool = False) -> tuple[int, ...]:
    """Activation and state; of computed weights also what is between."""
    x, last, state = m.input((rows, depth)), m.input((rows, units)), m.input((rows, units))
    shapes = (4 * units, depth + units), (4 * units,)
    parameters = [m.input(shape) if computed else m.random(*shape) for shape in shapes]
    outputs = [(rows, units), (rows, units), (rows, depth + units), (rows, 4 * units)]
    inputs = [x, last, *parameters, state]
    found = m.split("LSTM", inputs, outputs, kernel_type=1, activation="TANH")
    return found if computed else found[:2]


def _attention(m: Sketch, heads: int, rows: int, depth: int) -> int:
    query, key, value = (m.input((1, heads, rows, depth)) for _ in range(3))
    scores = m.binary("MUL", _matmul(m, query, key, adj_y=True), m.constant(depth**-0.5))
    shares = m.unary("SOFTMAX", m.binary("ADD", scores, m.input((1, 1, 1, rows))), beta=1.0)
    found = _matmul(m, shares, value)
    order = m.constant((0, 2, 1, 3), "int32")
    side = m.op("TRANSPOSE", [found, order], (1, rows, heads, depth))
    flat = m.op("RESHAPE", [side, m.constant((rows, heads * depth), "int32")], (rows, heads * depth))
    return m.connected(flat, 13)


def _dynamic_filter(m: Sketch) -> int:
    """Weights out of a layer, PADded, and one PADded map that is input and weights at once."""
    x = m.image(6, 5, 3)
    made = m.unary("TANH", m.input((4, 2, 2, 3)))
    weights = m.pad(made, (0, 0), (1, 0), (0, 1), (0, 0))
    y = m.op("CONV_2D", [x, weights, m.random(4)], (1, 6, 5, 4), stride=(1, 1), dilation=(1, 1), padding="SAME")
    square = m.pad(m.image(2, 2, 1), (0, 0), (1, 0), (0, 1), (0, 0))
    options: dict[str, Any] = {"stride": (1, 1), "dilation": (1, 1), "padding": "VALID"}
    one = m.op("CONV_2D", [square, square, m.random(1)], (1, 1, 1, 1), **options)
    return m.binary("ADD", y, one)


def _pixels_of_layers(m: Sketch) -> int:
    y = m.unary("TANH", m.conv(m.image(5, 9, 3), 13, (3, 3)))
    options: dict[str, Any] = {"stride": (1, 1), "dilation": (1, 1), "padding": "VALID"}
    return m.unary("RELU", m.op("CONV_2D", [y, m.input((6, 1, 1, 13)), m.random(6)], (1, 5, 9, 6), **options))


def _products_of_layers(m: Sketch) -> tuple[int, ...]:
    x = m.image(1, 9, 5)
    y = m.unary("TANH", m.conv(x, 13))
    return _matmul(m, y, y, adj_y=True), _matmul(m, y, m.input((13, 6))), _matmul(m, m.conv(x, 6), m.input((6, 3)))
