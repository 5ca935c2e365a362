"""What ops cost on paper: a node goes in, its multiply-accumulates come out; a graph of too much text is refused."""

import math

from gpu_delegate.errors import UnsupportedError
from gpu_delegate.graph import Graph, Node, Pool2D
from gpu_delegate.layout import shape_of
from gpu_delegate.nodes import has_weights, is_contraction

MOST_TEXT_TAPS = 120_000  # of all windows: as many as are written in about ten seconds
MOST_PACKED_BYTES = 1 << 30  # of all weights as kernels read them
_SLICES_AT_ONCE = 8  # of a convolution's outputs: each has text of its own for each tap


def check_text(graph: Graph) -> None:
    """Raises UnsupportedError for a graph whose kernels would take too long to write, or too much memory.

    Every tap of a window stands in a kernel's text, and weights that nodes share are packed for each of them.
    """
    taps = sum(_window(graph, node) * _text(graph, node) for node in graph.nodes)
    if taps > MOST_TEXT_TAPS:
        what = f"its windows would take {taps} taps of text, {MOST_TEXT_TAPS} are allowed"
        raise UnsupportedError(f"{graph.name}: {what}; use a smaller model")
    packed_bytes = sum(_packed_bytes(graph, node) for node in graph.nodes if has_weights(node))
    if packed_bytes > MOST_PACKED_BYTES:
        what = f"its weights would take {packed_bytes >> 20} MiB, {MOST_PACKED_BYTES >> 20} are allowed"
        raise UnsupportedError(f"{graph.name}: {what}; use a smaller model")


def _text(graph: Graph, node: Node) -> int:
    """The text of one tap, in taps of a pool: from 2 to 4 for convolutions, which multiply matrices."""
    slices = shape_of(graph.tensors[node.outputs[0]]).slices
    return 2 + 2 * min(slices, _SLICES_AT_ONCE) // _SLICES_AT_ONCE if is_contraction(node) else 1


def _window(graph: Graph, node: Node) -> int:
    """Taps of a node's window; 0 for ops without one."""
    if isinstance(node.attributes, Pool2D):
        return node.attributes.kernel[0] * node.attributes.kernel[1]
    weights = graph.tensors[node.inputs[1]].shape if has_weights(node) else ()
    return weights[1] * weights[2] if len(weights) == 4 else bool(weights)


def _packed_bytes(graph: Graph, node: Node) -> int:
    """Of weights OHWI or 1HWC', in texels of four channels each way."""
    out, *window, depth = graph.tensors[node.inputs[1]].shape
    return 4 * (out + -out % 4) * math.prod(window) * (depth + -depth % 4)


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
