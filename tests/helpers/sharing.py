"""Runs a graph under every plan of memory, which must all give the same bytes.

All that a program stores is no number before each of two runs, so that what is read before it is written shows, and
what is written over something that is still needed.
"""

from collections.abc import Hashable, Mapping
from contextlib import ExitStack
from dataclasses import replace
from typing import Any

import numpy as np

from texelflow.gpu_delegate.device.device import Device
from texelflow.gpu_delegate.model.graph import Graph
from texelflow.gpu_delegate.plan.compile_options import CompileOptions
from texelflow.gpu_delegate.plan.dispatch import LoweredGraph
from texelflow.gpu_delegate.plan.memory.memory_options import MemoryMode, MemoryOptions
from texelflow.gpu_delegate.plan.memory.strategies import STRATEGIES
from texelflow.gpu_delegate.plan.placement import place_tensors
from texelflow.gpu_delegate.programs.model_sharing import ModelSharing
from texelflow.gpu_delegate.targets.gl.context import Context
from texelflow.gpu_delegate.targets.gl.gl_buffers import write_buffer
from texelflow.gpu_delegate.targets.gl.opengl import BufferRange
from texelflow.gpu_delegate.targets.gl.runtime import Program
from texelflow.gpu_delegate.targets.glsl.compiled_graph import CompiledGraph, compile_graph
from texelflow.gpu_delegate.tuning.isolated import sample

RUNS = 2  # with other inputs: what the first has left must not show


def planned_anew(compiled: CompiledGraph, memory: MemoryOptions, alignment_bytes: int) -> CompiledGraph:
    """The same with its memory as others ask for it; `compiled` has nothing in place. Views are as they were made.

    Raises as compile_graph.
    """
    assert not compiled.in_place, "kernels are as they were made"
    lowered = LoweredGraph(compiled.graph, compiled.kernels, compiled.declined, compiled.storages, compiled.views)
    placed = place_tensors(compiled.source.name, lowered, memory, alignment_bytes)
    return replace(
        compiled, kernels=placed.kernels, barriers=placed.barriers, records=placed.records, plan=placed.plan,
        in_place=placed.in_place, memory=memory,
    )  # fmt: skip


def all_plans() -> dict[str, MemoryOptions]:
    """How memory can be asked for, by what it is called; the first shares nothing."""
    found = {"naive": MemoryOptions("naive")}
    for strategy in STRATEGIES:
        mode: MemoryMode = "objects" if strategy.kind == "objects" else "arena"
        found[f"{mode} {strategy.name}"] = MemoryOptions(mode, strategy.name, keeps_inputs=False)
    found["another order"] = MemoryOptions(keeps_inputs=False, reorders=True)
    modes: tuple[MemoryMode, ...] = ("arena", "objects")
    return found | {
        f"{mode} of programs in turn": MemoryOptions(mode, keeps_inputs=False, shares=True) for mode in modes
    }


def compiled_by(
    graph: Graph, device: Device, plans: Mapping[str, MemoryOptions], **options: Any
) -> dict[str, CompiledGraph]:
    """The same kernels under each of them."""
    made = compile_graph(graph, device, CompileOptions(memory=MemoryOptions("naive"), **options))
    alignment_bytes = device.fitted().offset_alignment_bytes
    return {name: planned_anew(made, plan, alignment_bytes) for name, plan in plans.items()}


def outputs_by_plan(context: Context, compiled: Mapping[str, CompiledGraph]) -> dict[str, bytes]:
    """What each gives for the same inputs. Equal plans run once, and equal kernels are compiled once for all."""
    cache, programs = ModelSharing(), dict[Hashable, Program]()
    with ExitStack() as stack:
        for each in compiled.values():
            if (key := _plan_of(each)) not in programs:
                programs[key] = stack.enter_context(Program(context, each, weights_cache=cache))
        cache.finalize_soft()
        found = {key: b"".join(_outputs(program, turn) for turn in range(RUNS)) for key, program in programs.items()}
        return {name: found[_plan_of(each)] for name, each in compiled.items()}


def _plan_of(compiled: CompiledGraph) -> Hashable:
    """What makes it the same as another one of the same graph."""
    return frozenset(compiled.plan.places.items()), compiled.plan.buffer_bytes, frozenset(compiled.in_place.items())


def _outputs(program: Program, turn: int) -> bytes:
    compiled = program.compiled
    forget(program)
    for tensor in compiled.source.inputs:
        values = sample(compiled.source, tensor)
        program.write(tensor, values if turn == 0 else values[..., ::-1])
    program.run()
    return b"".join(program.read(tensor).tobytes() for tensor in compiled.source.outputs)


def forget(program: Program) -> None:
    """Fill the memory of all tensors with what is no number, as a float or as two halves."""
    plan = program.compiled.plan
    names = {place.buffer: program.range_of(tensor).buffer for tensor, place in plan.places.items()}
    for number, name in names.items():
        filled = np.full(plan.buffer_bytes[number], 0xFF, np.uint8)
        write_buffer(program.context, BufferRange(name, 0, filled.nbytes), filled.ctypes.data)
