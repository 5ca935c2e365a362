"""Finds operators that change nothing, alone or two in a row.

The passes remove many of them: then they cost nothing here, which is told, too.
"""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType

import numpy as np

from texelflow.gpu_delegate.code.real_ranges import ALL_REALS, Interval, always_is, interval_of
from texelflow.gpu_delegate.code.vocabulary import Argument
from texelflow.gpu_delegate.model.graph import ABSENT, Activated, Graph, Node, Opaque, Tensor
from texelflow.gpu_delegate.ops.nodes import arithmetic_of, has_role, is_elementwise
from texelflow.gpu_delegate.ops.registry import OPS
from texelflow.gpu_delegate.passes.decomposition import split_to_slices, unify_moves
from texelflow.gpu_delegate.passes.folding import computed_constants
from texelflow.gpu_delegate.passes.simplify import is_identity

from .fault import Analysis, Fault, are_alike, bypassed, operators_of

_MOST_VALUES = 1 << 24  # of tensors in which it is looked where values go


@dataclass(frozen=True)
class _Idle:
    """What does nothing: the operators, and the tensor that their output equals."""

    nodes: tuple[Node, ...]
    source: int


def idle_operators(analysis: Analysis) -> Iterator[Fault]:
    """Two operators of which the second undoes the first, or one that changes nothing."""
    found: dict[str, list[_Idle]] = {}
    producers, graph = analysis.graph.producers(), analysis.graph
    for node in graph.nodes:
        for what, idle in _idle(graph, producers, node):
            found.setdefault(what, []).append(idle)
            break
    for what, idles in found.items():
        renamed = {idle.nodes[-1].outputs[0]: idle.source for idle in idles}
        remedy = bypassed(graph, renamed)
        if remedy is not None:
            yield Fault(
                kind="idle",
                what=what,
                operators=operators_of(node for idle in idles for node in idle.nodes),
                tensors=tuple(renamed),
                why="the values behind it are those before it",
                change="leave it out",
                remedy=remedy,
            )


def _idle(graph: Graph, producers: Mapping[int, Node], node: Node) -> Iterator[tuple[str, _Idle]]:
    """What a node does in vain, and with which one before it."""
    if not node.inputs or node.inputs[0] == ABSENT or graph.tensors[node.inputs[0]].is_constant:
        return
    before = producers.get(node.inputs[0])
    if is_identity(graph, node) or _leaves(graph, node, ALL_REALS):
        yield f"{node.op} to the same", _Idle((node,), node.inputs[0])
    if before is None or not before.inputs or before.inputs[0] == ABSENT:
        return
    if _leaves(graph, node, _range(graph, before)):
        fused = _activation(before)
        yield f"{node.op} of {fused or before.op}", _Idle((node,), node.inputs[0])
    if _undoes(graph, before, node):
        how = "back" if len(before.outputs) == 1 else "all parts together"
        yield f"{before.op} and {how} by {node.op}", _Idle((before, node), before.inputs[0])


def _leaves(graph: Graph, node: Node, within: Interval) -> bool:
    """Whether an elementwise node leaves all values of an interval as they are, as RELU does with those of RELU6."""
    if not is_elementwise(node) or isinstance(node.attributes, Opaque) or _activation(node):
        return False
    source, *others = (graph.tensors[i] for i in node.inputs)
    found = always_is(arithmetic_of(node), (within, *map(_known, others)))
    return found == Argument(0) and are_alike(source, graph.tensors[node.outputs[0]])


def _range(graph: Graph, node: Node) -> Interval:
    """Between which numbers the values of a node lie, whatever it is given."""
    record = OPS.get(node.op)
    if record is None or isinstance(node.attributes, Opaque):
        return ALL_REALS
    found = record.bounds
    if record.arithmetic is not None:
        found = interval_of(arithmetic_of(node), [_known(graph.tensors[i]) for i in node.inputs])
    activation = _activation(node)
    return interval_of(arithmetic_of(Node(activation, (0,), ())), (found,)) if activation else found


def _known(tensor: Tensor) -> Interval:
    """What is known of a tensor's values by itself."""
    if tensor.dtype == "bool":
        return 0.0, 1.0
    if tensor.data is None or tensor.quantization or not tensor.data.size or tensor.data.dtype.kind not in "iuf":
        return ALL_REALS
    low, high = float(tensor.data.min()), float(tensor.data.max())
    return (low, high) if low <= high else ALL_REALS


def _undoes(graph: Graph, first: Node, second: Node) -> bool:
    """Whether the second of two nodes gives what the first reads."""
    source, between, out = (graph.tensors[t] for t in (first.inputs[0], first.outputs[0], second.outputs[0]))
    if not are_alike(source, out):
        return False
    if is_elementwise(first):
        return second.op in OPS[first.op].undone_by and _has_all(between, source)
    parts = len(first.outputs)
    return (
        second.inputs[:parts] == first.outputs
        and all(map(_moves, (first, second)))
        and _puts_back(graph, first, second)
    )


def _has_all(tensor: Tensor, other: Tensor) -> bool:
    """Whether a tensor's type has all values of another's; of a quantized one it is taken for granted."""
    try:
        return tensor.quantization is not None or np.can_cast(other.dtype, tensor.dtype, "safe")
    except TypeError:  # a type that NumPy has not
        return tensor.dtype == other.dtype


def _moves(node: Node) -> bool:
    moves = has_role(node, "movement") or has_role(node, "scatter")
    return moves and not isinstance(node.attributes, Opaque) and not _activation(node)


def _puts_back(graph: Graph, first: Node, second: Node) -> bool:
    """Whether two nodes that move data bring every value back to its place: other numbers in all places come back."""
    source, out = graph.tensors[first.inputs[0]], second.outputs[0]
    count = math.prod(source.shape)
    if count > _MOST_VALUES:
        return False
    used = (graph.tensors[i] for node in (first, second) for i in (*node.inputs, *node.outputs) if i != ABSENT)
    tensors = {t.index: t if t.is_constant else replace(t, dtype="int64", quantization=None) for t in used}
    for start in (1, 1 + count):  # what a node fills gaps with may be one of the numbers, but not of both
        numbers = np.arange(start, start + count).reshape(source.shape)
        tensors[source.index] = replace(tensors[source.index], data=numbers)
        moved = Graph("", MappingProxyType(dict(tensors)), (first, second), (), ())
        for step in (split_to_slices, unify_moves):
            moved, _ = step(moved)
        known = computed_constants(moved, lambda reason: None)
        if out not in known or not np.array_equal(numbers, np.asarray(known[out][1].data)):
            return False
    return True


def _activation(node: Node) -> str:
    """The activation that is part of a node; "" for none."""
    attributes = node.attributes
    return attributes.activation if isinstance(attributes, Activated) and attributes.activation != "NONE" else ""
