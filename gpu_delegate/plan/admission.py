"""Which graphs are compiled, and the graph that kernels are made from: what would not be computed right is refused."""

from ..base.errors import UnsupportedError
from ..model.graph import Conv2D, DepthwiseConv2D, Graph, Node, Opaque, TransposeConv2D
from ..model.operators import NO_RULE
from ..model.rewrite import Pass
from ..passes.pipeline import PassReport, passes_for, run_passes
from .bounds import check_text, check_weights

# Of inputs and outputs; kernels compute with float32.
BORDER_DTYPES = ("float32", "float16", "int32", "bool", "int8", "uint8", "int16", "uint16", "int64")


def rewrite_graph(
    source: Graph, fuse: bool = True, more: tuple[Pass, ...] = ()
) -> tuple[Graph, tuple[PassReport, ...]]:
    """The graph that kernels are made from, and what each pass did, a target's own `more` included.

    Raises UnsupportedError for unsupported ops, too many weights and too long kernels.
    """
    check_compilable(source)
    check_weights(source)  # before passes change them
    graph, reports = run_passes(source, (*passes_for(fuse), *more))
    check_weights(graph)
    check_text(graph)
    return graph, reports


def check_compilable(graph: Graph) -> None:
    """Raises UnsupportedError for the first opaque node, for weights that do not fit, and for inputs and outputs that
    have no known size or another type."""
    for node in graph.nodes:
        reason = refusal(graph, node)
        if reason:
            raise UnsupportedError(f"{graph.name}: {reason}")
    for index in (*graph.inputs, *graph.outputs):
        tensor = graph.tensors[index]
        if tensor.unusable or tensor.is_variable:
            reason = tensor.unusable or f"tensor {index} is a variable, and an input or output of the model"
            raise UnsupportedError(f"{graph.name}: {reason}")
        if tensor.dtype not in BORDER_DTYPES:
            known = ", ".join(BORDER_DTYPES)
            raise UnsupportedError(f"{graph.name}: tensor {index} is {tensor.dtype}, only {known} are supported")


def refusal(graph: Graph, node: Node) -> str:
    """One line that says why a node of a graph as read cannot be compiled; "" if it is not known to be so."""
    attributes = node.attributes
    if isinstance(attributes, Opaque) and attributes.reason == NO_RULE:
        return f"operator {node.index} ({node.op}) is {NO_RULE}; `texelflow inspect --ops` lists the ops that are"
    reason = attributes.reason if isinstance(attributes, Opaque) else _weights_reason(graph, node)
    return f"operator {node.index} ({node.op}): {reason}" if reason else ""


def _weights_reason(graph: Graph, node: Node) -> str:
    """Why the weights of a convolution do not fit its input; the reader has refused such a file."""
    attributes = node.attributes
    if not isinstance(attributes, Conv2D | TransposeConv2D) or len(node.inputs) < 2:
        return ""
    x, weights, out = (graph.tensors[i].shape for i in (*node.inputs[:2], node.outputs[0]))
    if len(weights) != 4 or not x or not out:
        return f"weights of shape {list(weights)}"
    outputs, depth, channels = weights[0], weights[3], x[-1]
    if isinstance(attributes, DepthwiseConv2D):
        outputs, fits = depth, outputs == 1 and depth == channels * attributes.multiplier
    elif isinstance(attributes, Conv2D):
        fits = depth > 0 and channels % depth == 0 and outputs % (channels // depth) == 0
    else:
        fits = depth == channels
    return "" if fits and out[-1] == outputs else f"weights of shape {list(weights)} for {channels} channels"
