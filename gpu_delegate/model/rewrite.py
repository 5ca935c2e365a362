"""Edits a graph within one pass: collects changes, applies them all at the end, and counts what applied."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from ..base.errors import UnsupportedError
from .graph import Graph, Node, Shape, Tensor

_FUSED_ONLY = "fused_only"
END_OF_INTEGERS = 1 << 24  # float32 has all integers below it


def float_data(tensor: Tensor) -> npt.NDArray[np.float32]:
    """A constant's values as float32, which may be the constant itself.

    Raises UnsupportedError for computed ones, and for too large integers.
    """
    if tensor.data is None:
        raise UnsupportedError(f"{tensor.name}: weights that the model computes; on the GPU they must be constant")
    if not fits_float32(tensor.data):
        raise UnsupportedError(
            f"{tensor.name}: integers beyond {END_OF_INTEGERS - 1}, which the GPU computes inexactly"
        )
    return tensor.data.astype(np.float32, copy=False)


def fits_float32(values: npt.NDArray[np.generic]) -> bool:
    """Whether values are no integers, or such as float32 has."""
    if values.dtype.kind not in "iu" or not values.size:
        return True
    return int(values.max()) < END_OF_INTEGERS and int(values.min()) > -END_OF_INTEGERS


@dataclass(frozen=True)
class Outcome:
    """How often a pass applied, and why it was declined elsewhere."""

    applied: int
    declined: tuple[str, ...] = ()


Pass = Callable[[Graph], tuple[Graph, Outcome]]


def fused_only(step: Pass) -> Pass:
    """A pass that moves work between ops or saves it: programs of one dispatch per op go without it."""
    step.__dict__[_FUSED_ONLY] = True
    return step


def runs_unfused(step: Pass) -> bool:
    """Whether programs of one dispatch per op need a pass, too."""
    return not step.__dict__.get(_FUSED_ONLY, False)


class Rewriter:
    """Collects the edits of one pass over one graph; nothing changes until finish()."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._replacements: dict[int, list[Node]] = {}
        self._renamed: dict[int, int] = {}
        self._tensors: dict[int, Tensor] = {}
        self._next = max(graph.dropped_below, 1 + max(graph.tensors, default=-1))
        self._applied = 0
        self._declined: list[str] = []

    @cached_property
    def _position(self) -> dict[int, int]:
        """Of each node; most passes replace none."""
        return {id(node): number for number, node in enumerate(self._graph.nodes)}

    def decline(self, reason: str) -> None:
        """Record why the pass was declined at some node."""
        self._declined.append(reason)

    def new_tensor(self, name: str, shape: Shape, dtype: str = "float32") -> int:
        """The number of a new runtime tensor."""
        return self.set_tensor(Tensor(self._next, name, shape, dtype))

    def new_constant(self, name: str, data: npt.NDArray[np.float32]) -> int:
        """The number of a new constant."""
        return self.set_tensor(Tensor(self._next, name, data.shape, "float32", np.asarray(data, np.float32, order="C")))

    @property
    def next_index(self) -> int:
        """A number that no tensor has."""
        return self._next

    def set_tensor(self, tensor: Tensor) -> int:
        """Add a tensor, or replace the one with its number; returns the number."""
        self._tensors[tensor.index] = tensor
        self._next = max(self._next, tensor.index + 1)
        return tensor.index

    def replace(self, node: Node, *others: Node) -> None:
        """Replace a node by other nodes; of two replacements the last one counts."""
        self._replacements[self._position[id(node)]] = list(others)
        self._applied += 1

    def remove(self, node: Node) -> None:
        """Remove a node; the readers of its output must be changed, too."""
        self.replace(node)

    def bypass(self, node: Node) -> None:
        """Remove a node and let the readers of its output read its first input. Nodes are bypassed in their order."""
        self._renamed[node.outputs[0]] = self._renamed.get(node.inputs[0], node.inputs[0])
        self.remove(node)

    def finish(self) -> tuple[Graph, Outcome]:
        """The edited graph, and what the pass did; a graph without edits is the one that was given."""
        outcome = Outcome(self._applied, tuple(self._declined))
        if not (self._replacements or self._tensors):
            return self._graph, outcome
        nodes: list[Node] = []
        for number, node in enumerate(self._graph.nodes):
            nodes += self._replacements.get(number, [node])
        if self._renamed:
            nodes = [self._with_renamed_inputs(node) for node in nodes]
        return self._graph.with_changes(tuple(nodes), self._tensors), outcome

    def _with_renamed_inputs(self, node: Node) -> Node:
        inputs = tuple(self._renamed.get(tensor, tensor) for tensor in node.inputs)
        return Node(node.op, inputs, node.outputs, node.attributes, node.index)
