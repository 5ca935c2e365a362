"""Graphs of the original delegate's own test vectors.

The graph is read from a .tflite file wherever TensorFlow Lite has words for what the vector does. tests/data/README.md
lists the original's conventions and what they became.
"""

import json
import struct
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt

from tests.model_files.graphs import GraphBuilder
from tests.model_files.model_builder import ModelBuilder, Shape
from texelflow.gpu_delegate.model.graph import (
    Attributes,
    Conv2D,
    DepthwiseConv2D,
    Graph,
    Padding,
    Size2,
    TransposeConv2D,
)
from texelflow.gpu_delegate.reading.reader import read_model

Case = Mapping[str, Any]
Values = npt.NDArray[Any]

_FILE = json.loads((Path(__file__).parents[1] / "data" / "op_vectors.json").read_text())
VECTORS: tuple[Case, ...] = tuple(case for case in _FILE["cases"] if "expected" in case)
REFUSED_THERE: tuple[Case, ...] = tuple(case for case in _FILE["cases"] if "expected_error" in case)  # by the original
FUSION_CASES: tuple[Case, ...] = tuple(_FILE["fusion_cases"])
LAYOUT_CASES: tuple[Case, ...] = tuple(_FILE["layout_cases"])

CUSTOM = frozenset(  # that TensorFlow Lite has no kernels of
    {
        *("MAX_UNPOOLING_2D", "RESAMPLER"),
        *("gl/PoolingTest.MaxKernel2x2Stride2x2WithIndices", "cl/pooling.MaxPoolingIndicesTest"),
    }
)
_AXES = ("BATCH", "HEIGHT", "WIDTH", "CHANNELS")
_TYPES = MappingProxyType({"BOOL": "bool", "INT32": "int32", "UINT32": "int32"})  # REDUCE_PROD has no UINT32
_NAMES = MappingProxyType(
    {
        "SIGMOID": "LOGISTIC",
        "SQUARED_DIFF": "SQUARED_DIFFERENCE",
        "REDUCE_SUM": "SUM",
        "REDUCE_PRODUCT": "REDUCE_PROD",
        "REDUCE_MAXIMUM": "REDUCE_MAX",
        "REDUCE_MINIMUM": "REDUCE_MIN",
    }
)
_WINDOWS = ("CONVOLUTION_2D", "DEPTHWISE_CONVOLUTION", "CONVOLUTION_TRANSPOSED")
_STRIDE = MappingProxyType({"CONVOLUTION_TRANSPOSED": "stride"})  # the others' are called strides


def has_file(case: Case) -> bool:
    """Whether TensorFlow Lite has words for it: convolutions may pad neither as SAME nor as VALID."""
    return case["op"] not in _WINDOWS or _scheme(case) is not None


def vector_graph(case: Case) -> Graph:
    """The graph of a vector. Raises UnsupportedError where the reader does."""
    return read_model(vector_model(case), case["id"]) if has_file(case) else _window_graph(case)


def vector_model(case: Case) -> bytes:
    """The .tflite file of a vector; without a word of TensorFlow Lite for it, KeyError."""
    draw = _Drawing(case)
    draw.model.output(*_DRAW.get(case["op"], _Drawing.elementwise)(draw))
    return draw.model.build()


def values_of(value: Mapping[str, Any]) -> Values:
    """A tensor of the file: its values, or the one that fills it; "inf" stands for infinity."""
    kind = _TYPES.get(value.get("dtype", value.get("type", "")), "float32")
    if "fill" in value:
        return np.full(value["shape"], value["fill"], kind)
    return np.array([float(x) for x in value["data"]]).astype(kind).reshape(value["shape"])


def assert_expected(case: Case, outputs: Sequence[Values]) -> None:
    """Outputs are those of a vector, within its tolerance, and as far as its numbers are exact."""
    for found, value in zip(outputs, case["expected"], strict=True):
        wanted = values_of(value).astype(np.float64)
        finite = np.isfinite(wanted)
        assert found.shape == wanted.shape
        assert np.array_equal(found[~finite], wanted[~finite])
        slack = 2e-6 * np.maximum(1, np.abs(wanted[finite]))  # the expected numbers are rounded, too
        assert (np.abs(found[finite] - wanted[finite]) <= value["tolerance"] + slack).all(), case["id"]


def window_weights(op: str, value: Mapping[str, Any]) -> Values:
    """Weights as TensorFlow Lite has them. Depthwise: OHWI with O = multiplier -> 1HW(I * O)."""
    data = values_of(value)
    return data.transpose(1, 2, 3, 0).reshape(1, *data.shape[1:3], -1) if "DEPTHWISE" in op.upper() else data


class _Drawing:
    """A model in the making, from one vector; every method returns the model's outputs."""

    def __init__(self, case: Case) -> None:
        self.given: Mapping[str, Any] = case["attrs"]
        self.op, self.model = _NAMES.get(case["op"], case["op"]), ModelBuilder()
        sources = [values_of(value) for value in case["inputs"]]
        self.shapes = [tuple(source.shape) for source in sources]
        if self.op == "GATHER":
            self.shapes[1:] = [shape[:1] for shape in self.shapes[1:]]  # indices in one dimension
        self.inputs = [self.model.input(s, v.dtype.name) for s, v in zip(self.shapes, sources, strict=True)]
        self.expected = [values_of(value) for value in case.get("expected", ())]
        self.case = case

    @property
    def shape(self) -> Shape:
        return tuple(self.expected[0].shape if self.expected else self.case["expected_outputs_shape"][0])

    @property
    def dtype(self) -> str:
        return self.expected[0].dtype.name if self.expected else "float32"

    def plain(self, op: str, *more: int, **options: Any) -> tuple[int, ...]:
        """An op on the inputs, and on constants behind them."""
        return (self.model.op(op, [*self.inputs, *more], self.shape, self.dtype, **options),)

    def integers(self, *values: Any) -> int:
        return self.model.constant(values, "int32")

    def constant(self, value: Any) -> int:
        """A number, or a tensor: a vector, or a map without its batch."""
        data = values_of(value) if isinstance(value, dict) else np.float32(value)
        return self.model.constant(data, data.dtype.name)

    def elementwise(self) -> tuple[int, ...]:
        """Of one, two or three operands. Where the original repeats the result, BROADCAST_TO does it here."""
        operands, shapes = list(self.inputs), list(self.shapes)
        if "param" in self.given:
            operands.append(self.constant(self.given["param"]))
            shapes.append(self.model.tensors[operands[-1]].shape)
            if self.given.get("runtime_tensor_is_second"):
                operands.reverse()
        options = {"approximate": self.case["id"].startswith("gl/")} if self.op == "GELU" else {}
        shape = np.broadcast_shapes(*shapes)
        out = self.model.op(self.op, operands, shape, self.dtype, **options)
        if shape != self.shape:
            out = self.model.op("BROADCAST_TO", [out, self.integers(*self.shape)], self.shape)
        return (out,)

    def add(self) -> tuple[int, ...]:
        """The original adds tensors of different depths as if the shallow one had zeros behind it."""
        depths = [shape[3] for shape in self.shapes]
        if len(depths) == 2 and 1 not in depths and depths[0] != depths[1]:
            small = depths.index(min(depths))
            amounts = self.integers(*((0, 0),) * 3, (0, max(depths) - min(depths)))
            self.shapes[small] = self.shapes[1 - small]
            self.inputs[small] = self.model.op("PAD", [self.inputs[small], amounts], self.shapes[small])
        return self.elementwise()

    def copy(self) -> tuple[int, ...]:
        return self.plain("RESHAPE", self.integers(*self.shape))

    def relu(self) -> tuple[int, ...]:
        """Limits and slope; the original passes over the lower limit where there is a slope."""
        alpha, low, high = (self.given.get(key, 0) for key in ("alpha", "activation_min", "activation_max"))
        known = {(0, 0, 6): "RELU6", (0, -1, 1): "RELU_N1_TO_1"}.get((alpha, low, high))
        if known:
            return self.plain(known)
        if alpha:
            out = self.plain("LEAKY_RELU", alpha=alpha)
        else:
            out = self.plain("MAXIMUM", self.constant(low)) if low else self.plain("RELU")
        return (self.model.op("MINIMUM", [*out, self.constant(high)], self.shape),) if high else out

    def cast(self) -> tuple[int, ...]:
        return self.plain("CAST")

    def prelu(self) -> tuple[int, ...]:
        return self.plain("PRELU", self.constant(self.given["alpha"]))

    def softmax(self) -> tuple[int, ...]:
        """Over channels; another dimension changes places with them before and after."""
        axis, order = _AXES.index(self.given.get("axis", "CHANNELS")), [0, 1, 2, 3]
        order[axis], order[3] = 3, axis
        x = self.inputs[0] if axis == 3 else self.transposed(self.inputs[0], order)
        out = self.model.op("SOFTMAX", [x], self.model.tensors[x].shape, beta=1.0)
        return (out if axis == 3 else self.transposed(out, order),)

    def transposed(self, x: int, order: Sequence[int]) -> int:
        shape = self.model.tensors[x].shape
        return self.model.op("TRANSPOSE", [x, self.integers(*order)], tuple(shape[k] for k in order))

    def convolution(self) -> tuple[int, ...]:
        """The three kinds of convolution; a bias for channels that are not there is left out."""
        weights, shape = window_weights(self.op, self.given["weights"]), self.shape
        bias = np.resize(values_of(self.given["bias"]), shape[3])
        constants = self.model.constant(weights), self.model.constant(bias)
        options: dict[str, Any] = {"stride": _stride(self.case), "padding": _scheme(self.case)}
        if self.op == "CONVOLUTION_TRANSPOSED":
            inputs = [self.integers(*shape), constants[0], *self.inputs, constants[1]]
            return (self.model.op("TRANSPOSE_CONV", inputs, shape, **options),)
        options["dilation"] = tuple(self.given["dilations"])
        if self.op == "CONVOLUTION_2D":
            return self.plain("CONV_2D", *constants, **options)
        multiplier = self.given["weights"]["shape"][0]
        return self.plain("DEPTHWISE_CONV_2D", *constants, depth_multiplier=multiplier, **options)

    def connected(self) -> tuple[int, ...]:
        """Weights that are integers with a scale are made floats first, as converters write it, too."""
        weights = values_of(self.given["weights"])
        matrix = weights.reshape(weights.shape[::3])
        constant = self.model.constant(matrix)
        if "scale" in self.given:
            steps = {"scales": (self.given["scale"],), "zero_points": (self.given["zero_point"],)}
            whole = self.model.tensor(matrix.shape, "int8", matrix.astype(np.int8).tobytes(), **steps)
            constant = self.model.op("DEQUANTIZE", [whole], matrix.shape)
        return self.plain("FULLY_CONNECTED", constant, self.constant(self.given["bias"]), keep_num_dims=True)

    def pooling(self) -> tuple[int, ...]:
        if self.given.get("output_indices"):
            value, places = self.shape, self.expected[1]
            outputs = [self.model.tensor(value), self.model.tensor(value, places.dtype.name)]
            return self.model.op_of("MaxPoolingWithArgmax2D", self.inputs, outputs, custom=_pool_params(self.case))
        options = {"kernel": tuple(self.given["kernel"]), "stride": _stride(self.case), "padding": _scheme(self.case)}
        return self.plain(f"{self.given['type']}_POOL_2D", **options)

    def unpooling(self) -> tuple[int, ...]:
        return self.plain("MaxUnpooling2D", custom=_pool_params(self.case))

    def resampler(self) -> tuple[int, ...]:
        return self.plain("Resampler")

    def lstm(self) -> tuple[int, ...]:
        """The basic cell. The vector has the gates: those of an input that is them, and weights that pass it on."""
        (_, _, _, gates), (_, _, _, depth) = self.shapes
        x, state = (
            self.model.op("RESHAPE", [tensor, self.integers(*shape)], shape)
            for tensor, shape in zip(self.inputs, ((1, gates), (1, depth)), strict=True)
        )
        last = self.model.op("SUB", [state, state], (1, depth))  # a constant would be written to
        weights = self.model.constant(np.eye(gates, gates + depth)), self.model.constant(np.zeros(gates))
        outputs = [self.model.tensor((1, size)) for size in (depth, depth, gates + depth, gates)]
        self.model.op_of("LSTM", [x, last, *weights, state], outputs, activation="TANH", kernel_type=1)
        target = self.integers(*self.shape)
        activation, new_state = (self.model.op("RESHAPE", [out, target], self.shape) for out in outputs[:2])
        return new_state, activation

    def levels(self) -> tuple[int, ...]:
        """Rounded to 2^8 or 2^16 levels of a range: FAKE_QUANT multiplies where QUANTIZE divides, as the original."""
        (low, high), (_, most) = self.given["original_range"], self.given["num_levels"]
        return self.plain("FAKE_QUANT", min=low, max=high, num_bits=int(most).bit_length())

    def one_hot(self) -> tuple[int, ...]:
        """The depth comes behind the last dimension of the indices, so one of theirs goes."""
        indices = self.model.op("RESHAPE", [*self.inputs, self.integers(*self.shape[:3])], self.shape[:3], "int32")
        depth = self.model.constant(self.shape[3], "int32")
        values = self.constant(self.given["on_value"]), self.constant(self.given["off_value"])
        return (self.model.op("ONE_HOT", [indices, depth, *values], self.shape, axis=-1),)

    def deviations(self) -> tuple[int, ...]:
        """Of each pixel's channels from their mean, in units of their standard deviation: what converters write."""
        axes, small = self.integers(3), (*self.shape[:3], 1)
        mean = self.model.op("MEAN", [*self.inputs, axes], small, keep_dims=True)
        centered = self.model.op("SUB", [*self.inputs, mean], self.shape)
        squares = self.model.op("MUL", [centered, centered], self.shape)
        variance = self.model.op("MEAN", [squares, axes], small, keep_dims=True)
        shifted = self.model.op("ADD", [variance, self.constant(self.given["variance_bias"])], small)
        scale = self.model.op("RSQRT", [shifted], small)
        return (self.model.op("MUL", [centered, scale], self.shape),)

    def running_sum(self) -> tuple[int, ...]:
        return self.plain("CUMSUM", self.model.constant(_AXES.index(self.given["axis"]), "int32"))

    def resize(self) -> tuple[int, ...]:
        op = "RESIZE_BILINEAR" if self.given["type"] == "BILINEAR" else "RESIZE_NEAREST_NEIGHBOR"
        options = {key: self.given.get(key, False) for key in ("align_corners", "half_pixel_centers")}
        return self.plain(op, self.integers(*self.given["new_shape"]), **options)

    def reduce(self) -> tuple[int, ...]:
        """Of integers that are known to be so small that no sum or product of them leaves float32's."""
        axes = [_AXES.index(name) for name in self.given["dims"]]
        if self.dtype == "int32":
            for op, limit in (("MINIMUM", 100), ("MAXIMUM", -100)):
                bound = self.model.constant(limit, "int32")
                self.inputs = [self.model.op(op, [*self.inputs, bound], self.shapes[0], "int32")]
        return self.plain(self.op, self.integers(*axes), keep_dims=True)

    def pad(self) -> tuple[int, ...]:
        amounts = self.integers(*zip(self.given["prepended"], self.given["appended"], strict=True))
        if self.given.get("type") == "REFLECT":
            return self.plain("MIRROR_PAD", amounts, mode=0)
        if "constant_values" in self.given:
            return self.plain("PADV2", amounts, self.constant(self.given["constant_values"]))
        return self.plain("PAD", amounts)

    def slice(self) -> tuple[int, ...]:
        """By the output's shape: the original does not read the ends."""
        starts, strides = self.given["starts"], self.given["strides"]
        if set(strides) == {1}:
            return self.plain("SLICE", self.integers(*starts), self.integers(*self.shape))
        ends = [a + (n - 1) * step + 1 for a, n, step in zip(starts, self.shape, strides, strict=True)]
        return self.plain("STRIDED_SLICE", *(self.integers(*values) for values in (starts, ends, strides)))

    def concatenation(self) -> tuple[int, ...]:
        return self.plain("CONCATENATION", axis=_AXES.index(self.given["axis"]))

    def split(self) -> tuple[int, ...]:
        axis, shapes = _AXES.index(self.given["axis"]), [tuple(value.shape) for value in self.expected]
        at = self.model.constant(axis, "int32")
        sizes = [shape[axis] for shape in shapes]
        if len(set(sizes)) == 1:
            return self.model.split("SPLIT", [at, *self.inputs], shapes, num_splits=len(sizes))
        return self.model.split("SPLIT_V", [*self.inputs, self.integers(*sizes), at], shapes, num_splits=len(sizes))

    def tile(self) -> tuple[int, ...]:
        return self.plain("TILE", self.integers(*(b // a for a, b in zip(self.shapes[0], self.shape, strict=True))))

    def transpose(self) -> tuple[int, ...]:
        return self.plain("TRANSPOSE", self.integers(*self.given["perm"]))

    def space_to_depth(self) -> tuple[int, ...]:
        return self.plain("SPACE_TO_DEPTH", block_size=self.given["block_size"])

    def gather(self) -> tuple[int, ...]:
        indices = [self.integers(*self.given["indices"]["data"])] if "indices" in self.given else []
        return self.plain("GATHER", *indices, axis=_AXES.index(self.given["axis"]))


_DRAW: Mapping[str, Callable[[_Drawing], tuple[int, ...]]] = MappingProxyType(
    {
        "ADD": _Drawing.add,
        "COPY": _Drawing.copy,
        "RELU": _Drawing.relu,
        "CAST": _Drawing.cast,
        "PRELU": _Drawing.prelu,
        "SOFTMAX": _Drawing.softmax,
        **dict.fromkeys(_WINDOWS, _Drawing.convolution),
        "FULLY_CONNECTED": _Drawing.connected,
        "POOLING_2D": _Drawing.pooling,
        "RESIZE": _Drawing.resize,
        **dict.fromkeys(("MEAN", "REDUCE_SUM", "REDUCE_PRODUCT", "REDUCE_MAXIMUM", "REDUCE_MINIMUM"), _Drawing.reduce),
        "PAD": _Drawing.pad,
        "RESHAPE": _Drawing.copy,
        "SLICE": _Drawing.slice,
        "CONCAT": _Drawing.concatenation,
        "SPLIT": _Drawing.split,
        "TILE": _Drawing.tile,
        "TRANSPOSE": _Drawing.transpose,
        "SPACE_TO_DEPTH": _Drawing.space_to_depth,
        "GATHER": _Drawing.gather,
        "LSTM": _Drawing.lstm,
        "MAX_UNPOOLING_2D": _Drawing.unpooling,
        "RESAMPLER": _Drawing.resampler,
        "QUANTIZE_AND_DEQUANTIZE": _Drawing.levels,
        "ONE_HOT": _Drawing.one_hot,
        "MEAN_STDDEV_NORMALIZATION": _Drawing.deviations,
        "CUMSUM": _Drawing.running_sum,
    }
)


def _pool_params(case: Case) -> bytes:
    """TfLitePoolParams: padding (1 SAME, 2 VALID), stride and window as (w, h), no activation, padding as computed."""
    (height, width), kernel = _stride(case), case["attrs"]["kernel"]
    return struct.pack("<10i", 2, width, height, kernel[1], kernel[0], 0, 0, 0, 0, 0)


def _stride(case: Case) -> Size2:
    height, width = case["attrs"][_STRIDE.get(case["op"], "strides")]
    return height, width


def _padding(case: Case) -> Padding:
    (top, left), (bottom, right) = (case["attrs"]["padding"][key] for key in ("prepended", "appended"))
    return Padding(top, bottom, left, right)


def _scheme(case: Case) -> str | None:
    """SAME or VALID, whichever gives this padding and this output; None where neither does."""
    given, transposed = case["attrs"], case["op"] == "CONVOLUTION_TRANSPOSED"
    small, large = (value[0]["shape"][1:3] for value in (case["inputs"], case["expected"]))
    if transposed:
        small, large = large, small
    kernel = given["kernel"] if "kernel" in given else given["weights"]["shape"][1:3]
    found, dilation, stride = _padding(case), given.get("dilations", (1, 1)), _stride(case)
    pads = ((found.top, found.bottom), (found.left, found.right))
    for scheme in ("VALID", "SAME"):
        if all(
            _fits(scheme, small[i], large[i], kernel[i], stride[i], dilation[i], pads[i], transposed) for i in (0, 1)
        ):
            return scheme
    return None


def _fits(
    scheme: str, size: int, out: int, taps: int, step: int, spread: int, pads: tuple[int, int], transposed: bool
) -> bool:
    """Whether the scheme gives this padding and output along one axis; the original's transposed ones say the first."""
    reach = (taps - 1) * spread + 1
    if scheme == "VALID":
        return (size - reach) // step + 1 == out and pads == (0, 0)
    total = max(0, (out - 1) * step + reach - size)
    wanted = (total // 2, total - total // 2)
    return -(-size // step) == out and (pads[0] == wanted[0] if transposed else pads == wanted)


def _window_graph(case: Case) -> Graph:
    """A convolution with a padding that TensorFlow Lite has no word for."""
    given, op = case["attrs"], case["op"]
    shape, out = (tuple(value[0]["shape"]) for value in (case["inputs"], case["expected"]))
    weights = window_weights(op, given["weights"])
    bias = np.resize(values_of(given["bias"]), out[3])
    stride, padding = _stride(case), _padding(case)
    dilation = tuple(given.get("dilations", (1, 1)))
    attributes: Attributes
    if op == "CONVOLUTION_TRANSPOSED":
        name, attributes = "TRANSPOSE_CONV", TransposeConv2D(stride=stride, padding=padding)
    elif op == "CONVOLUTION_2D":
        name, attributes = "CONV_2D", Conv2D(stride=stride, dilation=dilation, padding=padding)
    else:
        multiplier = given["weights"]["shape"][0]
        name = "DEPTHWISE_CONV_2D"
        attributes = DepthwiseConv2D(stride=stride, dilation=dilation, padding=padding, multiplier=multiplier)
    g = GraphBuilder()
    return g.graph(g.node(name, [g.input(*shape), g.constant(weights), g.constant(bias)], out, attributes))
