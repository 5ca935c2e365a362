"""A pass that finds where REQUANTIZE can round with fewer instructions, as its numbers are small."""

from dataclasses import replace

from ..model.graph import Graph, Node, Steps
from ..model.operators import attributes_of
from ..model.rewrite import Outcome, Rewriter
from ..ops.requantize import Requantize, is_narrow
from .integer_ranges import whole_ranges


def narrow_products(graph: Graph) -> tuple[Graph, Outcome]:
    """REQUANTIZE of whole numbers that are small enough, or whose steps are limited -> a third of the instructions."""
    edit = Rewriter(graph)
    nodes = [node for node in graph.nodes if node.op == "REQUANTIZE" and not attributes_of(node, Requantize).is_once]
    ranges = whole_ranges(graph) if nodes else {}
    for node in nodes:
        if _is_narrow(graph, node, ranges.get(node.inputs[0])):
            attributes = replace(attributes_of(node, Requantize), is_narrow=True)
            edit.replace(node, replace(node, attributes=attributes))
    return edit.finish()


def _is_narrow(graph: Graph, node: Node, known: Steps | None) -> bool:
    powers = graph.tensors[node.inputs[3]].data
    if known is None or powers is None:
        return False
    most = max(-known.low, known.high)
    return is_narrow(attributes_of(node, Requantize).limits, most, float(powers.min()), float(powers.max()))
