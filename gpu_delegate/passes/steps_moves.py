"""Quantized ops that move or convert data, in steps, and rescaled where a file changes the scale."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

import numpy as np

from ..model.graph import Activated, Node, Pad, Resize, Steps, Tensor
from ..model.operators import attributes_of
from ..model.quantization import is_quantized, quantization_of, steps_of
from ..model.rewrite import END_OF_INTEGERS
from ..ops.cast import Cast
from .quantized_node import Form, QuantizedNode, activation_of
from .steps_reductions import rounded_with_zero_point

_FROM_ONE = (
    *("RESHAPE", "SQUEEZE", "EXPAND_DIMS", "TRANSPOSE", "SLICE", "STRIDED_SLICE", "SPLIT", "SPLIT_V", "UNPACK"),
    *("GATHER", "GATHER_ND", "TILE", "BROADCAST_TO", "REVERSE_V2", "REVERSE_SEQUENCE", "MIRROR_PAD", "PAD"),
    *("SPACE_TO_BATCH_ND", "BATCH_TO_SPACE_ND", "SPACE_TO_DEPTH", "DEPTH_TO_SPACE", "RESIZE_NEAREST_NEIGHBOR"),
    *("REDUCE_MAX", "REDUCE_MIN", "ARG_MAX", "ARG_MIN", "TOPK_V2"),
)
_FROM_SEVERAL = ("PACK", "MAXIMUM", "MINIMUM", "SELECT", "SELECT_V2")


def _moved(node: QuantizedNode) -> Sequence[Node]:
    """What keeps all values, in one scale."""
    inputs = tuple(node.operand(k) if node.is_quantized(k) else i for k, i in enumerate(node.node.inputs))
    return [replace(node.node, inputs=inputs)]


def _meaning(tensor: Tensor) -> tuple[tuple[float, ...], tuple[int, ...]]:
    quantization = quantization_of(tensor)
    return quantization.scales, quantization.zero_points


def _greatest(node: QuantizedNode) -> Sequence[Node]:
    """MAX_POOL_2D, with its fused activation in steps."""
    (moved,) = _moved(node)
    activation = activation_of(node.node)
    if activation == "NONE":
        return [moved]
    attributes = node.node.attributes
    assert isinstance(attributes, Activated)
    found = node.add(moved.op, *moved.inputs, attributes=replace(attributes, activation="NONE"))
    return node.requantize(found, 1.0, node.most(0), node.limits(activation))


def _padded(node: QuantizedNode) -> Sequence[Node]:
    """PADV2: its value is an integer, too."""
    (moved,), pad = _moved(node), attributes_of(node.node, Pad)
    return [replace(moved, attributes=replace(pad, value=pad.value - node.zero_point(node.out)))]


def _joined(node: QuantizedNode) -> Sequence[Node]:
    """CONCATENATION: each part in the output's scale."""
    out, parts = node.scale(node.out), list[int]()
    for position in range(len(node.node.inputs)):
        x = node.input(position)
        if _meaning(x) == _meaning(node.out):
            parts.append(node.operand(position))
        else:
            parts.append(node.rounded(node.operand(position), node.scale(x) / out, node.limits(), x.shape))
    return node.finish("CONCATENATION", *parts, attributes=node.node.attributes)


def _resized(node: QuantizedNode) -> Sequence[Node]:
    """RESIZE_BILINEAR: between steps, then rounded; of uint8 between the integers, half of one added."""
    resize = attributes_of(node.node, Resize)
    if node.out.dtype == "int8":
        found = node.add(node.node.op, node.operand(0), attributes=replace(resize, in_1024ths=True))
        return rounded_with_zero_point(node, found, node.limits())
    zero_point = node.constant("zero point", node.zero_point(node.out))
    integers = node.add("ADD", node.operand(0), zero_point, shape=node.input(0).shape)
    found = node.add(node.node.op, integers, attributes=replace(resize, in_products=True))
    whole = node.add("FLOOR", node.add("ADD", found, node.constant("half", 0.5)))
    return node.round(node.add("SUB", whole, zero_point))


def _cast(node: QuantizedNode) -> Sequence[Node]:
    """CAST from bytes: the integers themselves, from zero on."""
    if not node.is_quantized(0) or is_quantized(node.out) or attributes_of(node.node, Cast).target == "bool":
        node.refuse(f"from {node.input(0).dtype} to {node.out.dtype}")
    return node.finish("ADD", node.operand(0), node.constant("zero point", node.zero_point(node.input(0))))


def _quantized(node: QuantizedNode) -> Sequence[Node]:
    """QUANTIZE: of floats, or from one scale to another."""
    x = node.input(0)
    if node.out.dtype == "int32":
        return _widened(node)
    if is_quantized(x):
        return node.requantize(node.operand(0), node.scale(x) / node.scale(node.out), node.most(0))
    if x.dtype != "float32":
        node.refuse(f"from {x.dtype}")
    limits = node.limits()
    divided = node.add("DIV", x.index, node.constant("scale", node.scale(node.out)))
    least, most = (node.constant("limit", 2.0 * end) for end in (limits.low - 1, limits.high + 1))
    return node.round(node.add("MINIMUM", node.add("MAXIMUM", divided, least), most))  # infinity would become NaN


def _widened(node: QuantizedNode) -> Sequence[Node]:
    """QUANTIZE from int16 to int32, which has all that the multiplier makes of steps."""
    x, quantization = node.input(0), quantization_of(node.out)
    if x.dtype != "int16" or len(quantization.scales) > 1 or any(quantization.zero_points):
        node.refuse(f"from {x.dtype} to int32 from {quantization.zero_points[0]}")
    multiplier, steps = node.scale(x) / quantization.scales[0], steps_of(x)
    if not node.most(0) * multiplier < END_OF_INTEGERS - 1:
        node.refuse("integers that float32 does not hold")
    limits = Steps(math.floor(steps.low * multiplier), math.ceil(steps.high * multiplier))
    node.edit.set_tensor(replace(node.out, steps=limits))
    return node.requantize(node.operand(0), multiplier, node.most(0), limits)


def _dequantized(node: QuantizedNode) -> Sequence[Node]:
    """DEQUANTIZE: steps times the scale, or the scales of a constant's channels."""
    x = node.input(0)
    quantization = quantization_of(x)
    shape = [-1 if k == quantization.dimension else 1 for k in range(len(x.shape))]
    scales = np.array(quantization.scales)
    scale = node.constant("scale", scales.reshape(shape) if scales.size > 1 else scales[0])
    return node.finish("MUL", node.operand(0), scale)


SHORT_MOVE_FORMS: Mapping[str, Form] = MappingProxyType(  # of 16-bit integers
    {
        **dict.fromkeys((*_FROM_ONE, *_FROM_SEVERAL), _moved),
        "MAX_POOL_2D": _greatest,
        "PADV2": _padded,
        "CONCATENATION": _joined,
        "CAST": _cast,
        "QUANTIZE": _quantized,
        "DEQUANTIZE": _dequantized,
    }
)
MOVE_FORMS: Mapping[str, Form] = MappingProxyType(
    {
        **dict.fromkeys((*_FROM_ONE, *_FROM_SEVERAL), _moved),
        "MAX_POOL_2D": _greatest,
        "PADV2": _padded,
        "CONCATENATION": _joined,
        "RESIZE_BILINEAR": _resized,
        "CAST": _cast,
        "QUANTIZE": _quantized,
        "DEQUANTIZE": _dequantized,
    }
)
