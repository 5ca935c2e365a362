"""A pass that replaces CUMSUM by a product with a triangular matrix, or by sums of shifted maps.

Over channels that are floats, and not too many, it is a matrix product. Else there are a few steps for any length:
after one every place has the sum of the values of so many places before it, and the next one adds up several such sums,
each from as many places further. Eight terms a step make 512 places in three.
"""

import math
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from ..model.graph import ABSENT, Activated, Graph, Node, Pad, Shape, StridedSlice, Tensor
from ..model.operators import attributes_of
from ..model.rewrite import Outcome, Rewriter
from ..ops.running_sum import RunningSum

MOST_TERMS = 8  # of a step: each is a read of the same map
MOST_MATRIX_ROWS = 256  # of a triangular matrix


def expand_running_sums(graph: Graph) -> tuple[Graph, Outcome]:
    """CUMSUM -> FULLY_CONNECTED, or sums of shifted maps, in steps: no place waits for the one before it."""
    edit = Rewriter(graph)
    for node in graph.nodes:
        if node.op == "CUMSUM":
            edit.replace(node, *_summed_up(edit, graph, node))
    return edit.finish()


def _summed_up(edit: Rewriter, graph: Graph, node: Node) -> list[Node]:
    """Nodes in place of one. Of many channels it is one along columns: those can be shifted as they are."""
    x, out, running = graph.tensors[node.inputs[0]], graph.tensors[node.outputs[0]], attributes_of(node, RunningSum)
    length, is_last = x.shape[running.axis], running.axis == len(x.shape) - 1
    if length == 1 and not running.exclusive:
        return [Node("RESHAPE", node.inputs, node.outputs, index=node.index)]
    if is_last and length <= MOST_MATRIX_ROWS and out.dtype == "float32":
        matrix = edit.new_constant(f"{out.name}:matrix", triangular_matrix(length, running))
        return [Node("FULLY_CONNECTED", (x.index, matrix, ABSENT), node.outputs, Activated(), node.index)]
    if not is_last:
        return _Steps(edit, x.shape, node, out).nodes(x.index, node.outputs[0])
    columns = (math.prod(x.shape[:-1]), length, 1)
    reshaped, summed = (edit.new_tensor(f"{out.name}:columns", columns, out.dtype) for _ in range(2))
    steps = _Steps(edit, columns, replace(node, attributes=replace(running, axis=1)), out)
    return [
        Node("RESHAPE", node.inputs, (reshaped,)),
        *steps.nodes(reshaped, summed),
        Node("RESHAPE", (summed,), node.outputs),
    ]


def triangular_matrix(length: int, running: RunningSum) -> npt.NDArray[np.float32]:
    """OI: which inputs each output adds up."""
    matrix = np.tri(length, k=-1 if running.exclusive else 0, dtype=np.float32)
    return matrix[::-1, ::-1] if running.reverse else matrix


def terms_of_steps(length: int) -> list[int]:
    """How many sums each step adds up, as even as can be: the product is not below the length."""
    steps = 1
    while MOST_TERMS**steps < length:
        steps += 1
    each = next(terms for terms in range(1, MOST_TERMS + 1) if terms**steps >= length)
    return [each] * steps


class _Steps:
    """Nodes in place of one CUMSUM along rows, columns or a batch."""

    def __init__(self, edit: Rewriter, shape: Shape, node: Node, out: Tensor) -> None:
        self._edit, self._node, self._shape, self._out = edit, node, shape, out
        self._running = attributes_of(node, RunningSum)
        self._made: list[Node] = []

    def nodes(self, x: int, out: int) -> list[Node]:
        """All of them, in order, from tensor x to tensor out."""
        length, summed = self._shape[self._running.axis], 1
        value = self._shifted(x, 1) if self._running.exclusive else x
        for terms in terms_of_steps(length):
            total = value
            for distance in range(summed, min(summed * terms, length), summed):
                total = self._add(Node("ADD", (total, self._shifted(value, distance)), (), Activated()), self._shape)
            value, summed = total, summed * terms
        return [*self._made[:-1], replace(self._made[-1], outputs=(out,), index=self._node.index)]

    def _shifted(self, tensor: int, distance: int) -> int:
        """A map whose places have what lies so far before them, or behind them in reverse; zeros where nothing is."""
        axis, reverse, shape = self._running.axis, self._running.reverse, self._shape
        if distance == shape[axis]:
            zero = self._edit.new_constant(f"{self._out.name}:zero", np.zeros((), np.float32))
            return self._add(Node("MUL", (tensor, zero), (), Activated()), shape)
        sizes = (*shape[:axis], shape[axis] - distance, *shape[axis + 1 :])
        begin = tuple(distance if reverse and k == axis else 0 for k in range(len(shape)))
        part = self._add(Node("STRIDED_SLICE", (tensor,), (), StridedSlice(begin, sizes, (1,) * len(shape))), sizes)
        amount = (0, distance) if reverse else (distance, 0)
        amounts = tuple(amount if k == axis else (0, 0) for k in range(len(shape)))
        return self._add(Node("PAD", (part,), (), Pad(amounts)), shape)

    def _add(self, node: Node, shape: Shape) -> int:
        """Append a node with a new tensor as its output, whose number it returns."""
        made = self._edit.new_tensor(f"{self._out.name}:{node.op.lower()}", shape, self._out.dtype)
        self._made.append(replace(node, outputs=(made,)))
        return made
