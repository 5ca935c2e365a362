"""CUMSUM, the sum of all values up to each place along a dimension: how files say it; a pass says it by others."""

from dataclasses import dataclass

from ..model.graph import Attributes, Graph, Node
from ..model.operators import EncodedOperator, Operator, attributes_of, integers
from .elementwise import with_integers
from .record import Example, FileForm, OpRecord


@dataclass(frozen=True)
class RunningSum(Attributes):
    """CUMSUM: input (x,)."""

    axis: int = 0  # not negative
    exclusive: bool = False  # without the value at the place itself
    reverse: bool = False  # from the end on


def read_running_sum(operator: Operator) -> Attributes:
    options, shape, axes = operator.options("CumsumOptions"), operator.shape(0), operator.integers(1)
    if len(axes) != 1 or not -len(shape) <= axes[0] < len(shape):
        operator.damaged(f"axis {list(axes)} of {len(shape)} dimensions")
    operator.expect(shape)
    return RunningSum(axes[0] % len(shape), bool(options.Exclusive()), bool(options.Reverse()))


def write_running_sum(graph: Graph, node: Node) -> EncodedOperator:
    running = attributes_of(node, RunningSum)
    options = {"Exclusive": running.exclusive, "Reverse": running.reverse}
    return EncodedOperator((*node.inputs, integers(running.axis)), "CumsumOptions", options)


RECORDS = (
    OpRecord(
        "CUMSUM",
        "reduction",
        with_integers(FileForm(read_running_sum, write_running_sum, count=(2, 2))),
        Example(attributes=RunningSum(3)),
    ),
)
