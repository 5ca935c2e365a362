"""A digest of all that a graph says, by which a compiled model is recognized in a later run."""

import hashlib

import numpy as np

from .graph import Graph
from .graph_identity import fed_back


def graph_digest(graph: Graph) -> str:
    """64 hex digits; the graph's name does not count."""
    digest = hashlib.sha256(repr((graph.inputs, graph.outputs, graph.nodes, graph.hybrid, fed_back(graph))).encode())
    for number, tensor in sorted(graph.tensors.items()):
        said = (number, tensor.name, tensor.shape, tensor.dtype, tensor.quantization, tensor.steps, tensor.is_variable)
        digest.update(repr((*said, tensor.unusable, tensor.is_constant)).encode())
        if tensor.data is not None:
            digest.update(np.ascontiguousarray(tensor.data).tobytes())
    return digest.hexdigest()
