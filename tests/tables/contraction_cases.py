"""Rows of the table of op cases for contractions whose weights a model computes, or that are matrices.

A model has many products, each an output of its own: what compiles takes longer than what runs.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np

from tests.model_files.sketch import OpCase, Shape, Size, Sketch, slid

SIDES = ((1, 1), (1, 5), (3, 4), (4, 13), (5, 3), (13, 1), (13, 13))  # terms and columns of matrices
CHANNELS = ((1, 13), (3, 5), (5, 4), (13, 1))  # in and out


def contractions() -> Iterator[OpCase]:
    """BATCH_MATMUL in all its forms, FULLY_CONNECTED and convolutions with computed weights and biases, attention."""
    yield OpCase("BATCH_MATMUL", "of all depths and widths", _sides)
    yield OpCase("BATCH_MATMUL", "of all depths and widths, adjoint", lambda m: _sides(m, adj_y=True))
    yield OpCase("BATCH_MATMUL", "batches that broadcast, constants, sides exchanged", _broadcast)
    yield OpCase(
        "BATCH_MATMUL", "1x2x48x33 and 33x70", lambda m: _matmul(m, m.input((1, 2, 48, 33)), m.input((33, 70)))
    )
    yield OpCase("BATCH_MATMUL", "rows of heads, and the same as columns", _heads)
    yield OpCase("FULLY_CONNECTED", "with computed weights and biases", _connected)
    yield OpCase("FULLY_CONNECTED", "of all ranks, keep_num_dims", _ranks)
    yield OpCase(
        "CONV_2D",
        "computed weights in 33 groups",
        lambda m: _window(m, "CONV_2D", m.image(3, 3, 66), (33, 1, 1, 2), 33, False),
        refused="CONV_2D (operator 0): weights that the model computes in 33 groups",
    )
    for batch in (1, 3):
        yield OpCase("CONV_2D", f"computed weights and biases, batch {batch}", lambda m, b=batch: _convolutions(m, b))
        yield OpCase("DEPTHWISE_CONV_2D", f"computed weights, batch {batch}", lambda m, b=batch: _depthwise(m, b))
    yield OpCase("CONV_2D", "groups that are whole slices", _groups)
    yield OpCase("CONV_2D", "groups without a bias", lambda m: _group(m, 16, 24, 2, stride=(2, 1), bias=False))
    yield OpCase("CONV_2D", "groups that are whole slices, batch 3", lambda m: _group(m, 24, 40, 2, batch=3))
    yield OpCase("TRANSPOSE_CONV", "computed weights and biases", _transposed)
    yield OpCase("LSTM", "7 to 5 units, 1 and 3 rows", lambda m: (*_lstm(m, 1, 7, 5), *_lstm(m, 3, 7, 5)))
    yield OpCase("LSTM", "computed weights, all outputs", lambda m: _lstm(m, 2, 3, 5, computed=True))
    yield OpCase("fused", "attention of 3 heads, 7 rows and 5 channels", lambda m: _attention(m, 3, 7, 5))
    yield OpCase("fused", "attention of 2 heads, 48 rows and 8 channels", lambda m: _attention(m, 2, 48, 8))
    yield OpCase("fused", "a convolution with weights that the model computes", _dynamic_filter)
    yield OpCase("fused", "a pixelwise convolution with computed weights over held values", _pixels_of_layers)
    yield OpCase("fused", "products over held values and of one tensor with itself", _products_of_layers)


def _matmul(m: Sketch, x: int, y: int, adj_x: bool = False, adj_y: bool = False) -> int:
    """Of computed or constant matrices."""
    a, b = m.shape(x), m.shape(y)
    rows, columns = a[-1 if adj_x else -2], b[-2 if adj_y else -1]
    shape = (*np.broadcast_shapes(a[:-2], b[:-2]), rows, columns)
    return m.op("BATCH_MATMUL", [x, y], shape, adj_x=adj_x, adj_y=adj_y)


def _sides(m: Sketch, adj_y: bool = False) -> tuple[int, ...]:
    def one(terms: int, columns: int) -> int:
        sides = (columns, terms) if adj_y else (terms, columns)
        return _matmul(m, m.input((3, 7, terms)), m.input((3, *sides)), adj_y=adj_y)

    return tuple(one(*sides) for sides in SIDES)


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


def _connected(m: Sketch) -> tuple[int, ...]:
    x, vector = m.input((3, 2, 6)), m.input((1, 6))
    weights, bias = m.input((5, 6)), m.input((5,))
    wide = m.input((4, 12))

    def row(inputs: list[int], shape: Shape, **options: Any) -> int:
        return m.op("FULLY_CONNECTED", inputs, shape, **options)

    return (
        row([x, weights, bias], (6, 5), activation="RELU"),
        row([x, weights, bias], (3, 2, 5), keep_num_dims=True, activation="RELU6"),
        row([x, wide, -1], (3, 4)),
        row([x, wide, m.random(4)], (3, 4), activation="RELU"),
        row([vector, weights, bias], (1, 5)),
        row([vector, m.random(5, 6), bias], (1, 5), activation="RELU"),
    )


def _ranks(m: Sketch) -> tuple[int, ...]:
    weights, bias = m.random(13, 5), m.random(13)

    def row(shape: Shape) -> int:
        inputs = [m.input((*shape, 5)), weights, bias]
        return m.op("FULLY_CONNECTED", inputs, (*shape, 13), keep_num_dims=True, activation="RELU")

    return tuple(row(shape) for shape in ((3,), (2, 3), (3, 2, 4), (2, 1, 3, 2)))


def _window(m: Sketch, op: str, x: int, weights: Shape, channels: int, bias: bool, **options: Any) -> int:
    """A convolution whose weights are an input, and whose bias may be one."""
    settings: dict[str, Any] = {"stride": (1, 1), "dilation": (1, 1), "padding": "SAME"} | options
    shape = (m.shape(x)[0], *slid(m.shape(x)[1:3], (weights[1], weights[2]), **settings), channels)
    own = m.input((channels,)) if bias else m.random(channels)
    return m.op(op, [x, m.input(weights), own], shape, **settings)


def _convolutions(m: Sketch, batch: int) -> tuple[int, ...]:
    def row(channels: Size, kernel: Size, **options: Any) -> int:
        source, target = channels
        x = m.image(7, 8, source, batch)
        return _window(m, "CONV_2D", x, (target, *kernel, source), target, kernel == (1, 1), **options)

    if batch > 1:
        return row((13, 5), (1, 1)), row((3, 13), (2, 2), stride=(2, 1), padding="VALID", activation="RELU")
    grouped = m.image(5, 6, 6)
    return (
        *(row(channels, (1, 1)) for channels in CHANNELS[:2]),
        *(row(channels, (3, 2)) for channels in CHANNELS[2:]),
        row((3, 6), (2, 2), dilation=(2, 1), activation="RELU6"),
        _window(m, "CONV_2D", grouped, (9, 2, 1, 2), 9, True, activation="RELU"),
    )


def _group(m: Sketch, source: int, target: int, groups: int, batch: int = 1, **options: Any) -> int:
    x = m.unary("RELU", m.image(5, 7, source, batch))
    return m.unary("TANH", m.conv(x, target, (3, 2), groups=groups, activation="RELU6", **options))


def _groups(m: Sketch) -> tuple[int, ...]:
    """Of one slice each and of several, as many for outputs as for inputs or not."""
    sides = ((8, 8, 2), (24, 8, 2), (16, 48, 2), (24, 36, 3), (64, 64, 16))
    return *(_group(m, *each) for each in sides), _group(m, 16, 24, 2, stride=(2, 1))


def _depthwise(m: Sketch, batch: int) -> tuple[int, ...]:
    def row(channels: int, multiplier: int = 1, **options: Any) -> int:
        x, outputs = m.image(7, 6, channels, batch), channels * multiplier
        shape = (1, 3, 2, outputs)
        return _window(m, "DEPTHWISE_CONV_2D", x, shape, outputs, True, depth_multiplier=multiplier, **options)

    if batch > 1:
        return row(4), row(5, activation="RELU")
    return *(row(channels) for channels in (1, 3, 13)), row(3, 2, stride=(2, 2))


def _transposed(m: Sketch) -> tuple[int, ...]:
    def row(source: int, target: int, kernel: Size, stride: Size, padding: str, computed: bool = True) -> int:
        x = m.image(4, 5, source)
        height, width = (
            size * step if padding == "SAME" else (size - 1) * step + taps
            for size, step, taps in zip((4, 5), stride, kernel, strict=True)
        )
        shape, weights = (1, height, width, target), (target, *kernel, source)
        inputs = [m.input(weights) if computed else m.random(*weights), x, m.input((target,))]
        return m.op("TRANSPOSE_CONV", [m.constant(shape, "int32"), *inputs], shape, stride=stride, padding=padding)

    kernels = (((3, 3), (2, 2)), ((2, 2), (2, 2)), ((3, 2), (1, 1)))
    rows = (
        row(source, target, kernel, stride, padding)
        for (kernel, stride), padding, (source, target) in zip(
            kernels, ("SAME", "VALID", "SAME"), CHANNELS, strict=False
        )
    )
    return *rows, row(5, 3, (2, 2), (2, 2), "SAME", computed=False)


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
