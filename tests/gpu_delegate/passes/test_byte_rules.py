"""8-bit quantization at its edges: scales at ties as in the reference kernels, and what the specification forbids."""

from collections import Counter
from random import Random
from typing import Any

import numpy as np
import pytest

from tests.fuzz.quantized_mutants import DTYPES, packed, single_op, unpacked
from tests.model_files.model_builder import Array, ModelBuilder
from tests.quantized.ours import our_run
from tests.quantized.runs import TfliteRun
from tests.quantized.single_ops import SINGLE_OPS
from texelflow.gpu_delegate.base.errors import UnsupportedError
from texelflow.gpu_delegate.model.graph import Graph
from texelflow.gpu_delegate.ops.record import ByteRules
from texelflow.gpu_delegate.ops.registry import OPS
from texelflow.gpu_delegate.passes.byte_rules import broken_rule
from texelflow.gpu_delegate.passes.steps import FORMS
from texelflow.gpu_delegate.plan.admission import rewrite_graph
from texelflow.gpu_delegate.reading.reader import read_model

# Steps of one are halves of the other's, in float32 alone: 8 of these are 69.5 of those.
SCALE, FINER = 0.016216566786170006, 0.0018666551914066076
SIDE, SHAPE = 256, (1, 256, 256, 1)
ANY = np.arange(-128, 128, dtype=np.int8)
PAIRS = [axis[None, ..., None] for axis in np.meshgrid(ANY, ANY, indexing="ij")]


def tensor(model: ModelBuilder, scale: float, zero_point: int = 0, shape: tuple[int, ...] = SHAPE) -> int:
    return model.tensor(shape, "int8", scales=(scale,), zero_points=(zero_point,))


def agrees(model: ModelBuilder, values: list[Array]) -> None:
    data = model.build()
    with our_run(data, "native") as run:
        found = run(values)
    for place, (ours, right) in enumerate(zip(found, TfliteRun(data)(values), strict=True)):
        np.testing.assert_array_equal(ours, right, err_msg=model.ops[place].name)


def test_scales_are_divided_in_float32_where_the_reference_kernels_do() -> None:
    model = ModelBuilder()
    x = tensor(model, SCALE, shape=(1, 16, 16, 1))
    one = model.tensor((1, 1, 1), "int8", np.ones(1, np.int8).tobytes(), scales=(1.0,), zero_points=(0,))
    model.inputs.append(x)
    uses: tuple[tuple[str, list[int], dict[str, Any]], ...] = (
        ("RELU", [x], {}),
        ("ABS", [x], {}),
        ("LEAKY_RELU", [x], {"alpha": 0.3}),
        ("PRELU", [x, one], {}),
        ("MUL", [x, one], {}),
    )
    for op, inputs, options in uses:
        model.output(*model.op_of(op, inputs, [tensor(model, FINER, -127, (1, 16, 16, 1))], **options))
    agrees(model, [ANY.reshape(1, 16, 16, 1)])


@pytest.mark.parametrize(("op", "activation", "scale"), [("RELU6", 3, 6 / 97.5), ("RELU_N1_TO_1", 2, 2 / 85)])
def test_activations_end_where_they_do_for_the_reference_kernels(op: str, activation: int, scale: float) -> None:
    """At a tie of their end, alone and fused."""
    model = ModelBuilder()
    x = tensor(model, scale, -128, (1, 16, 16, 1))
    model.inputs.append(x)
    model.output(*model.op_of(op, [x], [tensor(model, scale, -128, (1, 16, 16, 1))]))
    model.output(*model.op_of("ADD", [x, x], [tensor(model, scale, -128, (1, 16, 16, 1))], activation=op))
    agrees(model, [ANY.reshape(1, 16, 16, 1)])


def test_comparisons_and_squares_are_shifted_before_they_are_rounded() -> None:
    model = ModelBuilder()
    for one, other in ((0.0061, 0.0061), (0.31, 0.047), (0.0013, 0.72)):
        pair = [tensor(model, one, 3), tensor(model, other, -20)]
        model.inputs += pair
        out = tensor(model, max(one, other) ** 2 * 300, -128)
        model.output(*model.op_of("SQUARED_DIFFERENCE", pair, [out]))
        model.output(model.op("LESS", pair, SHAPE, "bool"))
    agrees(model, PAIRS * 3)


def test_a_fully_connected_layer_of_several_scales_rounds_once() -> None:
    """As one of a single scale does; convolutions round twice."""
    model, rng, channels = ModelBuilder(), np.random.default_rng(4), 64
    x = tensor(model, SCALE, 1, (256, 3))
    model.inputs.append(x)
    steps = rng.integers(-127, 128, (channels, 3), np.int8)
    scales = tuple(float(each) for each in rng.uniform(0.01, 0.04, channels))
    weights = model.tensor((channels, 3), "int8", steps.tobytes(), scales=scales, zero_points=(0,) * channels)
    model.output(*model.op_of("FULLY_CONNECTED", [x, weights], [tensor(model, 0.0555, 3, (256, channels))]))
    agrees(model, [rng.integers(-128, 128, (256, 3), np.int8)])


def one_op(
    op: str, out: tuple[float, int], x: tuple[float, int] = (0.1, 0), dtype: str = "int8", **options: Any
) -> Graph:
    model = ModelBuilder()
    given = model.tensor((1, 4, 4, 4), dtype, scales=x[:1], zero_points=x[1:])
    model.inputs.append(given)
    model.output(
        *model.op_of(op, [given], [model.tensor((1, 4, 4, 4), dtype, scales=out[:1], zero_points=out[1:])], **options)
    )
    return read_model(model.build())


def between_floats_and_bytes(op: str, dtype: str, **options: Any) -> Graph:
    model = ModelBuilder()
    of_bytes: dict[str, Any] = {"scales": (0.1,), "zero_points": (0,)}
    x = model.tensor((1, 4, 4, 4), dtype, **(of_bytes if dtype == "int8" else {}))
    model.inputs.append(x)
    size = model.tensor((2,), "int32", np.full(2, 8, np.int32).tobytes())
    out = model.tensor((1, 8, 8, 4), "float32") if dtype == "int8" else model.tensor((1, 8, 8, 4), "int8", **of_bytes)
    model.output(*model.op_of(op, [x, size], [out], **options))
    return read_model(model.build())


def convolution(weights: dict[str, Any], bias: int = 0, dtype: str = "int8", out_scale: float = 0.1) -> Graph:
    model = ModelBuilder()
    x = model.tensor((1, 4, 4, 4), dtype, scales=(0.1,), zero_points=(0,))
    model.inputs.append(x)
    w = model.tensor((4, 1, 1, 4), **{"data": np.ones(16, np.int8).tobytes(), "dtype": dtype, **weights})
    b = model.tensor((4,), "int32", np.full(4, bias, np.int32).tobytes(), scales=(0.01,), zero_points=(0,))
    out = model.tensor((1, 4, 4, 4), dtype, scales=(out_scale,), zero_points=(0,))
    options: dict[str, Any] = {"stride": (1, 1), "dilation": (1, 1), "padding": "SAME"}
    model.output(*model.op_of("CONV_2D", [x, w, b], [out], **options))
    return read_model(model.build())


def compared(first: float, second: float) -> Graph:
    model = ModelBuilder()
    model.inputs += [tensor(model, scale) for scale in (first, second)]
    model.output(model.op("LESS", model.inputs, SHAPE, "bool"))
    return read_model(model.build())


def divided(divisor: int) -> Graph:
    model = ModelBuilder()
    x = model.tensor((1, 4, 4, 4), "uint8", scales=(0.1,), zero_points=(0,))
    model.inputs.append(x)
    y = model.tensor((1,), "uint8", np.array([divisor], np.uint8).tobytes(), scales=(0.1,), zero_points=(9,))
    model.output(*model.op_of("DIV", [x, y], [model.tensor((1, 4, 4, 4), "uint8", scales=(0.1,), zero_points=(0,))]))
    return read_model(model.build())


def padded(scale: float) -> Graph:
    """By a value in another scale."""
    model = ModelBuilder()
    x, y = (model.tensor((1, size, 4, 4), "int8", scales=(0.1,), zero_points=(0,)) for size in (4, 6))
    model.inputs.append(x)
    amounts = model.constant([[0, 0], [1, 1], [0, 0], [0, 0]], "int32")
    value = model.tensor((1,), "int8", np.array([5], np.int8).tobytes(), scales=(scale,), zero_points=(0,))
    model.output(*model.op_of("PADV2", [x, amounts, value], [y]))
    return read_model(model.build())


POOL: dict[str, Any] = {"kernel": (2, 2), "stride": (1, 1), "padding": "SAME"}
AROUND_ZERO: dict[str, Any] = {"scales": (0.1,), "zero_points": (0,)}


@pytest.mark.parametrize(
    ("graph", "reason"),
    [
        (one_op("AVERAGE_POOL_2D", (0.1, 1), **POOL), "different scales"),
        (one_op("SOFTMAX", (0.1, -128), beta=1.0), r"a scale of 0.1 from -128, not 0.00390625 from -128"),
        (one_op("LOGISTIC", (1 / 256, 0)), "from 0, not 0.00390625 from -128"),
        (one_op("TANH", (1 / 128, 0), dtype="uint8"), "from 0, not 0.0078125 from 128"),
        (between_floats_and_bytes("RESIZE_NEAREST_NEIGHBOR", "float32"), "integers of floats"),
        (between_floats_and_bytes("RESIZE_NEAREST_NEIGHBOR", "int8"), "floats of integers"),
        (between_floats_and_bytes("RESIZE_BILINEAR", "float32"), "integers of floats"),
        (between_floats_and_bytes("RESIZE_BILINEAR", "int8"), "floats of integers"),
        (one_op("RELU", (1e-40, 0)), "a scale of 9.99995e-41"),
        (one_op("RELU6", (1e30, 0)), r"a scale of 1e\+30"),
        (one_op("HARD_SWISH", (0.1, 0), (1e-20, 0)), "a scale of 1e-20"),
        (one_op("HARD_SWISH", (0.0026, 0), (4.2e-6, 0)), "too small for numbers of 16 bits"),
        (one_op("RELU", (1e-9, 0)), r"sums up to 128 times 1e\+08, which is more than 32 bits"),
        (convolution({"scales": (0.1,), "zero_points": (1,)}), "int8 that are not around 0"),
        (convolution({"scales": (0.1,) * 4, "zero_points": (0,) * 4, "dimension": 3}), "4 scales along dimension 3"),
        (convolution(AROUND_ZERO, bias=(1 << 31) - 1), "sums up to 2147484159 times"),
        (convolution({**AROUND_ZERO, "data": bytes(16)}, bias=(1 << 31) - 1), "sums up to 2147483647 times"),
        (convolution(AROUND_ZERO, out_scale=1e-10), "more than 32 bits"),
        (convolution({**AROUND_ZERO, "dtype": "int8"}, dtype="uint8"), "uint8 with weights of int8"),
        (compared(0.5, 1.0), "a scale from 1 on"),
        (padded(0.2), "a padding value in another scale"),
        (divided(9), "its divisor may be 0"),
        (divided(255), "quotients of such scales"),
    ],
)
def test_what_lies_outside_of_the_specification_is_left_to_the_cpu(graph: Graph, reason: str) -> None:
    with pytest.raises(UnsupportedError, match=reason) as caught:
        rewrite_graph(graph)
    assert "\n" not in str(caught.value)


def test_what_lies_within_is_taken() -> None:
    softmax = one_op("SOFTMAX", (1 / 256, -128), beta=1.0)
    per_channel = convolution({"scales": (0.1, 0.0, 0.2, 0.3), "zero_points": (0,) * 4})
    for graph in (softmax, per_channel, compared(0.5, 0.99), divided(10), padded(0.1)):
        assert broken_rule(graph, graph.nodes[0]) == ""
        rewrite_graph(graph)


def test_ops_that_keep_integers_demand_one_scale() -> None:
    """Of those whose forms compute nothing."""
    kept = {op for op in FORMS if OPS[op].byte_rules.one_scale}
    assert {"RESHAPE", "MAXIMUM", "SELECT", "TOPK_V2", "DEPTH_TO_SPACE", "RESIZE_BILINEAR", "PADV2"} <= kept
    assert kept.isdisjoint({"CONCATENATION", "QUANTIZE", "ADD", "MEAN"})
    assert OPS["DEPTHWISE_CONV_2D"].byte_rules == ByteRules(weights=3)


@pytest.mark.parametrize("dtype", DTYPES)
def test_any_scale_is_taken_or_refused(dtype: str) -> None:
    """In no pass a number becomes infinite, or one that no integer is."""
    random, outcomes = Random(0), Counter[str]()
    for op in sorted(SINGLE_OPS):
        model = unpacked(single_op(op, dtype, 2, True))
        found = [each.quantization for each in model.subgraphs[0].tensors if each.quantization is not None]
        for quantization in found:
            if quantization.scale is not None and random.random() < 0.6:
                scale = random.choice((1.2e-38, 1e-20, 2e-12, 1e-5, 1.0, 1e5, 1e12, 1e30, 3e38))
                quantization.scale = np.full(len(quantization.scale), scale, np.float32)
        try:
            rewrite_graph(read_model(packed(model)))
            outcomes["taken"] += 1
        except UnsupportedError:
            outcomes["refused"] += 1
    assert min(outcomes["taken"], outcomes["refused"]) > 5
