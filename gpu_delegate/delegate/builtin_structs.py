"""A builtin's name and the address of its options in TensorFlow Lite's memory go in; they come out as a file says them.

The structs are those of tensorflow/lite/core/c/builtin_op_data.h, from TensorFlow Lite 2.12 to LiteRT 2, each as far as
all of these have it. runtime_probe.py compares every field with each runtime before any is trusted. Ops that are not
listed have no options that the reader asks for.
"""

import ctypes
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType

import numpy as np

from ..model.graph import OptionValue, OptionVector

MOST_INTEGERS = 8  # of a list in a struct, behind which stands how many there are
_FORMATS = MappingProxyType({"i": "i", "f": "f", "b": "?", "e": "i", "t": "i", "l": f"{MOST_INTEGERS + 1}i"})

StructOptions = tuple[tuple[str, OptionValue], ...]  # by the names of the schema's class


@dataclass(frozen=True)
class BuiltinStruct:
    """The options of an op: the schema's class, and the C struct's fields in their order, each as Name:kind.

    Kinds: i an int, f a float, b a bool, l a list of ints, e an enumeration that is one more than the schema's, 0 being
    unknown, t the type of an output, of which int32 and int64 have the schema's numbers.
    """

    table: str
    layout: str

    @cached_property
    def fields(self) -> tuple[tuple[str, str], ...]:
        """(name, kind) of each field."""
        return tuple((name, kind) for name, _, kind in (field.partition(":") for field in self.layout.split()))

    @cached_property
    def format(self) -> struct.Struct:
        """Values at the places that C gives them."""
        return struct.Struct("@" + "".join(_FORMATS[kind] for _, kind in self.fields))

    def options_at(self, address: int) -> StructOptions | None:
        """The options in a struct; None where a value is one that no file can say."""
        values = iter(self.format.unpack(ctypes.string_at(address, self.format.size)))
        found = list[tuple[str, OptionValue]]()
        for name, kind in self.fields:
            if kind == "l":
                *integers, count = (next(values) for _ in range(MOST_INTEGERS + 1))
                if not 0 <= count <= MOST_INTEGERS:
                    return None
                found.append((name, OptionVector("int32", np.array(integers[:count], np.int32).tobytes())))
                continue
            value = next(values) - (kind == "e")
            if kind == "e" and value < 0:
                return None
            found.append((name, value))
        return tuple(found)


_ACTIVATED = "FusedActivationFunction:i"
_WINDOW = "Padding:e StrideW:i StrideH:i"
_POOL = BuiltinStruct("Pool2DOptions", f"{_WINDOW} FilterWidth:i FilterHeight:i {_ACTIVATED}")
_TYPED = "OutputType:t"
_REDUCE = BuiltinStruct("ReducerOptions", "KeepDims:b")

STRUCTS: Mapping[str, BuiltinStruct] = MappingProxyType(
    {
        "ADD": BuiltinStruct("AddOptions", f"{_ACTIVATED} PotScaleInt16:b"),
        "ARG_MAX": BuiltinStruct("ArgMaxOptions", _TYPED),
        "ARG_MIN": BuiltinStruct("ArgMinOptions", _TYPED),
        "AVERAGE_POOL_2D": _POOL,
        "BATCH_MATMUL": BuiltinStruct("BatchMatMulOptions", "AdjX:b AdjY:b AsymmetricQuantizeInputs:b"),
        "CONCATENATION": BuiltinStruct("ConcatenationOptions", f"Axis:i {_ACTIVATED}"),
        "CONV_2D": BuiltinStruct("Conv2DOptions", f"{_WINDOW} {_ACTIVATED} DilationWFactor:i DilationHFactor:i"),
        "CUMSUM": BuiltinStruct("CumsumOptions", "Exclusive:b Reverse:b"),
        "DEPTHWISE_CONV_2D": BuiltinStruct(
            "DepthwiseConv2DOptions",
            f"{_WINDOW} DepthMultiplier:i {_ACTIVATED} DilationWFactor:i DilationHFactor:i",
        ),
        "DEPTH_TO_SPACE": BuiltinStruct("DepthToSpaceOptions", "BlockSize:i"),
        "DIV": BuiltinStruct("DivOptions", _ACTIVATED),
        "FAKE_QUANT": BuiltinStruct("FakeQuantOptions", "Min:f Max:f NumBits:i NarrowRange:b"),
        "FULLY_CONNECTED": BuiltinStruct(
            "FullyConnectedOptions", f"{_ACTIVATED} WeightsFormat:i KeepNumDims:b AsymmetricQuantizeInputs:b"
        ),
        "GATHER": BuiltinStruct("GatherOptions", "Axis:i BatchDims:i"),
        "GELU": BuiltinStruct("GeluOptions", "Approximate:b"),
        "L2_NORMALIZATION": BuiltinStruct("L2NormOptions", _ACTIVATED),
        "L2_POOL_2D": _POOL,
        "LEAKY_RELU": BuiltinStruct("LeakyReluOptions", "Alpha:f"),
        "LOCAL_RESPONSE_NORMALIZATION": BuiltinStruct(
            "LocalResponseNormalizationOptions", "Radius:i Bias:f Alpha:f Beta:f"
        ),
        "LSTM": BuiltinStruct("LSTMOptions", f"{_ACTIVATED} CellClip:f ProjClip:f KernelType:i"),
        "MAX_POOL_2D": _POOL,
        "MEAN": _REDUCE,
        "MIRROR_PAD": BuiltinStruct("MirrorPadOptions", "Mode:e"),
        "MUL": BuiltinStruct("MulOptions", _ACTIVATED),
        "ONE_HOT": BuiltinStruct("OneHotOptions", "Axis:i"),
        "PACK": BuiltinStruct("PackOptions", "ValuesCount:i Axis:i"),
        "REDUCE_ALL": _REDUCE,
        "REDUCE_ANY": _REDUCE,
        "REDUCE_MAX": _REDUCE,
        "REDUCE_MIN": _REDUCE,
        "REDUCE_PROD": _REDUCE,
        "RESHAPE": BuiltinStruct("ReshapeOptions", "NewShape:l"),
        "RESIZE_BILINEAR": BuiltinStruct("ResizeBilinearOptions", "AlignCorners:b HalfPixelCenters:b"),
        "RESIZE_NEAREST_NEIGHBOR": BuiltinStruct("ResizeNearestNeighborOptions", "AlignCorners:b HalfPixelCenters:b"),
        "REVERSE_SEQUENCE": BuiltinStruct("ReverseSequenceOptions", "SeqDim:i BatchDim:i"),
        "SHAPE": BuiltinStruct("ShapeOptions", "OutType:t"),
        "SOFTMAX": BuiltinStruct("SoftmaxOptions", "Beta:f"),
        "SPACE_TO_DEPTH": BuiltinStruct("SpaceToDepthOptions", "BlockSize:i"),
        "SPLIT": BuiltinStruct("SplitOptions", "NumSplits:i"),
        "SPLIT_V": BuiltinStruct("SplitVOptions", "NumSplits:i"),
        "SQUEEZE": BuiltinStruct("SqueezeOptions", "SqueezeDims:l"),
        "STRIDED_SLICE": BuiltinStruct(
            "StridedSliceOptions",
            "BeginMask:i EndMask:i EllipsisMask:i NewAxisMask:i ShrinkAxisMask:i Offset:b",
        ),
        "SUB": BuiltinStruct("SubOptions", f"{_ACTIVATED} PotScaleInt16:b"),
        "SUM": _REDUCE,
        "TRANSPOSE_CONV": BuiltinStruct("TransposeConvOptions", f"{_WINDOW} {_ACTIVATED}"),
        "UNPACK": BuiltinStruct("UnpackOptions", "Num:i Axis:i"),
    }
)

# Control flow: the numbers of other subgraphs.
CALLS: Mapping[str, BuiltinStruct] = MappingProxyType(
    {
        "CALL_ONCE": BuiltinStruct("CallOnceOptions", "InitSubgraphIndex:i"),
        "IF": BuiltinStruct("IfOptions", "ThenSubgraphIndex:i ElseSubgraphIndex:i"),
        "WHILE": BuiltinStruct("WhileOptions", "CondSubgraphIndex:i BodySubgraphIndex:i"),
    }
)
