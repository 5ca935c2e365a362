"""PAD and dilation found in other ops: equal results in TensorFlow Lite, and where the passes decline."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tests.gpu_delegate.passes.test_merging import check_same_results
from tests.model_files.graphs import GraphBuilder
from texelflow.gpu_delegate.model.graph import (
    BatchToSpace,
    Concatenation,
    Conv2D,
    DepthwiseConv2D,
    Graph,
    Pad,
    Padding,
    SpaceToBatch,
)
from texelflow.gpu_delegate.passes.padding import dilate_convolutions, pad_from_concatenation
from texelflow.gpu_delegate.passes.verification import verify


def joined(g: GraphBuilder, axis: int, before: int, after: int, values: float = 0.0, activation: str = "NONE") -> Graph:
    """A map of 2x3x4x5 between constants of this many rows along an axis."""
    shape = [2, 3, 4, 5]

    def sized(size: int) -> tuple[int, ...]:
        return (*shape[:axis], size, *shape[axis + 1 :])

    operands = [g.constant(np.full(sized(before), values))] if before else []
    operands.append(g.input(*shape))
    operands += [g.constant(np.full(sized(after), values))] if after else []
    whole = sized(before + shape[axis] + after)
    return g.graph(g.node("CONCATENATION", operands, whole, Concatenation(activation, axis)))


@pytest.mark.parametrize("axis", range(4))
@pytest.mark.parametrize(("before", "after"), [(2, 0), (0, 3), (1, 2)])
def test_pad_from_concatenation(axis: int, before: int, after: int) -> None:
    graph = joined(GraphBuilder(), axis, before, after)
    changed, outcome = pad_from_concatenation(graph)
    (node,) = changed.nodes
    assert node.op == "PAD"
    assert isinstance(node.attributes, Pad)
    assert node.attributes.amounts[axis] == (before, after)
    assert outcome.applied == 1
    verify(changed)
    check_same_results(graph, changed)


@pytest.mark.parametrize(
    ("draw", "reason"),
    [
        (lambda g: joined(g, 3, 1, 0, values=0.5), "a constant is not all zeros"),
        (lambda g: joined(g, 3, 1, 0, activation="RELU"), ""),
        (lambda g: joined(g, 3, 0, 0), ""),
        (
            lambda g: g.graph(
                g.node("CONCATENATION", [g.input(2), g.constant(0.0), g.input(2)], (5,), Concatenation())
            ),
            "",
        ),
    ],
    ids=["ones", "activation", "alone", "two"],
)
def test_pad_from_concatenation_leaves_others(draw: Callable[[GraphBuilder], Graph], reason: str) -> None:
    graph = draw(GraphBuilder())
    changed, outcome = pad_from_concatenation(graph)
    assert changed == graph
    assert [reason in text for text in outcome.declined] == ([True] if reason else [])


def interleaved(
    g: GraphBuilder,
    op: str = "CONV_2D",
    block: tuple[int, int] = (2, 2),
    before: Padding = Padding(2, 3, 2, 2),  # noqa: B008
    after: Padding = Padding(0, 1, 0, 0),  # noqa: B008
    inner: Padding = Padding(),  # noqa: B008
    size: tuple[int, int] = (7, 8),
    kernel: tuple[int, int] = (3, 3),
    batch: int = 1,
    dilation: tuple[int, int] = (1, 1),
    activation: str = "NONE",
    stride: tuple[int, int] = (1, 1),
) -> Graph:
    """SPACE_TO_BATCH_ND, a convolution of 3 channels, BATCH_TO_SPACE_ND."""
    x = g.input(batch, *size, 3)
    padded = (size[0] + before.top + before.bottom, size[1] + before.left + before.right)
    inside = (padded[0] // block[0], padded[1] // block[1])
    batches = batch * block[0] * block[1]
    y = g.node("SPACE_TO_BATCH_ND", [x], (batches, *inside, 3), SpaceToBatch(block, before))
    height = (inside[0] + inner.top + inner.bottom - (kernel[0] - 1) * dilation[0] - 1) // stride[0] + 1
    width = (inside[1] + inner.left + inner.right - (kernel[1] - 1) * dilation[1] - 1) // stride[1] + 1
    conv = Conv2D(activation, stride, dilation, inner)
    if op == "CONV_2D":
        weights, outputs = g.random(5, *kernel, 3), 5
    else:
        weights, outputs = g.random(1, *kernel, 6), 6
        conv = DepthwiseConv2D(activation, stride, dilation, inner, 2)
    y = g.node(op, [y, weights, g.random(outputs)], (batches, height, width, outputs), conv)
    shape = (height * block[0] - after.top - after.bottom, width * block[1] - after.left - after.right)
    return g.graph(g.node("BATCH_TO_SPACE_ND", [y], (batch, *shape, outputs), BatchToSpace(block, after)))


@settings(max_examples=80)
@given(data=st.data())
def test_dilated_convolutions_compute_the_same(data: st.DataObject) -> None:
    """Any blocks, paddings, sizes: what becomes one convolution gives what the three ops give."""
    small, few = st.integers(0, 4), st.integers(1, 3)
    block, kernel = (data.draw(st.tuples(few, few)) for _ in range(2))
    dilation = data.draw(st.tuples(st.integers(1, 2), st.integers(1, 2)))
    size = data.draw(st.tuples(st.integers(1, 9), st.integers(1, 9)))
    pads = [data.draw(small) for _ in range(4)]
    pads[1] += -(size[0] + pads[0] + pads[1]) % block[0]
    pads[3] += -(size[1] + pads[2] + pads[3]) % block[1]
    crops = Padding(*(data.draw(st.integers(0, 2)) for _ in range(4)))
    inner = Padding(*(data.draw(st.integers(0, 1)) for _ in range(4)))
    reach = [(taps - 1) * spread + 1 for taps, spread in zip(kernel, dilation, strict=True)]
    inside = ((size[0] + pads[0] + pads[1]) // block[0], (size[1] + pads[2] + pads[3]) // block[1])
    heights = (inside[0] + inner.top + inner.bottom - reach[0] + 1) * block[0] - crops.top - crops.bottom
    widths = (inside[1] + inner.left + inner.right - reach[1] + 1) * block[1] - crops.left - crops.right
    assume(heights > 0 and widths > 0)
    assume(inside[0] + inner.top + inner.bottom >= reach[0] and inside[1] + inner.left + inner.right >= reach[1])
    graph = interleaved(
        GraphBuilder(data.draw(st.integers(0, 99))),
        data.draw(st.sampled_from(("CONV_2D", "DEPTHWISE_CONV_2D"))),
        block, Padding(*pads), crops, inner, size, kernel, data.draw(st.integers(1, 2)), dilation,
        data.draw(st.sampled_from(("NONE", "RELU"))),
    )  # fmt: skip
    changed, outcome = dilate_convolutions(graph)
    verify(changed)
    if outcome.declined:
        assert "more is cut off" in outcome.declined[0]
        assert changed == graph
    else:
        assert len(changed.nodes) == 1
        check_same_results(graph, changed)


def test_what_a_converter_writes_for_same_padding() -> None:
    """Dilation 2 of a 3x3 window over 7x8 pixels, SAME: two rows on each side and one to fill up the last block."""
    changed, outcome = dilate_convolutions(interleaved(GraphBuilder()))
    (node,) = changed.nodes
    assert isinstance(node.attributes, Conv2D)
    assert (node.attributes.dilation, node.attributes.padding) == ((2, 2), Padding(2, 2, 2, 2))
    assert changed.tensors[node.outputs[0]].shape == (1, 7, 8, 5)
    assert outcome.declined == ()


def read_twice(graph: Graph, tensor: int) -> Graph:
    """With a second reader of a tensor."""
    g = GraphBuilder()
    g.tensors, g.nodes, g.inputs = dict(graph.tensors), list(graph.nodes), list(graph.inputs)
    return g.graph(*graph.outputs, g.node("NEG", [tensor]))


def other_block(graph: Graph) -> Graph:
    *nodes, last = graph.nodes
    other = replace(last, attributes=BatchToSpace((4, 1), Padding()))
    out = replace(graph.tensors[last.outputs[0]], shape=(1, 16, 4, 5))
    return replace(graph, nodes=(*nodes, other), tensors={**graph.tensors, out.index: out})


@pytest.mark.parametrize(
    ("draw", "reason"),
    [
        (lambda g: read_twice(interleaved(g), 1), "not read by one convolution alone"),
        (lambda g: read_twice(interleaved(g), 4), "not read by one BATCH_TO_SPACE_ND alone"),
        (lambda g: replace(interleaved(g), outputs=(5, 4)), "not read by one BATCH_TO_SPACE_ND alone"),
        (lambda g: replace(interleaved(g), outputs=(5, 1)), "not read by one convolution alone"),
        (lambda g: other_block(interleaved(g)), "blocks of both sides differ"),
        (lambda g: interleaved(g, stride=(2, 1)), "has a stride"),
        (lambda g: interleaved(g, before=Padding(0, 1, 0, 0), after=Padding(1)), "more is cut off"),
    ],
    ids=["spread", "gathered", "gathered output", "spread output", "block", "stride", "cut"],
)
def test_dilate_convolutions_declines(draw: Callable[[GraphBuilder], Graph], reason: str) -> None:
    graph = draw(GraphBuilder())
    changed, outcome = dilate_convolutions(graph)
    assert changed == graph
    assert len(outcome.declined) == 1
    assert reason in outcome.declined[0]
