"""A graph goes in; digests of all that it says come out, equal for graphs that compute the same in the same words."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from .graph import Graph, Tensor


@dataclass(frozen=True)
class GraphDigest:
    """What tells a graph from others: all but its weights, and each weight by its tensor, and not its name.

    `weights` holds SHA-256 digests of the tensors that have data.
    """

    structure: str
    weights: Mapping[int, str]

    @property
    def text(self) -> str:
        """All of it as hex digits."""
        return hashlib.sha256(repr((self.structure, sorted(self.weights.items()))).encode()).hexdigest()


def graph_digest(graph: Graph) -> GraphDigest:
    """Of a graph as it was read, or as passes leave it."""
    tensors = sorted(graph.tensors.items())
    said = (graph.inputs, graph.outputs, graph.nodes, [_described(number, tensor) for number, tensor in tensors])
    weights = {
        number: hashlib.sha256(tensor.data.tobytes()).hexdigest()
        for number, tensor in tensors
        if tensor.data is not None
    }
    return GraphDigest(hashlib.sha256(repr(said).encode()).hexdigest(), MappingProxyType(weights))


def _described(number: int, tensor: Tensor) -> tuple[object, ...]:
    return number, tensor.name, tensor.shape, tensor.dtype, tensor.quantization, tensor.unusable
