"""Passes that remove what is not needed: moves of moves, ops that change nothing, and unused tensors."""

from dataclasses import replace

import numpy as np

from ..model.graph import (
    Activated,
    Attributes,
    Axes,
    BatchToSpace,
    Concatenation,
    Graph,
    MirrorPad,
    Node,
    Pad,
    Padding,
    Pool2D,
    Reduce,
    Repeat,
    Resize,
    SpaceToBatch,
    StridedSlice,
    Transpose,
)
from ..model.operators import attributes_of
from ..model.rewrite import Outcome, Rewriter, fused_only
from ..ops.nodes import is_fold

_ALIKE = (
    "RESHAPE",
    "BROADCAST_TO",
    "DEPTH_TO_SPACE",
    "SPACE_TO_DEPTH",
)  # whose output of the input's shape is the input
_NEUTRAL = {"ADD": 0.0, "SUB": 0.0, "MUL": 1.0, "DIV": 1.0}  # as a second operand


@fused_only
def join_moves(graph: Graph) -> tuple[Graph, Outcome]:
    """RESHAPE of RESHAPE -> one, TRANSPOSE of TRANSPOSE -> one; TRANSPOSE that moves sizes of one only -> RESHAPE."""
    edit = Rewriter(graph)
    made: dict[int, Node] = {}  # tensor to the RESHAPE or TRANSPOSE that writes it, as changed so far
    for node in graph.nodes:
        if node.op not in ("RESHAPE", "TRANSPOSE"):
            continue
        last, joined = None, node
        while joined != last:  # what became a RESHAPE may follow another one
            last, joined = joined, _without_order(graph, _joined(joined, made.get(joined.inputs[0])))
        source = joined.inputs[0]
        made[node.outputs[0]] = made.get(source, joined) if is_identity(graph, joined) else joined
        if joined != node:
            edit.replace(node, joined)
    return edit.finish()


def _joined(node: Node, before: Node | None) -> Node:
    """A move that reads what another move reads, if the two are of one kind."""
    if before is None or before.op != node.op:
        return node
    if node.op == "RESHAPE":
        return replace(node, inputs=before.inputs)
    first, second = attributes_of(before, Transpose).order, attributes_of(node, Transpose).order
    return replace(node, inputs=before.inputs, attributes=Transpose(tuple(first[k] for k in second)))


def _without_order(graph: Graph, node: Node) -> Node:
    """A RESHAPE for a TRANSPOSE that keeps the order of all dimensions larger than one."""
    if node.op != "TRANSPOSE":
        return node
    shape = graph.tensors[node.inputs[0]].shape
    order = [k for k in attributes_of(node, Transpose).order if shape[k] != 1]
    return replace(node, op="RESHAPE", attributes=Attributes()) if order == sorted(order) else node


@fused_only
def remove_identities(graph: Graph) -> tuple[Graph, Outcome]:
    """Remove what changes nothing: moves to the same place, windows of one pixel, sums with zero."""
    edit = Rewriter(graph)
    for node in graph.nodes:
        if not is_identity(graph, node):
            continue
        if node.outputs[0] in graph.outputs:
            edit.decline(f"{graph.tensors[node.outputs[0]].name} is an output of the model")
            continue
        edit.bypass(node)
    return edit.finish()


def is_identity(graph: Graph, node: Node) -> bool:
    """Whether the output is the first input."""
    attributes, tensors = node.attributes, graph.tensors
    if not node.inputs or tensors[node.inputs[0]].shape != tensors[node.outputs[0]].shape:
        return False
    if isinstance(attributes, Activated) and attributes.activation != "NONE":
        return False
    if node.op in _ALIKE or isinstance(attributes, Resize | Pad | MirrorPad | Repeat):
        return True
    if isinstance(attributes, Pool2D):
        return attributes.kernel == (1, 1) and attributes.stride == (1, 1)
    if isinstance(attributes, StridedSlice):
        return all(step > 0 for step in attributes.strides)
    if isinstance(attributes, Transpose):
        return attributes.order == tuple(range(len(attributes.order)))
    if isinstance(attributes, SpaceToBatch | BatchToSpace):
        return attributes.block == (1, 1) and attributes.padding == Padding()
    if isinstance(attributes, Axes) or (isinstance(attributes, Reduce) and is_fold(node)):
        return all(tensors[node.inputs[0]].shape[axis] == 1 for axis in attributes.axes)
    return _is_neutral(graph, node) or (isinstance(attributes, Concatenation) and len(node.inputs) == 1)


def _is_neutral(graph: Graph, node: Node) -> bool:
    """Arithmetic with a constant that leaves its first operand as it is."""
    if node.op not in _NEUTRAL or len(node.inputs) != 2:
        return False
    constant = graph.tensors[node.inputs[1]].data
    return constant is not None and bool(np.all(constant == _NEUTRAL[node.op]))


def drop_unused(graph: Graph) -> tuple[Graph, Outcome]:
    """Remove nodes whose outputs are not read, and tensors that no node names."""
    edit = Rewriter(graph)
    needed = set(graph.outputs)
    for node in reversed(graph.nodes):
        if needed.intersection(node.outputs):
            needed.update(node.inputs)
        else:
            edit.remove(node)
    left, outcome = edit.finish()
    return left.with_changes(), outcome
