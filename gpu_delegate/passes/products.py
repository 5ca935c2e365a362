"""Passes that bring matrix products, and convolutions with computed weights, into the forms that kernels have."""

import math
from dataclasses import replace
from types import MappingProxyType

import numpy as np

from ..base.errors import UnsupportedError
from ..model.graph import (
    ABSENT,
    Activated,
    Axis,
    Concatenation,
    Conv2D,
    DepthwiseConv2D,
    Graph,
    Node,
    Tensor,
    Transpose,
)
from ..model.operators import attributes_of
from ..model.rewrite import Outcome, Rewriter, float_data
from ..ops.convolution import channel_groups
from ..ops.matrix_product import MatrixProduct
from .grouped import part_along

_COMPUTED = MappingProxyType(
    {
        "CONV_2D": "COMPUTED_CONV_2D",
        "DEPTHWISE_CONV_2D": "COMPUTED_DEPTHWISE_CONV_2D",
        "TRANSPOSE_CONV": "COMPUTED_TRANSPOSE_CONV",
        "Convolution2DTransposeBias": "COMPUTED_TRANSPOSE_CONV",
        "FULLY_CONNECTED": "BATCH_MATMUL",
    }
)
MOST_COMPUTED_GROUPS = 32  # of a convolution with computed weights, which becomes as many ...
MOST_COMPUTED_PARTS = 256  # ... and of all such convolutions of a graph together


def express_products(graph: Graph) -> tuple[Graph, Outcome]:
    """BATCH_MATMUL with one constant matrix -> FULLY_CONNECTED; with x as columns -> TRANSPOSE, BATCH_MATMUL."""
    edit = Rewriter(graph)
    for node in graph.nodes:
        if node.op == "BATCH_MATMUL":
            _express(edit, graph, node)
    return edit.finish()


def _express(edit: Rewriter, graph: Graph, node: Node) -> None:
    product, before = attributes_of(node, MatrixProduct), list[Node]()
    x, y = (graph.tensors[i] for i in node.inputs)
    if product.adj_x:
        number = _exchanged(edit, x, before)
        x, product = (
            replace(x, index=number, shape=(*x.shape[:-2], x.shape[-1], x.shape[-2])),
            replace(product, adj_x=False),
        )
    if y.data is not None and math.prod(y.shape[:-2]) == 1 and len(x.shape) >= len(y.shape):
        matrix = float_data(y).reshape(y.shape[-2:])
        weights = edit.new_constant(y.name + ":matrix", matrix if product.adj_y else matrix.T)
        connected = Node("FULLY_CONNECTED", (x.index, weights, ABSENT), node.outputs, Activated(), node.index)
        edit.replace(node, *before, connected)
    elif x.index != node.inputs[0]:
        edit.replace(node, *before, replace(node, inputs=(x.index, y.index), attributes=product))


def _exchanged(edit: Rewriter, x: Tensor, nodes: list[Node]) -> int:
    """The number of a tensor with its last two dimensions exchanged, and the node that makes it if it is computed."""
    rank = len(x.shape)
    order = (*range(rank - 2), rank - 1, rank - 2)
    if x.data is not None:
        return edit.new_constant(x.name + ":exchanged", float_data(x).transpose(order))
    number = edit.new_tensor(x.name + ":exchanged", tuple(x.shape[k] for k in order), x.dtype)
    nodes.append(Node("TRANSPOSE", (x.index,), (number,), Transpose(order)))
    return number


def separate_computed_weights(graph: Graph) -> tuple[Graph, Outcome]:
    """Convolutions and FULLY_CONNECTED whose weights or bias the model computes -> ops that read both, ADD of the bias.

    A depthwise convolution with a multiplier gets an input with its channels repeated; one of several groups becomes as
    many, between slices and a CONCATENATION.
    """
    edit = Rewriter(graph)
    _check_parts(graph)
    for node in graph.nodes:
        if node.op not in _COMPUTED:
            continue
        bias = node.inputs[2] if len(node.inputs) > 2 else ABSENT
        computes_weights = not graph.tensors[node.inputs[1]].is_constant
        if computes_weights or (bias != ABSENT and not graph.tensors[bias].is_constant):
            _separate(edit, graph, node, bias, computes_weights)
    return edit.finish()


def _check_parts(graph: Graph) -> None:
    """Raises UnsupportedError where groups would become too many convolutions: planning them takes long."""
    parts = 0
    for node in graph.nodes:
        if node.op == "CONV_2D" and not graph.tensors[node.inputs[1]].is_constant:
            groups = channel_groups(graph, node)
            parts += groups if groups > 1 else 0
            wide = groups > MOST_COMPUTED_GROUPS
            count, most = (groups, MOST_COMPUTED_GROUPS) if wide else (parts, MOST_COMPUTED_PARTS)
            if count > most:
                many = f"weights that the model computes in {count} groups, at most {most} are allowed"
                raise UnsupportedError(f"CONV_2D (operator {node.index}): {many}")


def _separate(edit: Rewriter, graph: Graph, node: Node, bias: int, computes_weights: bool) -> None:
    """The node without a bias of its own, and what its output still needs."""
    out, attributes = graph.tensors[node.outputs[0]], attributes_of(node, Activated)
    after = list[Node]()
    if bias != ABSENT:
        out = replace(out, index=edit.new_tensor(out.name + ":unbiased", out.shape))
        after = [Node("ADD", (out.index, bias), node.outputs, Activated(attributes.activation), node.index)]
        attributes = replace(attributes, activation="NONE")
    whole = replace(node, inputs=(*node.inputs[:2], ABSENT), outputs=(out.index,), attributes=attributes)
    edit.replace(node, *(_computed(edit, graph, whole, out) if computes_weights else [whole]), *after)


def _computed(edit: Rewriter, graph: Graph, node: Node, out: Tensor) -> list[Node]:
    """Nodes that do what one with computed weights and no bias does."""
    op, (x, weights) = _COMPUTED[node.op], (graph.tensors[i] for i in node.inputs[:2])
    plain = replace(node, op=op, inputs=(x.index, weights.index))
    if op == "BATCH_MATMUL":
        return _connected(edit, plain, x, weights, out)
    if isinstance(node.attributes, DepthwiseConv2D) and node.attributes.multiplier > 1:
        return _multiplied(edit, plain, x, weights)
    if op == "COMPUTED_CONV_2D" and weights.shape[3] != x.shape[3]:
        return _grouped(edit, plain, x, weights, out)
    return [plain]


def _connected(edit: Rewriter, node: Node, x: Tensor, weights: Tensor, out: Tensor) -> list[Node]:
    """Rows of x times rows of weights; the rows may stand in other shapes."""
    attributes = attributes_of(node, Activated)
    outputs, depth = weights.shape
    flat = math.prod(x.shape) // depth
    source, rows, before, after = x.index, x.shape[:-1], list[Node](), list[Node]()
    if x.shape[-1] != depth or out.shape != (*rows, outputs):
        source, rows = edit.new_tensor(x.name + ":rows", (flat, depth)), (flat,)
        before.append(Node("RESHAPE", (x.index,), (source,)))
    target = out.index
    if attributes.activation != "NONE" or out.shape != (*rows, outputs):
        target = edit.new_tensor(out.name + ":rows", (*rows, outputs))
    product = Node("BATCH_MATMUL", (source, weights.index), (target,), MatrixProduct(adj_y=True), node.index)
    if target == out.index:
        return [*before, product]
    last = target
    if out.shape != (*rows, outputs):
        last = out.index if attributes.activation == "NONE" else edit.new_tensor(out.name + ":linear", out.shape)
        after.append(Node("RESHAPE", (target,), (last,)))
    if attributes.activation != "NONE":
        after.append(Node(attributes.activation, (last,), (out.index,)))
    return [*before, product, *after]


def _multiplied(edit: Rewriter, node: Node, x: Tensor, weights: Tensor) -> list[Node]:
    """A depthwise convolution whose input has each channel as often as the multiplier says."""
    attributes = attributes_of(node, DepthwiseConv2D)
    channels = weights.shape[3]
    places = np.arange(channels, dtype=np.int32) // attributes.multiplier
    number = edit.new_constant(x.name + ":places", places.astype(np.float32))
    edit.set_tensor(Tensor(number, x.name + ":places", places.shape, "int32", places))
    repeated = edit.new_tensor(x.name + ":repeated", (*x.shape[:3], channels))
    return [
        Node("GATHER", (x.index, number), (repeated,), Axis(3)),
        replace(node, inputs=(repeated, weights.index), attributes=replace(attributes, multiplier=1)),
    ]


def _grouped(edit: Rewriter, node: Node, x: Tensor, weights: Tensor, out: Tensor) -> list[Node]:
    """A convolution for each group of channels."""
    attributes, depth = attributes_of(node, Conv2D), weights.shape[3]
    groups = x.shape[3] // depth
    outputs, nodes, parts = weights.shape[0] // groups, list[Node](), list[int]()
    linear = replace(attributes, activation="NONE")
    for group in range(groups):
        source = part_along(edit, nodes, x, 3, group * depth, depth)
        own = part_along(edit, nodes, weights, 0, group * outputs, outputs)
        parts.append(edit.new_tensor(f"{out.name}:{group}", (*out.shape[:3], outputs)))
        nodes.append(replace(node, inputs=(source, own), outputs=(parts[-1],), attributes=linear))
    joined = Concatenation(attributes.activation, axis=3)
    return [*nodes, Node("CONCATENATION", tuple(parts), node.outputs, joined, node.index)]
