"""A pass that adds an output which reports what TensorFlow Lite refuses at run time, such as an index out of range.

TensorFlow Lite's kernels look at values and fail; kernels here compute with the nearest index in range. What may be
wrong becomes one more output, a vector of truths, which is read with the others. Where ranges prove that nothing can
be wrong, nothing is added.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

import numpy as np

from ..model.graph import ABSENT, Axis, Concatenation, Faults, Graph, Node, Reduce, Steps, Tensor
from ..model.operators import attributes_of
from ..model.quantization import is_quantized, steps_of
from ..model.rewrite import Outcome, Rewriter
from ..ops.lookup import ReverseSequence
from .integer_ranges import known_ranges
from .node_chain import NodeChain

_MOST_DIMENSIONS = 4


def flag_faults(graph: Graph) -> tuple[Graph, Outcome]:
    """Indices that may be out of range, divisors that may be 0 -> one more output that tells of them."""
    found = [(node, check) for node in graph.nodes if node.op in _CHECKS and (check := _CHECKS[node.op](graph, node))]
    ranges = known_ranges(graph) if found else {}
    found = [(node, check) for node, check in found if not check.is_proved(ranges.get(check.tensor))]
    if not found:
        return graph, Outcome(0)
    edit = Rewriter(graph)
    flags, messages = [], []
    for node, check in found:
        chain = NodeChain(edit, graph, node)
        flags.append(check.flag(chain))
        messages.append(f"{check.message}; {node.op}, operator {node.index}, failed to run")
        edit.replace(node, node, *chain.nodes)
    flagged, outcome = edit.finish()
    return _with_output(flagged, flags, tuple(messages)), outcome


def _with_output(graph: Graph, flags: list[int], messages: tuple[str, ...]) -> Graph:
    """The flags as one vector, an output behind the others."""
    edit = Rewriter(graph)
    number = edit.new_tensor("faults", (len(flags),), "bool")
    last = Node("CONCATENATION", tuple(flags), (number,), Concatenation(axis=0)) if len(flags) > 1 else None
    if last is None:
        return replace(graph, outputs=(*graph.outputs, *flags), faults=Faults(flags[0], messages))
    tensor = Tensor(number, "faults", (len(flags),), "bool")
    whole = replace(graph, outputs=(*graph.outputs, number), faults=Faults(number, messages))
    return whole.with_changes((*graph.nodes, last), {number: tensor})


class _Indices:
    """That the values of a tensor are below sizes, one for each place along its last dimension, and not negative."""

    def __init__(self, tensor: int, sizes: Sequence[int], message: str, may_be_negative: bool = False) -> None:
        self.tensor, self.sizes, self.message, self._may_be_negative = tensor, tuple(sizes), message, may_be_negative

    def is_proved(self, known: Steps | None) -> bool:
        """Whether that follows from a range of its values."""
        return known is not None and (self._may_be_negative or known.low >= 0) and known.high < min(self.sizes)

    def flag(self, chain: NodeChain) -> int:
        """A vector of one truth."""
        dtype, sizes = chain.dtype(self.tensor), self.sizes[0] if len(self.sizes) == 1 else np.array(self.sizes)
        values = _flat(chain, self.tensor)
        inside = chain.op("LESS", values, chain.constant(sizes, dtype), dtype="bool")  # not so of what was NaN
        if not self._may_be_negative:
            above = chain.op("GREATER_EQUAL", values, chain.constant(0, dtype), dtype="bool")
            inside = chain.op("LOGICAL_AND", above, inside, dtype="bool")
        return _any(chain, chain.op("LOGICAL_NOT", inside, dtype="bool"))


class _Divisor:
    """That no value of a tensor is 0."""

    message = "division by 0"

    def __init__(self, tensor: int) -> None:
        self.tensor = tensor

    def is_proved(self, known: Steps | None) -> bool:
        """Whether that follows from a range of its values."""
        return known is not None and not known.low <= 0 <= known.high

    def flag(self, chain: NodeChain) -> int:
        """A vector of one truth."""
        divisors = _flat(chain, self.tensor)
        return _any(chain, chain.op("EQUAL", divisors, chain.constant(0, chain.dtype(divisors)), dtype="bool"))


class _Root:
    """That no byte of a tensor means a number below 0."""

    def __init__(self, tensor: int, message: str) -> None:
        self.tensor, self.message = tensor, message

    def is_proved(self, known: Steps | None) -> bool:
        """Whether that follows from a range of its steps."""
        return known is not None and known.low >= 0

    def flag(self, chain: NodeChain) -> int:
        """A vector of one truth."""
        values = chain.op("DEQUANTIZE", _flat(chain, self.tensor), dtype="float32")
        return _any(chain, chain.op("LESS", values, chain.constant(0.0), dtype="bool"))


_Check = _Indices | _Divisor | _Root


def _flat(chain: NodeChain, tensor: int) -> int:
    """A tensor of more dimensions than kernels have with two, of which the last is as it was."""
    shape = chain.shape(tensor)
    return chain.reshape(tensor, math.prod(shape[:-1]), shape[-1]) if len(shape) > _MOST_DIMENSIONS else tensor


def _any(chain: NodeChain, truths: int) -> int:
    axes = tuple(range(len(chain.shape(truths))))
    found = chain.op("REDUCE_ANY", truths, shape=(), attributes=Reduce(axes), dtype="bool") if axes else truths
    return chain.reshape(found, 1)


def _computed(graph: Graph, tensor: int) -> bool:
    """Whether integers are known only at run time, and there are some; the reader looks at those of constants."""
    own = graph.tensors.get(tensor) if tensor != ABSENT else None
    return own is not None and not own.is_constant and not is_quantized(own) and math.prod(own.shape) > 0


def _of_gather(graph: Graph, node: Node) -> _Check | None:
    x, indices = node.inputs
    size = graph.tensors[x].shape[attributes_of(node, Axis).axis]
    return _Indices(indices, (size,), "gather index out of bounds") if _computed(graph, indices) else None


def _of_gather_nd(graph: Graph, node: Node) -> _Check | None:
    x, indices = node.inputs
    sizes = graph.tensors[x].shape[: graph.tensors[indices].shape[-1]]
    return _Indices(indices, sizes, "gather_nd index out of bounds") if _computed(graph, indices) else None


def _of_scatter_nd(graph: Graph, node: Node) -> _Check | None:
    indices = node.inputs[0]
    sizes = graph.tensors[node.outputs[0]].shape[: graph.tensors[indices].shape[-1]]
    return _Indices(indices, sizes, "scatter_nd index out of bounds") if _computed(graph, indices) else None


def _of_embedding(graph: Graph, node: Node) -> _Check | None:
    indices, x = node.inputs
    size = graph.tensors[x].shape[0]
    message = f"embedding lookup: index out of bounds, which are 0 to {size - 1}"
    return _Indices(indices, (size,), message) if _computed(graph, indices) else None


def _of_reverse(graph: Graph, node: Node) -> _Check | None:
    """TensorFlow Lite reads beyond the values of a tensor here, and copies those of lengths below 1."""
    x, lengths = node.inputs
    size = graph.tensors[x].shape[attributes_of(node, ReverseSequence).sequence]
    check = _Indices(lengths, (size + 1,), "length beyond the sequence", may_be_negative=True)
    return check if _computed(graph, lengths) else None


def _of_division(graph: Graph, node: Node) -> _Check | None:
    divisor = node.inputs[1]
    return _Divisor(divisor) if _computed(graph, divisor) else None


def _of_whole_division(graph: Graph, node: Node) -> _Check | None:
    """Of floats there is inf or nan."""
    is_whole = graph.tensors[node.inputs[1]].dtype in ("int32", "int64") if node.inputs[1] != ABSENT else False
    return _of_division(graph, node) if is_whole else None


def _of_root(graph: Graph, node: Node) -> _Check | None:
    """Of bytes that may mean a number below 0; of floats there is nan."""
    x = graph.tensors[node.inputs[0]]
    if x.is_constant or not is_quantized(x) or steps_of(x).low >= 0:
        return None
    message = "only defined for non-negative values" if node.op == "SQRT" else "only defined for positive values"
    return _Root(x.index, f"{node.op.capitalize()} is {message}")


_CHECKS: Mapping[str, Callable[[Graph, Node], _Check | None]] = MappingProxyType(
    {
        "GATHER": _of_gather,
        "GATHER_ND": _of_gather_nd,
        "SCATTER_ND": _of_scatter_nd,
        "EMBEDDING_LOOKUP": _of_embedding,
        "REVERSE_SEQUENCE": _of_reverse,
        "FLOOR_DIV": _of_division,
        "FLOOR_MOD": _of_whole_division,
        "DIV": _of_whole_division,
        **dict.fromkeys(("SQRT", "RSQRT"), _of_root),
    }
)
