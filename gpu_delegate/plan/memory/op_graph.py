"""Usage records of a graph's operators as read, one task each: the setting in which papers plan memory."""

import math
from collections.abc import Iterator

import numpy as np

from ...model.graph import Graph, Node
from .records import UsageRecord


def op_records(graph: Graph) -> tuple[UsageRecord, ...]:
    """Every tensor between operators at its size in the file, in the order in which they are written.

    Inputs and outputs of the model are left out, as in arXiv 2001.03288, section 6: they belong to the caller; so is
    what constants alone make, which is computed before anything runs.
    """
    outer = {*graph.inputs, *graph.outputs}
    first: dict[int, int] = {}
    last: dict[int, int] = {}
    for task, node in enumerate(_computed(graph)):
        first.update((tensor, task) for tensor in node.outputs if tensor not in outer)
        last.update((tensor, task) for tensor in (*node.inputs, *node.outputs))
    return tuple(UsageRecord(tensor, _size_bytes(graph, tensor), task, last[tensor]) for tensor, task in first.items())


def _computed(graph: Graph) -> Iterator[Node]:
    """The operators that depend on an input."""
    constant = {number for number, tensor in graph.tensors.items() if tensor.is_constant}
    for node in graph.nodes:
        if all(tensor in constant for tensor in node.inputs):
            constant.update(node.outputs)
        else:
            yield node


def _size_bytes(graph: Graph, tensor: int) -> int:
    found = graph.tensors[tensor]
    try:
        return math.prod(found.shape) * np.dtype(found.dtype).itemsize
    except TypeError:  # a string's length is known to TensorFlow Lite alone
        return 0
