"""Ops that run another subgraph of the file: a pass puts its nodes in their place."""

from collections.abc import Sequence

from ..code.whole_numbers import WholeRange
from ..model.graph import Activated, CalledBody, Graph, Node, Tensor
from .record import Example, OpRecord

COMPOSITE = "STABLEHLO_COMPOSITE"
LOOP = "WHILE"
CALLED = (COMPOSITE, "CALL", LOOP)
_SHAPE = (1, 8, 8, 8)
_DOUBLED = CalledBody(
    (Node("ADD", (0, 0), (1,), Activated(), 0),), (Tensor(0, "x", _SHAPE), Tensor(1, "sum", _SHAPE)), (0,), (1,)
)


def _unknown(graph: Graph, node: Node, inputs: Sequence[WholeRange]) -> WholeRange:
    """Nothing is known of what a subgraph makes before its nodes stand in the graph."""
    return None


RECORDS = tuple(
    OpRecord(name, "contraction", example=Example((_SHAPE,), _SHAPE, attributes=_DOUBLED), ranges=(_unknown,))
    for name in CALLED
)
