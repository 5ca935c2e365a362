"""Passes that replace ops by more basic ones: splits by slices, normalizations by reductions and arithmetic.

SPLIT, SPLIT_V, UNPACK and SLICE become STRIDED_SLICE, PACK becomes CONCATENATION, EXPAND_DIMS and SQUEEZE become
RESHAPE; rows that go to batches and back do so as maps. A CONCATENATION of many parts becomes several, normalizations
become reductions and arithmetic, and TOPK_V2 becomes an op for each of its outputs.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from itertools import accumulate
from types import MappingProxyType

import numpy as np
import numpy.typing as npt

from ..device.limits import Limits
from ..model.graph import (
    Activated,
    Attributes,
    Axis,
    BatchToSpace,
    Concatenation,
    Conv2D,
    Graph,
    Node,
    Pool2D,
    Reduce,
    Shape,
    Softmax,
    SpaceToBatch,
    Split,
    StridedSlice,
    Tensor,
)
from ..model.layout import ceil_div
from ..model.operators import attributes_of
from ..model.rewrite import Outcome, Rewriter
from ..ops.blocks import in_a_row
from ..ops.normalization import LocalResponse, MeanStddev
from ..ops.reduce import CHANNELS
from ..ops.top import INDICES, VALUES

L2_EPSILON = 1e-6  # of TensorFlow Lite: the smallest norm that is divided by


def split_to_slices(graph: Graph) -> tuple[Graph, Outcome]:
    """SPLIT, SPLIT_V, UNPACK -> a STRIDED_SLICE for each output, and a RESHAPE where a dimension disappears."""
    edit = Rewriter(graph)
    for node in graph.nodes:
        if node.op not in ("SPLIT", "SPLIT_V", "UNPACK"):
            continue
        x = graph.tensors[node.inputs[0]]
        if node.op == "UNPACK":
            axis, sizes = attributes_of(node, Axis).axis, (1,) * len(node.outputs)
        else:
            split = attributes_of(node, Split)
            axis, sizes = split.axis, split.sizes
        parts: list[Node] = []
        for out, begin, size in zip(node.outputs, accumulate((0, *sizes)), sizes, strict=False):
            parts += _slice(edit, node, x, graph.tensors[out], axis, begin, size)
        edit.replace(node, *parts)
    return edit.finish()


def _slice(edit: Rewriter, node: Node, x: Tensor, out: Tensor, axis: int, begin: int, size: int) -> list[Node]:
    """Nodes that take `size` values along an axis."""
    starts = tuple(begin if k == axis else 0 for k in range(len(x.shape)))
    sizes = _with_size(x.shape, axis, size)
    attributes = StridedSlice(starts, sizes, (1,) * len(sizes))
    if sizes == out.shape:
        return [Node("STRIDED_SLICE", (x.index,), (out.index,), attributes, node.index)]
    part = edit.new_tensor(out.name + ":part", sizes, x.dtype)
    return [
        Node("STRIDED_SLICE", (x.index,), (part,), attributes, node.index),
        Node("RESHAPE", (part,), (out.index,)),
    ]


def _with_size(shape: Shape, axis: int, size: int) -> Shape:
    return (*shape[:axis], size, *shape[axis + 1 :])


def split_top(graph: Graph) -> tuple[Graph, Outcome]:
    """TOPK_V2 -> TOPK_VALUES, TOPK_INDICES: kernels give one output each."""
    edit = Rewriter(graph)
    for node in graph.nodes:
        if node.op == "TOPK_V2":
            values, indices = ((out,) for out in node.outputs)
            edit.replace(node, replace(node, op=VALUES, outputs=values), replace(node, op=INDICES, outputs=indices))
    return edit.finish()


def unify_moves(graph: Graph) -> tuple[Graph, Outcome]:
    """EXPAND_DIMS, SQUEEZE -> RESHAPE; SLICE -> STRIDED_SLICE; PACK -> CONCATENATION; rows for batches -> maps."""
    edit = Rewriter(graph)
    for node in graph.nodes:
        if node.op in ("EXPAND_DIMS", "SQUEEZE"):
            edit.replace(node, replace(node, op="RESHAPE", inputs=node.inputs[:1]))
        elif node.op == "SLICE":
            edit.replace(node, replace(node, op="STRIDED_SLICE"))
        elif node.op == "PACK":
            edit.replace(node, *_packed(edit, graph, node))
        elif isinstance(node.attributes, SpaceToBatch | BatchToSpace) and len(graph.tensors[node.inputs[0]].shape) == 3:
            edit.replace(node, *_in_maps(edit, graph, node))
    return edit.finish()


def _in_maps(edit: Rewriter, graph: Graph, node: Node) -> list[Node]:
    """Of rows, as maps of one row each."""
    x, out = (graph.tensors[i] for i in (node.inputs[0], node.outputs[0]))
    source, target = (edit.new_tensor(f"{each.name}:map", in_a_row(each.shape), each.dtype) for each in (x, out))
    moved = replace(node, inputs=(source,), outputs=(target,))
    return [Node("RESHAPE", (x.index,), (source,)), moved, Node("RESHAPE", (target,), (out.index,))]


def _packed(edit: Rewriter, graph: Graph, node: Node) -> list[Node]:
    axis, out = attributes_of(node, Axis).axis, graph.tensors[node.outputs[0]]
    shape = _with_size(out.shape, axis, 1)
    parts = {i: edit.new_tensor(f"{graph.tensors[i].name}:part", shape, out.dtype) for i in node.inputs}
    whole = replace(
        node, op="CONCATENATION", inputs=tuple(parts[i] for i in node.inputs), attributes=Concatenation(axis=axis)
    )
    return [*(Node("RESHAPE", (i,), (part,)) for i, part in parts.items()), whole]


def decompose_normalizations(graph: Graph) -> tuple[Graph, Outcome]:
    """SOFTMAX, L2_NORMALIZATION, L2_POOL_2D and the like -> reductions, a pool or a matrix, and elementwise ops."""
    edit = Rewriter(graph)
    for node in graph.nodes:
        if node.op in _FORMS:
            chain = _Chain(edit, graph, node)
            _FORMS[node.op](chain)
            edit.replace(node, *chain.nodes)
    return edit.finish()


class _Chain:
    """Nodes in place of one, in order; `last` says that one writes its output."""

    def __init__(self, edit: Rewriter, graph: Graph, node: Node) -> None:
        self.edit, self.node, self.x = edit, node, node.inputs[0]
        self.out, self.x_shape = graph.tensors[node.outputs[0]], graph.tensors[self.x].shape
        self.nodes: list[Node] = []

    def add(self, op: str, *inputs: int, last: bool = False) -> int:
        """An elementwise op."""
        return self._append(op, inputs, self.out.shape, _attributes(op), last)

    def add_node(self, op: str, inputs: tuple[int, ...], shape: Shape, attributes: Attributes) -> int:
        """Any other op, which writes no output of the one that is replaced."""
        return self._append(op, inputs, shape, attributes, False)

    def reduce(self, op: str, x: int) -> int:
        """Over the last dimension, which is kept with size one."""
        last = len(self.out.shape) - 1
        return self._append(op, (x,), _with_size(self.out.shape, last, 1), Reduce((last,), True), False)

    def on_reduced(self, op: str, *inputs: int) -> int:
        """An elementwise op on what reduce() returned."""
        return self._append(op, inputs, (*self.out.shape[:-1], 1), _attributes(op), False)

    def constant(self, value: npt.ArrayLike) -> int:
        return self.edit.new_constant(f"{self.out.name}:constant", np.array(value, np.float32))

    def _append(self, op: str, inputs: tuple[int, ...], shape: Shape, attributes: Attributes, last: bool) -> int:
        name = f"{self.out.name}:{op.lower()}"
        out = self.out.index if last else self.edit.new_tensor(name, shape, self.out.dtype)
        self.nodes.append(Node(op, inputs, (out,), attributes, self.node.index if last else -1))
        return out


def _softmax(chain: _Chain) -> None:
    """exp(beta (x - max x)) / its sum."""
    scaled, beta = (
        chain.add("SUB", chain.x, chain.reduce("REDUCE_MAX", chain.x)),
        attributes_of(chain.node, Softmax).beta,
    )
    if beta != 1.0:
        scaled = chain.add("MUL", scaled, chain.constant(beta))
    powers = chain.add("EXP", scaled)
    chain.add("DIV", powers, chain.reduce("SUM", powers), last=True)


def _log_softmax(chain: _Chain) -> None:
    """(x - max x) - log of the sum of exp(x - max x)."""
    centered = chain.add("SUB", chain.x, chain.reduce("REDUCE_MAX", chain.x))
    total = chain.reduce("SUM", chain.add("EXP", centered))
    chain.add("SUB", centered, chain.on_reduced("LOG", total), last=True)


def _l2_normalization(chain: _Chain) -> None:
    """x / max(sqrt of the sum of x^2, epsilon)."""
    norm = chain.on_reduced("SQRT", chain.reduce("SUM", chain.add("SQUARE", chain.x)))
    chain.add("DIV", chain.x, chain.on_reduced("MAXIMUM", norm, chain.constant(L2_EPSILON)), last=True)


def _mean_stddev(chain: _Chain) -> None:
    """(x - mean) / sqrt(the mean of (x - mean)^2 + epsilon)."""
    epsilon = chain.constant(attributes_of(chain.node, MeanStddev).epsilon)
    centered = chain.add("SUB", chain.x, chain.reduce("MEAN", chain.x))
    variance = chain.reduce("MEAN", chain.add("SQUARE", centered))
    factor = chain.on_reduced("RSQRT", chain.on_reduced("ADD", variance, epsilon))
    chain.add("MUL", centered, factor, last=True)


def _local_response(chain: _Chain) -> None:
    """x (bias + alpha * the sum of x^2 over channels around) ^ -beta; the sum is a product with a band of ones."""
    local, channels = attributes_of(chain.node, LocalResponse), chain.out.shape[3]
    places = np.arange(channels)
    band = np.abs(places[:, None] - places) <= local.radius
    weights = chain.constant((local.alpha * band).reshape(channels, 1, 1, channels))
    inputs = (chain.add("SQUARE", chain.x), weights, chain.constant([local.bias] * channels))
    total = chain.add_node("CONV_2D", inputs, chain.out.shape, Conv2D())
    chain.add("MUL", chain.x, chain.add("POW", total, chain.constant(-local.beta)), last=True)


def _l2_pool(chain: _Chain) -> None:
    """The square root of the mean of x^2 over a window, activated."""
    pool, shape = attributes_of(chain.node, Pool2D), chain.x_shape
    squares = chain.add_node("SQUARE", (chain.x,), shape, Attributes())
    plain = replace(pool, activation="NONE")
    mean = chain.add_node("AVERAGE_POOL_2D", (squares,), chain.out.shape, plain)
    root = chain.add("SQRT", mean, last=pool.activation == "NONE")
    if pool.activation != "NONE":
        chain.add(pool.activation, root, last=True)


def _attributes(op: str) -> Attributes:
    """Of an elementwise op."""
    return Activated() if op in ("ADD", "SUB", "MUL", "DIV") else Attributes()


_FORMS: Mapping[str, Callable[[_Chain], None]] = MappingProxyType(
    {
        "SOFTMAX": _softmax,
        "LOG_SOFTMAX": _log_softmax,
        "L2_NORMALIZATION": _l2_normalization,
        "MEAN_STDDEV_NORMALIZATION": _mean_stddev,
        "LOCAL_RESPONSE_NORMALIZATION": _local_response,
        "L2_POOL_2D": _l2_pool,
    }
)


def split_sums(graph: Graph) -> tuple[Graph, Outcome]:
    """ADD_N -> ADD, ADD, ...: a kernel has a limit of inputs, and what passes do with ADD they do here, too."""
    edit = Rewriter(graph)
    for node in graph.nodes:
        if node.op != "ADD_N":
            continue
        out = graph.tensors[node.outputs[0]]
        nodes, total = list[Node](), node.inputs[0]
        for position, term in enumerate(node.inputs[1:], 1):
            last = position == len(node.inputs) - 1
            target = out.index if last else edit.new_tensor(f"{out.name}:{position}", out.shape)
            nodes.append(Node("ADD", (total, term), (target,), Activated(), node.index))
            total = target
        edit.replace(node, *nodes)
    return edit.finish()


def split_concatenations(graph: Graph) -> tuple[Graph, Outcome]:
    """CONCATENATION of many -> of concatenations of some each: kernels have limits."""
    edit = Rewriter(graph)
    for node in graph.nodes:
        if node.op == "CONCATENATION" and len(node.inputs) > _most_parts(graph, node):
            edit.replace(node, *_joined_in_groups(edit, graph, node))
    return edit.finish()


def _most_parts(graph: Graph, node: Node) -> int:
    """Parts that one kernel may have on any device."""
    shapes = [graph.tensors[i].shape for i in node.inputs]
    large = any(math.prod(shape[:-1]) * ceil_div(shape[-1], 4) > Limits.texture_buffer_texels for shape in shapes)
    return Limits.storage_bindings - 1 if large else Limits.compute_textures - 1


def _joined_in_groups(edit: Rewriter, graph: Graph, node: Node) -> list[Node]:
    """Groups of a multiple of four parts: if they have as many channels each, they make whole slices."""
    axis, out, most = attributes_of(node, Concatenation).axis, graph.tensors[node.outputs[0]], _most_parts(graph, node)
    sizes = {i: graph.tensors[i].shape[axis] for i in node.inputs}
    nodes, parts, count = list[Node](), node.inputs, most // 4 * 4
    while len(parts) > most:
        joined = list[int]()
        for group in (parts[start : start + count] for start in range(0, len(parts), count)):
            size = sum(sizes[i] for i in group)
            joined.append(edit.new_tensor(f"{out.name}:joined", _with_size(out.shape, axis, size), out.dtype))
            sizes[joined[-1]] = size
            nodes.append(Node("CONCATENATION", group, (joined[-1],), Concatenation(axis=axis), node.index))
        parts = tuple(joined)
    return [*nodes, replace(node, inputs=parts)]


def split_reductions(graph: Graph) -> tuple[Graph, Outcome]:
    """SUM over rows and channels -> SUM over rows, SUM over channels: kernels do one or the other."""
    edit = Rewriter(graph)
    for node in graph.nodes:
        reduced = node.attributes
        if not isinstance(reduced, Reduce) or CHANNELS not in reduced.axes or len(reduced.axes) == 1:
            continue
        x, out = graph.tensors[node.inputs[0]], graph.tensors[node.outputs[0]]
        axes = tuple(axis for axis in reduced.axes if axis != CHANNELS and x.shape[axis] > 1)
        over_channels = replace(reduced, axes=(CHANNELS,))
        if not axes:
            edit.replace(node, replace(node, attributes=over_channels))
            continue
        shape = tuple(1 if axis in axes else size for axis, size in enumerate(x.shape))
        part = edit.new_tensor(out.name + ":pixels", shape, out.dtype)
        edit.replace(
            node,
            replace(node, outputs=(part,), attributes=replace(reduced, axes=axes)),
            replace(node, inputs=(part,), attributes=over_channels, index=-1),
        )
    return edit.finish()
