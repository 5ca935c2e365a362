"""Adds nodes behind those of a graph: what a network's output still needs, or is made of several."""

from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from texelflow.gpu_delegate.model.graph import Activated, Attributes, Graph, Node, Shape, StridedSlice, Tensor

_ARITHMETIC = ("ADD", "SUB", "MUL")  # ops that have an activation


class AddedNodes:
    """A graph that grows; tensors are given, and come, by their numbers."""

    def __init__(self, graph: Graph) -> None:
        self._graph, self._nodes, self._tensors = graph, list(graph.nodes), dict[int, Tensor]()
        self._next = max(graph.dropped_below, 1 + max(graph.tensors))

    def op(
        self,
        op: str,
        inputs: Sequence[int],
        shape: Shape | None = None,
        attributes: Attributes | None = None,
        dtype: str = "float32",
    ) -> int:
        """A node with one output, of its first input's shape unless another is given."""
        first = self._tensor(inputs[0])
        out = self._new(f"{first.name}:{op}", first.shape if shape is None else shape, dtype)
        usual = Activated() if op in _ARITHMETIC else Attributes()
        self._nodes.append(Node(op, tuple(inputs), (out,), attributes or usual, len(self._nodes)))
        return out

    def chain(self, op: str, tensors: Sequence[int]) -> int:
        """All of them, of one shape, one after the other by an op of two inputs."""
        first, *others = tensors
        for other in others:
            first = self.op(op, [first, other])
        return first

    def channel(self, x: int, number: int) -> int:
        """One channel (B, H, W, 1) of (B, H, W, C)."""
        shape = (*self._tensor(x).shape[:3], 1)
        return self.op("SLICE", [x], shape, StridedSlice((0, 0, 0, number), shape, (1, 1, 1, 1)))

    def scaled(self, x: int, factor: float, offset: float) -> int:
        """x * factor + offset."""
        if factor != 1:
            x = self.op("MUL", [x, self.constant(factor)])
        return self.op("ADD", [x, self.constant(offset)]) if offset else x

    def constant(self, value: float) -> int:
        """A number that goes with tensors of any shape."""
        return self._new("constant", (1,), data=np.array([value], np.float32))

    def graph(self, outputs: Iterable[int]) -> Graph:
        """With these outputs."""
        return replace(self._graph, outputs=tuple(outputs)).with_changes(tuple(self._nodes), self._tensors)

    def _tensor(self, number: int) -> Tensor:
        return self._tensors.get(number) or self._graph.tensors[number]

    def _new(self, name: str, shape: Shape, dtype: str = "float32", data: npt.NDArray[np.float32] | None = None) -> int:
        number, self._next = self._next, self._next + 1
        self._tensors[number] = Tensor(number, name, shape, dtype, data)
        return number
