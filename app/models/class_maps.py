"""Rewrites a network that puts out class numbers into one that puts out the mask of a class."""

from dataclasses import replace

import numpy as np

from texelflow.gpu_delegate.model.graph import Attributes, Graph, Node, Shape, Tensor
from texelflow.gpu_delegate.ops.cast import Cast

MOST_MAPPED = 256  # classes that such a network is taken to have where its labels do not say how many
_WHOLE = ("int32", "int64", "uint8", "int8")


def is_class_map(tensor: Tensor) -> bool:
    """Whether an output is (1, H, W) or (1, H, W, 1) of integers that stand for themselves, as ARG_MAX gives them."""
    is_map = len(tensor.shape) == 3 or (len(tensor.shape) == 4 and tensor.shape[3] == 1)
    return is_map and tensor.shape[0] == 1 and tensor.dtype in _WHOLE and tensor.quantization is None


def with_mask_of_class(graph: Graph, number: int) -> Graph:
    """The same network, whose output (1, H, W, 1) is 1 where the class of a pixel is this one, else 0."""
    classes = graph.tensors[graph.outputs[0]]
    first = max(graph.dropped_below, 1 + max(graph.tensors))
    shape: Shape = (*classes.shape[:3], 1)
    wanted = Tensor(first, f"{classes.name}:wanted", (1,), "float32", np.array([number], np.float32))
    steps = (
        ("CAST", "float32", classes.shape, Cast(classes.dtype, "float32")),
        ("EQUAL", "bool", classes.shape, Attributes()),
        ("CAST", "float32", classes.shape, Cast("bool", "float32")),
        ("RESHAPE", "float32", shape, Attributes()),
    )
    nodes, tensors, last = list(graph.nodes), {wanted.index: wanted}, classes.index
    for index, (op, dtype, size, attributes) in enumerate(steps, first + 1):
        tensors[index] = Tensor(index, f"{classes.name}:{op} {index}", size, dtype)
        inputs = (last, wanted.index) if op == "EQUAL" else (last,)
        nodes.append(Node(op, inputs, (index,), attributes, len(nodes)))
        last = index
    return replace(graph, outputs=(last,)).with_changes(tuple(nodes), tensors)
