"""Compiles the parts of a model that the GPU can take. No OpenGL is needed."""

from collections.abc import Callable, Mapping
from dataclasses import replace

from ...device.device import Device
from ...model.graph import Graph
from ...plan.compile_options import COMPILE_DEFAULTS, CompileOptions
from ...plan.compiled_parts import CompiledParts, compile_parts
from .compiled_graph import CompiledGraph, compile_graph

CompiledPartitions = CompiledParts[CompiledGraph]
CompileGraph = Callable[[Graph, Device, CompileOptions], CompiledGraph]  # as compile_graph
Select = Callable[[CompiledPartitions], Mapping[int, str]]  # the nodes to leave to the CPU, and why; {}: no more


def compile_partitions(
    graph: Graph,
    device: Device,
    options: CompileOptions = COMPILE_DEFAULTS,
    select: Select = lambda found: {},
    compile_part: CompileGraph = compile_graph,
) -> CompiledPartitions:
    """As compile_parts. Each partition has a share of the budget that is in proportion to its operators."""

    def compiled(part: Graph, share: float) -> CompiledGraph:
        return compile_part(part, device, replace(options, compile_budget_s=options.compile_budget_s * share))

    return compile_parts(graph, device, compiled, options.fuse, select)
