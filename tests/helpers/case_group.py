"""Joins several op cases into one model, so that they run at once, and judges each of its outputs."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Protocol

import numpy as np

from texelflow.gpu_delegate.cases.op_case import CaseArray
from texelflow.gpu_delegate.model.graph import ABSENT, Graph, Node, Tensor


class Case(Protocol):
    """A small graph with random constants and inputs: an OpCase, or several ops."""

    @property
    def name(self) -> str: ...
    @property
    def tolerance(self) -> float: ...
    def graph(self, seed: int = 0) -> Graph: ...
    def inputs(self, graph: Graph, seed: int = 1) -> list[CaseArray]: ...


def joined_graph(graphs: Sequence[Graph]) -> Graph:
    """Graphs side by side as one: inputs and outputs of the first, then of the second and so on."""
    tensors, nodes = dict[int, Tensor](), list[Node]()
    inputs, outputs = list[int](), list[int]()
    for graph in graphs:
        numbers = {old: len(tensors) + k for k, old in enumerate(graph.tensors)} | {ABSENT: ABSENT}
        for old, tensor in graph.tensors.items():
            tensors[numbers[old]] = replace(tensor, index=numbers[old], name=f"t{numbers[old]}")
        for node in graph.nodes:
            read, written = (tuple(numbers[i] for i in side) for side in (node.inputs, node.outputs))
            nodes.append(Node(node.op, read, written, node.attributes, len(nodes)))
        inputs += [numbers[i] for i in graph.inputs]
        outputs += [numbers[i] for i in graph.outputs]
    return Graph("cases", MappingProxyType(tensors), tuple(nodes), tuple(inputs), tuple(outputs))


class CaseGroup:
    """Cases side by side in one graph, so that whatever runs it is begun once for all of them."""

    def __init__(self, cases: Sequence[Case], seed: int = 0) -> None:
        """`seed` gives their constants."""
        self.cases = tuple(cases)
        self.graphs = tuple(case.graph(seed) for case in cases)
        self.graph = joined_graph(self.graphs)

    def inputs(self, seed: int) -> list[CaseArray]:
        """Random values of the graph's inputs."""
        numbered = enumerate(zip(self.cases, self.graphs, strict=True))
        return [values for number, (case, graph) in numbered for values in case.inputs(graph, seed + number)]

    def differing(self, found: Sequence[CaseArray], wanted: Sequence[CaseArray]) -> dict[str, float]:
        """The cases whose outputs are further apart than their tolerance, and how far."""
        errors = self.errors(found, wanted)
        return {case.name: errors[case.name] for case in self.cases if not errors[case.name] <= case.tolerance}

    def errors(self, found: Sequence[CaseArray], wanted: Sequence[CaseArray]) -> dict[str, float]:
        """How far the outputs of each case are apart."""
        pairs = zip(self.cases, self._by_case(found), self._by_case(wanted), strict=True)
        return {case.name: max(map(_distance, ours, theirs)) for case, ours, theirs in pairs}

    def _by_case(self, outputs: Sequence[CaseArray]) -> Iterator[Sequence[CaseArray]]:
        ends = np.cumsum([len(graph.outputs) for graph in self.graphs]).tolist()
        assert ends[-1] == len(outputs), "the outputs are those of the graph"
        yield from (outputs[start:end] for start, end in zip([0, *ends], ends, strict=False))


def _distance(found: CaseArray, wanted: CaseArray) -> float:
    """The largest difference, in parts of the largest magnitude or of 1; infinite for other types and shapes."""
    if found.dtype != wanted.dtype or found.shape != wanted.shape:
        return np.inf
    first, second = found.astype(np.float64), wanted.astype(np.float64)
    return float(np.abs(first - second).max() / max(1.0, np.abs(second).max()))
