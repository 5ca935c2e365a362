"""Rewrites a network that puts out class numbers into one that puts out the mask of a class, or of several."""

from collections.abc import Sequence

from texelflow.gpu_delegate.model.graph import Graph, Shape, Tensor
from texelflow.gpu_delegate.ops.cast import Cast

from .added_nodes import AddedNodes

MOST_MAPPED = 256  # classes that such a network is taken to have where its labels do not say how many
_WHOLE = ("int32", "int64", "uint8", "int8")


def is_class_map(tensor: Tensor) -> bool:
    """Whether an output is (1, H, W) or (1, H, W, 1) of integers that stand for themselves, as ARG_MAX gives them."""
    is_map = len(tensor.shape) == 3 or (len(tensor.shape) == 4 and tensor.shape[3] == 1)
    return is_map and tensor.shape[0] == 1 and tensor.dtype in _WHOLE and tensor.quantization is None


def with_mask_of_classes(graph: Graph, numbers: Sequence[int]) -> Graph:
    """The same network, whose output (1, H, W, 1) is 1 where the class of a pixel is one of these, else 0."""
    classes = graph.tensors[graph.outputs[0]]
    made = AddedNodes(graph)
    levels = made.op("CAST", [classes.index], classes.shape, Cast(classes.dtype, "float32"))
    masks = list[int]()
    for number in numbers:
        same = made.op("EQUAL", [levels, made.constant(number)], classes.shape, dtype="bool")
        masks.append(made.op("CAST", [same], classes.shape, Cast("bool", "float32")))
    found = made.chain("ADD", masks)
    shape: Shape = (*classes.shape[:3], 1)
    return made.graph((made.op("RESHAPE", [found], shape),))
