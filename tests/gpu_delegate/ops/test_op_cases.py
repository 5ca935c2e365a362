"""The original delegate's own test vectors, fusions and layouts: each on the GPU in four configurations.

All in float32: kernels as for llvmpipe and as for hardware (whole pixels or slices, weights as literals or fetched),
each with ops fused and one dispatch for each op. tests/gpu_delegate/targets/llvm/test_native_ops.py has the same as
this CPU's code.
"""

from collections.abc import Hashable, Iterator
from dataclasses import replace
from itertools import product
from types import MappingProxyType
from typing import Any

import numpy as np
import pytest

from tests.helpers.engine import DEVICES, Floats, on_cpu, on_gpu, worst
from tests.helpers.io_bindings import give, io_of, stored_bits, take
from tests.helpers.markers import one_in
from tests.model_files.graphs import GraphBuilder
from tests.tables.op_vectors import (
    CUSTOM,
    FUSION_CASES,
    LAYOUT_CASES,
    REFUSED_THERE,
    VECTORS,
    Case,
    assert_expected,
    has_file,
    values_of,
    vector_graph,
    vector_model,
    window_weights,
)
from texelflow.gpu_delegate.cpu.interpreter_module import load_interpreter_module
from texelflow.gpu_delegate.model.graph import (
    Activated,
    Attributes,
    Conv2D,
    DepthwiseConv2D,
    Graph,
    Node,
    Tensor,
    TransposeConv2D,
)
from texelflow.gpu_delegate.model.packing import phwc4
from texelflow.gpu_delegate.passes.pipeline import PASSES, run_passes
from texelflow.gpu_delegate.plan.compile_options import CompileOptions
from texelflow.gpu_delegate.targets.gl.context import Context
from texelflow.gpu_delegate.targets.glsl.compiled_graph import CompiledGraph, compile_graph

CONFIGURATIONS = tuple(product(("software", "hardware"), (True, False)))  # the tuning, and whether ops are fused
DEPTHWISE = "DepthwiseConvolution2D"


def compiled_ways(graph: Graph) -> Iterator[CompiledGraph]:
    """In all configurations."""
    for tuning, fuse in CONFIGURATIONS:
        yield compile_graph(graph, DEVICES[tuning], CompileOptions(fuse=fuse))


def work_of(compiled: CompiledGraph) -> Hashable:
    """What the GPU is asked for: compiled graphs of the same work need to run once."""
    kernels = ((k.source, k.grid, k.inputs, k.outputs, k.weights.tobytes()) for k in compiled.kernels)
    return tuple(kernels), tuple((tensor, data.tobytes()) for tensor, data in compiled.constants.items())


def found_in_all(context: Context, case: Case) -> Iterator[list[Floats]]:
    """The outputs in each configuration, of equal work once."""
    inputs = [values_of(value) for value in case["inputs"]]
    for compiled in {work_of(compiled): compiled for compiled in compiled_ways(vector_graph(case))}.values():
        given = [x.reshape(compiled.tensor(i).shape) for x, i in zip(inputs, compiled.source.inputs, strict=True)]
        yield on_gpu(context, compiled, given)


def test_all_are_there() -> None:
    assert len({case["id"] for case in VECTORS}) == len(VECTORS) == 322
    assert (len(FUSION_CASES), len(LAYOUT_CASES), len(REFUSED_THERE)) == (13, 4, 3)


@one_in(9, "case", VECTORS, ids=lambda case: case["id"])
def test_gpu_gives_what_the_original_delegate_expects(context: Context, case: Case) -> None:
    for outputs in found_in_all(context, case):
        assert_expected(case, outputs)


@pytest.mark.parametrize("case", REFUSED_THERE, ids=lambda case: case["id"])
def test_what_the_original_refuses_is_what_the_cpu_computes(context: Context, case: Case) -> None:
    wanted = on_cpu(vector_model(case), [values_of(value) for value in case["inputs"]])
    for outputs in found_in_all(context, case):
        assert worst(outputs, wanted) <= 1e-6


def test_the_models_say_the_same_to_tensorflow_lite() -> None:
    """So what is drawn is what the vector is about, whatever our reader makes of it."""
    interpreter = load_interpreter_module().Interpreter
    for case in VECTORS:
        if {case["op"], case["id"]} & CUSTOM or not has_file(case):
            continue
        network = interpreter(model_content=vector_model(case))
        network.allocate_tensors()
        for place, value in zip(network.get_input_details(), case["inputs"], strict=True):
            network.set_tensor(place["index"], values_of(value).reshape(place["shape"]))
        network.invoke()
        assert_expected(case, [network.get_tensor(place["index"]) for place in network.get_output_details()])


@pytest.mark.parametrize("case", LAYOUT_CASES, ids=lambda case: case["id"])
def test_tensors_lie_in_memory_as_the_originals_do(context: Context, case: Case) -> None:
    """To the bit: written by NumPy, and packed and unpacked by the GPU."""
    values, wanted = values_of(case["inputs"][0]), values_of(case["expected"][0])
    assert phwc4(values[0]).tobytes() == wanted.tobytes()
    builder = GraphBuilder()
    x = builder.input(*values.shape)
    y = builder.node("ADD", [x, builder.constant(0.0)], values.shape, Activated())
    with io_of(context, builder.graph(y)) as (program, border):
        give(border, x, values)
        stored = stored_bits(context, program.range_of(x)).view(np.float32)
        lanes = wanted[..., : program.range_of(x).stride]  # a map of one channel has no lanes to spare
        assert stored[: lanes.size].tobytes() == lanes.tobytes()
        border.run()
        assert np.array_equal(take(border, y, values), values)


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
