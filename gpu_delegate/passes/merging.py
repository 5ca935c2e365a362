"""Passes that merge arithmetic with constants into the weights and biases of neighboring convolutions.

A chain of ADD, SUB, MUL and DIV with one value per channel is y = scale * x + shift. Behind a convolution it scales the
weights of each output and the bias; before it, it scales the weights of each input channel, and each bias gains what
the window sums of the shift. Chains are composed first, so that weights are written once.
"""

from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import numpy.typing as npt

from ..model.graph import ABSENT, Activated, Conv2D, DepthwiseConv2D, Graph, Node, Padding
from ..model.rewrite import Outcome, Rewriter, float_data, fused_only

_Doubles = npt.NDArray[np.float64]
_Floats = npt.NDArray[np.float32]

_MERGED = frozenset({"CONV_2D", "DEPTHWISE_CONV_2D", "TRANSPOSE_CONV", "Convolution2DTransposeBias", "FULLY_CONNECTED"})
_ARITHMETIC = frozenset({"ADD", "SUB", "MUL", "DIV"})


@dataclass(frozen=True)
class _Affine:
    """y = scale * x + shift, each of shape [channels]."""

    scale: _Doubles
    shift: _Doubles

    def after(self, first: "_Affine") -> "_Affine":
        return _Affine(self.scale * first.scale, self.scale * first.shift + self.shift)


@dataclass(frozen=True)
class _Layer:
    """A convolution with constant weights and bias."""

    node: Node
    weights: _Floats  # OHWI, 1HWC' or OI
    bias: _Floats | None

    @property
    def multiplier(self) -> int:
        """Outputs of each input channel of a depthwise convolution; 0 for others."""
        attributes = self.node.attributes
        return attributes.multiplier if isinstance(attributes, DepthwiseConv2D) else 0

    @property
    def outputs(self) -> int:
        return self.weights.shape[-1 if self.multiplier else 0]

    def followed_by(self, affine: _Affine) -> "_Layer":
        scale = affine.scale.astype(np.float32)
        weights = self.weights * (scale if self.multiplier else scale.reshape(-1, *(1,) * (self.weights.ndim - 1)))
        bias = np.zeros(self.outputs) if self.bias is None else self.bias.astype(np.float64)
        return self._of(weights, affine.scale * bias + affine.shift)

    def preceded_by(self, affine: _Affine) -> "_Layer":
        scale = np.repeat(affine.scale, self.multiplier or 1)
        weights = self.weights * scale.astype(np.float32)
        if not affine.shift.any():
            return self._of(weights, self.bias)
        window = tuple(range(1, self.weights.ndim - 1))
        summed = self.weights.sum(axis=window, dtype=np.float64)  # [O, I], or [1, C']
        shift = np.repeat(affine.shift, self.multiplier or 1)
        gained = (summed[0] * shift) if self.multiplier else summed @ shift
        return self._of(weights, gained + (0.0 if self.bias is None else self.bias))

    def _of(self, weights: _Floats, bias: _Doubles | _Floats | None) -> "_Layer":
        return replace(self, weights=weights, bias=None if bias is None else bias.astype(np.float32))


@np.errstate(all="ignore")  # weights that are not finite are declined
@fused_only
def merge_following_arithmetic(graph: Graph) -> tuple[Graph, Outcome]:
    """CONV (of any kind), then ADD, SUB, MUL or DIV with a constant per channel -> CONV with other weights and bias."""
    edit = Rewriter(graph)
    consumers = graph.consumers()
    for conv in filter(partial(_is_layer, graph), graph.nodes):
        chain, reason = _chain_behind(graph, conv, consumers)
        if reason:
            edit.decline(reason)
        if not chain:
            continue
        layer = _layer(graph, conv).followed_by(_composed(graph, chain))
        attributes = replace(_activated(conv), activation=_activated(chain[-1]).activation)
        _merge(edit, graph, layer, replace(conv, outputs=chain[-1].outputs, attributes=attributes), chain)
    return edit.finish()


@np.errstate(all="ignore")  # weights that are not finite are declined
@fused_only
def merge_preceding_arithmetic(graph: Graph) -> tuple[Graph, Outcome]:
    """MUL or DIV by a constant per channel, and without padding ADD or SUB, then CONV -> CONV with other weights."""
    edit = Rewriter(graph)
    consumers, producers = graph.consumers(), graph.producers()
    for conv in filter(partial(_is_layer, graph), graph.nodes):
        chain, reason = _chain_before(graph, conv, consumers, producers)
        if reason:
            edit.decline(reason)
        if not chain:
            continue
        layer = _layer(graph, conv).preceded_by(_composed(graph, chain))
        _merge(edit, graph, layer, replace(conv, inputs=(_operand(graph, chain[0]), *conv.inputs[1:])), chain)
    return edit.finish()


def _is_layer(graph: Graph, node: Node) -> bool:
    """Whether a node is a convolution that is not grouped and whose weights and bias are constants.

    Sums of steps are none: they are whole numbers, and stay so.
    """
    parameters = [graph.tensors[i] for i in node.inputs[1:] if i != ABSENT] if node.op in _MERGED else []
    if not parameters or not all(tensor.is_constant for tensor in parameters) or graph.tensors[node.inputs[0]].steps:
        return False
    return node.op == "FULLY_CONNECTED" or graph.tensors[node.inputs[0]].shape[-1] == _depth(graph, node)


def _depth(graph: Graph, node: Node) -> int:
    """How many channels the weights of a layer are for."""
    depth = graph.tensors[node.inputs[1]].shape[-1]
    return depth // node.attributes.multiplier if isinstance(node.attributes, DepthwiseConv2D) else depth


def _layer(graph: Graph, node: Node) -> _Layer:
    bias = node.inputs[2] if len(node.inputs) > 2 else ABSENT
    values = None if bias == ABSENT else float_data(graph.tensors[bias]).ravel()
    return _Layer(node, float_data(graph.tensors[node.inputs[1]]), values)


def _chain_behind(graph: Graph, conv: Node, consumers: dict[int, list[Node]]) -> tuple[list[Node], str]:
    """The arithmetic that can be merged into what is before it, in order, and why no more is."""
    chain: list[Node] = []
    last = conv
    while True:
        tensor = last.outputs[0]
        readers = consumers.get(tensor, [])
        found = [reader for reader in readers if _is_arithmetic(graph, reader)]
        if not found:
            return chain, ""
        if _activated(last).activation != "NONE":
            return chain, f"{_name(graph, tensor)} has a fused activation"
        reason = _only_read_by_one(graph, tensor, readers) or _refusal(graph, found[0])
        if reason:
            return chain, reason
        chain.append(found[0])
        last = found[0]


def _chain_before(
    graph: Graph, conv: Node, consumers: dict[int, list[Node]], producers: dict[int, Node]
) -> tuple[list[Node], str]:
    """The arithmetic that can be merged into what follows it, in order, and why no more is."""
    chain: list[Node] = []
    tensor = conv.inputs[0]
    while True:
        node = producers.get(tensor)
        if node is None or not _is_arithmetic(graph, node):
            return chain, ""
        reason = _only_read_by_one(graph, tensor, consumers[tensor]) or _refusal(graph, node)
        if not reason and graph.tensors[tensor].shape[-1:] != (_depth(graph, conv),):
            reason = f"{_name(graph, tensor)}: rows of weights read several pixels"
        if not reason and _activated(node).activation != "NONE":
            reason = f"{_name(graph, tensor)} has a fused activation"
        if not reason and _affine(graph, node).shift.any() and not _reads_no_padding(conv):
            reason = f"{_name(graph, tensor)}: a sum before padding or a transposed convolution"
        if reason:
            return chain, reason
        chain.insert(0, node)
        tensor = _operand(graph, node)


def _only_read_by_one(graph: Graph, tensor: int, readers: list[Node]) -> str:
    if tensor in graph.outputs:
        return f"{_name(graph, tensor)} is an output of the model"
    return f"{_name(graph, tensor)} has other readers, too" if len(readers) > 1 else ""


def _reads_no_padding(node: Node) -> bool:
    conv = node.attributes
    return node.op == "FULLY_CONNECTED" or (isinstance(conv, Conv2D) and conv.padding == Padding())


def _is_arithmetic(graph: Graph, node: Node) -> bool:
    """Whether a node combines one runtime value and one constant, and is no division by the former."""
    if node.op not in _ARITHMETIC or len(node.inputs) != 2:
        return False
    first, second = (graph.tensors[i].is_constant for i in node.inputs)
    return second and not first if node.op == "DIV" else first != second


def _operand(graph: Graph, node: Node) -> int:
    """The runtime value that arithmetic changes."""
    return next(i for i in node.inputs if not graph.tensors[i].is_constant)


def _refusal(graph: Graph, node: Node) -> str:
    """Why arithmetic is not one scale and one shift per channel; empty if it is."""
    constant = next(graph.tensors[i] for i in node.inputs if graph.tensors[i].is_constant)
    shape = graph.tensors[_operand(graph, node)].shape
    if graph.tensors[node.outputs[0]].shape != shape:
        return f"{_name(graph, node.outputs[0])}: the constant makes the value larger"
    if any(size != 1 for size in constant.shape[:-1]):
        return f"{_name(graph, node.outputs[0])}: the constant is not one value per channel"
    return ""


def _affine(graph: Graph, node: Node) -> _Affine:
    """Arithmetic that _refusal() has nothing against, as scale and shift."""
    is_first = graph.tensors[node.inputs[0]].is_constant
    constant = float_data(graph.tensors[node.inputs[0 if is_first else 1]])
    channels = graph.tensors[node.outputs[0]].shape[-1]
    values = np.broadcast_to(constant.ravel(), (channels,)).astype(np.float64)
    ones, zeros = np.ones(channels), np.zeros(channels)
    if node.op == "MUL":
        return _Affine(values, zeros)
    if node.op == "DIV":
        return _Affine(1.0 / values, zeros)
    if node.op == "ADD":
        return _Affine(ones, values)
    return _Affine(-ones, values) if is_first else _Affine(ones, -values)


def _composed(graph: Graph, chain: list[Node]) -> _Affine:
    """A chain, its first node first, as one scale and one shift."""
    total = _affine(graph, chain[0])
    for node in chain[1:]:
        total = _affine(graph, node).after(total)
    return total


def _activated(node: Node) -> Activated:
    return node.attributes if isinstance(node.attributes, Activated) else Activated()


def _name(graph: Graph, tensor: int) -> str:
    return graph.tensors[tensor].name


def _merge(edit: Rewriter, graph: Graph, layer: _Layer, node: Node, chain: list[Node]) -> None:
    """Replace a convolution and the chain by a node that has the layer's weights, if they are numbers."""
    if not np.isfinite(layer.weights).all() or (layer.bias is not None and not np.isfinite(layer.bias).all()):
        edit.decline(f"{_name(graph, layer.node.outputs[0])}: its weights would not be finite")
        return
    name = _name(graph, layer.node.inputs[1])
    weights = edit.new_constant(f"{name}:merged", layer.weights)
    bias = ABSENT if layer.bias is None else edit.new_constant(f"{name}:merged bias", layer.bias)
    edit.replace(layer.node, replace(node, inputs=(node.inputs[0], weights, bias)))
    for other in chain:
        edit.remove(other)
