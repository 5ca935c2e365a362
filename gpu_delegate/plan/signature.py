"""A short hash of a planned kernel; kernels with the same signature take equally long.

It covers what the loops do: ops, attributes, shapes, which tensors are constant, read or stored. It leaves out what
does not change the time, which are weights, names and numbers of tensors, and what is chosen by it: the tile.
"""

import hashlib

from ..model.graph import Graph, Node
from ..model.layout import Precision
from .body import Body

_DIGITS = 12


def signature_of(body: Body, precision: Precision) -> str:
    """12 hex digits."""
    seen: dict[int, int] = {}
    nodes = [*body.nodes, *body.maps]
    lines = [_line(node, seen) for node in nodes]
    tensors = [_tensor(body.graph, tensor) for tensor in seen]
    ends = [[seen.get(tensor, -1) for tensor in side] for side in (body.inputs, body.outputs)]
    text = repr((lines, tensors, ends, body.domain, precision))
    return hashlib.sha256(text.encode()).hexdigest()[:_DIGITS]


def graph_signature(graph: Graph, precision: Precision) -> str:
    """The same of a whole graph, as it is read or as passes leave it."""
    seen: dict[int, int] = {}
    lines = [_line(node, seen) for node in graph.nodes]
    asked = (precision,) if graph.hybrid == "expanded" else (precision, graph.hybrid)
    text = repr((lines, [_tensor(graph, tensor) for tensor in seen], *asked))
    return hashlib.sha256(text.encode()).hexdigest()[:_DIGITS]


def _line(node: Node, seen: dict[int, int]) -> tuple[object, ...]:
    """A node with its tensors in the order in which they are first seen."""
    numbers = [[seen.setdefault(tensor, len(seen)) for tensor in side] for side in (node.inputs, node.outputs)]
    return node.op, repr(node.attributes), *numbers


def _tensor(graph: Graph, number: int) -> tuple[object, ...]:
    """What a kernel knows of a tensor; an optional input that is left out has no description."""
    tensor = graph.tensors.get(number)
    if tensor is None:
        return ()
    stored = ("steps",) if tensor.steps else ()  # perhaps as bytes
    return tensor.shape, tensor.dtype, tensor.is_constant, number in graph.inputs, number in graph.outputs, *stored
