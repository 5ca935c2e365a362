"""CUMSUM, the running sum along a dimension: file form; a pass replaces it by other ops."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..code.evaluate import Values
from ..code.whole_numbers import WholeRange, repeated_sum
from ..model.graph import Attributes, Graph, Node, Tensor
from ..model.operators import EncodedOperator, Operator, attributes_of, integers
from .elementwise import with_integers
from .facts import broadcasts
from .record import Example, FileForm, OpRecord, OptionsStruct


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


def _summed_values(node: Node, values: Sequence[Values], output: Tensor) -> Values:
    (x,), running = values, attributes_of(node, RunningSum)
    x = np.flip(x, running.axis) if running.reverse else x
    total = np.cumsum(x, running.axis, dtype=x.dtype)
    if running.exclusive:
        total = np.roll(total, 1, running.axis)
        np.moveaxis(total, running.axis, 0)[0] = 0
    return np.flip(total, running.axis) if running.reverse else total


def _sums(graph: Graph, node: Node, inputs: Sequence[WholeRange]) -> WholeRange:
    return repeated_sum(inputs[0], max(graph.tensors[node.inputs[0]].shape, default=1))


RECORDS = (
    OpRecord(
        "CUMSUM",
        "reduction",
        with_integers(
            FileForm(
                read_running_sum,
                write_running_sum,
                count=(2, 2),
                struct=OptionsStruct("CumsumOptions", "Exclusive:b Reverse:b"),
            )
        ),
        Example(attributes=RunningSum(3)),
        evaluate=_summed_values,
        agrees=broadcasts,
        ranges=(_sums,),
    ),
)
