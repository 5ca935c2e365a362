"""A graph with grouped convolutions goes in, one with convolutions that read all channels of their inputs comes out."""

import math
from dataclasses import replace

import numpy as np

from ..errors import UnsupportedError
from ..graph import ABSENT, Concatenation, Graph, Node, StridedSlice, Tensor
from ..layout import shape_of
from ..rewrite import Outcome, Rewriter, float_data

MOST_DENSE_WEIGHTS = 1 << 24  # of a convolution that stands for one with fewer weights, zeros included
MOST_SPLIT_GROUPS = 64  # each of which becomes a kernel
LEAST_SAVED_MACS = 1 << 17  # of each of these kernels: so many take as long as one more dispatch


def split_grouped_convolution(graph: Graph) -> tuple[Graph, Outcome]:
    """CONV_2D of few groups of channels -> a CONV_2D for each, between slices and a CONCATENATION.

    Where groups are whole slices of four channels, all of these are views. Elsewhere it is done only for groups so wide
    that the weights of expand_grouped_convolution would not fit in memory.
    """
    edit = Rewriter(graph)
    for node in graph.nodes:
        if node.op != "CONV_2D":
            continue
        reason = _why_whole(graph, node)
        if reason is None:
            edit.replace(node, *_split(edit, graph, node))
        elif reason:
            edit.decline(f"{graph.tensors[node.outputs[0]].name}: {reason}")
    return edit.finish()


def _why_whole(graph: Graph, node: Node) -> str | None:
    """Why a convolution stays one kernel, "" if it has one group; None if it does not."""
    x, weights, out = (graph.tensors[i] for i in (*node.inputs[:2], *node.outputs))
    outputs, kernel_h, kernel_w, depth = weights.shape
    groups = x.shape[-1] // depth
    if groups == 1:
        return ""
    if groups > MOST_SPLIT_GROUPS:
        return f"{groups} groups"
    dense = outputs * kernel_h * kernel_w * x.shape[-1]
    if dense > MOST_DENSE_WEIGHTS:
        return None
    if depth % 4 or outputs // groups % 4:
        return "groups that are no whole slices"
    saved = (dense - math.prod(weights.shape)) * shape_of(out).pixels
    return None if saved >= LEAST_SAVED_MACS * groups else "little is saved"


def _split(edit: Rewriter, graph: Graph, node: Node) -> list[Node]:
    """The convolutions of all groups."""
    x, weights, out = (graph.tensors[i] for i in (*node.inputs[:2], *node.outputs))
    groups, bias = x.shape[3] // weights.shape[3], node.inputs[2]
    nodes, parts = list[Node](), list[int]()
    values = np.split(float_data(weights), groups)
    biases = [] if bias == ABSENT else np.split(float_data(graph.tensors[bias]).reshape(-1), groups)
    for group, own in enumerate(values):
        source = part_along(edit, nodes, x, 3, group * weights.shape[3], weights.shape[3])
        constants = [edit.new_constant(f"{weights.name}:{group}", own), ABSENT]
        if biases:
            constants[1] = edit.new_constant(f"{graph.tensors[bias].name}:{group}", biases[group])
        parts.append(edit.new_tensor(f"{out.name}:{group}", (*out.shape[:3], len(own))))
        nodes.append(replace(node, inputs=(source, *constants), outputs=(parts[-1],)))
    return [*nodes, Node("CONCATENATION", tuple(parts), node.outputs, Concatenation(axis=3), node.index)]


def part_along(edit: Rewriter, nodes: list[Node], x: Tensor, axis: int, first: int, count: int) -> int:
    """The number of a part of a tensor, some places along a dimension, and among the nodes that which makes it."""
    begin = tuple(first if k == axis else 0 for k in range(len(x.shape)))
    sizes = tuple(count if k == axis else size for k, size in enumerate(x.shape))
    number = edit.new_tensor(f"{x.name}:from {first}", sizes, x.dtype)
    nodes.append(Node("STRIDED_SLICE", (x.index,), (number,), StridedSlice(begin, sizes, (1,) * len(sizes))))
    return number


def expand_grouped_convolution(graph: Graph) -> tuple[Graph, Outcome]:
    """CONV_2D of groups of channels -> CONV_2D whose weights are zero across groups.

    The outputs, too, are in as many groups: output o reads the channels of group o // (outputs / groups).
    """
    edit = Rewriter(graph)
    for node in graph.nodes:
        if node.op != "CONV_2D":
            continue
        weights, channels = graph.tensors[node.inputs[1]], graph.tensors[node.inputs[0]].shape[-1]
        outputs, kernel_h, kernel_w, depth = weights.shape
        if depth == channels:
            continue
        if outputs * kernel_h * kernel_w * channels > MOST_DENSE_WEIGHTS:
            many = f"{outputs} channels in {channels // depth} groups"
            raise UnsupportedError(f"{node.op} (operator {node.index}): {many} take too much memory")
        groups, values = channels // depth, float_data(weights)
        dense = np.zeros((outputs, kernel_h, kernel_w, channels), np.float32)
        for group, own in enumerate(np.split(np.arange(outputs), groups)):
            dense[own, ..., group * depth : (group + 1) * depth] = values[own]
        constant = edit.new_constant(weights.name + ":dense", dense)
        edit.replace(node, replace(node, inputs=(node.inputs[0], constant, *node.inputs[2:])))
    return edit.finish()
