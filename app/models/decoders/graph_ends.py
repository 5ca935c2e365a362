"""What a graph's last operators say of an output: whether its numbers are scores already."""

from texelflow.gpu_delegate.model.graph import Graph

__all__ = ["ends_in", "is_score"]

_PASSING = ("RESHAPE", "SQUEEZE", "QUANTIZE", "DEQUANTIZE", "CONCATENATION", "TRANSPOSE", "EXPAND_DIMS", "CAST")
_MOST_STEPS = 32


def ends_in(graph: Graph, place: int) -> str:
    """The name of the operator that makes an output's numbers, before they are only moved; "" where there is none."""
    producers, index = graph.producers(), graph.outputs[place]
    for _ in range(_MOST_STEPS):
        node = producers.get(index)
        if node is None or node.op not in _PASSING or not node.inputs:
            return node.op if node else ""
        index = node.inputs[0]
    return ""


def is_score(graph: Graph, place: int) -> bool:
    """Whether an output's numbers are from 0 to 1 by its last operator."""
    return ends_in(graph, place) in ("SOFTMAX", "LOGISTIC")
