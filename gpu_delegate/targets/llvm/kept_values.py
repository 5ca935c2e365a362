"""Finds what several loops over the slices of a pixel compute, and one of them keeps in a panel for the others.

A softmax takes the powers of its values twice, for their sum and to divide them by it.
"""

from collections.abc import Iterator, Mapping
from typing import NamedTuple, get_args

from ...code.vocabulary import FunctionWord, Operation, values_in
from ...model.graph import Node
from ...model.layout import FLOAT_BYTES, shape_of
from ...ops.nodes import arithmetic_of, is_contraction, is_elementwise
from ...plan.body import Accumulate, Body, Phase
from .panels import MOST_BYTES

_FUNCTIONS = frozenset(get_args(FunctionWord)) - {"negate", "absolute", "multiply add"}
_LANES = 4


class Kept(NamedTuple):
    """The number of the loop that keeps a value, and where its slices begin among all that are kept."""

    loop: int
    first_slice: int


def kept_values(body: Body, pixels: int) -> Mapping[int, Kept]:
    """Functions' values that a later loop asks for, by tensor; none where those of so many pixels take too much."""
    if any(map(is_contraction, body.nodes)):  # which may have a panel of their own
        return {}
    found, slices = dict[int, Kept](), 0
    loops = [loop for loop in body.phases if loop.slices > 1 and not loop.unrolled]
    for loop in loops:
        for tensor in _asked(body, loop):
            first = next(each for each in body.phases if tensor in each.evaluates)
            if first is not loop and first in loops and tensor not in found:
                found[tensor] = Kept(body.phases.index(first), slices)
                slices += shape_of(body.graph.tensors[tensor]).slices
    return found if slices * _LANES * FLOAT_BYTES * pixels <= MOST_BYTES else {}


def _asked(body: Body, loop: Phase) -> Iterator[int]:
    """Values of functions that a loop needs, without those that only these need."""
    waiting, seen = list[int](), set[int]()
    for root in loop.roots:
        waiting += root.node.inputs if isinstance(root, Accumulate) else [root.tensor]
    while waiting:
        tensor = waiting.pop()
        node = body.producers.get(tensor)
        if tensor in seen or tensor in body.held or node is None:
            continue
        seen.add(tensor)
        if is_elementwise(node) and _is_function(node):
            yield tensor
        else:
            waiting += node.inputs


def _is_function(node: Node) -> bool:
    values = values_in(arithmetic_of(node))
    return any(isinstance(value, Operation) and value.operation in _FUNCTIONS for value in values)
