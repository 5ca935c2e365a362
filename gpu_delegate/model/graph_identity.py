"""Recognizes equal models within a process: two graphs of the same identity compute the same."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from .graph import Graph, Hybrid, Tensor


@dataclass(frozen=True)
class GraphIdentity:
    """What tells a graph from others: all but its weights, and each weight by its tensor, and not its name.

    `weights` holds SHA-256 digests of the tensors that have data.
    """

    structure: str
    hybrid: Hybrid
    weights: Mapping[int, str]


def graph_identity(graph: Graph) -> GraphIdentity:
    """Of a graph as it was read, or as passes leave it."""
    tensors = sorted(graph.tensors.items())
    described = [_described(number, tensor) for number, tensor in tensors]
    said = (graph.inputs, graph.outputs, graph.nodes, described, fed_back(graph))
    weights = {
        number: hashlib.sha256(tensor.data.tobytes()).hexdigest()
        for number, tensor in tensors
        if tensor.data is not None
    }
    return GraphIdentity(hashlib.sha256(repr(said).encode()).hexdigest(), graph.hybrid, MappingProxyType(weights))


def fed_back(graph: Graph) -> tuple[object, ...]:
    """What its states are, but for what they hold at first."""
    return tuple((state.name, state.own.index, state.read, state.written) for state in graph.states)


def _described(number: int, tensor: Tensor) -> tuple[object, ...]:
    meaning = tensor.dtype, tensor.quantization, tensor.steps
    return number, tensor.name, tensor.shape, *meaning, tensor.is_variable, tensor.unusable
