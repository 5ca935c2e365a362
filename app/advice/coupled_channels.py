"""Finds coupled sizes of a graph: channels of tensors and sides of weights that can only change together.

A convolution's outputs, its bias and what reads them must agree, and so on through the ops that keep channels. What an
op that is not known here reads or writes keeps its size, and so do inputs and outputs of the model. A PAD of channels
couples nothing: it adds as many as are missing.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType

import numpy as np

from texelflow.gpu_delegate.model.graph import (
    ABSENT,
    Graph,
    Node,
    Opaque,
    Pad,
    Reduce,
    Tensor,
)
from texelflow.gpu_delegate.ops.nodes import has_role, is_elementwise, record_of
from texelflow.gpu_delegate.ops.registry import OPS

from .fault import is_of_constants, replaced

Side = tuple[int, int]  # a tensor and one of its dimensions


@dataclass(frozen=True)
class Coupling:
    """Sides of one size, which can be changed."""

    size: int
    sides: tuple[Side, ...]


def find_couplings(graph: Graph) -> tuple[Coupling, ...]:
    """All of them that hold channels of computed tensors."""
    joined = _Joined()
    for tensor in (*graph.inputs, *graph.outputs):
        joined.keep(_all_sides(graph.tensors[tensor]))
    for node in graph.nodes:
        coupled = None if isinstance(node.attributes, Opaque) else _coupled(graph, node)
        if coupled is None:
            for tensor in _used(node):
                joined.keep(_all_sides(graph.tensors[tensor]))
        for pair in coupled or ():
            joined.join(*pair)
    return tuple(coupling for sides in joined.groups() if (coupling := _coupling(graph, sides)))


def with_sizes(graph: Graph, sizes: Mapping[Coupling, int]) -> Graph | None:
    """The graph with other sizes for some couplings; constants are cut off or repeated, which tells what it costs.

    None where a PAD of channels would have to take some away.
    """
    tensors = dict(graph.tensors)
    for coupling, size in sizes.items():
        for tensor, side in coupling.sides:
            tensors[tensor] = _resized(tensors[tensor], side, size)
    changed = replace(graph, tensors=MappingProxyType(tensors), original=b"")
    pads = {number: _refilled(changed, node) for number, node in enumerate(graph.nodes) if _adds_channels(node)}
    return None if None in pads.values() else replaced(changed, {k: node for k, node in pads.items() if node})


def channels(tensor: Tensor) -> Side:
    """The dimension of a tensor that has its channels, the last."""
    return tensor.index, len(tensor.shape) - 1


class _Joined:
    """Sets of sides, united step by step."""

    def __init__(self) -> None:
        self._parent: dict[Side, Side] = {}
        self._kept: set[Side] = set()

    def find(self, side: Side) -> Side:
        root = side
        while (parent := self._parent.setdefault(root, root)) != root:
            root = parent
        while side != root:
            self._parent[side], side = root, self._parent[side]
        return root

    def join(self, one: Side, other: Side) -> None:
        self._parent[self.find(one)] = self.find(other)

    def keep(self, sides: Iterable[Side]) -> None:
        """These cannot change."""
        for side in sides:
            self._kept.add(self.find(side))

    def groups(self) -> list[list[Side]]:
        """The sets of sides that can change."""
        kept, found = {self.find(side) for side in self._kept}, dict[Side, list[Side]]()
        for side in self._parent:
            if (root := self.find(side)) not in kept:
                found.setdefault(root, []).append(side)
        return list(found.values())


def _coupling(graph: Graph, sides: list[Side]) -> Coupling | None:
    """Sides as a coupling: of one size, channels of computed tensors, and whatever of constants."""
    computed = [side for side in sides if not graph.tensors[side[0]].is_constant]
    weights = {out for node in graph.nodes if is_of_constants(graph, node) for out in node.outputs}
    maps = [side for side in computed if side[0] not in weights]
    sizes = {graph.tensors[tensor].shape[side] for tensor, side in sides}
    whole = all(side == channels(graph.tensors[side[0]]) for side in maps)
    return Coupling(sizes.pop(), tuple(sorted(sides))) if maps and whole and len(sizes) == 1 else None


def _coupled(graph: Graph, node: Node) -> list[tuple[Side, Side]] | None:
    """The sides that a node couples to each other; None if nothing is known of it."""
    rule = _rule(graph, node)
    return rule(graph, node) if rule else None


def _used(node: Node) -> list[int]:
    return [tensor for tensor in (*node.inputs, *node.outputs) if tensor != ABSENT]


def _all_sides(tensor: Tensor) -> list[Side]:
    return [(tensor.index, side) for side in range(len(tensor.shape))]


def _has_weights(node: Node) -> bool:
    return node.op in OPS and record_of(node).byte_rules.weights is not None


def _of_weights(graph: Graph, node: Node) -> list[tuple[Side, Side]] | None:
    """Weights are OHWI, OI or 1HWC: outputs have, in a quantized file, a scale for each place along their dimension."""
    x, weights, out = (graph.tensors[i] for i in (*node.inputs[:2], node.outputs[0]))
    if x.shape[-1] != weights.shape[-1]:
        return None  # groups, or several outputs of each channel
    outputs = (weights.index, record_of(node).byte_rules.weights or 0)
    return [(channels(x), channels(weights)), (outputs, channels(out)), *_of_bias(graph, node, outputs)]


def _of_bias(graph: Graph, node: Node, outputs: Side) -> list[tuple[Side, Side]]:
    bias = node.inputs[2] if len(node.inputs) > 2 else ABSENT
    return [] if bias == ABSENT else [(channels(graph.tensors[bias]), outputs)]


def _of_elementwise(graph: Graph, node: Node) -> list[tuple[Side, Side]] | None:
    """Dimensions of the output's size; operands of size 1 are repeated."""
    (out,), found = [graph.tensors[i] for i in node.outputs], list[tuple[Side, Side]]()
    for tensor in (graph.tensors[i] for i in node.inputs):
        for back in range(1, 1 + len(tensor.shape)):
            if tensor.shape[-back] == out.shape[-back]:
                found.append(((tensor.index, len(tensor.shape) - back), (out.index, len(out.shape) - back)))
            elif tensor.shape[-back] != 1:
                return None
    return found


def _of_channels(graph: Graph, node: Node) -> list[tuple[Side, Side]] | None:
    """Ops that keep channels, whatever they do with rows and columns."""
    first, *others = (graph.tensors[i] for i in (*node.outputs, *node.inputs))
    if not first.shape or any(not tensor.shape or tensor.shape[-1] != first.shape[-1] for tensor in others):
        return None
    return [(channels(tensor), channels(first)) for tensor in others]


def _keeps_channels(graph: Graph, node: Node) -> bool:
    if isinstance(node.attributes, Reduce):
        return node.attributes.keep_dims and node.attributes.axes in ((1, 2), (1,), (2,))
    moves = has_role(node, "movement") and (record_of(node).keeps_order or record_of(node).channels_stay(graph, node))
    return moves or has_role(node, "window")


def _adds_channels(node: Node) -> bool:
    """A PAD of channels behind those of its input."""
    return isinstance(node.attributes, Pad) and node.attributes.amounts[-1][0] == 0 < node.attributes.amounts[-1][1]


def _of_nothing(graph: Graph, node: Node) -> list[tuple[Side, Side]]:
    return []


def _refilled(graph: Graph, node: Node) -> Node | None:
    """A PAD of channels that adds as many as its output has more; None if that has fewer."""
    pad, (source, out) = node.attributes, (graph.tensors[t].shape[-1] for t in (node.inputs[0], node.outputs[0]))
    assert isinstance(pad, Pad)
    amounts = (*pad.amounts[:-1], (0, out - source))
    return replace(node, attributes=replace(pad, amounts=amounts)) if out >= source else None


def _rule(graph: Graph, node: Node) -> Callable[[Graph, Node], list[tuple[Side, Side]] | None] | None:
    if _has_weights(node):
        return _of_weights
    if is_elementwise(node):
        return _of_elementwise
    if _adds_channels(node):
        return _of_nothing
    return _of_channels if _keeps_channels(graph, node) else None


def _resized(tensor: Tensor, side: int, size: int) -> Tensor:
    shape = (*tensor.shape[:side], size, *tensor.shape[side + 1 :])
    if tensor.data is None:
        return replace(tensor, shape=shape)
    places = np.arange(size) % tensor.shape[side]
    return replace(tensor, shape=shape, data=np.take(tensor.data.reshape(tensor.shape), places, axis=side))
