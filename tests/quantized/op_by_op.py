"""Finds the first op of a quantized model that two ways compute differently.

An op is judged where all that it reads is equal. What it writes is equal, too, but for ops that go through real numbers
or functions of them: these may be one step apart. What is computed of such a difference, or of an integer that was NaN,
is not judged.
"""

from collections.abc import Mapping

import numpy as np

from tests.model_files.model_builder import Array
from texelflow.gpu_delegate.model.graph import Graph, Node

_NEAR = "LOGISTIC TANH ELU GELU EXP LOG RSQRT SOFTMAX LOG_SOFTMAX L2_NORMALIZATION RESIZE_BILINEAR DIV QUANTIZE"
NEAR = frozenset(_NEAR.split())
LOG_STEPS = 8  # LOG_SOFTMAX's reference kernel gives the lowest step, -16, where some are right; the other ones do not
END_OF_INT32 = 2.0**31  # TensorFlow Lite converts steps to int32 before it limits them: 0 on x86, where ARM saturates
TOLERANCE = 2e-4  # of floats, as a part of the largest


def first_fault(graph: Graph, ours: Mapping[int, Array], theirs: Mapping[int, Array]) -> str:
    """What is wrong, in a line, or "" where nothing is. Both have a value for each tensor that is computed."""
    unequal: set[int] = set()
    if any(node.op == "REVERSE_SEQUENCE" and not graph.tensors[node.inputs[1]].is_constant for node in graph.nodes):
        return ""  # for lengths that there are not TensorFlow Lite writes over other tensors
    for node in graph.nodes:
        is_defined = _is_defined(graph, node, theirs)
        is_judged = is_defined and unequal.isdisjoint(node.inputs)
        if not is_defined:
            unequal.update(node.outputs)
        for tensor in node.outputs:
            if _same(ours[tensor], theirs[tensor]):
                continue
            unequal.add(tensor)
            text = _fault(graph, node, ours[tensor], theirs[tensor]) if is_judged else ""
            if text:
                return f"{node.op} (operator {node.index}), tensor {tensor}: {text}"
    return ""


def _is_defined(graph: Graph, node: Node, values: Mapping[int, Array]) -> bool:
    """Whether there is a right result: none where NaN, infinity or more than int32 holds becomes an integer."""
    if all(graph.tensors[i].dtype == "float32" for i in node.outputs):
        return True
    known = [values[i] for i in node.inputs if i in values]
    if node.op == "QUANTIZE" and known and known[0].dtype.kind == "f":
        (quantization,) = (graph.tensors[i].quantization for i in node.outputs)
        if quantization and np.abs(known[0]).max(initial=0) >= END_OF_INT32 * min(quantization.scales):
            return False
    return all(bool(np.isfinite(array).all()) for array in known if array.dtype.kind == "f")


def _same(one: Array, other: Array) -> bool:
    return one.dtype == other.dtype and np.array_equal(one, other, equal_nan=one.dtype.kind == "f")


def _fault(graph: Graph, node: Node, ours: Array, theirs: Array) -> str:
    if (ours.dtype, ours.shape) != (theirs.dtype, theirs.shape):
        return f"{ours.dtype}{list(ours.shape)}, not {theirs.dtype}{list(theirs.shape)}"
    apart = np.abs(np.subtract(ours, theirs, dtype=np.float64))
    if node.op == "LOG_SOFTMAX" and ours.dtype.kind in "iu":
        apart[(theirs == np.iinfo(theirs.dtype).min) & (apart <= LOG_STEPS)] = 0
    most, share = float(np.nanmax(apart)), float(np.mean(apart != 0))
    if ours.dtype == np.float32:
        finite = np.isfinite(theirs)
        if not np.array_equal(finite, np.isfinite(ours)):
            return "other values are finite"
        size = max(1.0, float(np.abs(theirs[finite]).max())) if finite.any() else 1.0
        return f"{most:.3g} apart of {size:.3g}" if float(apart[finite].max(initial=0)) > TOLERANCE * size else ""
    allowed = 1 if node.op in NEAR else 0
    return f"{most:g} steps apart, {100 * share:.1f} % of the values" if most > allowed else ""
