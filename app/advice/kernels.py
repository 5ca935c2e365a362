"""Finds kernels that a model could do without: moves of data, and activations apart from their layers."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType

from texelflow.gpu_delegate.model.graph import Activated, Graph, Node
from texelflow.gpu_delegate.ops.nodes import is_elementwise, record_of
from texelflow.gpu_delegate.targets.glsl.compiled_graph import CompiledGraph
from texelflow.gpu_delegate.targets.glsl.glsl_kernel import Kernel

from .cost import RunCost, kernel_cost, total
from .data_moves import MoveLine, moves_of, refused_to_join
from .fault import Analysis, Fault, are_alike, bypassed, ended_before, listed, operators_of, replaced

_OUTSIDE = "; or let the model end before it, and do it where the values are read"
_CHANGES: Mapping[str, str] = MappingProxyType(
    {
        "RESHAPE": "keep the number of channels: then values stay where they are",
        "TRANSPOSE": "let the layers before and behind it work in one order, BHWC",
        "CONCATENATION": "give all parts but the last a multiple of 4 channels, and let a layer write each, not a "
        "move, of a multiple of 16 pixels: then each is written in its place",
        "PAD": "pad rows and columns in front of a convolution, which takes it up",
        "DEPTH_TO_SPACE": "rearrange fewer channels: the kernel of the layer before it can store few at other pixels",
    }
)
_CHANGE = "cut and join at multiples of 4 channels"


@dataclass(frozen=True)
class _Move:
    """A move that takes kernels of its own."""

    line: MoveLine
    outputs: tuple[int, ...]
    cost: RunCost


def costly_moves(analysis: Analysis) -> Iterator[Fault]:
    """RESHAPE, TRANSPOSE and other moves that take a kernel; views and what readers look through take none."""
    found: dict[tuple[str, str, bool], list[_Move]] = {}
    for move in _moves(analysis):
        is_last = any(tensor in analysis.graph.outputs for tensor in move.outputs)
        found.setdefault((move.line.op, without_numbers(move.line.why), is_last), []).append(move)
    for (op, _, is_last), moves in found.items():
        outputs = tuple(sorted(out for move in moves for out in move.outputs))
        count = sum(len(move.line.kernels) for move in moves)
        yield Fault(
            kind="move",
            what=f"{op} takes {'a kernel' if count == 1 else f'{count} kernels'} of its own",
            operators=tuple(sorted({move.line.operator for move in moves} - {-1})),
            tensors=outputs,
            why=moves[0].line.why,
            change=f"{_CHANGES.get(op, _CHANGE)}{_OUTSIDE if is_last else ''}",
            remedy=ended_before(analysis.graph, outputs)
            if is_last
            else total((move.cost for move in moves), analysis.rates),
            is_exact=is_last,
        )


def _moves(analysis: Analysis) -> Iterator[_Move]:
    for compiled in analysis.found.compiled:
        for line in moves_of(compiled):
            if line.way == "kernel":
                kernels = [compiled.kernels[number] for number in line.kernels]
                outputs = tuple(dict.fromkeys(out for kernel in kernels for out in kernel.outputs))
                cost = total((kernel_cost(compiled, kernel, analysis.rates) for kernel in kernels), analysis.rates)
                yield _Move(line, tuple(out for out in outputs if out in analysis.graph.tensors), cost)


@dataclass(frozen=True)
class _Apart:
    """An activation that is not computed where its input is."""

    node: Node  # as the passes have left it
    why: str
    change: str


def _is_activation(node: Node) -> bool:
    """Whether it is an elementwise op of one computed operand, which files have; slopes are constants."""
    return is_elementwise(node) and record_of(node).file is not None and len(record_of(node).example.shapes) == 1


def lone_activations(analysis: Analysis) -> Iterator[Fault]:
    """Activations that take a kernel or a store besides that of their layer."""
    found: dict[tuple[str, str], list[_Apart]] = {}
    for compiled in analysis.found.compiled:
        for apart in _apart(compiled):
            found.setdefault((apart.node.op, without_numbers(apart.why)), []).append(apart)
    for (op, _), all_apart in found.items():
        nodes = [apart.node for apart in all_apart]
        remedy = _without(analysis.graph, nodes)
        if remedy is None:
            continue
        writers = analysis.graph.producers()
        origins = [writers[node.outputs[0]] for node in nodes if node.outputs[0] in writers]
        yield Fault(
            kind="activation",
            what=f"{op} is not part of the layer before it",
            operators=operators_of(origins),
            tensors=tuple(node.outputs[0] for node in origins),
            why=all_apart[0].why,
            change=all_apart[0].change,
            remedy=remedy,
        )


def _apart(compiled: CompiledGraph) -> Iterator[_Apart]:
    """Activations that read from memory what is stored for them, in a kernel without a layer; or beside a store."""
    readers, kernels = compiled.graph.consumers(), dict[int, Kernel]()
    for kernel in compiled.kernels:
        kernels |= {out: kernel for node in kernel.nodes for out in node.outputs}
    stored = set(compiled.stored)
    for node in compiled.graph.nodes:
        source, out = node.inputs[0] if node.inputs else -1, node.outputs[0]
        if not _is_activation(node) or source not in stored or out not in kernels:
            continue
        others = [reader.op for reader in readers.get(source, ()) if reader is not node]
        alone = all(map(is_elementwise, kernels[out].nodes)) and source in kernels[out].inputs
        if alone or out in stored:
            yield _Apart(node, *_reason(compiled, node, others))


def _reason(compiled: CompiledGraph, node: Node, others: list[str]) -> tuple[str, str]:
    """Why an activation is apart from what it reads, and what would change that."""
    if others:
        why = f"{listed(others)} {'needs' if len(set(others)) == 1 else 'need'} the value before it, which is stored"
        return why, "let whatever reads the value before it read the value behind it"
    if node.inputs[0] in compiled.graph.outputs:
        return "the value before it is an output", "give the value behind it as that output"
    reason = refused_to_join(compiled, node) or "the value before it is not computed by a kernel that could do it"
    why = re.sub("^.* would be computed twice", "a value before it would be computed twice", reason)
    return why, "give the layer before it fewer channels or readers, so that its kernel has room for it"


def without_numbers(reason: str) -> str:
    """The same for reasons that are alike."""
    return re.sub(r"\d+", "", reason)


def _without(graph: Graph, nodes: list[Node]) -> Graph | None:
    """The graph without these activations, be they nodes of their own or part of their layer in the file."""
    writers = {out: number for number, node in enumerate(graph.nodes) for out in node.outputs}
    numbers = [writers[node.outputs[0]] for node in nodes if node.outputs[0] in writers]
    linear, renamed = dict[int, Node](), dict[int, int]()
    for number in numbers:
        origin = graph.nodes[number]
        if _is_activation(origin) and are_alike(graph.tensors[origin.inputs[0]], graph.tensors[origin.outputs[0]]):
            renamed[origin.outputs[0]] = origin.inputs[0]
        elif isinstance(origin.attributes, Activated):
            linear[number] = replace(origin, attributes=replace(origin.attributes, activation="NONE"))
    return bypassed(replaced(graph, linear), renamed)
