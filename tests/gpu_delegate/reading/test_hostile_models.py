"""Impossible, damaged and hostile .tflite files: each is refused in one line."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.gpu_delegate.reading.test_opaque import branches, integers, largest, spread, words
from tests.gpu_delegate.reading.test_sparsity import model as sparse_model
from tests.gpu_delegate.reading.test_sparsity import sparse_array
from tests.helpers.markers import one_in
from tests.model_files.model_builder import ModelBuilder
from tests.model_files.sparse import Traversal
from texelflow.gpu_delegate.base.errors import ModelError, TexelflowError, UnsupportedError
from texelflow.gpu_delegate.device.device import SOFTWARE
from texelflow.gpu_delegate.reading.reader import load_model, read_model
from texelflow.gpu_delegate.reading.writer import write_model
from texelflow.gpu_delegate.targets.glsl.compiled_graph import compile_graph

X = (1, 7, 9, 5)


def zeros(*shape: int) -> Any:
    return np.zeros(shape, np.float32)


def ints(*values: Any) -> Any:
    return np.array(values, np.int32)


def one(op: str, out: tuple[int, ...], *constants: Any, x: tuple[int, ...] = X, **options: Any) -> ModelBuilder:
    """A model of one op on an input of shape x and constants behind it."""
    model = ModelBuilder()
    inputs = [model.input(x), *(model.constant(value, str(value.dtype)) for value in constants)]
    model.output(model.op(op, inputs, out, **options))
    return model


def computed_size() -> ModelBuilder:
    model = ModelBuilder()
    size = model.input((2,), "int32")
    model.output(model.op("RESIZE_BILINEAR", [model.input(X), size], (1, 3, 4, 5)))
    return model


def cycle() -> ModelBuilder:
    model = ModelBuilder()
    later = model.tensor(X)
    first = model.op("ADD", [model.input(X), later], X)
    model.ops.append(type(model.ops[0])("RELU", (first,), (later,), {}))
    model.output(later)
    return model


def written_twice() -> ModelBuilder:
    model = ModelBuilder()
    first = model.op("RELU", [model.input(X)], X)
    model.ops.append(model.ops[0])
    model.output(first)
    return model


def short_constant() -> ModelBuilder:
    model = ModelBuilder()
    model.output(model.op("ADD", [model.input(X), model.tensor(X, data=bytes(100))], X))
    return model


def out_of_range() -> ModelBuilder:
    model = ModelBuilder()
    model.output(model.op("ADD", [model.input(X), 77], X))
    return model


def nothing_written() -> ModelBuilder:
    model = one("RELU", X)
    model.output(model.tensor(X))
    return model


def scaled(*scales: float, zero_points: tuple[int, ...] = (0,), dimension: int = 0) -> ModelBuilder:
    model = ModelBuilder()
    out = model.tensor(X, "int8", scales=scales, zero_points=zero_points, dimension=dimension)
    model.output(*model.op_of("QUANTIZE", [model.input(X)], [out]))
    return model


def many_options() -> ModelBuilder:
    return one("Custom", X, custom=bytes((1 << 20) + 1))


def variable_constant() -> ModelBuilder:
    model = ModelBuilder()
    given = model.tensor((5,), data=bytes(20), is_variable=True)
    model.output(model.op("ADD", [model.input(X), given], X))
    return model


HUGE, LARGE = (1, 1 << 20, 1 << 20, 1 << 20), (1, 1 << 14, 1 << 14, 1)
REFUSED: list[tuple[Callable[[], ModelBuilder], type[TexelflowError], str]] = [
    (lambda: one("SKIP_GRAM", X), UnsupportedError, "operator 0 (SKIP_GRAM) is not supported; `texelflow inspect"),
    (lambda: one("Evil\x1b[2J\n", X), UnsupportedError, "operator 0 (Evil?[2J?) is not supported"),
    (lambda: one("WHILE", X), UnsupportedError, "(WHILE)"),
    (lambda: one("RELU", X, x=(1, -1, 9, 5)), UnsupportedError, "dynamic shapes"),
    (lambda: one("RELU", X, x=(0, 7, 9, 5)), UnsupportedError, "dynamic shapes"),
    (lambda: one("RELU", X, x=(1, -7, 9, 5)), ModelError, "[1, -7, 9, 5]"),
    (lambda: one("RELU", HUGE, x=HUGE), ModelError, "at most 268435456"),
    (lambda: one("RELU", LARGE, x=LARGE), UnsupportedError, "of 1073741824 bytes, at most 268435456"),
    (lambda: one("RELU", X, x=(1,) * 9), UnsupportedError, "9 dimensions"),
    (lambda: one("RELU", X, dtype="int8"), UnsupportedError, "is int8, only float32"),
    (lambda: one("RELU", X, dtype="string"), UnsupportedError, "holds string"),
    (lambda: one("RELU", X, zeros(1)), UnsupportedError, "2 inputs"),
    (lambda: one("LEAKY_RELU", X, alpha=float("nan")), UnsupportedError, "a slope of nan"),
    (lambda: one("LEAKY_RELU", X, alpha=float("inf")), UnsupportedError, "a slope of inf"),
    (lambda: one("ADD", X), UnsupportedError, "1 inputs"),
    (lambda: one("ADD", X, zeros(4)), UnsupportedError, "do not broadcast"),
    (lambda: one("MUL", (2,) * 5, zeros(2), x=(2,) * 5), UnsupportedError, "repeated in 5 dimensions"),
    (lambda: one("CONV_2D", X, zeros(5, 1, 1, 4), stride=(1, 1)), UnsupportedError, "weights for 4 channels"),
    (lambda: one("CONV_2D", X, zeros(4, 1, 1, 1), stride=(1, 1)), UnsupportedError, "weights for 1 channels"),
    (lambda: one("CONV_2D", X, zeros(5, 1, 1, 5), zeros(4), stride=(1, 1)), UnsupportedError, "a bias of shape [4]"),
    (lambda: one("CONV_2D", X, zeros(5, 1, 1, 5)), UnsupportedError, "stride 0x0"),
    (lambda: one("CONV_2D", X, zeros(5, 1, 1, 5), stride=(-1, 1)), UnsupportedError, "stride -1x1"),
    (lambda: one("CONV_2D", X, zeros(5, 9, 1, 5), stride=(1, 1), padding="VALID"), UnsupportedError, "does not fit"),
    (lambda: one("CONV_2D", X, zeros(5, 5), stride=(1, 1)), UnsupportedError, "input 1 has 2 dimensions instead of 4"),
    (lambda: one("DEPTHWISE_CONV_2D", X, zeros(1, 3, 3, 7), stride=(1, 1)), UnsupportedError, "weights of shape"),
    (lambda: one("ADD_N", X, zeros(5)), UnsupportedError, "its inputs have different shapes"),
    (lambda: one("PRELU", X, zeros(7)), UnsupportedError, "do not broadcast"),
    (lambda: one("PRELU", X, zeros(2, 7, 9, 5)), UnsupportedError, "slopes of shape [2, 7, 9, 5]"),
    (lambda: one("SELECT", X, zeros(*X), zeros(*X)), UnsupportedError, "is float32, only bool"),
    (lambda: one("SOFTMAX", X, beta=float("nan")), UnsupportedError, "a beta of nan"),
    (lambda: one("L2_NORMALIZATION", X, activation="RELU"), UnsupportedError, "fused activation RELU"),
    (lambda: one("ADD", X, zeros(5), activation="SIGN_BIT"), UnsupportedError, "fused activation 5"),
    (lambda: one("ADD", X, zeros(5), activation="TANH"), UnsupportedError, "a fused TANH, which most"),
    (lambda: one("MEAN", (1, 7, 9), ints(4)), UnsupportedError, "axes [4] of 4 dimensions"),
    (lambda: one("PAD", X, ints([0, 0], [0, -1])), UnsupportedError, "paddings"),
    (lambda: one("RESIZE_BILINEAR", (1, 3, 5), ints(3)), UnsupportedError, "the size, has 1 integers instead of 2"),
    (lambda: one("RESIZE_BILINEAR", X, zeros(2)), UnsupportedError, "not a short list of integers"),
    (lambda: one("CONCATENATION", X, axis=4), UnsupportedError, "axis 4"),
    (lambda: one("CONCATENATION", X, zeros(1, 6, 9, 5), axis=3), UnsupportedError, "do not fit together"),
    (lambda: one("RESHAPE", (1, 314), new_shape=(1, 314)), UnsupportedError, "cannot make"),
    (lambda: one("RESHAPE", (1, 315)), UnsupportedError, "into []"),
    (lambda: one("FULLY_CONNECTED", (1, 3), zeros(3, 4)), UnsupportedError, "weights for 4 channels"),
    (computed_size, UnsupportedError, "dynamic shapes: input 1 is not a constant"),
    (cycle, UnsupportedError, "operator 0 (ADD) reads tensor 0 before anything has written it"),
    (written_twice, UnsupportedError, "writes tensor 1, which has a value already"),
    (short_constant, ModelError, "tensor 1 of 1260 bytes has a constant of 100 bytes"),
    (out_of_range, ModelError, "tensor 77 of 2"),
    (nothing_written, UnsupportedError, "nothing writes output tensor 2"),
    (lambda: scaled(float("nan")), UnsupportedError, "1 scales and 1 zero points that make no sense"),
    (lambda: scaled(-1.0), UnsupportedError, "make no sense"),
    (lambda: scaled(1.0, 2.0, zero_points=(0, 0, 0)), ModelError, "2 scales and 3 zero points"),
    (lambda: scaled(1.0, 2.0, dimension=3), UnsupportedError, "of shape [1, 7, 9, 5] has 2 scales in dimension 3"),
    (lambda: scaled(*[1.0] * 5, dimension=4), ModelError, "5 scales in dimension 4"),
    (lambda: scaled(*[1.0] * 5, dimension=-1), ModelError, "5 scales in dimension -1"),
    (many_options, UnsupportedError, "operator 0 (Custom) is not supported"),
    (variable_constant, ModelError, "tensor 0 is a variable and a constant"),
    (lambda: one("x" * 2000, X), UnsupportedError, "operator 0 (" + "x" * 80 + ") is not supported"),
]


@pytest.mark.parametrize(("build", "error", "text"), REFUSED, ids=[text for _, _, text in REFUSED])
def test_refuses(build: Callable[[], ModelBuilder], error: type[TexelflowError], text: str) -> None:
    with pytest.raises(error) as caught:
        compile_graph(read_model(build().build(), "odd"), SOFTWARE)
    assert text in str(caught.value)
    assert str(caught.value).startswith("odd: ")
    assert str(caught.value).isprintable()


@pytest.mark.parametrize(
    "data", [b"", b"TFL3", b"\x00\x00\x00\x00TFL3", b"\xff" * 64, b"x" * 4096, b"\xff\xff\xff\xffTFL3"]
)
def test_refuses_what_is_no_model(data: bytes) -> None:
    with pytest.raises(ModelError):
        read_model(data)


@pytest.mark.parametrize("name", ["missing.tflite", "", "a\0b"])
def test_refuses_paths(name: str, tmp_path: Path) -> None:
    with pytest.raises(ModelError) as caught:
        load_model(str(tmp_path / name))
    assert str(caught.value).isprintable()


def small_network() -> bytes:
    """Several ops in a file small enough to be cut at every byte."""
    model = ModelBuilder()
    inputs = [model.input(X), model.half(zeros(2, 1, 1, 5)), model.half(zeros(2))]
    x = model.op("CONV_2D", inputs, (1, 4, 5, 2), padding="SAME", stride=(2, 2))
    pool = model.op("MEAN", [x, model.constant((1, 2), "int32")], (1, 1, 1, 2), keep_dims=True)
    x = model.op("MUL", [x, pool], (1, 4, 5, 2), activation="RELU")
    x = model.op("RESIZE_BILINEAR", [x, model.constant((8, 8), "int32")], (1, 8, 8, 2))
    weights, bias = model.half(zeros(1, 2, 2, 2)), model.half(zeros(1))
    model.output(model.op("Convolution2DTransposeBias", [x, weights, bias], (1, 16, 16, 1), stride=(2, 2)))
    return model.build()


SMALL = small_network()


def survives(data: bytes) -> None:
    """The file is taken, and can be written again, or is refused in one line; any other exception fails the test."""
    refusal = ""
    try:
        write_model(read_model(data))
    except TexelflowError as error:
        refusal = str(error)
    assert refusal.isprintable()


SPARSE = sparse_model(sparse_array((1, 3, 3, 2), 7), Traversal((0, 1, 2, 3), (False, True, False, True)))
SMALLS = {"network": SMALL, "sparse": SPARSE} | {
    build.__name__: build().build() for build in (spread, largest, integers, words, branches)
}


@pytest.mark.parametrize("data", SMALLS.values(), ids=SMALLS.keys())
def test_survives_every_truncation(data: bytes) -> None:
    assert read_model(data).nodes
    for length in range(len(data)):
        survives(data[:length])


WORDS = st.sampled_from((0, 1, 4, 0x7F, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, 0xFFFFFFFC, 0x10000000, len(SMALL)))


@one_in(3, "small", SMALLS.values(), ids=SMALLS.keys())
@settings(max_examples=80, deadline=None)
@given(changes=st.lists(st.tuples(st.integers(0, 1 << 20), st.integers(0, 255)), min_size=1, max_size=6))
def test_survives_changed_bytes(small: bytes, changes: list[tuple[int, int]]) -> None:
    data = bytearray(small)
    for position, value in changes:
        data[position % len(small)] = value
    survives(bytes(data))


@one_in(3, "small", SMALLS.values(), ids=SMALLS.keys())
@settings(max_examples=80, deadline=None)
@given(changes=st.lists(st.tuples(st.integers(0, 1 << 18), WORDS), min_size=1, max_size=3))
def test_survives_changed_words(small: bytes, changes: list[tuple[int, int]]) -> None:
    data = bytearray(small)
    for position, word in changes:
        start = 4 * (position % (len(small) // 4))
        data[start : start + 4] = word.to_bytes(4, "little")
    survives(bytes(data))
