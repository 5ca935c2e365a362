"""What an op costs on paper: a node goes in, multiply-accumulates come out."""

from .graph import Graph, Node
from .layout import shape_of


def macs_of(graph: Graph, node: Node) -> int:
    """Multiply-accumulates of a convolution of any kind as the op is defined; 0 for others."""
    if node.op not in (
        "CONV_2D",
        "DEPTHWISE_CONV_2D",
        "TRANSPOSE_CONV",
        "Convolution2DTransposeBias",
        "FULLY_CONNECTED",
    ):
        return 0
    weights = graph.tensors[node.inputs[1]].shape
    pixels = shape_of(graph.tensors[node.outputs[0]]).pixels
    if node.op in ("TRANSPOSE_CONV", "Convolution2DTransposeBias"):
        pixels = shape_of(graph.tensors[node.inputs[0]]).pixels
    size = 1
    for length in weights:
        size *= length
    return size * pixels
