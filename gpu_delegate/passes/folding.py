"""A pass that folds constants: nodes whose values are known before a run are replaced by these values."""

import math
from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np

from ..code.evaluate import Values
from ..model.graph import ABSENT, Graph, Node, Tensor, constant_location
from ..model.rewrite import Outcome, Rewriter
from .evaluation import can_fold, fold_value, follows_from_shape

MOST_FOLDED_BYTES = 1 << 30  # of all constants that are computed, before those that only others read are dropped


def fold_constants(graph: Graph) -> tuple[Graph, Outcome]:
    """What depends on constants and shapes alone -> a constant: DEQUANTIZE of weights, SHAPE, arithmetic."""
    edit = Rewriter(graph)
    for node, tensor in computed_constants(graph, edit.decline).values():
        edit.set_tensor(tensor)
        edit.remove(node)
    return edit.finish()


def computed_constants(graph: Graph, decline: Callable[[str], None]) -> Mapping[int, tuple[Node, Tensor]]:
    """The tensors that are known before a run, with their values and the nodes that need not compute them."""
    found: dict[int, tuple[Node, Tensor]] = {}
    known: dict[int, Tensor] = {}
    values: dict[object, Values] = {}  # many ops may compute the same
    left_bytes = MOST_FOLDED_BYTES
    for node in graph.nodes:
        inputs = [known.get(i, graph.tensors[i]) for i in node.inputs if i != ABSENT]
        if not _is_constant(node, inputs):
            continue
        output = graph.tensors[node.outputs[0]]
        key = (node.op, node.attributes, output.shape, output.dtype, *map(_content, inputs))
        size_bytes = 0 if key in values else math.prod(output.shape) * np.dtype(output.dtype).itemsize
        try:
            _check(graph, output, size_bytes, left_bytes)
            values[key] = values[key] if key in values else fold_value(node, inputs, output)
        except ValueError as error:
            decline(f"{output.name} ({node.op}): {error}")
            continue
        left_bytes -= size_bytes
        known[output.index] = replace(output, data=values[key])
        found[output.index] = node, known[output.index]
    return found


def _is_constant(node: Node, inputs: list[Tensor]) -> bool:
    """Whether the value of a node is known without the model's inputs."""
    if follows_from_shape(node):
        return True
    return can_fold(node.op) and bool(inputs) and all(tensor.is_constant for tensor in inputs)


def _content(tensor: Tensor) -> object:
    """The same for tensors that have the same value, or, of those without one, the same shape."""
    return tensor.shape, tensor.dtype, None if tensor.data is None else constant_location(tensor.data)


def _check(graph: Graph, output: Tensor, size_bytes: int, left_bytes: int) -> None:
    """Raises ValueError for what must stay as it is."""
    if output.index in graph.outputs:
        raise ValueError("it is an output of the model")
    if size_bytes > left_bytes:
        raise ValueError(f"constants of more than {MOST_FOLDED_BYTES >> 20} MiB")
