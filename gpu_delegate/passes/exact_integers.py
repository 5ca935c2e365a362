"""Finds the operators of a graph that would compute integers that float32 does not have, and says why.

Kernels hold int32 and int64 as float32. That is exact below 2^24, by integer_ranges.py; for values that are only moved
or compared, if they came from floats; and where nothing but a position, a float or a truth value is made of them, since
these stay the same if a larger integer is rounded.
"""

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType

from ..code.vocabulary import Argument, ChooseLanes, Operation, Splat, Value, values_in
from ..model.graph import ABSENT, Graph, Node, Opaque, Steps, Tensor
from ..model.rewrite import END_OF_INTEGERS
from ..ops.nodes import arithmetic_of
from ..ops.registry import OPS
from .integer_ranges import whole_ranges

MAY_EXCEED = "integers that may exceed 2^24"

_INTEGERS = ("int32", "int64")
_FLOATS = Steps(1 - END_OF_INTEGERS, END_OF_INTEGERS - 1)  # integers that float32 has
_CHOOSING = frozenset({"minimum", "maximum", "negate", "absolute"})  # words for operands, or the negatives of these


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


def with_checked_inputs(graph: Graph) -> Graph:
    """The same graph, in which inputs are integers that float32 has: whoever gives others gets an error."""
    known = {
        number: replace(graph.tensors[number], steps=_FLOATS)
        for number in graph.inputs
        if _holds_integers(graph.tensors[number]) and graph.tensors[number].steps is None
    }
    return replace(graph, tensors=MappingProxyType({**graph.tensors, **known})) if known else graph


def inexact_operators(graph: Graph) -> Mapping[int, str]:
    """Nodes by their places in the graph, and the reason; opaque ones and integers of constants are none of them."""
    if not any(map(_holds_integers, graph.tensors.values())):
        return MappingProxyType({})
    ranges, lenient, reasons = whole_ranges(graph), _rounded_at_will(graph), dict[int, str]()
    exact = {number for number, tensor in graph.tensors.items() if tensor.is_constant or number in ranges}
    for place, node in enumerate(graph.nodes):
        if isinstance(node.attributes, Opaque):
            continue
        read = [i for at, i in enumerate(node.inputs) if i != ABSENT and not _is_tolerant(graph, node, at)]
        is_exact = exact.issuperset(i for i in read if _holds_integers(graph.tensors[i]))
        written = [i for i in node.outputs if _holds_integers(graph.tensors[i]) and i not in exact]
        if is_exact and _keeps(graph, node):
            exact.update(written)
        elif (written or not is_exact) and not (_keeps(graph, node) and lenient.issuperset(node.outputs)):
            reasons[place] = MAY_EXCEED
    return MappingProxyType(reasons)


def _holds_integers(tensor: Tensor) -> bool:
    return tensor.dtype in _INTEGERS and not tensor.is_constant


def _is_tolerant(graph: Graph, node: Node, at: int) -> bool:
    """Whether an op gives the same for an integer and for the float32 nearest to it."""
    if node.op == "CAST":
        return graph.tensors[node.outputs[0]].dtype not in _INTEGERS
    record = OPS.get(node.op)
    return record is not None and (record.where == at or record.of_shape is not None)


def _keeps(graph: Graph, node: Node) -> bool:
    """Whether float32 has an op's results wherever it has its operands."""
    record = OPS.get(node.op)
    if record is None:
        return False
    if record.arithmetic is not None:
        return node.op == "CAST" or all(_is_choice(value) for value in values_in(arithmetic_of(node)))
    extreme = record.reducer is not None and record.reducer.operation in _CHOOSING
    return record.chooses or extreme or record.role == "movement"


def _is_choice(value: Value) -> bool:
    """Whether a word gives one of its operands, or the negative of one."""
    if isinstance(value, Operation):
        return value.operation in _CHOOSING
    return isinstance(value, Argument | ChooseLanes | Splat)


def _rounded_at_will(graph: Graph) -> set[int]:
    """Tensors of integers of which nothing is made that depends on their last digits."""
    readers, found = graph.consumers(), set[int]()
    for number in reversed([*graph.inputs, *(i for node in graph.nodes for i in node.outputs)]):
        tolerant = (
            all(_is_tolerant(graph, node, at) for at, i in enumerate(node.inputs) if i == number)
            or (_keeps(graph, node) and not isinstance(node.attributes, Opaque) and found.issuperset(node.outputs))
            for node in readers.get(number, ())
        )
        if number not in graph.outputs and _holds_integers(graph.tensors[number]) and all(tolerant):
            found.add(number)
    return found
