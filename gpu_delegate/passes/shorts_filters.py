"""SVDF of bytes, whose filters have found numbers of 16 bits: exact sums of products of digits, and their rounding."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType

import numpy as np

from ..model.graph import ABSENT, Activated, Concatenation, Node, Reduce, StridedSlice
from ..model.operators import attributes_of
from ..model.quantization import quantization_of
from ..model.rewrite import END_OF_INTEGERS
from ..ops.recurrent import Recurrent
from ..ops.requantize import FixedPoints, fixed_point
from ..ops.short_steps import SHORTS, RequantizeProduct
from ..ops.svdf import FOUND
from .quantized_node import Form, QuantizedNode, in_float32

_BASE = 256  # of digits
_MOST_LEFT = 15  # bits, by which sums are shifted


def _filtered(node: QuantizedNode) -> Sequence[Node]:
    """What filters find now is one of 16 bits; a unit's sum of products of such, with its bias, is one of 32 bits.

    Those that are more overflow, as TensorFlow Lite's do.
    """
    x, filters, weights, before = (node.input(position) for position in (0, 1, 2, FOUND))
    _verify(node)
    (batch, _), (count, steps) = x.shape, weights.shape
    assert filters.data is not None, "they are constant"
    most = int(np.abs(filters.data.astype(np.int64)).sum(1).max()) * node.most(0)
    if most >= END_OF_INTEGERS:
        node.refuse(f"sums up to {most}, which float32 does not hold")
    scale = in_float32(in_float32(node.scale(x) * node.scale(filters)) / node.scale(before))
    sums = node.add(
        "FULLY_CONNECTED", x.index, node.steps_constant(filters), ABSENT, shape=(batch, count), attributes=Activated()
    )
    new = node.requantized(sums, scale, most, SHORTS, (batch, count))
    found = node.add("RESHAPE", new, shape=(batch, count, 1))
    if steps > 1:
        old = node.add("RESHAPE", before.index, shape=(batch, count, steps))
        sizes = (batch, count, steps - 1)
        old = node.add("STRIDED_SLICE", old, shape=sizes, attributes=StridedSlice((0, 0, 1), sizes, (1, 1, 1)))
        shape = (batch, count, steps)
        found = node.add("CONCATENATION", old, found, shape=shape, attributes=Concatenation(axis=2))
    (last,) = _summed(node, found)
    kept = Node("RESHAPE", (found,), node.node.outputs[1:], index=node.node.index)
    return [*node.nodes, kept, last]


def _verify(node: QuantizedNode) -> None:
    dtypes = tuple(node.input(position).dtype for position in (0, 1, 2, FOUND)), node.out.dtype
    if dtypes != (("int8", "int8", "int16", "int16"), "int8"):
        node.refuse(f"tensors of {', '.join((*dtypes[0], dtypes[1]))}")
    constants = [node.input(position) for position in (1, 2)]
    bias = node.input(3) if node.node.inputs[3] != ABSENT else None
    if any(tensor.data is None for tensor in constants) or (bias and (bias.data is None or bias.dtype != "int32")):
        node.refuse("weights that are computed, or a bias that is not int32")
    if any(point for tensor in (*constants, node.input(FOUND)) for point in quantization_of(tensor).zero_points):
        node.refuse("weights, or what it keeps, that are not around 0")
    if (activation := attributes_of(node.node, Recurrent).activation) != "RELU":
        node.refuse(f"{activation}, not RELU, fused into an op of bytes")
    if 2 * node.input(2).data.size // node.out.shape[1] * (_BASE // 2 + 1) ** 2 > END_OF_INTEGERS // 2:  # type: ignore[union-attr]
        node.refuse("sums over time that float32 does not hold")


def _summed(node: QuantizedNode, found: int) -> Sequence[Node]:
    """What each unit makes of what its filters have found."""
    weights, (batch, units) = node.input(2), node.out.shape
    assert weights.data is not None, "they are constant"
    of_unit = weights.data.size // units
    shape = (batch, units, of_unit)
    upper, lower = node.digits_of(node.add("RESHAPE", found, shape=shape), shape, _BASE, 2)
    values = weights.data.astype(np.int64).reshape(1, units, of_unit)
    high = (values + _BASE // 2) // _BASE
    factors = [node.constant("factor", each) for each in (high, values - high * _BASE)]

    def product(digits: int, factor: int) -> int:
        return node.add("MUL", digits, factor, shape=shape)

    def total(products: int) -> int:
        return node.add("SUM", products, attributes=Reduce((2,), False))

    middle = node.add("ADD", product(upper, factors[1]), product(lower, factors[0]), shape=shape)
    bias = np.zeros(units, np.int64)
    if node.node.inputs[3] != ABSENT and (data := node.input(3).data) is not None:
        bias = data.astype(np.int64).ravel()
    rest = node.add("ADD", total(product(lower, factors[1])), node.constant("bias", bias % _BASE))
    carried = node.add("FLOOR", node.add("MUL", rest, node.constant("of base", 1 / _BASE)))
    rest = node.add("SUB", rest, node.add("MUL", carried, node.constant("base", float(_BASE))))
    raised = node.add("MUL", _wrapped(node, total(product(upper, factors[0])), 16), node.constant("base", float(_BASE)))
    whole = _wrapped(node, node.add("ADD", raised, total(middle)), 24)
    for more in (node.constant("bias", bias // _BASE), carried):
        whole = _wrapped(node, node.add("ADD", whole, more), 24)
    return [_requantized(node, whole, rest)]


def _wrapped(node: QuantizedNode, x: int, bits: int) -> int:
    """Whole numbers of so many bits, as others overflow."""
    share = node.add("MUL", x, node.constant("of all", 2.0**-bits))
    turns = node.add("FLOOR", node.add("ADD", share, node.constant("half", 0.5)))
    return node.add("SUB", x, node.add("MUL", turns, node.constant("all", 2.0**bits)))


def _requantized(node: QuantizedNode, whole: int, rest: int) -> Node:
    scales = node.scale(node.input(FOUND)), node.scale(node.input(2)), node.scale(node.out)
    point = fixed_point(in_float32(in_float32(scales[0] * scales[1]) / scales[2]))
    if point.shift < -_MOST_LEFT:
        node.refuse("a multiplier that is too large")
    high, low, _ = FixedPoints.of([point]).in_floats
    base, *factors = (node.constant("factor", each) for each in (float(_BASE), high[0], low[0], point.shift))
    attributes = RequantizeProduct(node.limits())
    inputs = (whole, base, rest, *factors)
    return Node("REQUANTIZE_PRODUCT", inputs, node.node.outputs[:1], attributes, node.node.index)


SHORT_FILTER_FORMS: Mapping[str, Form] = MappingProxyType({"SVDF": _filtered})
