"""Ops that run another subgraph of the file: a pass puts its nodes in their place."""

from ..model.graph import Activated, CalledBody, Node, Tensor
from .record import Example, OpRecord

COMPOSITE = "STABLEHLO_COMPOSITE"
CALLED = (COMPOSITE, "CALL")
_SHAPE = (1, 8, 8, 8)
_DOUBLED = CalledBody(
    (Node("ADD", (0, 0), (1,), Activated(), 0),), (Tensor(0, "x", _SHAPE), Tensor(1, "sum", _SHAPE)), (0,), (1,)
)


RECORDS = tuple(
    OpRecord(name, "contraction", example=Example((_SHAPE,), _SHAPE, attributes=_DOUBLED)) for name in CALLED
)
