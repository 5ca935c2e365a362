"""A pass that changes nothing, and refuses graphs whose integers float32 would not hold exactly."""

from ..base.errors import UnsupportedError
from ..model.graph import Graph
from ..model.rewrite import Outcome
from .exact_integers import inexact_operators, with_checked_inputs


def check_integers(graph: Graph) -> tuple[Graph, Outcome]:
    """Integers that float32 may not have -> UnsupportedError. Inputs are checked when they are written."""
    for place, reason in inexact_operators(with_checked_inputs(graph)).items():
        node = graph.nodes[place]
        name = graph.tensors[node.outputs[0]].name
        raise UnsupportedError(f"{node.op} (operator {node.index}, {name}) does not run on the GPU: {reason}")
    return graph, Outcome(0)
