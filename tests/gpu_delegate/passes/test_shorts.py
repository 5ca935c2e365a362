"""16-bit activations with weights of bytes, to the bit as TensorFlow Lite's reference kernels compute them."""

from collections.abc import Callable

import numpy as np
import pytest

from tests.helpers.native import native_networks
from tests.model_files.short_models import ALL_SHORTS, FUNCTIONS, SHORT_MODELS, ShortSketch, functions, short_inputs
from tests.quantized.ours import our_run
from tests.quantized.runs import TfliteRun
from texelflow.gpu_delegate.base.errors import UnsupportedError
from texelflow.gpu_delegate.plan.admission import rewrite_graph
from texelflow.gpu_delegate.reading.reader import read_model

ON_GL = (
    "conv, deep",
    "connected, scales",
    "connected, large bias",
    "connected, halves",
    "matmul",
    "add",
    "mul",
    "mean",
    "softmax",
    "softmax of bytes",
    "softmax of unsigned bytes",
    "quantize to 32 bits",
)


def test_native_code_gives_the_same_integers() -> None:
    models = {name: draw() for name, draw in SHORT_MODELS.items()}
    networks = native_networks({name: read_model(model.build()) for name, model in models.items()})
    for name, model in models.items():
        reference = TfliteRun(model.build())
        for seed in range(4):
            values = short_inputs(model, seed)
            for found, right in zip(networks[name].run(values), reference(values), strict=True):
                np.testing.assert_array_equal(found, right, name)
                assert found.dtype == right.dtype


@pytest.mark.gl
@pytest.mark.parametrize("name", ON_GL)
def test_opengl_gives_the_same_integers(name: str) -> None:
    model = SHORT_MODELS[name]()
    reference = TfliteRun(model.build())
    with our_run(model.build(), "gl") as run:
        for seed in range(2):
            values = short_inputs(model, seed)
            for found, right in zip(run(values), reference(values), strict=True):
                np.testing.assert_array_equal(found, right)


@pytest.mark.parametrize("way", ["native", pytest.param("gl", marks=pytest.mark.gl)])
def test_functions_are_those_of_the_reference_kernels_for_each_value(way: str) -> None:
    model = functions()
    values = [ALL_SHORTS] * len(FUNCTIONS)
    with our_run(model.build(), way) as run:
        for (op, *_), found, right in zip(FUNCTIONS, run(values), TfliteRun(model.build())(values), strict=True):
            np.testing.assert_array_equal(found, right, op)


def refused(model: ShortSketch, reason: str) -> None:
    with pytest.raises(UnsupportedError, match=reason):
        rewrite_graph(read_model(model.build()))


def test_what_the_reference_kernels_do_otherwise_is_left_to_them() -> None:
    one, other = ShortSketch(), ShortSketch()
    refused(one.gives("ADD", [one.given(scale=2**-9), one.given(scale=2**-9)], one.short(scale=2**-8)), "powers of two")
    several = other.weights((6, 7), 1)
    refused(other.gives("BATCH_MATMUL", [other.given((5, 6)), several], other.short((5, 7))), "in 7 scales")


def softmax(given: tuple[str, float], made: tuple[str, float, int], count: int = 5, beta: float = 1.0) -> ShortSketch:
    model, (dtype, scale), (out, size, zero_point) = ShortSketch(), given, made
    result = model.short((3, count), size, out, zero_point)
    return model.gives("SOFTMAX", [model.given((3, count), scale, dtype)], result, beta=beta)


@pytest.mark.parametrize(
    ("model", "reason"),
    [
        (lambda: softmax(("int8", 0.1), ("int16", 2**-15, 0)), "not 1.52588e-05 from -32768"),
        (lambda: softmax(("int8", 0.1), ("uint8", 1 / 256, 0)), "different types"),
        (lambda: softmax(("int16", 1e-4), ("int8", 1 / 256, -128)), "different types"),
        (lambda: softmax(("int8", 0.1), ("int16", 2**-16, -(1 << 15)), 4096), "at most 4095"),
        (lambda: softmax(("int16", 1e-4), ("int16", 2**-15, 0), 513), "at most 512"),
        (lambda: softmax(("int8", 0.1), ("int16", 2**-16, -(1 << 15)), beta=-1.0), "beta of -1"),
        (lambda: softmax(("int16", 1e-4), ("int16", 2**-15, 0), beta=-1.0), "beta of -1"),
        (lambda: softmax(("int16", 9.0), ("int16", 2**-15, 0)), "a scale of 9"),
    ],
)
def test_softmax_that_the_kernels_do_not_know_is_refused(model: Callable[[], ShortSketch], reason: str) -> None:
    refused(model(), reason)


@pytest.mark.parametrize(
    ("given", "made", "reason"),
    [
        (("int8", 1e-2), (1e-3, 0), "int8"),
        (("int16", 1e-2), (1e-3, 7), "from 7"),
        (("int16", 1.0), (1e-4, 0), "float32 does not hold"),
    ],
)
def test_quantize_to_int32_that_is_not_exact_is_refused(
    given: tuple[str, float], made: tuple[float, int], reason: str
) -> None:
    model = ShortSketch()
    refused(
        model.gives(
            "QUANTIZE", [model.given((1, 7), given[1], given[0])], model.short((1, 7), made[0], "int32", made[1])
        ),
        reason,
    )


def test_a_difference_of_bytes_is_looked_up_whatever_it_is() -> None:
    """All pairs of a byte."""
    first, second = np.meshgrid(np.arange(-128, 128), np.arange(-128, 128))
    pairs = np.stack([first.ravel(), second.ravel()], -1).astype(np.int8)
    for scale in (0.0699627, 1e-6, 0.31):
        model = ShortSketch()
        out = model.short(pairs.shape, 1 / 65535, zero_point=-(1 << 15))
        model.gives("SOFTMAX", [model.given(pairs.shape, scale, "int8", 2)], out, beta=1.0)
        with our_run(model.build(), "native") as run:
            np.testing.assert_array_equal(run([pairs])[0], TfliteRun(model.build())([pairs])[0])


def test_sums_that_float32_does_not_hold_are_refused() -> None:
    model = ShortSketch()
    inputs = [model.given((1, 9000)), model.weights((2, 9000), None)]
    refused(model.gives("FULLY_CONNECTED", inputs, model.short((1, 2), 2e-2)), "float32 does not hold")
