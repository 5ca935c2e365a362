"""A helper for passes that replace one node by several: it makes their tensors and constants."""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from ..model.graph import (
    ABSENT,
    Activated,
    Attributes,
    Axis,
    Graph,
    Node,
    Reduce,
    Shape,
    StridedSlice,
    Tensor,
    Transpose,
)
from ..model.rewrite import Rewriter

_ACTIVATED = frozenset({"ADD", "SUB", "MUL", "DIV"})


def reshaped(x: int, out: int) -> Node:
    """A node that copies a tensor to another one of as many values."""
    return Node("RESHAPE", (x,), (out,))


class NodeChain:
    """Nodes in place of one, each made of those before it; tensors are numbers, with shapes as in a file."""

    def __init__(self, edit: Rewriter, graph: Graph, node: Node) -> None:
        self.edit, self.node, self.nodes = edit, node, list[Node]()
        self.out = graph.tensors[node.outputs[0]]
        self._tensors = {i: graph.tensors[i] for i in node.inputs if i in graph.tensors}
        self._outputs = {i: graph.tensors[i] for i in node.outputs}

    def shape(self, tensor: int) -> Shape:
        return self._tensors[tensor].shape

    def dtype(self, tensor: int) -> str:
        return self._tensors[tensor].dtype

    def values(self, tensor: int) -> npt.NDArray[np.generic] | None:
        """Those of a constant."""
        return self._tensors[tensor].data

    def constant(self, values: npt.ArrayLike, dtype: str = "float32") -> int:
        """The number of a new constant."""
        data = np.array(values, dtype, order="C")
        number = self.edit.new_tensor(f"{self.out.name}:constant", data.shape, dtype)
        return self._known(Tensor(number, f"{self.out.name}:constant", data.shape, dtype, data))

    def op(
        self, op: str, *inputs: int, shape: Shape | None = None, attributes: Attributes | None = None, dtype: str = ""
    ) -> int:
        """A node; without a shape its inputs broadcast, and its type is that of its last input."""
        shape = np.broadcast_shapes(*map(self.shape, inputs)) if shape is None else shape
        dtype = dtype or self.dtype(inputs[-1])
        if attributes is None:
            attributes = Activated() if op in _ACTIVATED else Attributes()
        name = f"{self.out.name}:{op.lower()}"
        number = self.edit.new_tensor(name, shape, dtype)
        self.nodes.append(Node(op, inputs, (number,), attributes))
        return self._known(Tensor(number, name, shape, dtype))

    def reshape(self, x: int, *shape: int) -> int:
        return x if self.shape(x) == shape else self.op("RESHAPE", x, shape=shape)

    def transpose(self, x: int, *order: int) -> int:
        if order == tuple(range(len(order))):
            return x
        shape = tuple(self.shape(x)[k] for k in order)
        return self.op("TRANSPOSE", x, shape=shape, attributes=Transpose(order))

    def part(self, x: int, axis: int, begin: int, size: int = 1) -> int:
        """Some places along a dimension."""
        whole = self.shape(x)
        sizes = (*whole[:axis], size, *whole[axis + 1 :])
        begins = tuple(begin if k == axis else 0 for k in range(len(whole)))
        return self.op("STRIDED_SLICE", x, shape=sizes, attributes=StridedSlice(begins, sizes, (1,) * len(whole)))

    def rows(self, x: int, begin: int, count: int, stride: int) -> int:
        """Some rows of a matrix."""
        sizes = (count, *self.shape(x)[1:])
        cut = StridedSlice((begin, *(0 for _ in sizes[1:])), sizes, (stride, *(1 for _ in sizes[1:])))
        return self.op("STRIDED_SLICE", x, shape=sizes, attributes=cut)

    def connected(self, x: int, weights: int, bias: int = ABSENT) -> int:
        """The product of each row and a matrix, (outputs, depth)."""
        shape = (*self.shape(x)[:1], self.shape(weights)[0])
        return self.op("FULLY_CONNECTED", x, weights, bias, shape=shape, attributes=Activated(), dtype="float32")

    def gather(self, x: int, indices: int, axis: int) -> int:
        """Along a dimension, by a vector of indices; one out of range is the nearest in range."""
        shape = (*self.shape(x)[:axis], *self.shape(indices), *self.shape(x)[axis + 1 :])
        return self.op("GATHER", x, indices, shape=shape, attributes=Axis(axis), dtype=self.dtype(x))

    def within(self, x: int, high: int) -> int:
        """Values from 0 to a limit, those beyond it at the limits."""
        above = self.op("MAXIMUM", x, self.constant(0, self.dtype(x)))
        return self.op("MINIMUM", above, self.constant(high, self.dtype(x)))

    def reduced(self, op: str, x: int, axis: int) -> int:
        """All places along a dimension to one."""
        shape = tuple(1 if k == axis else size for k, size in enumerate(self.shape(x)))
        return self.op(op, x, shape=shape, attributes=Reduce((axis,), True))

    def finish(self, *found: int) -> None:
        """Put the nodes in place; these tensors become what the node wrote, in its shapes."""
        renamed = dict[int, int]()
        for x, out in zip(found, self.node.outputs, strict=True):
            last = self.reshape(x, *self._outputs[out].shape)
            is_made = any(last in node.outputs for node in self.nodes)
            if not is_made or last in renamed:
                last = self.op("RESHAPE", last, shape=self._outputs[out].shape)
            renamed[last] = out
        self.edit.replace(self.node, *(self._renamed(node, renamed) for node in self.nodes))

    def _renamed(self, node: Node, renamed: Mapping[int, int]) -> Node:
        inputs, outputs = (tuple(renamed.get(i, i) for i in numbers) for numbers in (node.inputs, node.outputs))
        return replace(node, inputs=inputs, outputs=outputs, index=self.node.index if outputs != node.outputs else -1)

    def _known(self, tensor: Tensor) -> int:
        self._tensors[tensor.index] = tensor
        return self.edit.set_tensor(tensor) if tensor.is_constant else tensor.index
