"""The original delegate's own test vectors: every one as a model, on the GPU, in four ways of compiling it."""

from collections.abc import Hashable, Iterator
from dataclasses import replace
from types import MappingProxyType
from typing import Any

import numpy as np
import pytest

from tests.engine import DEVICES, on_gpu
from tests.op_vectors import FUSION_CASES, VECTORS, Case, assert_expected, values_of, vector_graph, window_weights
from texelflow.gpu_delegate.compile_options import CompileOptions
from texelflow.gpu_delegate.context import Context
from texelflow.gpu_delegate.errors import TexelflowError
from texelflow.gpu_delegate.graph import (
    Activated,
    Attributes,
    Conv2D,
    DepthwiseConv2D,
    Graph,
    Node,
    Tensor,
    TransposeConv2D,
)
from texelflow.gpu_delegate.passes.pipeline import PASSES, run_passes
from texelflow.gpu_delegate.program import CompiledGraph, compile_graph

# What the engine refuses as yet: whole ops of the vectors, or single ones. A test fails once one of them runs.
NOT_YET = frozenset(
    {
        *("cl/reduce.ReduceSumChannelsIntTest", "cl/reduce.ReduceProductChannelsUIntTest"),  # inexact from 2^24 on
    }
)


def is_refused(case: Case) -> bool:
    return bool({case["op"], case["id"]} & NOT_YET)


RUN = [case for case in VECTORS if not is_refused(case)]
REFUSED = [case for case in VECTORS if is_refused(case)]
DEPTHWISE = "DepthwiseConvolution2D"


def compiled_ways(case: Case) -> Iterator[CompiledGraph]:
    """With either tuning, fused and not."""
    graph = vector_graph(case)
    for tuning in ("software", "hardware"):
        for fuse in (True, False):
            yield compile_graph(graph, DEVICES[tuning], CompileOptions(fuse=fuse))


def work_of(compiled: CompiledGraph) -> Hashable:
    """What the GPU is asked for: compiled graphs of the same work need to run once."""
    kernels = ((k.source, k.grid, k.inputs, k.outputs, k.weights.tobytes()) for k in compiled.kernels)
    return tuple(kernels), tuple((tensor, data.tobytes()) for tensor, data in compiled.constants.items())


@pytest.mark.parametrize("case", RUN, ids=lambda case: case["id"])
def test_gpu_gives_what_the_original_delegate_expects(context: Context, case: Case) -> None:
    inputs = [values_of(value) for value in case["inputs"]]
    for compiled in {work_of(compiled): compiled for compiled in compiled_ways(case)}.values():
        given = [x.reshape(compiled.tensor(i).shape) for x, i in zip(inputs, compiled.source.inputs, strict=True)]
        assert_expected(case, on_gpu(context, compiled, given))


@pytest.mark.parametrize("case", REFUSED, ids=lambda case: case["id"])
def test_what_is_not_supported_yet_is_refused(case: Case) -> None:
    """Fails where it has become supported: take it off NOT_YET."""
    with pytest.raises(TexelflowError):
        list(compiled_ways(case))


def test_every_entry_of_the_list_is_a_vector() -> None:
    assert {entry for case in VECTORS for entry in (case["op"], case["id"])} >= NOT_YET
    assert len({case["id"] for case in VECTORS}) == len(VECTORS) == 293


CONVOLUTIONS = MappingProxyType(
    {
        "Convolution2D": ("CONV_2D", Conv2D()),
        DEPTHWISE: ("DEPTHWISE_CONV_2D", DepthwiseConv2D()),
        "ConvolutionTransposed": ("TRANSPOSE_CONV", TransposeConv2D()),
        "FullyConnected": ("FULLY_CONNECTED", Activated()),
    }
)


def fusion_graph(case: Case) -> Graph:
    """A convolution behind or before an op with one number a channel. Maps have two pixels where the op allows it."""
    op, attributes = CONVOLUTIONS[case["op"]]
    weights, bias = window_weights(case["op"], case["weights_OHWI"]), values_of(case["bias"])
    if isinstance(attributes, DepthwiseConv2D):
        attributes = replace(attributes, multiplier=case["weights_OHWI"]["shape"][0])
    height, width, depth = case["weights_OHWI"]["shape"][1:]
    if op == "FULLY_CONNECTED":
        weights = weights.reshape(weights.shape[::3])
    grown = (height, width) if op == "TRANSPOSE_CONV" else (1, 1)
    small = (1, 1, 1, depth) if op in ("FULLY_CONNECTED", "TRANSPOSE_CONV") else (1, height, width, depth)
    shapes = [small, small if case["before"] else (1, *grown, len(bias)), (1, *grown, len(bias))]
    constants = [weights, bias, values_of(case["param_linear"])[: shapes[1][-1]]]  # the file may have more
    tensors = [Tensor(i, f"t{i}", tuple(shape)) for i, shape in enumerate(shapes)]
    tensors += [Tensor(i, f"t{i}", data.shape, data=data) for i, data in enumerate(constants, 3)]
    order: list[tuple[str, tuple[int, ...], Attributes]] = [
        (op, (3, 4), attributes),
        (case["elementwise"], (5,), Activated()),
    ]
    if case["before"]:
        order.reverse()
    nodes = tuple(Node(name, (i, *more), (i + 1,), given, i) for i, (name, more, given) in enumerate(order))
    return Graph(case["id"], MappingProxyType({tensor.index: tensor for tensor in tensors}), nodes, (0,), (2,))


def fused_constants(case: Case) -> list[Any]:
    """Weights and bias of the one node that the passes leave, as the file orders them; empty if they leave more."""
    graph, _ = run_passes(fusion_graph(case), PASSES)
    if len(graph.nodes) > 1:
        return []
    return [graph.tensors[i].data for i in graph.nodes[0].inputs[1:]]


@pytest.mark.parametrize("case", FUSION_CASES, ids=lambda case: case["id"])
def test_constants_go_into_the_weights(case: Case) -> None:
    found = fused_constants(case)
    assert found, "the graph has more than one node"
    wanted = window_weights(case["op"], {"shape": case["weights_OHWI"]["shape"], "data": case["expected_weights"]})
    weights, bias = found
    if case["op"] == DEPTHWISE and weights.shape != wanted.shape:  # as a dense convolution
        channels = np.arange(weights.shape[0])
        weights = weights[channels, :, :, channels // case["weights_OHWI"]["shape"][0]].transpose(1, 2, 0)
    assert np.allclose(weights.ravel(), wanted.ravel(), atol=case["tolerance"], rtol=0)
    assert np.allclose(bias, case["expected_bias"], atol=case["tolerance"], rtol=0)
