"""Counts who runs the operators that are left to TensorFlow Lite: XNNPACK, or its own kernels.

TensorFlow Lite calls every delegate's operators DELEGATE, XNNPACK's too, and tells none of them about the others.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from ..model.graph import Graph, Node
from .native_tensors import tensor_at
from .structs import DYNAMIC, TfLiteContext


@dataclass(frozen=True)
class OtherOperators:
    """How many operators others than a delegate run."""

    xnnpack: int  # or any other delegate
    builtin: int


def count_others(context: TfLiteContext, graph: Graph, numbers: Iterable[int], own: int) -> OtherOperators:
    """Of the operators with these numbers. `own` is the address of the delegate that does not run them.

    An operator is another delegate's if its output is marked so, or if that has no memory, being inside a partition.
    Outputs of the other operators have memory once the interpreter runs, unless they allocate it when they run.
    """
    counts = Counter(_is_delegated(context, graph.nodes[number], own) for number in numbers)
    return OtherOperators(xnnpack=counts[True], builtin=counts[False])


def _is_delegated(context: TfLiteContext, node: Node, own: int) -> bool:
    tensors = [tensor_at(context, index) for index in node.outputs]
    if any(tensor.delegate not in (None, own) for tensor in tensors):
        return True
    return any(
        not tensor.data and tensor.bytes > 0 and tensor.allocation_type != DYNAMIC and not tensor.delegate
        for tensor in tensors
    )
