"""A pass that computes long ARG_MAX and ARG_MIN by reductions, whose loops all threads of a group share."""

import math
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from ..model.graph import Attributes, Graph, Node, Reduce, Tensor
from ..model.operators import attributes_of
from ..model.rewrite import Outcome, Rewriter, fused_only
from ..ops.extremum import EXTREMA
from ..ops.reduce import CHANNELS

LEAST_LONG = 64  # places that one thread would go through
MOST_LEFT = 16  # pixels that are left: as many threads, for each slice


@fused_only
def share_long_extrema(graph: Graph) -> tuple[Graph, Outcome]:
    """ARG_MAX of a vector, or to few pixels -> REDUCE_MAX, where it is, REDUCE_MIN of these places."""
    edit = Rewriter(graph)
    for node in graph.nodes:
        if node.op in EXTREMA and _is_long(graph, node):
            edit.replace(node, *_in_steps(edit, graph, node))
    return edit.finish()


def _is_long(graph: Graph, node: Node) -> bool:
    x, (axis,) = graph.tensors[node.inputs[0]].shape, attributes_of(node, Reduce).axes
    left = math.prod(graph.tensors[node.outputs[0]].shape[:CHANNELS])
    return x[axis] >= LEAST_LONG and left <= (1 if axis == CHANNELS else MOST_LEFT)


def _in_steps(edit: Rewriter, graph: Graph, node: Node) -> list[Node]:
    """Of equal values all have a place, and the least counts. Where nothing is equal, as of NaN, it is the last."""
    x, out = graph.tensors[node.inputs[0]], graph.tensors[node.outputs[0]]
    kind, (axis,) = EXTREMA[node.op], attributes_of(node, Reduce).axes
    places = np.arange(x.shape[axis], dtype=out.dtype)
    sizes = tuple(size if k == axis else 1 for k, size in enumerate(x.shape))
    numbers, last = (_constant(edit, f"{out.name}:places", each) for each in (places.reshape(sizes), places[-1:]))
    best = edit.new_tensor(f"{out.name}:best", out.shape, x.dtype)
    is_best = edit.new_tensor(f"{out.name}:is_best", x.shape, "bool")
    chosen = edit.new_tensor(f"{out.name}:chosen", x.shape, out.dtype)
    return [
        Node(kind.reduction, (x.index,), (best,), node.attributes),
        Node("GREATER_EQUAL" if node.op == "ARG_MAX" else "LESS_EQUAL", (x.index, best), (is_best,), Attributes()),
        Node("SELECT_V2", (is_best, numbers, last), (chosen,), Attributes()),
        replace(node, op="REDUCE_MIN", inputs=(chosen,)),
    ]


def _constant(edit: Rewriter, name: str, values: npt.NDArray[Any]) -> int:
    """The number of a constant of integers."""
    number = edit.new_tensor(name, values.shape, values.dtype.name)
    return edit.set_tensor(Tensor(number, name, values.shape, values.dtype.name, values))
