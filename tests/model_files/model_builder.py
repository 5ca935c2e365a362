"""Builds .tflite files from shapes, constants and ops: the models that the tests are made of."""

import struct
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any

import flatbuffers
import numpy as np
import numpy.typing as npt
import tflite

from tests.model_files.flatbuffer_tables import signature_table, tables
from texelflow.gpu_delegate.reading.sparsity import SparseLayout, SparseLevel

Array = npt.NDArray[Any]
Shape = tuple[int, ...]

CPU_OP = "L2_POOL_2D"
CUSTOM_TRANSPOSE = "Convolution2DTransposeBias"
OPTIONS = MappingProxyType(
    {
        "CONV_2D": "Conv2DOptions",
        "DEPTHWISE_CONV_2D": "DepthwiseConv2DOptions",
        "TRANSPOSE_CONV": "TransposeConvOptions",
        "FULLY_CONNECTED": "FullyConnectedOptions",
        "BATCH_MATMUL": "BatchMatMulOptions",
        "ADD": "AddOptions",
        "SUB": "SubOptions",
        "MUL": "MulOptions",
        "DIV": "DivOptions",
        "MAXIMUM": "MaximumMinimumOptions",
        "MINIMUM": "MaximumMinimumOptions",
        "LEAKY_RELU": "LeakyReluOptions",
        "GELU": "GeluOptions",
        "CAST": "CastOptions",
        "AVERAGE_POOL_2D": "Pool2DOptions",
        "MAX_POOL_2D": "Pool2DOptions",
        "L2_POOL_2D": "Pool2DOptions",
        **dict.fromkeys(
            ("MEAN", "SUM", "REDUCE_PROD", "REDUCE_MAX", "REDUCE_MIN", "REDUCE_ANY", "REDUCE_ALL"), "ReducerOptions"
        ),
        "L2_NORMALIZATION": "L2NormOptions",
        "LSTM": "LSTMOptions",
        "CUMSUM": "CumsumOptions",
        "RESIZE_BILINEAR": "ResizeBilinearOptions",
        "RESIZE_NEAREST_NEIGHBOR": "ResizeNearestNeighborOptions",
        "CONCATENATION": "ConcatenationOptions",
        "RESHAPE": "ReshapeOptions",
    }
)
VERSIONS = MappingProxyType(
    {
        "TRANSPOSE_CONV": 3,
        "DEQUANTIZE": 3,
        "RESIZE_BILINEAR": 3,
        "RESIZE_NEAREST_NEIGHBOR": 3,
        "BROADCAST_TO": 2,
        "LSTM": 2,
    }
)
PAIRS = MappingProxyType(
    {
        "stride": ("StrideH", "StrideW"),
        "dilation": ("DilationHFactor", "DilationWFactor"),
        "kernel": ("FilterHeight", "FilterWidth"),
    }
)


@dataclass(frozen=True)
class _Tensor:
    shape: Shape
    dtype: str
    data: bytes | None = None
    name: str = ""
    signature: Shape | None = None
    scales: tuple[float, ...] = ()
    zero_points: tuple[int, ...] = ()
    dimension: int = 0  # of the scales
    sparsity: SparseLayout | None = None
    is_variable: bool = False


@dataclass(frozen=True)
class _Op:
    name: str
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    options: dict[str, Any]


@dataclass
class ModelBuilder:
    """One subgraph, op by op; tensors are the indices that input(), constant(), half() and op() return."""

    tensors: list[_Tensor] = field(default_factory=list)
    ops: list[_Op] = field(default_factory=list)
    inputs: list[int] = field(default_factory=list)
    outputs: list[int] = field(default_factory=list)
    metadata: bytes | None = None  # TFLITE_METADATA
    further: list["ModelBuilder"] = field(default_factory=list)  # further subgraphs, from 1 on
    signatures: Mapping[str, int] = field(default_factory=dict)  # names of subgraphs

    def tensor(
        self,
        shape: Shape,
        dtype: str = "float32",
        data: bytes | None = None,
        signature: Shape | None = None,
        **more: Any,
    ) -> int:
        """Any tensor, however impossible: for models that must be refused. Also scales, zero_points, sparsity."""
        self.tensors.append(_Tensor(shape, dtype, data, f"tensor{len(self.tensors)}", signature, **more))
        return len(self.tensors) - 1

    def sparse(self, values: Array, layout: SparseLayout, shape: Shape) -> int:
        """A constant of which only some values are in the file, and where they stand."""
        return self.tensor(shape, values.dtype.name, values.tobytes(), sparsity=layout)

    def input(self, shape: Shape, dtype: str = "float32") -> int:
        """An input of the graph."""
        self.inputs.append(self.tensor(shape, dtype))
        return self.inputs[-1]

    def constant(self, values: npt.ArrayLike, dtype: str = "float32") -> int:
        """A constant in the file."""
        array = np.ascontiguousarray(values, dtype)
        return self.tensor(np.shape(values), dtype, array.tobytes())

    def half(self, values: npt.ArrayLike) -> int:
        """A constant kept as float16 and made float32 by DEQUANTIZE, as MediaPipe's models do it."""
        return self.op("DEQUANTIZE", [self.constant(values, "float16")], np.shape(values))

    def op(self, name: str, inputs: Sequence[int], shape: Shape, dtype: str = "float32", **options: Any) -> int:
        """One operator with one output of this shape; -1 is an input left out.

        Options: stride, dilation and kernel as (h, w), padding="SAME" | "VALID", activation="RELU"…, and the other
        fields of the op's options in the schema, in lower case (keep_dims, align_corners, axis, alpha…).
        """
        return self.split(name, inputs, (shape,), dtype, **options)[0]

    def cpu_op(self, x: int, kernel: tuple[int, int] = (129, 129)) -> int:
        """An op that the GPU leaves to TensorFlow Lite, and XNNPACK too: its window is too large for a kernel."""
        options: dict[str, Any] = {"kernel": kernel, "stride": (1, 1), "padding": "SAME", "table": "Pool2DOptions"}
        return self.op(CPU_OP, [x], self.tensors[x].shape, **options)

    def split(
        self, name: str, inputs: Sequence[int], shapes: Sequence[Shape], dtype: str = "float32", **options: Any
    ) -> tuple[int, ...]:
        """One operator with an output of each of these shapes."""
        return self.op_of(name, inputs, [self.tensor(shape, dtype) for shape in shapes], **options)

    def op_of(self, name: str, inputs: Sequence[int], outputs: Sequence[int], **options: Any) -> tuple[int, ...]:
        """One operator that writes these tensors. Further options: table, the class of its options; custom, bytes."""
        self.ops.append(_Op(name, tuple(inputs), tuple(outputs), options))
        return self.ops[-1].outputs

    def output(self, *tensors: int) -> None:
        """Names the outputs of the graph."""
        self.outputs += tensors

    def build(self) -> bytes:
        """The .tflite file."""
        builder, parts = flatbuffers.Builder(1024), (self, *self.further)
        own = {id(tensor.data): tensor.data for part in parts for tensor in part.tensors if tensor.data is not None}
        datas = list(own.values())  # the same object is one buffer, of several tensors
        buffers = tables(builder, [_buffer(builder, data) for data in (b"", *datas, *filter(None, [self.metadata]))])
        about = tables(builder, [_metadata(builder, 1 + len(datas))]) if self.metadata else None
        numbers = {key: number for number, key in enumerate(own, 1)}
        names = list(dict.fromkeys(op.name for part in parts for op in part.ops))
        subgraphs = tables(builder, [part.subgraph(builder, numbers, names) for part in parts])
        codes = tables(builder, [_code(builder, name) for name in names])
        sides = [(part.inputs, part.outputs) for part in parts]
        entries = [signature_table(builder, name, n, sides[n % len(parts)]) for name, n in self.signatures.items()]
        signatures = tables(builder, entries) if entries else None
        tflite.ModelStart(builder)
        tflite.ModelAddVersion(builder, 3)
        tflite.ModelAddOperatorCodes(builder, codes)
        tflite.ModelAddSubgraphs(builder, subgraphs)
        tflite.ModelAddBuffers(builder, buffers)
        if about is not None:
            tflite.ModelAddMetadata(builder, about)
        if signatures is not None:
            tflite.ModelAddSignatureDefs(builder, signatures)
        builder.Finish(tflite.ModelEnd(builder), b"TFL3")
        return bytes(builder.Output())

    def subgraph(self, builder: Any, numbers: Mapping[int, int], names: list[str]) -> int:
        """A subgraph's table, for buffers with these numbers, by what is in them, and codes with these names."""
        tensors = tables(
            builder,
            [_tensor(builder, tensor, numbers.get(id(tensor.data), 0)) for tensor in self.tensors],
        )
        operators = tables(builder, [_operator(builder, op, names.index(op.name)) for op in self.ops])
        inputs, outputs = _integers(builder, self.inputs), _integers(builder, self.outputs)
        tflite.SubGraphStart(builder)
        tflite.SubGraphAddTensors(builder, tensors)
        tflite.SubGraphAddInputs(builder, inputs)
        tflite.SubGraphAddOutputs(builder, outputs)
        tflite.SubGraphAddOperators(builder, operators)
        return int(tflite.SubGraphEnd(builder))


def _metadata(builder: Any, buffer: int) -> int:
    """An entry that names a buffer."""
    name = builder.CreateString("TFLITE_METADATA")
    tflite.MetadataStart(builder)
    tflite.MetadataAddName(builder, name)
    tflite.MetadataAddBuffer(builder, buffer)
    return int(tflite.MetadataEnd(builder))


def _integers(builder: Any, values: Iterable[int]) -> int:
    return int(builder.CreateNumpyVector(np.array(tuple(values), np.int32)))


def _buffer(builder: Any, data: bytes) -> int:
    builder.Prep(16, len(data))  # TensorFlow Lite reads constants where they are: they must be aligned
    stored = builder.CreateByteVector(data) if data else 0
    tflite.BufferStart(builder)
    tflite.BufferAddData(builder, stored)
    return int(tflite.BufferEnd(builder))


def _tensor(builder: Any, tensor: _Tensor, buffer: int) -> int:
    shape, name = _integers(builder, tensor.shape), builder.CreateString(tensor.name)
    signature = 0 if tensor.signature is None else _integers(builder, tensor.signature)
    quantization = _quantization(builder, tensor) if tensor.scales else 0
    sparsity = 0 if tensor.sparsity is None else _sparsity(builder, tensor.sparsity)
    tflite.TensorStart(builder)
    tflite.TensorAddShape(builder, shape)
    tflite.TensorAddType(builder, getattr(tflite.TensorType, tensor.dtype.upper()))
    tflite.TensorAddBuffer(builder, buffer)
    tflite.TensorAddName(builder, name)
    tflite.TensorAddShapeSignature(builder, signature)
    tflite.TensorAddQuantization(builder, quantization)
    tflite.TensorAddSparsity(builder, sparsity)
    tflite.TensorAddIsVariable(builder, tensor.is_variable)
    return int(tflite.TensorEnd(builder))


def _quantization(builder: Any, tensor: _Tensor) -> int:
    scales = builder.CreateNumpyVector(np.array(tensor.scales, np.float32))
    zero_points = builder.CreateNumpyVector(np.array(tensor.zero_points, np.int64))
    tflite.QuantizationParametersStart(builder)
    tflite.QuantizationParametersAddScale(builder, scales)
    tflite.QuantizationParametersAddZeroPoint(builder, zero_points)
    tflite.QuantizationParametersAddQuantizedDimension(builder, tensor.dimension)
    return int(tflite.QuantizationParametersEnd(builder))


def _sparsity(builder: Any, layout: SparseLayout) -> int:
    levels = tables(builder, [_level(builder, level) for level in layout.levels])
    order, block_map = _integers(builder, layout.order), _integers(builder, layout.block_map)
    tflite.SparsityParametersStart(builder)
    tflite.SparsityParametersAddTraversalOrder(builder, order)
    tflite.SparsityParametersAddBlockMap(builder, block_map)
    tflite.SparsityParametersAddDimMetadata(builder, levels)
    return int(tflite.SparsityParametersEnd(builder))


def _level(builder: Any, level: SparseLevel) -> int:
    vectors = [_indices(builder, values) for values in (level.segments, level.indices) if values is not None]
    tflite.DimensionMetadataStart(builder)
    tflite.DimensionMetadataAddFormat(builder, int(bool(vectors)))
    tflite.DimensionMetadataAddDenseSize(builder, level.size)
    if vectors:
        tflite.DimensionMetadataAddArraySegmentsType(builder, vectors[0][0])
        tflite.DimensionMetadataAddArraySegments(builder, vectors[0][1])
        tflite.DimensionMetadataAddArrayIndicesType(builder, vectors[1][0])
        tflite.DimensionMetadataAddArrayIndices(builder, vectors[1][1])
    return int(tflite.DimensionMetadataEnd(builder))


def _indices(builder: Any, values: Array) -> tuple[int, int]:
    """The smallest of the schema's three vectors that holds the values: its type and its offset."""
    bits = next(bits for bits in (8, 16, 32) if values.max(initial=0) < 1 << min(bits, 31))
    name = {8: "Uint8Vector", 16: "Uint16Vector", 32: "Int32Vector"}[bits]
    kind = {8: np.uint8, 16: np.uint16, 32: np.int32}[bits]
    stored = builder.CreateNumpyVector(values.astype(kind))
    getattr(tflite, f"{name}Start")(builder)
    getattr(tflite, f"{name}AddValues")(builder, stored)
    return getattr(tflite.SparseIndexVector, name), int(getattr(tflite, f"{name}End")(builder))


def _code(builder: Any, name: str) -> int:
    builtin = getattr(tflite.BuiltinOperator, name, tflite.BuiltinOperator.CUSTOM)
    custom = builder.CreateString(name) if builtin == tflite.BuiltinOperator.CUSTOM else 0
    tflite.OperatorCodeStart(builder)
    tflite.OperatorCodeAddDeprecatedBuiltinCode(builder, min(builtin, 127))
    tflite.OperatorCodeAddBuiltinCode(builder, builtin)
    tflite.OperatorCodeAddVersion(builder, VERSIONS.get(name, 1))
    tflite.OperatorCodeAddCustomCode(builder, custom)
    return int(tflite.OperatorCodeEnd(builder))


def _operator(builder: Any, op: _Op, code: int) -> int:
    inputs, outputs = _integers(builder, op.inputs), _integers(builder, op.outputs)
    given = dict(op.options)
    table, stored = given.pop("table", OPTIONS.get(op.name) or _own_options(op.name)), given.pop("custom", b"")
    options = _options(builder, table, given) if table else 0
    second = table is not None and not hasattr(tflite.BuiltinOptions, table)  # what the schema's first union lacks
    if op.name == CUSTOM_TRANSPOSE:
        stored = _transpose_params(**given)
    custom = builder.CreateByteVector(stored) if stored else 0
    tflite.OperatorStart(builder)
    tflite.OperatorAddOpcodeIndex(builder, code)
    tflite.OperatorAddInputs(builder, inputs)
    tflite.OperatorAddOutputs(builder, outputs)
    if second:
        tflite.OperatorAddBuiltinOptions2Type(builder, getattr(tflite.BuiltinOptions2, str(table)))
        tflite.OperatorAddBuiltinOptions2(builder, options)
    else:
        tflite.OperatorAddBuiltinOptionsType(builder, getattr(tflite.BuiltinOptions, table) if table else 0)
        tflite.OperatorAddBuiltinOptions(builder, options)
    tflite.OperatorAddCustomOptions(builder, custom)
    return int(tflite.OperatorEnd(builder))


def _own_options(op: str) -> str | None:
    """The class of a builtin's options, by its name: that of DEPTH_TO_SPACE is DepthToSpaceOptions."""
    name = "".join(part.title() for part in op.split("_")) + "Options"
    return name if hasattr(tflite.BuiltinOptions, name) else None


def _options(builder: Any, table: str, options: dict[str, Any]) -> int:
    fields: dict[str, Any] = {}
    for key, value in options.items():
        if key in PAIRS:
            fields |= dict(zip(PAIRS[key], value, strict=True))
        elif key == "padding":
            fields["Padding"] = getattr(tflite.Padding, value)
        elif key == "activation":
            fields["FusedActivationFunction"] = getattr(tflite.ActivationFunctionType, value)
        else:
            fields[key.title().replace("_", "")] = value
    for key, value in fields.items():
        if isinstance(value, tuple):
            fields[key] = _integers(builder, value)
        elif isinstance(value, np.ndarray):
            fields[key] = builder.CreateNumpyVector(value)
        elif isinstance(value, str):
            fields[key] = builder.CreateString(value)
    getattr(tflite, f"{table}Start")(builder)
    for name, value in fields.items():
        getattr(tflite, f"{table}Add{name}")(builder, value)
    return int(getattr(tflite, f"{table}End")(builder))


def _transpose_params(stride: tuple[int, int] = (2, 2), padding: str = "SAME") -> bytes:
    """TfLiteTransposeConvParams: padding (1 SAME, 2 VALID), stride width, stride height."""
    return struct.pack("<3i", 1 + getattr(tflite.Padding, padding), stride[1], stride[0])


@dataclass(frozen=True)
class Block:
    """An inverted bottleneck: 1x1 to `expanded`, depthwise, squeeze and excite where asked for, 1x1 to `channels`."""

    channels: int
    expanded: int
    kernel: int = 3
    stride: int = 1
    activation: str = "RELU"
    squeezed: int = 0


SELFIE_BLOCKS = (
    Block(16, 16, stride=2, squeezed=8),
    Block(24, 72, stride=2),
    Block(24, 88),
    Block(32, 96, 5, 2, "HARD_SWISH", 24),
    *(Block(32, 128, 5, 1, "HARD_SWISH", 32),) * 2,
    *(Block(32, 96, 5, 1, "HARD_SWISH", 24),) * 2,
)
ODD_BLOCKS = (
    Block(13, 19, 5, 2, "HARD_SWISH", 5),
    Block(13, 21, 3, 1, "RELU", 7),
    Block(7, 23, 3, 2),
    Block(19, 37, 3, 2, "HARD_SWISH"),
    Block(19, 29, 5, 1, "RELU", 5),
    Block(19, 33),
)


@dataclass(frozen=True)
class Family:
    """What may differ inside the family of networks of selfie_segmentation; the defaults are that network's."""

    size: tuple[int, int] = (256, 256)  # (width, height); the output has it too, so both are even
    stem: int = 16
    blocks: tuple[Block, ...] = SELFIE_BLOCKS
    head: int = 128
    global_pool: str = "AVERAGE_POOL_2D"  # or MEAN
    fused: bool = False  # RELU inside the convolutions, as other converters write it
    half: bool = True  # weights stored as float16


SELFIE = Family()
CHANGED = Family((88, 72), 5, ODD_BLOCKS, 37)


def selfie_like(seed: int = 0, family: Family = CHANGED, **changes: Any) -> bytes:
    """A network of selfie_segmentation's family with random weights, e.g. selfie_like(1, size=(96, 64), fused=True).

    Its mask is neither constant nor saturated on inputs of 0..1.
    """
    return _Network(np.random.default_rng(seed), replace(family, **changes)).build()


class _Network:
    """Encoder of inverted bottlenecks, gated head, decoder that adds gated skips, transposed convolution, sigmoid."""

    def __init__(self, rng: np.random.Generator, family: Family) -> None:
        self.rng, self.family, self.model = rng, family, ModelBuilder()

    def build(self) -> bytes:
        width, height = self.family.size
        x = self.model.input((1, height, width, 3))
        x = self.unary("HARD_SWISH", self.conv(x, self.family.stem, kernel=3, stride=2))
        skips = []
        for block in self.family.blocks:
            if block.stride > 1:
                skips.append(x)
            x = self.block(x, block)
        x = self.head(x)
        for skip in reversed(skips):
            x = self.decode(x, skip)
        shape = self.shape(x)
        weights, bias = self.weights((1, 2, 2, shape[3]), 2 / shape[3] ** 0.5), self.weights((1,), 0.1)
        x = self.model.op(CUSTOM_TRANSPOSE, [x, weights, bias], (1, height, width, 1))
        self.model.output(self.unary("LOGISTIC", x))
        return self.model.build()

    def shape(self, tensor: int) -> Shape:
        return self.model.tensors[tensor].shape

    def weights(self, shape: Shape, scale: float) -> int:
        values = self.rng.standard_normal(shape) * scale
        return self.model.half(values) if self.family.half else self.model.constant(values)

    def unary(self, op: str, x: int) -> int:
        return self.model.op(op, [x], self.shape(x))

    def binary(self, op: str, x: int, y: int) -> int:
        return self.model.op(op, [x, y], self.shape(x))

    def conv(
        self, x: int, channels: int, kernel: int = 1, stride: int = 1, activation: str = "NONE", depthwise: bool = False
    ) -> int:
        """A convolution, and its activation fused or as an op of its own."""
        _, height, width, depth = self.shape(x)
        fan_in = kernel * kernel * (1 if depthwise else depth)
        shape = (1, kernel, kernel, depth) if depthwise else (channels, kernel, kernel, depth)
        gain = 2 if activation in ("RELU", "HARD_SWISH") else 1  # what those two take away
        inputs = [x, self.weights(shape, (gain / fan_in) ** 0.5), self.weights((channels,), 0.1)]
        options: dict[str, Any] = {"stride": (stride, stride), "padding": "SAME"}
        if depthwise:
            options["depth_multiplier"] = 1
        if activation == "RELU" and self.family.fused:
            options["activation"], activation = "RELU", "NONE"
        op = "DEPTHWISE_CONV_2D" if depthwise else "CONV_2D"
        out = self.model.op(op, inputs, (1, -(-height // stride), -(-width // stride), channels), **options)
        return out if activation == "NONE" else self.unary(activation, out)

    def pool(self, x: int) -> int:
        """The mean over the whole picture."""
        _, height, width, channels = self.shape(x)
        if self.family.global_pool == "MEAN":
            axes = self.model.constant((1, 2), "int32")
            return self.model.op("MEAN", [x, axes], (1, 1, 1, channels), keep_dims=True)
        size = (height, width)
        return self.model.op("AVERAGE_POOL_2D", [x], (1, 1, 1, channels), kernel=size, stride=size, padding="VALID")

    def gate(self, x: int, squeezed: int) -> int:
        """The factors of squeeze and excite."""
        small = self.conv(self.pool(x), squeezed, activation="RELU")
        return self.conv(small, self.shape(x)[3], activation="LOGISTIC")

    def block(self, x: int, block: Block) -> int:
        wide = self.conv(x, block.expanded, activation=block.activation)
        wide = self.conv(wide, block.expanded, block.kernel, block.stride, block.activation, depthwise=True)
        if block.squeezed:
            wide = self.binary("MUL", wide, self.gate(wide, block.squeezed))
        out = self.conv(wide, block.channels)
        return self.binary("ADD", out, x) if self.shape(out) == self.shape(x) else out

    def head(self, x: int) -> int:
        gate = self.conv(self.pool(x), self.family.head, activation="LOGISTIC")
        return self.binary("MUL", self.conv(x, self.family.head, activation="RELU"), gate)

    def decode(self, x: int, skip: int) -> int:
        """Upsamples to the skip's size, adds the skip as far as its gate lets it through, and refines."""
        _, height, width, channels = self.shape(skip)
        size = self.model.constant((height, width), "int32")
        shape = (1, height, width, self.shape(x)[3])
        up = self.model.op("RESIZE_BILINEAR", [x, size], shape, half_pixel_centers=True)
        up = self.conv(up, channels)
        gate = self.gate(self.binary("ADD", skip, up), channels)
        x = self.binary("ADD", self.binary("MUL", skip, gate), up)
        x = self.conv(x, channels, activation="RELU")
        return self.binary("ADD", x, self.conv(x, channels, 3, 1, "RELU", depthwise=True))
