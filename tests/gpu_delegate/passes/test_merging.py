"""Constants merged into weights: the original delegate's numbers, TensorFlow Lite's results, and refusals."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.model_files.graph_writer import Values, run_graph
from tests.model_files.graphs import GraphBuilder
from texelflow.gpu_delegate.model.graph import (
    ABSENT,
    Activated,
    Attributes,
    Conv2D,
    DepthwiseConv2D,
    Graph,
    Padding,
    Shape,
    TransposeConv2D,
)
from texelflow.gpu_delegate.model.rewrite import Outcome
from texelflow.gpu_delegate.passes.merging import merge_following_arithmetic, merge_preceding_arithmetic

VECTORS = json.loads((Path(__file__).parents[2] / "data" / "op_vectors.json").read_text())["fusion_cases"]
NAMES = {
    "Convolution2D": "CONV_2D",
    "DepthwiseConvolution2D": "DEPTHWISE_CONV_2D",
    "ConvolutionTransposed": "TRANSPOSE_CONV",
    "FullyConnected": "FULLY_CONNECTED",
}
OPS = tuple(NAMES.values())
NO_PADDING = Padding()
CHANNELS = 4  # of the inputs below


def merged(graph: Graph) -> tuple[Graph, tuple[Outcome, Outcome]]:
    """Both passes, as they follow each other."""
    graph, following = merge_following_arithmetic(graph)
    graph, preceding = merge_preceding_arithmetic(graph)
    return graph, (following, preceding)


def layer(
    g: GraphBuilder,
    op: str,
    x: int,
    padding: Padding = NO_PADDING,
    bias: bool = True,
    activation: str = "NONE",
) -> int:
    """A layer with random weights for three outputs, or two for each input of a depthwise one."""
    *batch, height, width, channels = g.shape(x) if op != "FULLY_CONNECTED" else (1, 1, *g.shape(x))
    size = (height + padding.top + padding.bottom - 1, width + padding.left + padding.right - 2)
    shape: Shape
    if op == "FULLY_CONNECTED":
        inputs, shape = [x, g.random(3, channels)], (g.shape(x)[0], 3)
        attributes: Attributes = Activated(activation)
    elif op == "TRANSPOSE_CONV":
        inputs, shape = [x, g.random(3, 2, 3, channels)], (*batch, 2 * height, 2 * width + 1, 3)
        attributes = TransposeConv2D(activation, (2, 2))
    elif op == "DEPTHWISE_CONV_2D":
        inputs, shape = [x, g.random(1, 2, 3, 2 * channels)], (*batch, *size, 2 * channels)
        attributes = DepthwiseConv2D(activation, padding=padding, multiplier=2)
    else:
        inputs, shape = [x, g.random(3, 2, 3, channels)], (*batch, *size, 3)
        attributes = Conv2D(activation, padding=padding)
    inputs.append(g.random(shape[-1]) if bias else ABSENT)
    return g.node(op, inputs, shape, attributes)


def source(g: GraphBuilder, op: str) -> int:
    return g.input(2, CHANNELS) if op == "FULLY_CONNECTED" else g.input(1, 5, 6, CHANNELS)


def arithmetic(g: GraphBuilder, op: str, x: int, *shape: int, swapped: bool = False, activation: str = "NONE") -> int:
    """With a constant of values from 0.5 to 2, or of this shape."""
    constant = g.random(*shape, low=0.5, high=2.0)
    return g.node(op, (constant, x) if swapped else (x, constant), None, Activated(activation))


def check_same_results(before: Graph, after: Graph, seed: int = 0) -> None:
    rng = np.random.default_rng(seed)
    inputs: list[Values] = [rng.uniform(-1, 1, before.tensors[i].shape).astype(np.float32) for i in before.inputs]
    for found, wanted in zip(run_graph(after, inputs), run_graph(before, inputs), strict=True):
        assert np.allclose(found, wanted, rtol=1e-5, atol=1e-5 * max(1.0, float(np.abs(wanted).max())))


def vector_graph(case: dict[str, Any]) -> Graph:
    """The graph of one of the original's cases. It keeps depthwise weights as [multiplier, h, w, input]."""
    g, op = GraphBuilder(), NAMES[case["op"]]
    weights = np.array(case["weights_OHWI"]["data"], np.float32).reshape(case["weights_OHWI"]["shape"])
    outputs, kernel_h, kernel_w, channels = weights.shape
    attributes: Attributes = {
        "CONV_2D": Conv2D(),
        "DEPTHWISE_CONV_2D": DepthwiseConv2D(multiplier=outputs),
        "TRANSPOSE_CONV": TransposeConv2D(),
        "FULLY_CONNECTED": Activated(),
    }[op]
    if op == "DEPTHWISE_CONV_2D":
        outputs *= channels
        weights = weights.transpose(1, 2, 3, 0).reshape(1, kernel_h, kernel_w, outputs)
    elif op == "FULLY_CONNECTED":
        weights = weights.reshape(outputs, channels)
    flat, before = op == "FULLY_CONNECTED", case["before"]
    sizes = (6 + kernel_h - 1, 6 + kernel_w - 1) if op == "TRANSPOSE_CONV" else (6 - kernel_h + 1, 6 - kernel_w + 1)
    x = g.input(1, channels) if flat else g.input(1, 6, 6, channels)
    param = case["param_linear"]["data"]
    if before:
        x = g.node(case["elementwise"], [x, g.constant(param[:channels])], g.shape(x), Activated())
    shape: Shape = (1, outputs) if flat else (1, *sizes, outputs)
    y = g.node(op, [x, g.constant(weights), g.constant(case["bias"]["data"])], shape, attributes)
    return g.graph(y if before else g.node(case["elementwise"], [y, g.constant(param)], None, Activated()))


@pytest.mark.parametrize("case", VECTORS, ids=lambda case: case["id"])
def test_weights_and_bias_are_those_of_the_original(case: dict[str, Any]) -> None:
    graph = vector_graph(case)
    changed, _ = merged(graph)
    (node,) = changed.nodes
    assert node.inputs[0] == graph.inputs[0]
    assert node.outputs == graph.outputs
    weights, bias = (changed.tensors[i].data for i in node.inputs[1:])
    assert weights is not None
    assert bias is not None
    if node.op == "DEPTHWISE_CONV_2D":
        _, height, width, outputs = weights.shape
        weights = weights.reshape(height, width, 2, outputs // 2).transpose(3, 0, 1, 2)
    assert np.allclose(weights.ravel(), case["expected_weights"], rtol=0, atol=case["tolerance"])
    assert np.allclose(bias, case["expected_bias"], rtol=0, atol=case["tolerance"])
    check_same_results(graph, changed)


@settings(max_examples=60)
@given(data=st.data())
def test_chains_around_a_layer_compute_the_same(data: st.DataObject) -> None:
    """What is declined stays, and all that stays computes the same."""
    g = GraphBuilder(data.draw(st.integers(0, 1000)))
    op = data.draw(st.sampled_from(OPS))

    def chain(x: int) -> int:
        for _ in range(data.draw(st.integers(0, 3))):
            name, swapped = data.draw(st.sampled_from(("ADD", "SUB", "MUL", "DIV"))), data.draw(st.booleans())
            shape = data.draw(st.sampled_from(((), (1,), g.shape(x)[-1:], (1, *g.shape(x)[-1:]))))
            x = arithmetic(g, name, x, *shape, swapped=swapped and name != "DIV")
        return x

    padding = (
        Padding() if op in ("TRANSPOSE_CONV", "FULLY_CONNECTED") or data.draw(st.booleans()) else Padding(1, 0, 2, 1)
    )
    y = layer(g, op, chain(source(g, op)), padding, bias=data.draw(st.booleans()))
    graph = g.graph(chain(y))
    changed, outcomes = merged(graph)
    if not any(outcome.declined for outcome in outcomes):
        assert [node.op for node in changed.nodes] == [op]
    assert changed.nodes[-1].op == op, "what follows is always merged"
    check_same_results(graph, changed)


@pytest.mark.parametrize("op", OPS)
def test_an_activation_ends_a_chain_and_stays(op: str) -> None:
    g = GraphBuilder()
    y = arithmetic(g, "MUL", layer(g, op, source(g, op), bias=False), activation="RELU6")
    graph = g.graph(arithmetic(g, "ADD", y))
    changed, outcome = merge_following_arithmetic(graph)
    assert [node.op for node in changed.nodes] == [op, "ADD"]
    assert isinstance(changed.nodes[0].attributes, Activated)
    assert changed.nodes[0].attributes.activation == "RELU6"
    assert "has a fused activation" in outcome.declined[0]
    check_same_results(graph, changed)


def both(draw: Callable[[GraphBuilder, int], int]) -> Callable[[GraphBuilder], Graph]:
    return lambda g: g.graph(draw(g, g.input(1, 5, 6, CHANNELS)))


def two_readers_behind(g: GraphBuilder) -> Graph:
    y = layer(g, "CONV_2D", g.input(1, 5, 6, CHANNELS))
    return g.graph(arithmetic(g, "MUL", y), g.node("NEG", [y]))


def two_readers_before(g: GraphBuilder) -> Graph:
    x = arithmetic(g, "MUL", g.input(1, 5, 6, CHANNELS))
    return g.graph(layer(g, "CONV_2D", x), g.node("NEG", [x]))


def output_behind(g: GraphBuilder) -> Graph:
    y = layer(g, "CONV_2D", g.input(1, 5, 6, CHANNELS))
    return g.graph(y, arithmetic(g, "MUL", y))


def output_before(g: GraphBuilder) -> Graph:
    x = arithmetic(g, "MUL", g.input(1, 5, 6, CHANNELS))
    return g.graph(x, layer(g, "CONV_2D", x))


def flattened(g: GraphBuilder) -> Graph:
    """FULLY_CONNECTED reads a map as one row."""
    x = arithmetic(g, "MUL", g.input(1, 2, 3, CHANNELS), CHANNELS)
    return g.graph(g.node("FULLY_CONNECTED", [x, g.random(3, 24), g.random(3)], (1, 3), Activated()))


def infinite(g: GraphBuilder) -> Graph:
    y = layer(g, "CONV_2D", g.input(1, 5, 6, CHANNELS))
    return g.graph(g.node("DIV", [y, g.constant((1, 0, 1))], None, Activated()))


DECLINED: dict[str, tuple[Callable[[GraphBuilder], Graph], str]] = {
    "pixels behind": (
        both(lambda g, x: arithmetic(g, "MUL", layer(g, "CONV_2D", x), 1, 4, 4, 1)),
        "is not one value per channel",
    ),
    "pixels before": (
        both(lambda g, x: layer(g, "CONV_2D", arithmetic(g, "MUL", x, 1, 5, 6, 1))),
        "is not one value per channel",
    ),
    "larger": (both(lambda g, x: arithmetic(g, "ADD", layer(g, "CONV_2D", x), 2, 1, 1, 3)), "makes the value larger"),
    "activation behind": (
        both(lambda g, x: arithmetic(g, "MUL", layer(g, "CONV_2D", x, activation="RELU"))),
        "has a fused activation",
    ),
    "activation before": (
        both(lambda g, x: layer(g, "CONV_2D", arithmetic(g, "MUL", x, activation="RELU"))),
        "has a fused activation",
    ),
    "sum before padding": (
        both(lambda g, x: layer(g, "CONV_2D", arithmetic(g, "ADD", x), Padding(1))),
        "a sum before padding",
    ),
    "sum before a transposed one": (
        both(lambda g, x: layer(g, "TRANSPOSE_CONV", arithmetic(g, "SUB", x))),
        "a sum before padding or a transposed",
    ),
    "two readers behind": (two_readers_behind, "has other readers, too"),
    "two readers before": (two_readers_before, "has other readers, too"),
    "output behind": (output_behind, "is an output of the model"),
    "output before": (output_before, "is an output of the model"),
    "flattened": (flattened, "rows of weights read several pixels"),
    "infinite": (infinite, "would not be finite"),
}


@pytest.mark.parametrize("name", DECLINED)
def test_declines(name: str) -> None:
    draw, reason = DECLINED[name]
    graph = draw(GraphBuilder())
    changed, outcomes = merged(graph)
    assert [node.op for node in changed.nodes] == [node.op for node in graph.nodes]
    assert [outcome.applied for outcome in outcomes] == [0, 0]
    (declined,) = (reason for outcome in outcomes for reason in outcome.declined)
    assert reason in declined


def grouped(g: GraphBuilder) -> int:
    inputs = [g.input(1, 5, 6, 4), g.random(6, 1, 1, 2), g.random(6)]
    return g.node("CONV_2D", inputs, (1, 5, 6, 6), Conv2D())


@pytest.mark.parametrize(
    "draw",
    [
        lambda g: g.node("DIV", [g.random(3), layer(g, "CONV_2D", g.input(1, 5, 6, CHANNELS))]),
        lambda g: g.node("MAXIMUM", [layer(g, "CONV_2D", g.input(1, 5, 6, CHANNELS)), g.random(3)]),
        lambda g: arithmetic(
            g,
            "MUL",
            g.node("CONV_2D", [g.input(1, 5, 6, 4), g.random(6, 1, 1, 2), g.random(6)], (1, 5, 6, 6), Conv2D()),
        ),
    ],
    ids=["dividend", "maximum", "grouped"],
)
def test_leaves_what_is_no_candidate(draw: Callable[[GraphBuilder], int]) -> None:
    g = GraphBuilder()
    graph = g.graph(draw(g))
    assert merged(graph) == (graph, (Outcome(0), Outcome(0)))


def test_work_grows_with_the_chain_and_not_with_its_square() -> None:
    """Weights are written once, however long the chain."""
    g = GraphBuilder()
    y = layer(g, "CONV_2D", g.input(1, 5, 6, CHANNELS))
    for _ in range(500):
        y = g.node("MUL", [y, g.constant(1.001)], None, Activated())
    changed, outcome = merge_following_arithmetic(g.graph(y))
    assert len(changed.nodes) == 1
    assert len(changed.tensors) == 4, "input, weights, bias, output: nothing in between"
    assert outcome.applied == 501
