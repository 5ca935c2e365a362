"""Evaluates a graph as it is in its file, tensor by tensor, in float64.

Floats of 16 and 32 bits are float64 here, and so are weights of bytes with a scale that ops on floats have; integers
and truth values stay what they are. Quantized networks are no such graphs: they are defined by how they round.
"""

import math
from collections.abc import Iterator, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt

from ..base.errors import UsageError
from ..model.graph import ABSENT, Activated, Conv2D, Graph, Node, Opaque, Tensor, TransposeConv2D
from ..model.quantization import is_quantized, quantization_of
from .true_arithmetic import ARITHMETIC, TrueValues, activated
from .true_landmarks import LANDMARKS
from .true_moves import MOVES
from .true_sums import SUMS, Operands

_SUMS = MappingProxyType({**SUMS, **LANDMARKS})
_ROUNDED = 2.0**-24  # of a value
MOST_TAPS = 1 << 15  # of a convolution's window
_TYPES = frozenset(
    {*("float16", "float32", "float64", "bool"), *(f"{sign}int{n}" for sign in ("", "u") for n in (8, 16, 32, 64))}
)


def true_values(
    graph: Graph, inputs: Sequence[npt.NDArray[Any]], rounding: np.random.Generator | None = None
) -> Iterator[tuple[int, TrueValues | None]]:
    """Every tensor that an operator writes, in order, with its values in its shape, or None where they are not known.

    Not known is what an op gives that float64 has no meaning for, what a quantized tensor holds, and all that follows
    from either. Values are dropped after their last reader. `graph` is as the reader made it, and no larger than
    check_footprint allows. With `rounding` every float that is computed, not moved alone, is off by as much as rounding
    to float32 may be, up or down by chance. Raises UsageError for inputs of other shapes.
    """
    given = [graph.tensors[i] for i in graph.inputs]
    if [tensor.shape for tensor in given] != [values.shape for values in inputs]:
        raise UsageError(f"{graph.name} takes inputs of shapes {[list(tensor.shape) for tensor in given]}")
    last = {i: k for k, node in enumerate(graph.nodes) for i in (*node.inputs, *node.outputs)}
    known = {t.index: _typed(values, t) for t, values in zip(given, inputs, strict=True) if _means_itself(t)}
    for place, node in enumerate(graph.nodes):
        for index, values in zip(node.outputs, _results(graph, node, known), strict=True):
            if values is not None and rounding and values.dtype.kind == "f" and node.op not in MOVES:
                values = values * (1 + _ROUNDED * rounding.choice((-1.0, 1.0), values.shape))
            if values is not None:
                known[index] = values
            yield index, values
        for index in (*node.inputs, *node.outputs):
            if last[index] == place:
                known.pop(index, None)


def without_truth(graph: Graph) -> tuple[str, ...]:
    """The ops of a graph that have no meaning in float64, or too large a window, by their names."""
    return tuple(dict.fromkeys(node.op for node in graph.nodes if not _has_meaning(graph, node)))


def _has_meaning(graph: Graph, node: Node) -> bool:
    """A convolution takes a step for each tap, so there must not be too many."""
    if isinstance(node.attributes, Opaque) or not any(node.op in kind for kind in (ARITHMETIC, _SUMS, MOVES)):
        return False
    is_convolution = isinstance(node.attributes, Conv2D | TransposeConv2D)
    return not is_convolution or math.prod(graph.tensors[node.inputs[1]].shape[1:3]) <= MOST_TAPS


def _results(graph: Graph, node: Node, known: dict[int, TrueValues]) -> Sequence[TrueValues | None]:
    outputs = [graph.tensors[i] for i in node.outputs]
    nothing: Sequence[TrueValues | None] = [None] * len(outputs)
    if not _has_meaning(graph, node) or not all(map(_means_itself, outputs)):
        return nothing
    operands = [_operand(graph.tensors[i], known) if i != ABSENT else None for i in node.inputs]
    if any(values is None and i != ABSENT for i, values in zip(node.inputs, operands, strict=True)):
        return nothing
    with np.errstate(all="ignore"):
        try:
            found = _computed(node, operands, outputs[0])
            return [_typed(values, tensor) for values, tensor in zip(found, outputs, strict=True)]
        except (ValueError, IndexError, TypeError):  # an index outside, or what a file says contradicts its op
            return nothing


def _computed(node: Node, operands: Operands, output: Tensor) -> Sequence[TrueValues]:
    present = [values for values in operands if values is not None]
    if node.op in ARITHMETIC:
        found: TrueValues | Sequence[TrueValues] = ARITHMETIC[node.op](node.attributes, *present)
    elif node.op in _SUMS:
        found = _SUMS[node.op](node.attributes, operands, output.shape)
    else:
        found = MOVES[node.op](node.attributes, present, output.shape)
    if not isinstance(found, np.ndarray):
        return found
    return [activated(node.attributes.activation, found) if isinstance(node.attributes, Activated) else found]


def _operand(tensor: Tensor, known: dict[int, TrueValues]) -> TrueValues | None:
    if tensor.data is None:
        return known.get(tensor.index)
    if not is_quantized(tensor):
        return _typed(tensor.data, tensor) if _means_itself(tensor) else None
    meant = quantization_of(tensor)
    sides = [-1 if k == meant.dimension and len(meant.scales) > 1 else 1 for k in range(tensor.data.ndim)]
    scales, zeros = np.array(meant.scales).reshape(sides), np.array(meant.zero_points, np.float64).reshape(sides)
    return np.asarray((tensor.data.astype(np.float64) - zeros) * scales)


def _means_itself(tensor: Tensor) -> bool:
    """Neither a step of a scale nor a text, nor of a type that NumPy lacks."""
    return not is_quantized(tensor) and tensor.dtype in _TYPES


def _typed(values: npt.NDArray[Any], tensor: Tensor) -> TrueValues:
    """Of the tensor's own type, but for floats. Raises ValueError where they have another shape."""
    if values.shape != tensor.shape:
        raise ValueError(f"values of shape {list(values.shape)} for {list(tensor.shape)}")
    return values.astype(np.float64 if tensor.dtype.startswith("float") else tensor.dtype, copy=False)
