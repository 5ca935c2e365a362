"""The table of what TensorFlow Lite's own GPU delegate does with each op, on OpenGL and on OpenCL.

Read from google-ai-edge/LiteRT at f6745779, tflite/delegates/gpu: an op is "yes" where a backend has a kernel for every
form of it that the delegate takes, "part" for some of these forms, "no" for none. Forms that the delegate never takes
(constants that it wants, batches, ranks) are no part of this.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

Extent = Literal["yes", "part", "no"]


@dataclass(frozen=True)
class OriginalSupport:
    """What the original's two backends do with an op."""

    opengl: Extent = "no"
    opencl: Extent = "no"
    note: str = ""  # about what is in part


_BOTH = OriginalSupport("yes", "yes")
_OPENCL = OriginalSupport("no", "yes")
_OPENGL = OriginalSupport("yes", "no", "OpenCL: does not reach its kernel")
_UPWARD = OriginalSupport("part", "yes", "OpenGL: upsampling alone")

ORIGINAL_OPS: Mapping[str, OriginalSupport] = MappingProxyType(
    {
        **dict.fromkeys(
            (
                "ABS",
                "ADD",
                "COS",
                "ELU",
                "EXP",
                "LOG",
                "NEG",
                "RSQRT",
                "SIN",
                "SQRT",
                "SQUARE",
                "TANH",
                "LOGISTIC",
                "HARD_SWISH",
                "PRELU",
                "RELU",
                "RELU6",
                "RELU_N1_TO_1",
                "RELU_0_TO_1",
                "LEAKY_RELU",
                "MUL",
                "SUB",
                "DIV",
                "MAXIMUM",
                "MINIMUM",
                "POW",
                "SQUARED_DIFFERENCE",
                "AVERAGE_POOL_2D",
                "MAX_POOL_2D",
                "CONCATENATION",
                "DEPTH_TO_SPACE",
                "SPACE_TO_DEPTH",
                "QUANTIZE",
                "PACK",
                "TILE",
                "TRANSPOSE_CONV",
                "Convolution2DTransposeBias",
                "MaxPoolingWithArgmax2D",
                "Resampler",
            ),
            _BOTH,
        ),
        **dict.fromkeys(
            (
                "SIGN",
                "EQUAL",
                "NOT_EQUAL",
                "GREATER",
                "GREATER_EQUAL",
                "LESS",
                "LESS_EQUAL",
                "LOGICAL_AND",
                "CAST",
                "CUMSUM",
                "GATHER",
                "ONE_HOT",
                "REDUCE_MAX",
                "REDUCE_MIN",
                "REDUCE_PROD",
                "SUM",
                "SELECT",
                "SELECT_V2",
                "SPLIT",
                "SPLIT_V",
                "UNPACK",
                "TRANSPOSE",
            ),
            _OPENCL,
        ),
        **dict.fromkeys(("FLOOR", "FLOOR_DIV", "FLOOR_MOD"), _OPENGL),
        **dict.fromkeys(("RESIZE_BILINEAR", "RESIZE_NEAREST_NEIGHBOR"), _UPWARD),
        "ADD_N": OriginalSupport("part", "part", "two operands"),
        "GELU": OriginalSupport("part", "yes", "OpenGL: approximated by tanh"),
        "BATCH_MATMUL": OriginalSupport("part", "yes", "OpenGL: constant matrices"),
        "CONV_2D": OriginalSupport("part", "yes", "OpenGL: constant weights, one group"),
        "DEPTHWISE_CONV_2D": OriginalSupport("part", "yes", "OpenGL: constant weights"),
        "DENSIFY": OriginalSupport("part", "part", "of weights"),
        "DEQUANTIZE": OriginalSupport("part", "yes", "OpenGL: none of constants"),
        "FULLY_CONNECTED": OriginalSupport("part", "yes", "OpenGL: constant weights"),
        "LSTM": OriginalSupport("part", "yes", "OpenGL: no int8 weights, no layer normalization"),
        "MEAN": OriginalSupport("part", "yes", "OpenGL: rows and columns"),
        "MIRROR_PAD": OriginalSupport("part", "part", "REFLECT alone"),
        "PAD": OriginalSupport("part", "yes", "OpenGL: no batch"),
        "PADV2": OriginalSupport("part", "yes", "OpenGL: pads with zeros whatever the value"),
        "RESHAPE": OriginalSupport("part", "yes", "OpenGL: no batch"),
        "SLICE": OriginalSupport("part", "yes", "OpenGL: no batch"),
        "STRIDED_SLICE": OriginalSupport("part", "part", "strides above 0, no ellipsis, new or dropped dimensions"),
        "SOFTMAX": OriginalSupport("part", "part", "beta 1"),
        "MaxUnpooling2D": OriginalSupport("part", "yes", "OpenGL: left out of release builds"),
    }
)
