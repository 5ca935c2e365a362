"""16-bit activations with weights of bytes, to the bit as TensorFlow Lite's reference kernels compute them."""

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


def test_sums_that_float32_does_not_hold_are_refused() -> None:
    model = ShortSketch()
    inputs = [model.given((1, 9000)), model.weights((2, 9000), None)]
    refused(model.gives("FULLY_CONNECTED", inputs, model.short((1, 2), 2e-2)), "float32 does not hold")
