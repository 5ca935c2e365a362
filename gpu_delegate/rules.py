"""One operator of a .tflite file goes in, the attributes of its node come out: one rule per op, with its shape checks.

RULES is the place to add an op to what the reader takes: its name, the function that parses its options and verifies
its shapes, and which of the file's inputs are data. What else the file stores as inputs (sizes, axes, paddings) ends in
the attributes.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np
import tflite

from gpu_delegate.graph import (
    Activated,
    Alpha,
    Attributes,
    Concatenation,
    Conv2D,
    DepthwiseConv2D,
    Pad,
    Padding,
    Pool2D,
    Reduce,
    Resize,
    Shape,
    Size2,
    TransposeConv2D,
)
from gpu_delegate.operators import MAX_OPERANDS, Operator

MAX_STRIDE = 1 << 15


def _plain(operator: Operator) -> Attributes:
    operator.expect(operator.shape(0))
    return Attributes()


def _leaky_relu(operator: Operator) -> Attributes:
    operator.expect(operator.shape(0))
    alpha = float(operator.options("LeakyReluOptions").Alpha())
    if not math.isfinite(alpha):
        operator.damaged(f"a slope of {alpha}")
    return Alpha(alpha)


def _broadcast(operator: Operator) -> None:
    first, second = operator.shape(0), operator.shape(1)
    try:
        shape = np.broadcast_shapes(first, second)
    except ValueError:
        operator.damaged(f"shapes {list(first)} and {list(second)} do not broadcast")
    operator.expect(shape)


def _arithmetic(operator: Operator) -> Attributes:
    _broadcast(operator)
    return Activated(operator.activation(operator.options(f"{operator.op.capitalize()}Options")))


def _extremum(operator: Operator) -> Attributes:
    _broadcast(operator)
    return Attributes()


def _positive(operator: Operator, what: str, height: int, width: int) -> Size2:
    if not (0 < height <= MAX_STRIDE and 0 < width <= MAX_STRIDE):
        operator.damaged(f"{what} {height}x{width} makes no sense")
    return height, width


def _stride(operator: Operator, options: Any) -> Size2:
    return _positive(operator, "stride", options.StrideH(), options.StrideW())


def _dilation(operator: Operator, options: Any) -> Size2:
    return _positive(operator, "dilation", options.DilationHFactor(), options.DilationWFactor())


def _windows(
    operator: Operator, sizes: Size2, kernel: Size2, stride: Size2, dilation: Size2, scheme: int
) -> tuple[Size2, Padding]:
    """Output size and padding of windows that slide over (h, w); SAME (0) puts the odd row and column at the end."""
    if scheme not in (tflite.Padding.SAME, tflite.Padding.VALID):
        operator.damaged(f"padding {scheme} is neither SAME nor VALID")
    outs, befores, afters = [], [], []
    for size, taps, step, spread in zip(sizes, kernel, stride, dilation, strict=True):
        reach = (taps - 1) * spread + 1
        out = -(-size // step) if scheme == tflite.Padding.SAME else (size - reach) // step + 1
        if out < 1:
            operator.damaged(f"a window of {reach} does not fit into {size}")
        total = max(0, (out - 1) * step + reach - size) if scheme == tflite.Padding.SAME else 0
        outs.append(out)
        befores.append(total // 2)
        afters.append(total - total // 2)
    return (outs[0], outs[1]), Padding(befores[0], afters[0], befores[1], afters[1])


def _check_bias(operator: Operator, position: int, channels: int) -> None:
    if position < len(operator.inputs) and operator.inputs[position] is not None:
        bias = operator.shape(position)
        if math.prod(bias) != channels or bias[-1:] != (channels,):
            operator.damaged(f"a bias of shape {list(bias)} for {channels} channels")


def _conv(operator: Operator) -> Attributes:
    options = operator.options("Conv2DOptions")
    batch, height, width, channels = operator.shape(0, rank=4)
    outputs, kernel_h, kernel_w, depth = operator.shape(1, rank=4)
    if depth != channels:
        if channels % depth == 0 and outputs % (channels // depth) == 0:
            operator.unsupported(f"a grouped convolution ({channels // depth} groups)")
        operator.damaged(f"weights for {depth} channels, input with {channels}")
    _check_bias(operator, 2, outputs)
    stride, dilation = _stride(operator, options), _dilation(operator, options)
    size, padding = _windows(operator, (height, width), (kernel_h, kernel_w), stride, dilation, options.Padding())
    operator.expect((batch, *size, outputs))
    return Conv2D(operator.activation(options), stride, dilation, padding)


def _depthwise(operator: Operator) -> Attributes:
    options = operator.options("DepthwiseConv2DOptions")
    batch, height, width, channels = operator.shape(0, rank=4)
    one, kernel_h, kernel_w, outputs = operator.shape(1, rank=4)
    if one != 1 or outputs % channels:
        operator.damaged(f"weights of shape {[one, kernel_h, kernel_w, outputs]} for {channels} channels")
    if len(operator.inputs) < 3 or operator.inputs[2] is None:
        operator.unsupported("no bias")  # TensorFlow Lite crashes on it
    _check_bias(operator, 2, outputs)
    stride, dilation = _stride(operator, options), _dilation(operator, options)
    size, padding = _windows(operator, (height, width), (kernel_h, kernel_w), stride, dilation, options.Padding())
    operator.expect((batch, *size, outputs))
    return DepthwiseConv2D(operator.activation(options), stride, dilation, padding, outputs // channels)


def _transpose(operator: Operator, x: int, stride: Size2, scheme: int, activation: str) -> Attributes:
    """Checks and padding of a transposed convolution: the windows of its output must be its input."""
    batch, height, width, channels = operator.shape(x, rank=4)
    outputs, kernel_h, kernel_w, depth = operator.shape(1, rank=4)
    if depth != channels:
        operator.damaged(f"weights for {depth} channels, input with {channels}")
    out_h, out_w = operator.output_size()
    operator.expect((batch, out_h, out_w, outputs))
    size, padding = _windows(operator, (out_h, out_w), (kernel_h, kernel_w), stride, (1, 1), scheme)
    if size != (height, width):
        operator.damaged(f"an output of {out_h}x{out_w} does not belong to an input of {height}x{width}")
    return TransposeConv2D(activation, stride, padding)


def _transpose_conv(operator: Operator) -> Attributes:
    options = operator.options("TransposeConvOptions")
    operator.expect(operator.integers(0))
    _check_bias(operator, 3, operator.shape(1, rank=4)[0])
    return _transpose(operator, 2, _stride(operator, options), options.Padding(), operator.activation(options))


def _transpose_bias(operator: Operator) -> Attributes:
    """MediaPipe's op: its custom options are TfLiteTransposeConvParams (int32 padding, stride width, stride height)."""
    if len(operator.custom_options) < 12:
        operator.damaged("its options are too short")
    scheme, stride_w, stride_h = (int(value) for value in np.frombuffer(operator.custom_options, "<i4", 3))
    _check_bias(operator, 2, operator.shape(1, rank=4)[0])
    stride = _positive(operator, "stride", stride_h, stride_w)
    return _transpose(operator, 0, stride, scheme - 1, "NONE")  # kTfLitePaddingSame is 1, the schema's SAME is 0


def _fully_connected(operator: Operator) -> Attributes:
    options = operator.options("FullyConnectedOptions")
    if options.WeightsFormat() != tflite.FullyConnectedOptionsWeightsFormat.DEFAULT:
        operator.unsupported("shuffled weights")
    x, (outputs, depth) = operator.shape(0), operator.shape(1, rank=2)
    if math.prod(x) % depth or (options.KeepNumDims() and x[-1:] != (depth,)):
        operator.damaged(f"weights for {depth} channels, input of shape {list(x)}")
    _check_bias(operator, 2, outputs)
    rows = (math.prod(x) // depth,)
    operator.expect((*(x[:-1] if options.KeepNumDims() else rows), outputs))
    return Activated(operator.activation(options))


def _pool(operator: Operator) -> Attributes:
    options = operator.options("Pool2DOptions")
    batch, height, width, channels = operator.shape(0, rank=4)
    kernel = _positive(operator, "window", options.FilterHeight(), options.FilterWidth())
    stride = _stride(operator, options)
    size, padding = _windows(operator, (height, width), kernel, stride, (1, 1), options.Padding())
    operator.expect((batch, *size, channels))
    return Pool2D(operator.activation(options), kernel, stride, padding)


def _mean(operator: Operator) -> Attributes:
    shape, keep = operator.shape(0), bool(operator.options("ReducerOptions").KeepDims())
    axes = operator.integers(1)
    if any(not -len(shape) <= axis < len(shape) for axis in axes):
        operator.damaged(f"axes {list(axes)} of {len(shape)} dimensions")
    reduced = tuple(sorted({axis % len(shape) for axis in axes}))
    kept = ((i, 1 if i in reduced else size) for i, size in enumerate(shape))
    operator.expect(tuple(size for i, size in kept if keep or i not in reduced))
    return Reduce(reduced, keep)


def _resize(operator: Operator) -> Attributes:
    bilinear = operator.op == "RESIZE_BILINEAR"
    options = operator.options("ResizeBilinearOptions" if bilinear else "ResizeNearestNeighborOptions")
    batch, _, _, channels = operator.shape(0, rank=4)
    operator.expect((batch, *operator.integers(1), channels))
    align, half = bool(options.AlignCorners()), bool(options.HalfPixelCenters())
    if align and half and bilinear:
        operator.damaged("aligned corners and half-pixel centres exclude each other")
    return Resize(align, half)


def _pad(operator: Operator) -> Attributes:
    shape, flat = operator.shape(0), operator.integers(1)
    if len(flat) != 2 * len(shape) or any(not 0 <= amount <= MAX_STRIDE for amount in flat):
        operator.damaged(f"paddings {list(flat)} of {len(shape)} dimensions")
    amounts = tuple(zip(flat[::2], flat[1::2], strict=True))
    operator.expect(tuple(before + size + after for size, (before, after) in zip(shape, amounts, strict=True)))
    return Pad(amounts, _pad_value(operator) if operator.op == "PADV2" else 0.0)


def _pad_value(operator: Operator) -> float:
    value = operator.inputs[2]
    if value is None or value.data is None or value.dtype != "float32" or value.data.size != 1:
        operator.unsupported("a padding value that is not one float32 constant")
    return float(value.data.ravel()[0])


def _concatenation(operator: Operator) -> Attributes:
    options = operator.options("ConcatenationOptions")
    shapes, axis = [operator.shape(i) for i in range(len(operator.inputs))], options.Axis()
    rank = len(shapes[0])
    if not -rank <= axis < rank:
        operator.damaged(f"axis {axis} of {rank} dimensions")
    axis %= rank
    if len({(*shape[:axis], *shape[axis + 1 :]) for shape in shapes}) > 1 or {len(shape) for shape in shapes} != {rank}:
        operator.damaged(f"shapes {[list(shape) for shape in shapes[:4]]} do not fit together along axis {axis}")
    operator.expect((*shapes[0][:axis], sum(shape[axis] for shape in shapes), *shapes[0][axis + 1 :]))
    return Concatenation(operator.activation(options), axis)


def _reshape(operator: Operator) -> Attributes:
    shape, out = operator.shape(0), operator.outputs[0].shape
    wanted = (
        operator.integers(1) if len(operator.inputs) == 2 and operator.inputs[1] is not None else _new_shape(operator)
    )
    fits = len(wanted) == len(out) and all(a in (-1, b) for a, b in zip(wanted, out, strict=True))
    if not fits or math.prod(shape) != math.prod(out):
        operator.damaged(f"cannot make {list(shape)} into {list(wanted)} and call it {list(out)}")
    return Attributes()


def _new_shape(operator: Operator) -> Shape:
    """The shape that an old RESHAPE has in its options, where newer ones have an input."""
    options = operator.options("ReshapeOptions")
    count = options.NewShapeLength()
    if count > MAX_OPERANDS:
        operator.damaged(f"a new shape of {count} dimensions")
    return tuple(int(size) for size in options.NewShapeAsNumpy()) if count else ()


@dataclass(frozen=True)
class Rule:
    """How one op is read: its parse function and which of the file's inputs become the node's."""

    parse: Callable[[Operator], Attributes]
    data: tuple[int, ...] | None = (0,)  # positions in the file, in the node's order; None: all of them
    count: tuple[int, int] = (1, 1)  # fewest and most inputs in the file
    dtype: str = "float32"  # of the data inputs


_UNARY = Rule(_plain)
_ARITHMETIC = Rule(_arithmetic, (0, 1), (2, 2))
_EXTREMUM = Rule(_extremum, (0, 1), (2, 2))
_POOL = Rule(_pool)
_RESIZE = Rule(_resize, count=(2, 2))

RULES = MappingProxyType(
    {
        "CONV_2D": Rule(_conv, (0, 1, 2), (2, 3)),
        "DEPTHWISE_CONV_2D": Rule(_depthwise, (0, 1, 2), (2, 3)),
        "TRANSPOSE_CONV": Rule(_transpose_conv, (2, 1, 3), (3, 4)),
        "Convolution2DTransposeBias": Rule(_transpose_bias, (0, 1, 2), (2, 3)),
        "FULLY_CONNECTED": Rule(_fully_connected, (0, 1, 2), (2, 3)),
        **dict.fromkeys(("ADD", "SUB", "MUL", "DIV"), _ARITHMETIC),
        **dict.fromkeys(("MAXIMUM", "MINIMUM"), _EXTREMUM),
        **dict.fromkeys(("RELU", "RELU6", "RELU_N1_TO_1", "HARD_SWISH", "LOGISTIC", "TANH"), _UNARY),
        **dict.fromkeys(("ABS", "NEG", "SQRT", "RSQRT", "SQUARE", "EXP", "LOG"), _UNARY),
        "LEAKY_RELU": Rule(_leaky_relu),
        "AVERAGE_POOL_2D": _POOL,
        "MAX_POOL_2D": _POOL,
        "MEAN": Rule(_mean, count=(2, 2)),
        "RESIZE_BILINEAR": _RESIZE,
        "RESIZE_NEAREST_NEIGHBOR": _RESIZE,
        "PAD": Rule(_pad, count=(2, 2)),
        "PADV2": Rule(_pad, count=(3, 3)),
        "CONCATENATION": Rule(_concatenation, None, (1, MAX_OPERANDS)),
        "RESHAPE": Rule(_reshape, count=(1, 2)),
        "DEQUANTIZE": Rule(_plain, dtype="float16"),
    }
)
SUPPORTED_OPS: tuple[str, ...] = tuple(RULES)
