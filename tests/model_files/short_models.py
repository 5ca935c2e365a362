"""Models of single ops with 16-bit activations: shapes, scales and constants that are drawn at random."""

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np

from tests.model_files.model_builder import Array, ModelBuilder, Shape

SHAPE = (1, 5, 7, 6)


class ShortSketch(ModelBuilder):
    """A model builder whose tensors are 16-bit steps."""

    def __init__(self) -> None:
        super().__init__()
        self.rng = np.random.default_rng(3)

    def short(self, shape: Shape = SHAPE, scale: float = 1e-4, dtype: str = "int16", zero_point: int = 0) -> int:
        """A tensor in one scale."""
        return self.tensor(shape, dtype, scales=(scale,), zero_points=(zero_point,))

    def given(self, shape: Shape = SHAPE, scale: float = 1e-4, dtype: str = "int16", zero_point: int = 0) -> int:
        """The same, as an input of the model."""
        self.inputs.append(self.short(shape, scale, dtype, zero_point))
        return self.inputs[-1]

    def gives(self, op: str, inputs: list[int], *outputs: int, **options: Any) -> "ShortSketch":
        """The same model, with an op whose outputs are its own."""
        self.output(*self.op_of(op, inputs, list(outputs), **options))
        return self

    def weights(self, shape: Shape, dimension: int | None = 0, scale: float = 0.01, most: int = 127) -> int:
        """Bytes in one scale, or in one for each output."""
        count = 1 if dimension is None else shape[dimension]
        scales = tuple(self.rng.uniform(scale / 2, scale, count).astype(np.float32).tolist())
        values = self.rng.integers(-most, most + 1, shape).astype(np.int8)
        return self.tensor(
            shape, "int8", values.tobytes(), scales=scales, zero_points=(0,) * count, dimension=dimension or 0
        )

    def bias(self, x: int, weights: int, count: int, most: int = 10**6) -> int:
        """Of the products of x and weights."""
        values = self.rng.integers(-most, most + 1, count)
        scales = tuple(self.tensors[x].scales[0] * scale for scale in self.tensors[weights].scales)
        return self.tensor((count,), "int64", values.tobytes(), scales=scales, zero_points=(0,) * len(scales))


def _unary(op: str, scale: float, given: float = 1e-4, **options: Any) -> Callable[[], ShortSketch]:
    def draw() -> ShortSketch:
        model = ShortSketch()
        return model.gives(op, [model.given(scale=given)], model.short(scale=scale), **options)

    return draw


def _binary(op: str, *scales: float, **options: Any) -> Callable[[], ShortSketch]:
    def draw() -> ShortSketch:
        model = ShortSketch()
        inputs = [model.given(scale=scale) for scale in scales[:2]]
        return model.gives(op, inputs, model.short(scale=scales[2]), **options)

    return draw


def _moved(op: str, constants: list[Array], *outputs: Shape, **options: Any) -> Callable[[], ShortSketch]:
    def draw() -> ShortSketch:
        model = ShortSketch()
        x, sizes = model.given(), [model.constant(values, "int32") for values in constants]
        inputs = [*sizes, x] if op == "SPLIT" else [x, *sizes]
        return model.gives(op, inputs, *map(model.short, outputs), **options)

    return draw


def _convolved(op: str, weights: Shape, out: Shape, dimension: int, most: int = 127, **options: Any) -> ShortSketch:
    model = ShortSketch()
    depth = weights[-1] if op != "DEPTHWISE_CONV_2D" else weights[-1] // options.get("depth_multiplier", 1)
    x, made = model.given((*SHAPE[:3], depth)), model.weights(weights, dimension, most=most)
    inputs = [x, made, model.bias(x, made, weights[dimension])]
    if op == "TRANSPOSE_CONV":
        inputs = [model.constant(out, "int32"), made, x, inputs[2]]
    return model.gives(op, inputs, model.short(out, 3e-4), **{"stride": (1, 1), "padding": "SAME"} | options)


def _connected(depth: int, scale: float, bias: int, many: int | None = None, most: int = 127) -> ShortSketch:
    model = ShortSketch()
    inputs = [model.given((9, depth)), model.weights((13, depth), many, most=most)]
    inputs += [model.bias(inputs[0], inputs[1], 13, bias)] if bias else []
    return model.gives("FULLY_CONNECTED", inputs, model.short((9, 13), scale))


def _halves() -> ShortSketch:
    """A fully connected layer whose results are halves."""
    model = ShortSketch()
    values = model.rng.integers(-127, 128, (13, 6)).astype(np.int8)
    weights = model.tensor((13, 6), "int8", values.tobytes(), scales=(0.5,), zero_points=(0,))
    return model.gives("FULLY_CONNECTED", [model.given((9, 6), 0.25), weights], model.short((9, 13), 16.0))


def _multiplied(dtype: str, depth: int = 6, is_constant: bool = False) -> ShortSketch:
    model = ShortSketch()
    x = model.given((2, 5, depth))
    if is_constant:
        return model.gives("BATCH_MATMUL", [x, model.weights((depth, 7), None)], model.short((2, 5, 7), 2e-4))
    y = model.given((2, depth, 7), dtype=dtype)
    return model.gives("BATCH_MATMUL", [x, y], model.short((2, 5, 7), 2e-3))


def _reduced(op: str, axes: Shape, out: Shape, scale: float, shape: Shape = SHAPE) -> ShortSketch:
    model = ShortSketch()
    inputs = [model.given(shape), model.constant(axes, "int32")]
    return model.gives(op, inputs, model.short(out, scale), keep_dims=True)


def _quantized(given: tuple[str, float, int], made: tuple[str, float, int]) -> ShortSketch:
    model = ShortSketch()
    x, out = (
        model.tensor(SHAPE) if dtype == "float32" else model.short(SHAPE, scale, dtype, point)
        for dtype, scale, point in (given, made)
    )
    model.inputs.append(x)
    return model.gives("DEQUANTIZE" if made[0] == "float32" else "QUANTIZE", [x], out)


def _softmax(dtype: str, scale: float, shape: Shape, beta: float = 1.0, zero_point: int = 0) -> ShortSketch:
    model = ShortSketch()
    made = (2**-15, 0) if dtype == "int16" else (1 / 65535, -(1 << 15))
    out = model.short(shape, made[0], zero_point=made[1])
    return model.gives("SOFTMAX", [model.given(shape, scale, dtype, zero_point)], out, beta=beta)


FLOATS, BYTES, FINE, COARSE = ("float32", 0.0, 0), ("int8", 0.013, -7), ("int16", 1e-4, 0), ("int16", 7e-4, 0)
POOL: Mapping[str, Any] = MappingProxyType({"kernel": (3, 2), "stride": (1, 1), "padding": "SAME"})
SHORT_MODELS: Mapping[str, Callable[[], ModelBuilder]] = MappingProxyType(
    {
        "conv": lambda: _convolved("CONV_2D", (11, 3, 3, 6), (1, 5, 7, 11), 0, activation="RELU6"),
        "conv, deep": lambda: _convolved("CONV_2D", (5, 3, 3, 301), (1, 5, 7, 5), 0),
        "depthwise": lambda: _convolved("DEPTHWISE_CONV_2D", (1, 3, 3, 6), (1, 3, 4, 6), 3, stride=(2, 2)),
        "depthwise, multiplier": lambda: _convolved(
            "DEPTHWISE_CONV_2D", (1, 3, 3, 10), (1, 5, 7, 10), 3, depth_multiplier=2
        ),
        "transpose conv": lambda: _convolved("TRANSPOSE_CONV", (5, 3, 3, 6), (1, 10, 14, 5), 0, stride=(2, 2)),
        "connected": lambda: _connected(6, 2e-4, 10**6),
        "connected, no bias": lambda: _connected(7, 3e-4, 0),
        "connected, scales": lambda: _connected(33, 6e-4, 10**8, many=0),
        "connected, large bias": lambda: _connected(33, 3.0, 1 << 45),
        "connected, saturated": lambda: _connected(33, 1e-7, 10**6),
        "connected, long": lambda: _connected(3000, 2e-2, 10**6),
        "connected, halves": _halves,
        "matmul": lambda: _multiplied("int16"),
        "matmul, deep": lambda: _multiplied("int16", 499),
        "matmul of bytes": lambda: _multiplied("int8"),
        "matmul of constant bytes": lambda: _multiplied("int8", is_constant=True),
        "add": _binary("ADD", 1e-4, 2.1e-4, 3e-4),
        "add, the other first": _binary("ADD", 2.1e-4, 1.3e-6, 2e-4, activation="RELU"),
        "add, one scale": _binary("ADD", 1e-4, 1e-4, 1e-4),
        "sub": _binary("SUB", 1e-4, 2.1e-4, 3e-4),
        "mul": _binary("MUL", 1e-4, 2e-4, 3e-4),
        "mul, saturated": _binary("MUL", 3e-2, 2e-2, 3e-4, activation="RELU6"),
        "maximum": _binary("MAXIMUM", 1e-4, 1e-4, 1e-4),
        "minimum": _binary("MINIMUM", 1e-4, 1e-4, 1e-4),
        "mean": lambda: _reduced("MEAN", (1, 2), (1, 1, 1, 6), 1e-4),
        "mean of many": lambda: _reduced("MEAN", (1, 2), (1, 1, 1, 3), 2.3e-4, (1, 37, 41, 3)),
        "mean of channels": lambda: _reduced("MEAN", (3,), (1, 5, 7, 1), 0.7e-4),
        "reduce max": lambda: _reduced("REDUCE_MAX", (1, 2), (1, 1, 1, 6), 1e-4),
        "relu": _unary("RELU", 1.7e-4),
        "relu6": _unary("RELU6", 1.9e-4, 3e-4),
        "abs": _unary("ABS", 1.3e-4),
        "leaky relu": _unary("LEAKY_RELU", 0.8e-4, alpha=0.2),
        "average pool": _unary("AVERAGE_POOL_2D", 1e-4, **POOL),
        "average pool relu6": _unary("AVERAGE_POOL_2D", 3e-4, 3e-4, **{**POOL, "activation": "RELU6"}),
        "max pool": _unary("MAX_POOL_2D", 1e-4, **POOL),
        "quantize": lambda: _quantized(FLOATS, FINE),
        "quantize shorts": lambda: _quantized(FINE, COARSE),
        "quantize to bytes": lambda: _quantized(FINE, BYTES),
        "quantize bytes": lambda: _quantized(BYTES, FINE),
        "quantize to 32 bits": lambda: _quantized(("int16", 1 / 65535, -(1 << 15)), ("int32", 2 / 65535, 0)),
        "quantize to more": lambda: _quantized(("int16", 1e-3, 0), ("int32", 3.3e-5, 0)),
        "dequantize": lambda: _quantized(FINE, FLOATS),
        "softmax": lambda: _softmax("int16", 1e-4, SHAPE),
        "softmax, coarse": lambda: _softmax("int16", 1e-3, (2, 64, 7), 0.7),
        "softmax, fine": lambda: _softmax("int16", 1e-5, (3, 512)),
        "softmax of one": lambda: _softmax("int16", 1e-4, (5, 1)),
        "softmax of one byte": lambda: _softmax("int8", 0.07, (5, 1)),
        "softmax of a vector": lambda: _softmax("int8", 1e-4, (13,)),
        "softmax of bytes": lambda: _softmax("int8", 0.07, (500, 2), zero_point=2),
        "softmax of unsigned bytes": lambda: _softmax("uint8", 0.03, SHAPE, 0.7, 100),
        "softmax of coarse bytes": lambda: _softmax("int8", 2.0, (1, 64, 7)),
        "softmax of many bytes": lambda: _softmax("int8", 0.01, (2, 1301)),
        "reshape": _moved("RESHAPE", [np.array((1, 35, 6))], (1, 35, 6)),
        "transpose": _moved("TRANSPOSE", [np.array((0, 3, 1, 2))], (1, 6, 5, 7)),
        "pad": _moved("PAD", [np.array(((0, 0), (1, 2), (0, 1), (2, 0)))], (1, 8, 8, 8)),
        "slice": _moved("SLICE", [np.array((0, 1, 2, 1)), np.array((1, 3, 4, 5))], (1, 3, 4, 5)),
        "gather": _moved("GATHER", [np.array((3, 0, 1))], (1, 3, 7, 6), axis=1),
        "tile": _moved("TILE", [np.array((1, 2, 1, 3))], (1, 10, 7, 18)),
        "split": _moved("SPLIT", [np.array(3)], (1, 5, 7, 3), (1, 5, 7, 3), num_splits=2),
        "resize nearest": _moved("RESIZE_NEAREST_NEIGHBOR", [np.array((9, 4))], (1, 9, 4, 6)),
    }
)


ALL_SHORTS = np.arange(-(1 << 15), 1 << 15).astype(np.int16).reshape(1, 256, 256, 1)
FUNCTIONS: Sequence[tuple[str, float, float, dict[str, Any]]] = (  # op, scales of input and output, options
    ("LOGISTIC", 1e-4, 2**-15, {}),
    ("LOGISTIC", 2**-12, 2**-15, {}),
    ("TANH", 1.3e-4, 2**-15, {}),
    ("TANH", 2**-11, 2**-15, {}),
    ("EXP", 1e-4, 1e-3, {}),
    ("EXP", 2e-4, 3e-5, {}),
    ("GELU", 1e-4, 1e-4, {}),
    ("GELU", 2e-4, 3e-4, {"approximate": True}),
)


def functions() -> ShortSketch:
    """A model with an output for each function of one input each, which has all values."""
    model = ShortSketch()
    for op, given, made, options in FUNCTIONS:
        x = model.given(ALL_SHORTS.shape, given)
        model.gives(op, [x], model.short(ALL_SHORTS.shape, made), **options)
    return model


def short_inputs(model: ModelBuilder, seed: int) -> list[Array]:
    """Random values of a model's inputs: all that there are, then small ones."""
    rng, found = np.random.default_rng(seed), list[Array]()
    for tensor in (model.tensors[i] for i in model.inputs):
        if tensor.dtype == "float32":
            found.append(rng.normal(size=tensor.shape).astype(np.float32))
        else:
            most = np.iinfo(tensor.dtype).max >> 5 * (seed % 2)
            found.append(rng.integers(-most - 1, most + 1, tensor.shape).astype(tensor.dtype))
    return found
