"""A graph goes in; UnsupportedError comes out where its kernels would take too much memory or too long to generate."""

import math

from .errors import UnsupportedError
from .graph import DepthwiseConv2D, Graph, Node, Pool2D
from .layout import aligned_channels, shape_of
from .nodes import SCATTERS, has_weights, is_contraction
from .ops.elementwise import is_elementwise

MOST_TEXT_TAPS = 120_000  # of all windows: as many as can be generated in about ten seconds
MOST_WEIGHT_BYTES = 1 << 30  # of all ops, in the form that kernels read
_SLICES_AT_ONCE = 8  # of a convolution's outputs: each tap is written out for each of them


def check_weights(graph: Graph) -> None:
    """Raises UnsupportedError for more than MOST_WEIGHT_BYTES; weights that ops share are counted for each of them."""
    needed_bytes = sum(weight_bytes(graph, node) for node in graph.nodes)
    if needed_bytes > MOST_WEIGHT_BYTES:
        what = f"its weights would take {needed_bytes >> 20} MiB, {MOST_WEIGHT_BYTES >> 20} are allowed"
        raise UnsupportedError(f"{graph.name}: {what}; use a smaller model")


def check_text(graph: Graph) -> None:
    """Raises UnsupportedError for more than MOST_TEXT_TAPS: every tap of a window stands in a kernel's source."""
    taps = sum(_text_taps(graph, node) for node in graph.nodes)
    if taps > MOST_TEXT_TAPS:
        what = f"its windows would take {taps} taps of text, {MOST_TEXT_TAPS} are allowed"
        raise UnsupportedError(f"{graph.name}: {what}; use a smaller model")


def weight_bytes(graph: Graph, node: Node) -> int:
    """What a node, or what a pass turns it into, adds to the weights of its kernel."""
    if is_elementwise(node):
        operands = [graph.tensors[i] for i in node.inputs if graph.tensors[i].is_constant]
        return sum(4 * aligned_channels(shape_of(t).channels) for t in operands if shape_of(t).is_vector)
    if not has_weights(node) and node.op != "FULLY_CONNECTED":
        return 0
    outputs, *window, depth = graph.tensors[node.inputs[1]].shape  # OHWI, 1HWC' or OI
    rows = aligned_channels(outputs)
    if isinstance(node.attributes, DepthwiseConv2D):
        multiplier = node.attributes.multiplier  # above 1 a pass turns it into a convolution with zeros across channels
        rows = aligned_channels(depth // multiplier) if multiplier > 1 else 1
    return 4 * rows * math.prod(window) * aligned_channels(depth)


def _text_taps(graph: Graph, node: Node) -> int:
    """The length of a node's source, in taps of a pool; 0 for ops without a window."""
    if isinstance(node.attributes, Pool2D):
        return node.attributes.kernel[0] * node.attributes.kernel[1]
    if node.op in SCATTERS:
        return shape_of(graph.tensors[node.inputs[0]]).slices
    if not has_weights(node):
        return 0
    taps = math.prod(graph.tensors[node.inputs[1]].shape[1:3])
    if not is_contraction(node):
        return taps
    slices = shape_of(graph.tensors[node.outputs[0]]).slices
    return taps * (2 + 2 * min(slices, _SLICES_AT_ONCE) // _SLICES_AT_ONCE)  # each tap multiplies matrices
