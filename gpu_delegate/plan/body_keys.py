"""Says which bodies of a graph are alike, so that what is decided of one, and its code, is that of the others, too.

Networks repeat their layers. The key of a body has the ops, their attributes, and the shapes and types of their
tensors, which are numbered in the order of first use; it leaves out their own numbers, names and constant values, and
the constants of elementwise ops.
"""

from collections.abc import Callable, Hashable, Sequence
from typing import TypeVar, cast

from ..model.graph import Graph, Node
from ..ops.nodes import arithmetic_of, is_elementwise

BodyKey = tuple[Hashable, ...]
A = TypeVar("A")


class BodyKeys:
    """Keys of the bodies of one graph: under one tile, with tensors stored alike, equal ones have equal code.

    A target whose code depends on more, such as values of weights or the constants of elementwise ops, says so itself.
    """

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._kinds: dict[Hashable, int] = {}
        self._kind_of: dict[int, int] = {}  # of a node, by its first output
        self._answers: dict[Hashable, object] = {}

    def once(self, question: Hashable, key: BodyKey, answer: Callable[[], A]) -> A:
        """The answer to a question that is the same for all bodies of a key; what it raises is raised each time."""
        if (question, key) not in self._answers:
            self._answers[question, key] = answer()
        return cast(A, self._answers[question, key])

    def key(
        self, nodes: Sequence[Node], maps: Sequence[Node], inputs: Sequence[int], outputs: Sequence[int]
    ) -> BodyKey:
        """Of a body with these nodes, which reads through maps, and reads and stores these tensors of both."""
        places: dict[int, int] = {}
        found: list[int] = [len(nodes)]
        for node in (*nodes, *maps):
            found.append(self._kind(node))
            found += [places.setdefault(tensor, len(places)) for tensor in (*node.inputs, *node.outputs)]
        return (*found, *(tuple(places[tensor] for tensor in side) for side in (inputs, outputs)))

    def _kind(self, node: Node) -> int:
        """The number of all that a node has in common with others like it."""
        if (known := self._kind_of.get(node.outputs[0])) is None:
            tensors = self._graph.tensors
            facts = tuple(
                (each.shape, each.dtype, each.is_constant, each.steps) if each else None
                for each in map(tensors.get, (*node.inputs, *node.outputs))
            )
            does = arithmetic_of(node) if is_elementwise(node) else repr(node.attributes)
            kind = node.op, does, len(node.inputs), facts
            known = self._kind_of[node.outputs[0]] = self._kinds.setdefault(kind, len(self._kinds))
        return known
