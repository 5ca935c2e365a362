"""Finds the operators of a graph that compute integers which float32 does not have.

Kernels hold int32 and int64 as float32. That is exact below 2^24, by integer_ranges.py; for values that are only moved
or compared, if they came from floats; and where nothing but a position, a float, a truth value or a small integer is
made of them, if these stay the same where a larger integer is rounded. All others are wide (wide_integers.py).
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType

import numpy as np

from ..code.vocabulary import Argument, ChooseLanes, Compared, Operation, Splat, Value, values_in
from ..code.whole_numbers import common_range, exact
from ..model.graph import ABSENT, Graph, Node, Opaque, Steps, Tensor
from ..ops.nodes import arithmetic_of
from ..ops.registry import OPS
from .integer_ranges import known_ranges, type_limits, whole_ranges

_INTEGERS = ("int32", "int64")
_END_OF_LONG = 2.0**53  # float64 has all integers below it
_NEGATING = frozenset({"negate", "absolute"})
_CHOOSING = _NEGATING | {"minimum", "maximum"}  # words for operands, or the negatives of these


def with_ranges(graph: Graph, folded: Graph) -> Graph:
    """The same graph, in which computed integers say their ranges, so that each of its parts knows them.

    `folded` has constants for what depends on constants alone.
    """
    if not any(map(_holds_integers, folded.tensors.values())):
        return graph
    found = whole_ranges(folded)
    known = {
        number: replace(tensor, steps=found[number])
        for number, tensor in graph.tensors.items()
        if number in found and _holds_integers(tensor) and tensor.steps is None
    }
    return replace(graph, tensors=MappingProxyType({**graph.tensors, **known})) if known else graph


@dataclass(frozen=True)
class WideIntegers:
    """What float32 does not hold of a graph."""

    tensors: frozenset[int]  # integers that it may not have, of which the last digits count
    nodes: frozenset[int]  # places of the nodes that compute with such, or might make such


def wide_integers(graph: Graph) -> WideIntegers:
    """Opaque nodes and constants are none of them. What is neither is computed with, or may be rounded to, float32."""
    if not any(map(_holds_integers, graph.tensors.values())):
        return WideIntegers(frozenset(), frozenset())
    facts = _Facts(graph, known_ranges(graph))
    lenient = _rounded_at_will(facts)
    fine = {number for number, tensor in graph.tensors.items() if number in facts.ranges or is_in_float32(tensor)}
    nodes = set[int]()
    for place, node in enumerate(graph.nodes):
        if isinstance(node.attributes, Opaque):
            continue
        read = [i for at, i in enumerate(node.inputs) if i != ABSENT and not facts.is_tolerant(node, at)]
        is_exact = fine.issuperset(i for i in read if graph.tensors[i].dtype in _INTEGERS)
        written = [i for i in node.outputs if _holds_integers(graph.tensors[i]) and i not in fine]
        if is_exact and facts.keeps(node):
            fine.update(written)
        elif (written or not is_exact) and not facts.may_be_rounded(node, lenient):
            nodes.add(place)
    wide = (n for n, tensor in graph.tensors.items() if _holds_integers(tensor) and n not in fine | lenient)
    return WideIntegers(frozenset(wide), frozenset(nodes))


def is_in_float32(tensor: Tensor) -> bool:
    """Whether it is a constant all of whose values float32 has."""
    if tensor.data is None or tensor.dtype not in _INTEGERS:
        return tensor.data is not None
    floats = tensor.data.astype(np.float32)
    return bool(np.array_equal(floats.astype(np.float64), tensor.data) and np.all(np.abs(floats) < _END_OF_LONG))


def _holds_integers(tensor: Tensor) -> bool:
    return tensor.dtype in _INTEGERS and not tensor.is_constant


class _Facts:
    """What follows from ranges about the nodes of a graph."""

    def __init__(self, graph: Graph, known: Mapping[int, Steps]) -> None:
        self.graph, self._known = graph, known
        self.ranges = {number: each for number, each in known.items() if exact(each.low, each.high)}

    def is_tolerant(self, node: Node, at: int) -> bool:
        """Whether an op gives the same for an integer and for the float32 nearest to it."""
        if node.op == "CAST":
            return self.graph.tensors[node.outputs[0]].dtype not in _INTEGERS
        record = OPS.get(node.op)
        if record is None:
            return False
        if record.arithmetic is not None and isinstance(made := arithmetic_of(node), Compared):
            return isinstance(made.right, Argument) and node.inputs[1 - at] in self.ranges
        return node.op == "SIGN" or record.where == at or record.of_shape is not None

    def keeps(self, node: Node) -> bool:
        """Whether float32 has an op's results wherever it has its operands."""
        record = OPS.get(node.op)
        if record is None:
            return False
        if record.arithmetic is not None:
            return self._converts(node) if node.op == "CAST" else self._chooses(node)
        extreme = record.reducer is not None and record.reducer.operation in _CHOOSING
        return record.chooses or extreme or record.role == "movement"

    def may_be_rounded(self, node: Node, lenient: set[int]) -> bool:
        """Whether what an op makes of rounded operands is its rounded result, and that is all that is asked for."""
        is_small = len(node.outputs) == 1 and node.outputs[0] in self.ranges
        return self.keeps(node) and (is_small or lenient.issuperset(node.outputs))

    def _converts(self, node: Node) -> bool:
        """Whether a CAST loses no bits in front."""
        limits, known = type_limits(self.graph.tensors[node.outputs[0]].dtype), self._known.get(node.inputs[0])
        of_floats = self.graph.tensors[node.inputs[0]].dtype == "float32"
        return of_floats or limits is None or (known is not None and common_range(limits, known) == known)

    def _chooses(self, node: Node) -> bool:
        """Whether an op gives one of its operands, or the negative of one that is not the least integer."""
        words = list(values_in(arithmetic_of(node)))
        if not all(map(_is_choice, words)):
            return False
        known, limits = self._known.get(node.inputs[0]), type_limits(self.graph.tensors[node.inputs[0]].dtype)
        negates = any(isinstance(word, Operation) and word.operation in _NEGATING for word in words)
        return not negates or limits is None or (known is not None and known.low > limits.low)


def _is_choice(value: Value) -> bool:
    """Whether a word gives one of its operands, or the negative of one."""
    if isinstance(value, Operation):
        return value.operation in _CHOOSING
    return isinstance(value, Argument | ChooseLanes | Splat)


def _rounded_at_will(facts: _Facts) -> set[int]:
    """Tensors of integers of which nothing is made that depends on their last digits."""
    graph, found = facts.graph, set[int]()
    readers = graph.consumers()
    for number in reversed([*graph.inputs, *(i for node in graph.nodes for i in node.outputs)]):
        tolerant = (
            all(facts.is_tolerant(node, at) for at, i in enumerate(node.inputs) if i == number)
            or (not isinstance(node.attributes, Opaque) and facts.may_be_rounded(node, found))
            for node in readers.get(number, ())
        )
        if number not in graph.outputs and _holds_integers(graph.tensors[number]) and all(tolerant):
            found.add(number)
    return found
