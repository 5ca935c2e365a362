"""Builds a Graph from shapes, constants and nodes, also with ops and forms that no file has."""

from collections.abc import Sequence
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt

from texelflow.gpu_delegate.model.graph import Attributes, Graph, Node, Shape, Tensor

PLAIN = Attributes()


def ops_of(graph: Graph) -> list[str]:
    """The names of its nodes' ops, in order."""
    return [node.op for node in graph.nodes]


class GraphBuilder:
    """One graph, node by node; tensors are the indices that input(), constant() and node() return."""

    def __init__(self, seed: int = 0) -> None:
        self.rng = np.random.default_rng(seed)
        self.tensors: dict[int, Tensor] = {}
        self.nodes: list[Node] = []
        self.inputs: list[int] = []

    def tensor(self, shape: Shape, dtype: str = "float32", data: npt.NDArray[Any] | None = None) -> int:
        index = len(self.tensors)
        self.tensors[index] = Tensor(index, f"t{index}", tuple(shape), dtype, data)
        return index

    def input(self, *shape: int, dtype: str = "float32") -> int:
        self.inputs.append(self.tensor(shape, dtype))
        return self.inputs[-1]

    def constant(self, values: npt.ArrayLike, dtype: str = "float32") -> int:
        data = np.array(values, dtype)
        return self.tensor(data.shape, dtype, data)

    def random(self, *shape: int, low: float = -1.0, high: float = 1.0) -> int:
        return self.constant(self.rng.uniform(low, high, shape))

    def shape(self, tensor: int) -> Shape:
        return self.tensors[tensor].shape

    def nodes_outputs(
        self, op: str, inputs: Sequence[int], shapes: Sequence[Shape], attributes: Attributes = PLAIN, **of: Any
    ) -> tuple[int, ...]:
        """A node with several outputs; `of` is dtype=..., that of all of them."""
        outputs = tuple(self.tensor(shape, **of) for shape in shapes)
        self.nodes.append(Node(op, tuple(inputs), outputs, attributes, len(self.nodes)))
        return outputs

    def node(
        self,
        op: str,
        inputs: Sequence[int],
        shape: Shape | None = None,
        attributes: Attributes = PLAIN,
        dtype: str = "float32",
    ) -> int:
        """A node with one output; without a shape, that of the broadcast inputs."""
        shape = np.broadcast_shapes(*map(self.shape, inputs)) if shape is None else shape
        return self.nodes_outputs(op, inputs, [shape], attributes, dtype=dtype)[0]

    def graph(self, *outputs: int) -> Graph:
        return Graph(
            "made", MappingProxyType(dict(self.tensors)), tuple(self.nodes), tuple(self.inputs), tuple(outputs)
        )
