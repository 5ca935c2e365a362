"""Reads a part of a model again for other shapes of its inputs.

What an operator writes has the shape that its rule gives it, as TensorFlow Lite infers it from the operator's inputs.
"""

import struct
from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType

import numpy as np
import numpy.typing as npt

from ..base.errors import ModelError, UnsupportedError
from ..model.graph import ABSENT, Graph, Opaque, Shape
from .reader import GraphReader


def read_resized(
    data: bytes, part: Graph, shapes: Mapping[int, Shape], values: Mapping[int, npt.NDArray[np.generic]] | None = None
) -> Graph:
    """Some operators of the model, which are a graph of their own, for other shapes of the tensors that they read.

    `data` is the file that the graph has been read from, of whichever of its subgraphs. Of inputs with values, which
    have their shapes, those become constants, by which sizes may be computed. Raises UnsupportedError where an
    operator does not take what becomes of these shapes.
    """
    listed = " and ".join(str(list(shape)) for shape in shapes.values())
    try:
        reader = GraphReader(data, part.subgraph)
        for index, shape in shapes.items():
            reader.tensors.reshape(index, shape)
        for index, value in (values or {}).items():
            reader.tensors.reshape(index, value.shape)
            reader.tensors.add(replace(reader.tensors[index], data=value))
        nodes = tuple(reader.node(node.index) for node in part.nodes)
    except (ModelError, UnsupportedError, struct.error) as error:
        raise UnsupportedError(f"{part.name} cannot run on inputs of shape {listed}: {error}") from error
    for node in nodes:
        if isinstance(node.attributes, Opaque):
            reason = f"operator {node.index} ({node.op}): {node.attributes.reason}"
            raise UnsupportedError(f"{part.name} cannot run on inputs of shape {listed}: {reason}")
    used = {i for node in nodes for i in (*node.inputs, *node.outputs)} | {*part.inputs, *part.outputs}
    tensors = MappingProxyType({i: reader.tensors[i] for i in sorted(used - {ABSENT})})
    return replace(part, nodes=nodes, tensors=tensors, original=b"")
