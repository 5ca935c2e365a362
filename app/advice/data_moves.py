"""Says of each operator of a compiled graph that moves data how it does so (a view, fused, a kernel), and why."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

from texelflow.gpu_delegate.model.graph import Graph, Node
from texelflow.gpu_delegate.ops.nodes import has_role, record_of
from texelflow.gpu_delegate.targets.glsl.compiled_graph import CompiledGraph

# From the cheapest on.
Way = Literal["nothing", "view", "read", "part", "kernel"]

WAYS: Mapping[Way, str] = MappingProxyType(
    {
        "nothing": "nothing is moved",
        "view": "nothing: a view",
        "read": "in the reads of other kernels",
        "part": "in a kernel with others",
        "kernel": "a kernel of its own",
    }
)


@dataclass(frozen=True)
class MoveLine:
    """One operator that moves data."""

    operator: int  # of the file; -1 if a pass made it
    op: str
    way: Way
    why: str
    kernels: tuple[int, ...]  # dispatches that move the data, if any do


def moves_of(compiled: CompiledGraph) -> tuple[MoveLine, ...]:
    """The file's operators that move data and those that passes made, in their order."""
    removed = {operator: report for report in compiled.passes for operator in report.removed}
    lines = [
        MoveLine(node.index, node.op, "nothing", f"pass {removed[node.index].name}", ())
        for node in compiled.source.nodes
        if _moves(node) and node.index in removed
    ]
    finder = _Finder(compiled)
    lines += [finder.line(node) for node in compiled.graph.nodes if _moves(node)]
    return tuple(sorted(lines, key=lambda line: (line.operator < 0, line.operator)))


def _moves(node: Node) -> bool:
    return has_role(node, "movement") or has_role(node, "scatter")


def _shared(graph: Graph, node: Node) -> str:
    """Why the node's tensors can share memory."""
    if len(node.inputs) > 1:
        return "each part is written where it belongs"
    source, out = (math.prod(graph.tensors[i].shape) for i in (node.inputs[0], node.outputs[0]))
    return "a range of its input's bytes" if out < source else "the bytes stay where they are"


def refused_to_join(compiled: CompiledGraph, node: Node) -> str:
    """Why a node is not in the kernel of what it reads, as fusion has it; "" if it was not asked, or did join."""
    start = f"{node.op} -> {compiled.graph.tensors[node.outputs[0]].name}: "
    return next((line.removeprefix(start) for line in compiled.declined if line.startswith(start)), "")


class _Finder:
    """Finds the kernels of nodes."""

    def __init__(self, compiled: CompiledGraph) -> None:
        self._compiled = compiled
        self._readers = compiled.graph.consumers()
        self._kernels: dict[int, list[int]] = {}  # that compute a tensor
        for number, kernel in enumerate(compiled.kernels):
            for tensor in {out for node in kernel.nodes for out in node.outputs}:
                self._kernels.setdefault(tensor, []).append(number)

    def line(self, node: Node) -> MoveLine:
        """What becomes of a node that is left after the passes."""
        numbers = self._kernels.get(node.outputs[0], [])
        if node.outputs[0] in self._compiled.views.nodes:
            return MoveLine(node.index, node.op, "view", _shared(self._compiled.graph, node), ())
        if not numbers:
            return MoveLine(node.index, node.op, "read", self._by(node), tuple(sorted(self._reading(node))))
        alone = all(len(self._compiled.kernels[number].nodes) == 1 for number in numbers)
        why = self._by(node) + (f"; {self._apart(node)}" if alone else "")
        return MoveLine(node.index, node.op, "kernel" if alone else "part", why, tuple(numbers))

    def _by(self, node: Node) -> str:
        """How much is read at once."""
        movement = record_of(node).movement
        if movement is None:
            return "values are stored at other pixels"
        whole = movement.together(self._compiled.graph, node)
        return "slices of four channels stay together" if whole else "channels change their place in a slice"

    def _apart(self, node: Node) -> str:
        """Why no other node is in its kernel."""
        (out, *_), graph = node.outputs, self._compiled.graph
        if reason := refused_to_join(self._compiled, node):
            return f"it does not join what it reads: {reason}"
        if out in graph.outputs:
            return "an output"
        for reader in self._readers.get(out, ()):
            if reason := refused_to_join(self._compiled, reader):
                return f"{reader.op} does not join: {reason}"
        return "read by " + ", ".join(dict.fromkeys(reader.op for reader in self._readers.get(out, ())))

    def _reading(self, node: Node) -> set[int]:
        """The kernels that read its data through its map, or through further maps behind it."""
        found, waiting = set[int](), [*node.outputs]
        while waiting:
            for reader in self._readers.get(waiting.pop(), ()):
                numbers = self._kernels.get(reader.outputs[0])
                found.update(numbers or ())
                waiting += () if numbers else reader.outputs
        return found
