"""A helper for passes that replace one node by several: it makes their tensors and constants."""

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from ..model.graph import (
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

    def shape(self, tensor: int) -> Shape:
        return self._tensors[tensor].shape

    def dtype(self, tensor: int) -> str:
        return self._tensors[tensor].dtype

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

    def finish(self, x: int) -> None:
        """Put the nodes in place; x becomes what the node wrote, in its shape."""
        last = self.reshape(x, *self.out.shape)
        if not self.nodes or self.nodes[-1].outputs != (last,):
            self.op("RESHAPE", last, shape=self.out.shape)
        self.nodes[-1] = replace(self.nodes[-1], outputs=self.node.outputs, index=self.node.index)
        self.edit.replace(self.node, *self.nodes)

    def _known(self, tensor: Tensor) -> int:
        self._tensors[tensor.index] = tensor
        return self.edit.set_tensor(tensor) if tensor.is_constant else tensor.index
