"""A part of a model's graph and other shapes of its inputs go in; the same part, read again for them, comes out.

What an operator writes has the shape that its rule gives it, as TensorFlow Lite infers it from the operator's inputs.
"""

import struct
from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from ..errors import ModelError, UnsupportedError
from ..graph import ABSENT, Graph, Node, Opaque, Shape
from ..operators import ShapeError
from ..ops.record import FileForm
from .reader import GraphReader


def read_resized(data: bytes, part: Graph, shapes: Mapping[int, Shape]) -> Graph:
    """Some operators of the model, which are a graph of their own, for other shapes of the tensors that they read.

    `data` is the file that the graph has been read from, of whichever of its subgraphs. Raises UnsupportedError where
    an operator does not take what becomes of these shapes.
    """
    listed = " and ".join(str(list(shape)) for shape in shapes.values())
    try:
        reader = _ResizingReader(data, part.subgraph, shapes)
        nodes = tuple(reader.node(node.index) for node in part.nodes)
    except (ModelError, struct.error) as error:
        raise UnsupportedError(f"{part.name} cannot run on inputs of shape {listed}: {error}") from error
    for node in nodes:
        if isinstance(node.attributes, Opaque):
            reason = f"operator {node.index} ({node.op}): {node.attributes.reason}"
            raise UnsupportedError(f"{part.name} cannot run on inputs of shape {listed}: {reason}")
    used = {i for node in nodes for i in (*node.inputs, *node.outputs)} | {*part.inputs, *part.outputs}
    tensors = MappingProxyType({i: reader.tensors[i] for i in sorted(used - {ABSENT})})
    return replace(part, nodes=nodes, tensors=tensors, original=b"")


class _ResizingReader(GraphReader):
    """Reads operators for the shapes that tensors have, and gives what they write the shapes that follow."""

    def __init__(self, data: bytes, subgraph: int, shapes: Mapping[int, Shape]) -> None:
        super().__init__(data, subgraph)
        for index, shape in shapes.items():
            self._reshape(index, shape)

    def known(
        self, index: int, op: str, rule: FileForm, table: Any, inputs: tuple[int, ...], outputs: tuple[int, ...]
    ) -> Node:
        """See GraphReader; as it is, or for the shapes that the inputs make of the outputs."""
        try:
            return super().known(index, op, rule, table, inputs, outputs)
        except ShapeError as error:
            for tensor, shape in zip(outputs, error.shapes, strict=True):
                self._reshape(tensor, shape)
        return super().known(index, op, rule, table, inputs, outputs)

    def _reshape(self, index: int, shape: Shape) -> None:
        if any(size < 1 for size in shape):
            raise ModelError(f"tensor {index} would have the shape {list(shape)}")
        self.tensors.reshape(index, shape)
