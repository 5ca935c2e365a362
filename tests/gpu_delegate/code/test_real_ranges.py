"""Between which real numbers values of elementwise ops lie, and where they are arguments as they are."""

import math

import pytest

from texelflow.gpu_delegate.code.real_ranges import ALL_REALS, Interval, always_is, interval_of
from texelflow.gpu_delegate.code.vocabulary import (
    ZEROS,
    Argument,
    ChooseLanes,
    Compared,
    FunctionWord,
    Operand,
    Operation,
    Splat,
    larger,
    smaller,
)
from texelflow.gpu_delegate.model.graph import Alpha, Attributes, Node
from texelflow.gpu_delegate.ops.fake_quant import FakeQuant
from texelflow.gpu_delegate.ops.nodes import arithmetic_of

X, Y = Argument(0), Argument(1)
INFINITE = math.inf
PLAIN = Attributes()


def word(name: FunctionWord, *operands: Operand) -> Operation:
    return Operation(name, operands)


def said(op: str, attributes: Attributes = PLAIN) -> Operand:
    return arithmetic_of(Node(op, (0,), (), attributes))


@pytest.mark.parametrize(
    ("op", "wanted"),
    [
        *((op, (0.0, INFINITE)) for op in ("RELU", "ABS", "SQUARE", "SQRT", "EXP", "RSQRT")),
        *((op, (0.0, 1.0)) for op in ("LOGISTIC", "RELU_0_TO_1")),
        *((op, (-1.0, 1.0)) for op in ("TANH", "RELU_N1_TO_1", "SIGN", "SIN", "COS")),
        ("RELU6", (0.0, 6.0)),
        ("HARD_SWISH", (-0.375, INFINITE)),
        *((op, ALL_REALS) for op in ("NEG", "FLOOR", "LOG", "ELU")),
    ],
)
def test_what_ops_give_whatever_they_are_given(op: str, wanted: Interval) -> None:
    assert interval_of(said(op)) == wanted


@pytest.mark.parametrize(
    ("value", "wanted"),
    [
        (X + Y, (-1.0, 8.0)),
        (X - Y, (-7.0, 2.0)),
        (X * Y, (-10.0, 15.0)),
        (X * X, (0.0, 9.0)),
        (Y / (X + 3.0), (1.0 / 6.0, 5.0)),
        (Y / X, ALL_REALS),
        (1.0 - X, (-2.0, 3.0)),
        (word("multiply add", X, Y, X), (-12.0, 18.0)),
        (-X, (-3.0, 2.0)),
        (word("absolute", X), (0.0, 3.0)),
        (word("absolute", X - 4.0), (1.0, 6.0)),
        (word("square root", X + 6.0), (2.0, 3.0)),
        (word("inverse square root", Y * 4.0 + 0.0), (1 / math.sqrt(20), 0.5)),
        (larger(X, 1), (1.0, 3.0)),
        (Operation("clamp", (X, -1, 2)), (-1.0, 2.0)),
        (word("hard swish", X), (-0.375, 3.0)),
        (word("power", Y, X), (0.0, INFINITE)),
        (Compared("less", X, Y), (0.0, 1.0)),
        (ChooseLanes("less", X, Y, X, Splat(7.0)), (-2.0, 7.0)),
        (word("floor remainder", X, Y), ALL_REALS),  # of which nothing is said
        (Argument(2), ALL_REALS),
    ],
    ids=str,
)
def test_what_follows_is_as_narrow_as_it_can_be(value: Operand, wanted: Interval) -> None:
    assert interval_of(value, ((-2.0, 3.0), (1.0, 5.0))) == pytest.approx(wanted)


@pytest.mark.parametrize(
    ("op", "attributes", "within", "is_same"),
    [
        ("RELU", PLAIN, (0.0, 6.0), True),
        ("RELU", PLAIN, (-0.5, 6.0), False),
        ("RELU6", PLAIN, (0.0, 6.0), True),
        ("RELU6", PLAIN, (0.0, 6.5), False),
        ("RELU_N1_TO_1", PLAIN, (-1.0, 0.5), True),
        ("ABS", PLAIN, (0.0, INFINITE), True),
        ("ABS", PLAIN, (-1.0, 1.0), False),
        ("LEAKY_RELU", Alpha(0.25), (0.0, 1.0), True),
        ("LEAKY_RELU", Alpha(0.25), (-1.0, 1.0), False),
        ("ELU", PLAIN, (0.0, INFINITE), True),
        ("ELU", PLAIN, (-1.0, 0.0), False),
        *((op, PLAIN, (0.0, 1.0), False) for op in ("NEG", "TANH", "SQUARE", "FLOOR", "SIGN", "HARD_SWISH")),
        ("FAKE_QUANT", FakeQuant(-1.0, 2.0), (0.0, 1.0), False),
    ],
)
def test_where_an_op_changes_nothing(op: str, attributes: Attributes, within: Interval, is_same: bool) -> None:
    assert (always_is(said(op, attributes), (within,)) == X) == is_same


def test_what_a_value_always_is() -> None:
    ranges = ((0.0, 1.0), (1.0, 2.0))
    assert always_is(larger(X, Y), ranges) == Y
    assert always_is(smaller(X, Y), ranges) == X
    assert always_is(larger(X, 3.0), ranges) == 3.0
    assert always_is(X + ZEROS, ranges) == X
    assert always_is(X * Splat(1.0), ranges) == X
    assert always_is(X * 0.0, ranges) == 0.0
    assert always_is(ChooseLanes("greater", X, Splat(1.0), X, Y), ranges) == Y
    assert always_is(ChooseLanes("less", X, Y, X, Y), ranges) is None
    assert always_is(X * 2.0, ranges) is None
