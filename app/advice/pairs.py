"""Finds operators that change nothing, alone or two in a row.

The passes remove many of them: then they cost nothing here, which is told, too.
"""

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from texelflow.gpu_delegate.model.graph import (
    ABSENT,
    Activated,
    Axes,
    Axis,
    Concatenation,
    Graph,
    Node,
    Pad,
    Split,
    StridedSlice,
    Transpose,
)
from texelflow.gpu_delegate.passes.simplify import is_identity

from .fault import Analysis, Fault, bypassed, operators_of


@dataclass(frozen=True)
class _Idle:
    """What does nothing: the operators, and the tensor that their output equals."""

    nodes: tuple[Node, ...]
    source: int


Match = Callable[[Graph, Node, Node], bool]  # whether the second of two nodes undoes the first, or adds nothing to it

_INFINITE = math.inf
_RANGES: Mapping[str, tuple[float, float]] = MappingProxyType(
    {
        **dict.fromkeys(("RELU", "ABS", "SQUARE", "SQRT", "EXP"), (0.0, _INFINITE)),
        **dict.fromkeys(("LOGISTIC", "SOFTMAX", "RELU_0_TO_1"), (0.0, 1.0)),
        "RELU6": (0.0, 6.0),
        "RELU_N1_TO_1": (-1.0, 1.0),
        "TANH": (-1.0, 1.0),
    }
)
_CLAMPS = ("RELU", "RELU6", "RELU_N1_TO_1", "RELU_0_TO_1", "ABS")
_RESHAPES = ("RESHAPE", "SQUEEZE", "EXPAND_DIMS")
_OPPOSITES = (
    *(("SPACE_TO_DEPTH", "DEPTH_TO_SPACE"), ("DEPTH_TO_SPACE", "SPACE_TO_DEPTH")),
    *(("SPACE_TO_BATCH_ND", "BATCH_TO_SPACE_ND"), ("BATCH_TO_SPACE_ND", "SPACE_TO_BATCH_ND")),
    *(("NEG", "NEG"), ("LOGICAL_NOT", "LOGICAL_NOT"), ("REVERSE_V2", "REVERSE_V2")),
    *(("QUANTIZE", "DEQUANTIZE"), ("DEQUANTIZE", "QUANTIZE")),
    *(("CAST", "CAST"), ("PAD", "SLICE"), ("PAD", "STRIDED_SLICE"), ("PADV2", "SLICE"), ("PADV2", "STRIDED_SLICE")),
    *(("TRANSPOSE", "TRANSPOSE"), *((one, other) for one in _RESHAPES for other in _RESHAPES)),
)
_WIDER = MappingProxyType({"bool": ("int32", "float32"), "int32": ("int64",), "float16": ("float32",)})


def idle_operators(analysis: Analysis) -> Iterator[Fault]:
    """Two operators of which the second undoes the first, or one that changes nothing."""
    found: dict[str, list[_Idle]] = {}
    producers, graph = analysis.graph.producers(), analysis.graph
    for node in graph.nodes:
        for what, idle in _idle(graph, producers, node):
            found.setdefault(what, []).append(idle)
            break
    for what, idles in found.items():
        renamed = {idle.nodes[-1].outputs[0]: idle.source for idle in idles}
        remedy = bypassed(graph, renamed)
        if remedy is not None:
            yield Fault(
                kind="idle",
                what=what,
                operators=operators_of(node for idle in idles for node in idle.nodes),
                tensors=tuple(renamed),
                why="the values behind it are those before it",
                change="leave it out",
                remedy=remedy,
            )


def _idle(graph: Graph, producers: Mapping[int, Node], node: Node) -> Iterator[tuple[str, _Idle]]:
    """What a node does in vain, and with which one before it."""
    if not node.inputs or node.inputs[0] == ABSENT or graph.tensors[node.inputs[0]].is_constant:
        return
    before = producers.get(node.inputs[0])
    if is_identity(graph, node):
        yield f"{node.op} to the same", _Idle((node,), node.inputs[0])
    if before is None or not before.inputs or before.inputs[0] == ABSENT:
        return
    if node.op in _CLAMPS and _is_within(_range(before), _RANGES[node.op]):
        fused = _activation(before)
        yield f"{node.op} of {fused or before.op}", _Idle((node,), node.inputs[0])
    if _undoes(graph, before, node):
        yield f"{before.op} and back by {node.op}", _Idle((before, node), before.inputs[0])
    if _puts_together(before, node):
        yield f"{before.op} and all parts together by {node.op}", _Idle((before, node), before.inputs[0])


def _undoes(graph: Graph, first: Node, second: Node) -> bool:
    """Whether the second of two nodes gives what the first reads."""
    source, between, out = (graph.tensors[t] for t in (first.inputs[0], first.outputs[0], second.outputs[0]))
    same = (source.shape, source.dtype, source.quantization) == (out.shape, out.dtype, out.quantization)
    if not same or (first.op, second.op) not in _OPPOSITES:
        return False
    match first.attributes, second.attributes:
        case Transpose(one), Transpose(other):
            return [one[k] for k in other] == list(range(len(one)))
        case Pad(amounts), StridedSlice(begin, sizes, strides):
            cut = (tuple(before for before, _ in amounts), source.shape)
            return (begin, sizes) == cut and set(strides) <= {1}
        case Axes(one), Axes(other):
            return one == other
    if first.op == "CAST":
        return between.dtype in _WIDER.get(source.dtype, ())
    if first.op in ("SPACE_TO_BATCH_ND", "BATCH_TO_SPACE_ND"):
        return first.attributes.__dict__ == second.attributes.__dict__
    return True


def _puts_together(first: Node, second: Node) -> bool:
    """Whether the second of two nodes joins all parts into which the first cuts a tensor."""
    if second.inputs != first.outputs or len(first.outputs) < 2:
        return False
    match first.attributes, second.attributes:
        case Split(axis=one), Concatenation(axis=other, activation="NONE"):
            return one == other
        case Axis(axis=one), Axis(axis=other):
            return one == other and (first.op, second.op) == ("UNPACK", "PACK")
    return False


def _activation(node: Node) -> str:
    """The activation that is part of a node; "" for none."""
    attributes = node.attributes
    return attributes.activation if isinstance(attributes, Activated) and attributes.activation != "NONE" else ""


def _range(node: Node) -> tuple[float, float]:
    return _RANGES.get(_activation(node) or node.op, (-_INFINITE, _INFINITE))


def _is_within(inner: tuple[float, float], outer: tuple[float, float]) -> bool:
    return outer[0] <= inner[0] and inner[1] <= outer[1]
