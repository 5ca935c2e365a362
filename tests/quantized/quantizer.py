"""Quantizes a float model by TensorFlow Lite's rules.

Ranges are measured: the float twin runs on the inputs. Activations are int8 or uint8 with a scale and a zero point for
each tensor, weights int8 with a scale for each channel (or uint8 with one for all), biases int32 with the product of
the scales. Ops that only move or choose values keep their scale; LOGISTIC and its kin have fixed ones. What has no
quantized form stays float, between DEQUANTIZE and QUANTIZE.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt

from tests.model_files.model_builder import Array, ModelBuilder
from tests.quantized.runs import every_tensor

Encoding = tuple[float, int]  # scale, zero point

WEIGHTS = MappingProxyType(
    {  # op: (input with x, input with weights, input with bias, dimension of output channels)
        "CONV_2D": (0, 1, 2, 0),
        "DEPTHWISE_CONV_2D": (0, 1, 2, 3),
        "FULLY_CONNECTED": (0, 1, 2, 0),
        "TRANSPOSE_CONV": (2, 1, 3, 0),
    }
)
ONE_SCALE_OF_WEIGHTS = ("FULLY_CONNECTED",)
FIXED = MappingProxyType(  # scale, and zero point as a uint8 (an int8 has 128 less)
    {
        "LOGISTIC": (1 / 256, 0),
        "SOFTMAX": (1 / 256, 0),
        "TANH": (1 / 128, 128),
        "L2_NORMALIZATION": (1 / 128, 128),
        "LOG_SOFTMAX": (16 / 256, 255),
    }
)
_KEPT = """AVERAGE_POOL_2D MAX_POOL_2D RESHAPE SQUEEZE EXPAND_DIMS SLICE STRIDED_SLICE SPLIT SPLIT_V TRANSPOSE GATHER
    GATHER_ND TILE PAD PADV2 MIRROR_PAD PACK UNPACK SPACE_TO_BATCH_ND BATCH_TO_SPACE_ND DEPTH_TO_SPACE SPACE_TO_DEPTH
    RESIZE_BILINEAR RESIZE_NEAREST_NEIGHBOR SELECT SELECT_V2 MAXIMUM MINIMUM REDUCE_MAX REDUCE_MIN BROADCAST_TO
    REVERSE_V2 TOPK_V2 CONCATENATION"""
_SCALED = """ADD SUB MUL MEAN SUM RELU RELU6 RELU_N1_TO_1 LEAKY_RELU PRELU HARD_SWISH EXP RSQRT ABS GELU LOG
    SQUARED_DIFFERENCE BATCH_MATMUL QUANTIZE"""
_OF_INTEGERS = "ARG_MAX ARG_MIN EQUAL NOT_EQUAL GREATER GREATER_EQUAL LESS LESS_EQUAL"
_NOT_OF_UINT8 = "ABS EXP RSQRT SQUARED_DIFFERENCE BATCH_MATMUL SELECT_V2 REDUCE_MIN LOG"
KEEP = frozenset(_KEPT.split())  # input and output have one scale
OWN = frozenset(_SCALED.split())  # each tensor has its own
WHOLE = frozenset(_OF_INTEGERS.split())  # of quantized inputs, with a result that is not quantized
UINT8_ALONE = frozenset(["DIV"])
INT8_ALONE = frozenset(_NOT_OF_UINT8.split())


@dataclass(frozen=True)
class Scheme:
    """How a model is quantized."""

    dtype: str = "int8"
    per_channel: bool = True  # weights of convolutions, int8 alone
    border: str = "own"  # the graph's inputs and outputs: "own", "float32", or "uint8" around int8
    float_ops: frozenset[str] = frozenset()  # that stay float besides
    apart: bool = False  # inputs of a uint8 CONCATENATION have scales of their own


def quantized_twin(model: ModelBuilder, samples: Sequence[Sequence[Array]], scheme: Scheme = Scheme()) -> bytes:
    """The .tflite file of a model quantized after its float twin's ranges on these inputs."""
    return _Twin(model, samples, scheme).build()


def hybrid_twin(model: ModelBuilder, per_channel: bool = True) -> bytes:
    """The .tflite file with int8 weights and float activations: the converter's dynamic range quantization."""
    twin = ModelBuilder(list(model.tensors), list(model.ops), list(model.inputs), list(model.outputs))
    for op in model.ops:
        if op.name not in WEIGHTS or op.name == "TRANSPOSE_CONV":
            continue
        _, weights, _, dimension = WEIGHTS[op.name]
        index = op.inputs[weights]
        whole = not per_channel or op.name in ONE_SCALE_OF_WEIGHTS
        if model.tensors[index].data is not None and model.tensors[index].dtype == "float32":
            twin.tensors[index] = _weights(model.tensors[index], None if whole else dimension)
    return twin.build()


class _Twin:
    def __init__(self, model: ModelBuilder, samples: Sequence[Sequence[Array]], scheme: Scheme) -> None:
        self.model, self.scheme, self.out = model, scheme, ModelBuilder()
        self.floats = {i for i, tensor in enumerate(model.tensors) if tensor.dtype == "float32"}
        self.quantized_ops = [op for op in model.ops if self.is_quantized(op)]
        self.parent = list(range(len(model.tensors)))
        self.ranges = _ranges(model, samples)
        self.encodings = self.choose()
        self.stored: dict[tuple[int, str], int] = {}  # a tensor of the model, as "integers" or "floats"

    def is_quantized(self, op: Any) -> bool:
        """Whether TensorFlow Lite has the op for these integers."""
        uint8 = self.scheme.dtype == "uint8"
        known = op.name in KEEP | OWN | WHOLE | FIXED.keys() | WEIGHTS.keys() | (UINT8_ALONE if uint8 else frozenset())
        lacks = INT8_ALONE if uint8 else frozenset[str]()
        touches = any(i in self.floats for i in (*op.inputs, *op.outputs) if i >= 0)
        return known and op.name not in lacks | self.scheme.float_ops and touches

    # Scales -------------------------------------------------------------------------------------------------------

    def root(self, tensor: int) -> int:
        while self.parent[tensor] != tensor:
            tensor = self.parent[tensor]
        return tensor

    def choose(self) -> dict[int, Encoding]:
        """Scale and zero point of each float tensor that an op reads or writes as integers."""
        fixed: dict[int, Encoding] = {}
        for op in self.quantized_ops:
            if op.name in FIXED:
                scale, zero_point = FIXED[op.name]
                fixed[op.outputs[0]] = scale, zero_point - self.offset
            if op.name in KEEP and not (op.name == "CONCATENATION" and self.scheme.apart):
                same = [i for i in (*op.inputs, *op.outputs) if i in self.floats]
                bound = {self.root(tensor) for tensor in fixed}
                if len(set(same) - set(op.outputs)) > 1:  # a fixed scale is not forced upon the others: see `rescaled`
                    same = [i for i in same if self.root(i) not in bound]
                for tensor in same[1:]:
                    self.parent[self.root(tensor)] = self.root(same[0])
        groups: dict[int, list[int]] = {}
        for tensor in sorted(self.floats):
            groups.setdefault(self.root(tensor), []).append(tensor)
        found: dict[int, Encoding] = {}
        for members in groups.values():
            given = [fixed[tensor] for tensor in members if tensor in fixed]
            low = min(self.ranges[tensor][0] for tensor in members)
            high = max(self.ranges[tensor][1] for tensor in members)
            found |= dict.fromkeys(members, given[0] if given else self.encoding(low, high))
        return found | fixed

    @property
    def offset(self) -> int:
        return 128 if self.scheme.dtype == "int8" else 0

    def encoding(self, low: float, high: float) -> Encoding:
        """Of a range, which is widened to hold zero."""
        low, high = min(low, 0.0), max(high, 0.0)
        scale = float(np.float32(max(high - low, 1e-6) / 255))
        return scale, int(np.clip(np.rint(-low / scale), 0, 255)) - self.offset

    # The file -----------------------------------------------------------------------------------------------------

    def build(self) -> bytes:
        for tensor in self.model.inputs:
            self.border_in(tensor)
        for op in self.model.ops:
            self.add(op)
        self.out.output(*(self.border_out(tensor) for tensor in self.model.outputs))
        return self.out.build()

    def border_in(self, tensor: int) -> None:
        known = self.model.tensors[tensor]
        border = self.scheme.border
        if tensor not in self.floats or (border == "own" and self.reads_integers(tensor)):
            self.out.inputs.append(self.put(tensor))
        elif border == "uint8" and self.reads_integers(tensor):
            scale, zero_point = self.encodings[tensor]
            scales, zero_points = (scale,), (zero_point + 128,)
            self.out.inputs.append(self.out.tensor(known.shape, "uint8", scales=scales, zero_points=zero_points))
            self.out.op_of("QUANTIZE", [self.out.inputs[-1]], [self.put(tensor)])
        else:
            self.out.inputs.append(self.out.tensor(known.shape))
            self.stored[tensor, "floats"] = self.out.inputs[-1]

    def reads_integers(self, tensor: int) -> bool:
        return any(tensor in op.inputs for op in self.quantized_ops)

    def border_out(self, tensor: int) -> int:
        border = self.scheme.border
        if tensor not in self.floats:
            return self.put(tensor)
        written = next((op for op in self.model.ops if tensor in op.outputs), None)
        if border == "float32" or written is None or written not in self.quantized_ops:
            return self.as_floats(tensor)
        if border == "uint8":
            scale, zero_point = self.encodings[tensor]
            last = self.out.tensor(
                self.model.tensors[tensor].shape, "uint8", scales=(scale,), zero_points=(zero_point + 128,)
            )
            return self.out.op_of("QUANTIZE", [self.put(tensor)], [last])[0]
        return self.put(tensor)

    def put(self, tensor: int) -> int:
        """The tensor as integers; one that never was float, as it is."""
        key = (tensor, "integers")
        if key not in self.stored:
            known = self.model.tensors[tensor]
            if tensor in self.floats:
                scale, zero_point = self.encodings[tensor]
                data = None
                if known.data is not None:
                    data = _integers(_values(known), scale, zero_point, self.scheme.dtype).tobytes()
                known = replace(known, dtype=self.scheme.dtype, data=data, scales=(scale,), zero_points=(zero_point,))
            self.out.tensors.append(known)
            self.stored[key] = len(self.out.tensors) - 1
            if tensor in self.floats and known.data is None and (tensor, "floats") in self.stored:
                self.out.op_of("QUANTIZE", [self.stored[tensor, "floats"]], [self.stored[key]])
        return self.stored[key]

    def as_floats(self, tensor: int) -> int:
        """The tensor as floats, by DEQUANTIZE where an op wrote integers."""
        key = (tensor, "floats")
        if key not in self.stored:
            known = self.model.tensors[tensor]
            self.out.tensors.append(known)
            self.stored[key] = len(self.out.tensors) - 1
            if known.data is None:
                self.out.op_of("DEQUANTIZE", [self.stored[tensor, "integers"]], [self.stored[key]])
        return self.stored[key]

    def add(self, op: Any) -> None:
        if op not in self.quantized_ops:
            inputs = [i if i < 0 else self.as_floats(i) if i in self.floats else self.put(i) for i in op.inputs]
            outputs = []
            for tensor in op.outputs:
                if tensor in self.floats:
                    self.out.tensors.append(self.model.tensors[tensor])
                    self.stored[tensor, "floats"] = len(self.out.tensors) - 1
                    outputs.append(self.stored[tensor, "floats"])
                else:
                    outputs.append(self.put(tensor))
            self.out.op_of(op.name, inputs, outputs, **op.options)
            return
        inputs = self.weighted(op) if op.name in WEIGHTS else [i if i < 0 else self.rescaled(op, i) for i in op.inputs]
        self.out.op_of(op.name, inputs, [self.put(i) for i in op.outputs], **op.options)

    def rescaled(self, op: Any, tensor: int) -> int:
        """An input of an op that keeps the scale, where the output's is another: by a further QUANTIZE."""
        stored, result = self.put(tensor), op.outputs[0]
        if op.name not in KEEP or not {tensor, result} <= self.floats or self.scheme.apart:
            return stored
        (scale, zero_point), known = self.encodings[result], self.out.tensors[stored]
        if self.encodings[tensor] == (scale, zero_point):
            return stored
        made = self.out.tensor(known.shape, known.dtype, scales=(scale,), zero_points=(zero_point,))
        return self.out.op_of("QUANTIZE", [stored], [made])[0]

    def weighted(self, op: Any) -> list[int]:
        x, weights, bias, dimension = WEIGHTS[op.name]
        known = self.model.tensors[op.inputs[weights]]
        whole = not self.scheme.per_channel or self.scheme.dtype == "uint8" or op.name in ONE_SCALE_OF_WEIGHTS
        if self.scheme.dtype == "uint8":
            values = _values(known)
            scale, zero_point = self.encoding(float(values.min()), float(values.max()))
            stored = _integers(values, scale, zero_point, "uint8")
            made = replace(known, dtype="uint8", data=stored.tobytes(), scales=(scale,), zero_points=(zero_point,))
        else:
            made = _weights(known, None if whole else dimension)
        inputs = []
        for place, tensor in enumerate(op.inputs):
            if place == weights:
                self.out.tensors.append(made)
                inputs.append(len(self.out.tensors) - 1)
            elif place == bias and tensor >= 0:
                scales = tuple(float(np.float32(self.encodings[op.inputs[x]][0] * scale)) for scale in made.scales)
                known_bias = self.model.tensors[tensor]
                whole_numbers = _integers(_values(known_bias), np.array(scales), 0, "int32")
                self.out.tensors.append(
                    replace(
                        known_bias,
                        dtype="int32",
                        data=whole_numbers.tobytes(),
                        scales=scales,
                        zero_points=(0,) * len(scales),
                    )
                )
                inputs.append(len(self.out.tensors) - 1)
            else:
                inputs.append(tensor if tensor < 0 else self.put(tensor))
        return inputs


def _values(tensor: Any) -> npt.NDArray[np.float32]:
    return np.frombuffer(tensor.data, np.float32).reshape(tensor.shape)


def _integers(values: Array, scale: float | Array, zero_point: int, dtype: str) -> Array:
    limits = np.iinfo(dtype)
    return np.asarray(np.clip(np.rint(values / scale) + zero_point, limits.min, limits.max), dtype)


def _weights(tensor: Any, dimension: int | None) -> Any:
    """int8 from -127 to 127, with a scale for each place along a dimension or with one."""
    values = _values(tensor)
    others = tuple(k for k in range(values.ndim) if k != dimension)
    most = np.abs(values).max(others, keepdims=True)
    scales = np.asarray(np.maximum(most, 1e-6) / 127, np.float32)
    stored = np.clip(np.rint(values / scales), -127, 127).astype(np.int8)
    return replace(
        tensor,
        dtype="int8",
        data=stored.tobytes(),
        scales=tuple(scales.ravel().tolist()),
        zero_points=(0,) * scales.size,
        dimension=dimension or 0,
    )


def _ranges(model: ModelBuilder, samples: Sequence[Sequence[Array]]) -> Mapping[int, tuple[float, float]]:
    """Least and greatest value of each float tensor, on inputs or as its constant has them."""
    found: dict[int, tuple[float, float]] = {}
    for values in every_tensor(model.build(), samples):
        for index, array in values.items():
            if array.dtype == np.float32 and array.size:
                low, high = found.get(index, (0.0, 0.0))
                found[index] = min(low, float(array.min())), max(high, float(array.max()))
    return {i: found.get(i, (0.0, 0.0)) for i in range(len(model.tensors))}
