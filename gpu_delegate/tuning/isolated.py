"""Isolates one kernel of a compiled graph, so that it can be measured alone."""

from collections.abc import Callable
from dataclasses import replace
from functools import reduce
from operator import or_

import numpy as np
import numpy.typing as npt

from ..device.device import Device
from ..model.graph import Graph, Tensor
from ..model.layout import shape_of
from ..plan.in_place import NOTHING_IN_PLACE
from ..plan.memory.offsets import naive
from ..plan.memory.records import UsageRecord
from ..plan.views import NONE
from ..targets.glsl.compiled_graph import CompiledGraph, constant_texels
from ..targets.glsl.glsl_kernel import Kernel, Lowered

MakeAlone = Callable[[Kernel], CompiledGraph]  # a graph of this kernel alone


def isolated(base: CompiledGraph, lowered: Lowered, kernel: Kernel, device: Device) -> CompiledGraph:
    """`kernel` is one of `lowered`, which was made of the graph of `base`; it runs behind a barrier."""
    graph, storages = lowered.graph, lowered.storages
    constants = [tensor for tensor in kernel.inputs if graph.tensors[tensor].is_constant]
    inputs = tuple(tensor for tensor in dict.fromkeys(kernel.inputs) if tensor not in constants)
    records = tuple(
        UsageRecord(tensor, storages[tensor].size_bytes(shape_of(graph.tensors[tensor])), 0, 0)
        for tensor in (*inputs, *kernel.outputs)
    )
    alone = replace(graph, inputs=inputs, outputs=kernel.outputs)
    return replace(
        base, source=alone, graph=alone, kernels=(kernel,), barriers=(reduce(or_, base.barriers, 0),), records=records,
        plan=naive(records, device.offset_alignment_bytes), storages=storages, views=NONE, in_place=NOTHING_IN_PLACE,
        constants={tensor: constant_texels(graph, tensor) for tensor in constants},
    )  # fmt: skip


def sample(graph: Graph, number: int) -> npt.NDArray[np.generic]:
    """Values for an input tensor, the same in each process: of a normal distribution, or integers in its range."""
    tensor: Tensor = graph.tensors[number]
    generator = np.random.default_rng(len(tensor.shape) + sum(tensor.shape))
    if tensor.steps:
        return generator.integers(tensor.steps.low, tensor.steps.high + 1, tensor.shape).astype(tensor.dtype)
    if np.issubdtype(np.dtype(tensor.dtype), np.floating):
        return generator.standard_normal(tensor.shape, np.float32).astype(tensor.dtype)
    return generator.integers(0, 2, tensor.shape).astype(tensor.dtype)
