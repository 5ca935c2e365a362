"""Integer range analysis: values always lie in their ranges, and what float32 may not hold has none."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.helpers.markers import one_in
from tests.model_files.graphs import GraphBuilder
from texelflow.gpu_delegate.model.graph import (
    Activated,
    Attributes,
    Concatenation,
    Conv2D,
    DepthwiseConv2D,
    Graph,
    Node,
    Opaque,
    Pad,
    Reduce,
    Steps,
    Transpose,
)
from texelflow.gpu_delegate.ops.cast import Cast
from texelflow.gpu_delegate.passes.evaluation import can_fold, fold_value
from texelflow.gpu_delegate.passes.integer_ranges import whole_ranges

PAIRS = ("ADD", "SUB", "MUL", "DIV", "FLOOR_DIV", "FLOOR_MOD", "MAXIMUM", "MINIMUM", "SQUARED_DIFFERENCE")
COMPARED = ("EQUAL", "NOT_EQUAL", "GREATER", "GREATER_EQUAL", "LESS", "LESS_EQUAL")
SINGLES = ("ABS", "NEG", "SIGN", "SQUARE", "RELU", "RELU6", "RELU_N1_TO_1", "RELU_0_TO_1", "FLOOR", "CEIL", "ROUND")
SHAPE = (2, 3)
ATTRIBUTES: Mapping[str, Attributes] = MappingProxyType(
    {
        **dict.fromkeys(("SUM", "REDUCE_PROD", "REDUCE_MAX", "REDUCE_MIN"), Reduce((1,), keep_dims=True)),
        "PAD": Pad(((1, 0), (0, 2)), value=5.0),
        "CONCATENATION": Concatenation("RELU6", 0),
        "TRANSPOSE": Transpose((1, 0)),
    }
)
SHAPES = MappingProxyType({"PAD": (3, 5), "CONCATENATION": (4, 3), "TRANSPOSE": (3, 2)})


def ranges_of(op: str, steps: Sequence[Steps | None], attributes: Attributes | None = None, **of: str) -> Steps | None:
    """The range of an op's output, for inputs with ranges."""
    graph = graph_of(
        op, steps, attributes or ATTRIBUTES.get(op, Activated() if op in PAIRS[:4] else Attributes()), **of
    )
    return whole_ranges(graph).get(graph.outputs[0])


def graph_of(
    op: str, steps: Sequence[Steps | None], attributes: Attributes, dtype: str = "int32", out: str = ""
) -> Graph:
    g = GraphBuilder()
    inputs = [g.input(*SHAPE, dtype=dtype) for _ in steps]
    shape = (2, 1) if isinstance(attributes, Reduce) else SHAPES.get(op, SHAPE)
    graph = g.graph(g.node(op, inputs, shape, attributes, out or ("bool" if op in COMPARED else dtype)))
    known = {i: replace(graph.tensors[i], steps=own) for i, own in zip(inputs, steps, strict=True)}
    return replace(graph, tensors={**graph.tensors, **known})


@st.composite
def operands(draw: st.DrawFn, count: int) -> list[tuple[Steps, npt.NDArray[np.int32]]]:
    """Ranges, and values in them that take both ends."""
    found = []
    for _ in range(count):
        low = draw(st.integers(-40, 40))
        high = low + draw(st.integers(0, 60))
        values = draw(st.lists(st.integers(low, high), min_size=4, max_size=4))
        found.append((Steps(low, high), np.array([low, high, *values], np.int32).reshape(SHAPE)))
    return found


@one_in(3, "op", [*PAIRS, *COMPARED, *SINGLES, *ATTRIBUTES])
@settings(max_examples=15)
@given(data=st.data())
def test_values_lie_within_their_range(op: str, data: st.DataObject) -> None:
    given_values = data.draw(operands(2 if op in (*PAIRS, *COMPARED, "CONCATENATION") else 1))
    if op in ("DIV", "FLOOR_DIV", "FLOOR_MOD"):
        divisors = given_values[1][1]
        divisors[divisors == 0] = 1 if given_values[1][0].high > 0 else -1
        given_values[1] = (Steps(min(given_values[1][0].low, -1), max(given_values[1][0].high, 1)), divisors)
    graph = graph_of(op, [steps for steps, _ in given_values], ATTRIBUTES.get(op, Attributes()))
    inputs = [replace(graph.tensors[i], data=values) for i, (_, values) in enumerate(given_values)]
    out = graph.tensors[graph.outputs[0]]
    made, found = fold_value(graph.nodes[0], inputs, out), whole_ranges(graph)[out.index]
    assert found.low <= made.min() <= made.max() <= found.high


def test_every_rule_that_constants_have_is_tried() -> None:
    assert all(map(can_fold, (*PAIRS, *COMPARED, *SINGLES, *ATTRIBUTES)))


def test_what_follows_is_as_narrow_as_it_can_be() -> None:
    byte, small = Steps(0, 255), Steps(-3, 4)
    assert ranges_of("ADD", [byte, small]) == Steps(-3, 259)
    assert ranges_of("SUB", [byte, byte]) == Steps(-255, 255)
    assert ranges_of("ADD", [byte, small], Activated("RELU6")) == Steps(0, 6)
    assert ranges_of("MUL", [small, small]) == Steps(-12, 16)
    assert ranges_of("SQUARE", [small]) == Steps(0, 16)
    assert ranges_of("SIGN", [small]) == Steps(-1, 1)
    assert ranges_of("FLOOR_DIV", [byte, Steps(16, 16)]) == Steps(0, 15)
    assert ranges_of("FLOOR_MOD", [byte, Steps(16, 16)]) == Steps(0, 15)
    assert ranges_of("REDUCE_PROD", [Steps(0, 2)]) == Steps(0, 8)
    assert ranges_of("SUM", [small]) == Steps(-9, 12)
    assert ranges_of("PAD", [Steps(7, 8)]) == Steps(5, 8)
    assert ranges_of("CAST", [byte], Cast("int32", "float32"), out="float32") == byte


@pytest.mark.parametrize(
    ("op", "steps"),
    [
        ("ADD", [Steps(0, 1 << 23), Steps(0, 1 << 23)]),
        ("MUL", [Steps(-4096, 0), Steps(0, 4096)]),
        ("SUM", [Steps(0, 1 << 23)]),
        ("REDUCE_PROD", [Steps(-300, 3)]),
        ("NEG", [None]),
        ("MAXIMUM", [None, Steps(0, 5)]),
        ("SQUARED_DIFFERENCE", [Steps(0, 5000), Steps(-5000, 0)]),
    ],
)  # fmt: skip
def test_what_may_be_larger_or_broken_has_no_range(op: str, steps: list[Steps | None]) -> None:
    assert ranges_of(op, steps) is None


def test_floats_have_ranges_where_they_are_whole() -> None:
    assert ranges_of("DIV", [Steps(0, 9), Steps(2, 2)], dtype="float32") is None
    assert ranges_of("FLOOR_DIV", [Steps(0, 9), Steps(2, 2)], dtype="float32") == Steps(0, 4)
    assert ranges_of("FLOOR_DIV", [Steps(0, 9), Steps(0, 2)], dtype="float32") is None
    assert ranges_of("TANH", [Steps(0, 1)], dtype="float32") is None
    assert ranges_of("RELU6", [None], dtype="float32") is None
    g = GraphBuilder()
    whole, broken, infinite = (g.constant(values) for values in ([2.0, -3.0], [2.0, 0.5], [1.0, np.inf]))
    nodes = [g.node("NEG", [each]) for each in (whole, broken, infinite)]
    found = whole_ranges(g.graph(*nodes))
    assert (found[nodes[0]], nodes[1] in found, nodes[2] in found) == (Steps(-2, 3), False, False)


@settings(max_examples=20)
@given(st.data())
def test_sums_of_products_are_within_their_range(data: st.DataObject) -> None:
    """For the worst inputs there are, whichever part is summed first."""
    rng = np.random.default_rng(data.draw(st.integers(0, 1 << 20)))
    low, high = sorted(data.draw(st.tuples(st.integers(-255, 255), st.integers(-255, 255))))
    weights, bias = rng.integers(-127, 128, (5, 1, 1, 7)), rng.integers(-3000, 3000, 5)
    g = GraphBuilder()
    x, w, b = g.input(1, 4, 4, 7), g.constant(weights), g.constant(bias, "int32")
    graph = g.graph(g.node("CONV_2D", [x, w, b], (1, 4, 4, 5), Conv2D("RELU")))
    graph = replace(graph, tensors={**graph.tensors, x: replace(graph.tensors[x], steps=Steps(low, high))})
    found = whole_ranges(graph)[graph.outputs[0]]
    products = weights.reshape(5, 7)[:, :, None] * np.array([low, high])
    extremes = [products.min(2).sum(1) + bias, products.max(2).sum(1) + bias, products.max(2)[:, :3].sum(1)]
    assert found.low == 0
    assert found.high >= np.maximum(np.stack(extremes), 0).max()


def test_depthwise_sums_are_of_each_channel_alone() -> None:
    g = GraphBuilder()
    x, w = g.input(1, 4, 4, 3), g.constant(np.array([1, -2, 100]) * np.ones((1, 2, 2, 1)))
    graph = g.graph(g.node("DEPTHWISE_CONV_2D", [x, w], (1, 4, 4, 3), DepthwiseConv2D()))
    graph = replace(graph, tensors={**graph.tensors, x: replace(graph.tensors[x], steps=Steps(-1, 255))})
    assert whole_ranges(graph)[graph.outputs[0]] == Steps(-2040, 102_000)


def test_operators_of_the_cpu_give_positions_too() -> None:
    """What cannot be read may have an activation that nobody knows; positions are positions."""
    g = GraphBuilder()
    x, bits = g.input(3, 8, 5), g.input(3, 8, dtype="bool")
    best = g.node("ARG_MAX", [x], (3, 8), Opaque("for the test"), "int64")
    added = g.node("ADD", [best, best], (3, 8), Opaque("for the test"), "int64")
    values, places = g.nodes_outputs("TOPK_V2", [x], [(3, 8, 2)] * 2, Opaque("for the test"), dtype="int32")
    found = whole_ranges(g.graph(best, added, values, places, bits))
    assert {i: found.get(i) for i in (best, added, values, places, bits)} == {
        best: Steps(0, 7), added: None, values: None, places: Steps(0, 7), bits: Steps(0, 1),
    }  # fmt: skip


def test_types_and_steps_are_ranges() -> None:
    g = GraphBuilder()
    x, y, z = g.input(3, dtype="uint8"), g.input(3, dtype="int8"), g.input(3, dtype="int32")
    casts = [g.node("CAST", [i], (3,), Cast(kind, "float32")) for i, kind in ((x, "uint8"), (y, "int8"), (z, "int32"))]
    graph = g.graph(*casts)
    found = whole_ranges(graph)
    assert [found.get(i) for i in (*casts, z)] == [Steps(0, 255), Steps(-128, 127), None, None]
    stepped = replace(graph.tensors[casts[2]], steps=Steps(-5, 250))
    found = whole_ranges(replace(graph, tensors={**graph.tensors, casts[2]: stepped}))
    assert found[casts[2]] == Steps(-5, 250)


def test_limits_make_whole_numbers_of_any_size_small() -> None:
    g = GraphBuilder()
    x, low, high = g.input(3), g.constant(-4, "int32"), g.constant(9, "int32")
    cut = g.node("CAST", [x], (3,), Cast("float32", "int32"), "int32")
    above = g.node("MAXIMUM", [cut, low], (3,), dtype="int32")
    within = g.node("MINIMUM", [above, high], (3,), dtype="int32")
    rounded = g.node("RELU6", [g.node("FLOOR", [x])])
    found = whole_ranges(g.graph(within, rounded))
    assert [found.get(i) for i in (cut, above, within, rounded)] == [None, None, Steps(-4, 9), Steps(0, 6)]


def test_a_node_of_any_name_is_passed_over() -> None:
    g = GraphBuilder()
    x = g.input(3)
    graph = g.graph(g.node("NOBODY_KNOWS", [x], (3,)))
    assert whole_ranges(graph) == {}
    assert isinstance(graph.nodes[0], Node)
