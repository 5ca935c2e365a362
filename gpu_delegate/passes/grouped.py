"""A pass that brings grouped convolutions into forms that kernels have."""

from dataclasses import replace

import numpy as np

from ..base.errors import UnsupportedError
from ..model.graph import Graph, Node, StridedSlice, Tensor
from ..model.rewrite import Outcome, Rewriter, float_data

MOST_DENSE_WEIGHTS = 1 << 24  # of a convolution that stands for one with fewer weights, zeros included


def part_along(edit: Rewriter, nodes: list[Node], x: Tensor, axis: int, first: int, count: int) -> int:
    """The number of a part of a tensor, some places along a dimension, and among the nodes that which makes it."""
    begin = tuple(first if k == axis else 0 for k in range(len(x.shape)))
    sizes = tuple(count if k == axis else size for k, size in enumerate(x.shape))
    number = edit.new_tensor(f"{x.name}:from {first}", sizes, x.dtype)
    nodes.append(Node("STRIDED_SLICE", (x.index,), (number,), StridedSlice(begin, sizes, (1,) * len(sizes))))
    return number


def expand_grouped_convolution(graph: Graph) -> tuple[Graph, Outcome]:
    """CONV_2D of groups of channels -> GROUPED_CONV_2D of whole slices, else CONV_2D with zeros across groups.

    The outputs, too, are in as many groups: output o reads the channels of group o // (outputs / groups).
    """
    edit = Rewriter(graph)
    for node in graph.nodes:
        if node.op != "CONV_2D":
            continue
        weights, channels = graph.tensors[node.inputs[1]], graph.tensors[node.inputs[0]].shape[-1]
        outputs, kernel_h, kernel_w, depth = weights.shape
        groups = channels // depth
        if groups == 1:
            continue
        if depth % 4 == 0 and outputs // groups % 4 == 0:
            edit.replace(node, replace(node, op="GROUPED_CONV_2D"))
            continue
        if outputs * kernel_h * kernel_w * channels > MOST_DENSE_WEIGHTS:
            many = f"{outputs} channels in {groups} groups"
            raise UnsupportedError(f"{node.op} (operator {node.index}): {many} take too much memory")
        values = float_data(weights)
        dense = np.zeros((outputs, kernel_h, kernel_w, channels), np.float32)
        for group, own in enumerate(np.split(np.arange(outputs), groups)):
            dense[own, ..., group * depth : (group + 1) * depth] = values[own]
        constant = edit.new_constant(weights.name + ":dense", dense)
        edit.replace(node, replace(node, inputs=(node.inputs[0], constant, *node.inputs[2:])))
    return edit.finish()
