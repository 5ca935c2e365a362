"""Networks of shapes that compilers stumble on: planned in a bounded number of steps, and right on the GPU."""

import json
import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

import numpy as np
import pytest

from app.verbs.compile_shapes import SHAPES, shaped
from gpu_delegate.context import Context
from gpu_delegate.cost import MOST_TEXT_TAPS
from gpu_delegate.device import HARDWARE, SOFTWARE
from gpu_delegate.errors import UnsupportedError
from gpu_delegate.program import draft
from gpu_delegate.reader import read_model
from tests.commands import Command
from tests.engine import DEVICES, on_cpu, on_gpu, worst
from tests.sketch import Sketch

PLANNED = [name for name in SHAPES if name != "concatenations"]
SMALL = 21  # ops: deep enough for kernels of many nodes
FEW = 140
MOST_GROWTH = 2.6  # of the work for twice the ops: what is quadratic has 4


def calls_of(work: Callable[[], Any]) -> int:
    """How many functions Python entered meanwhile: a measure of work that is the same in every run."""
    count = 0

    def entered(frame: FrameType, event: str, _: Any) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    sys.setprofile(entered)
    try:
        work()
    finally:
        sys.setprofile(None)
    return count


@pytest.mark.parametrize("name", PLANNED)
def test_the_work_grows_as_the_network_does(name: str) -> None:
    draft(shaped(name, FEW), HARDWARE)  # what is read once, is
    once, twice = (calls_of(lambda ops=ops: draft(shaped(name, ops), HARDWARE)) for ops in (FEW, 2 * FEW))  # type: ignore[misc]
    assert twice < MOST_GROWTH * once


@pytest.mark.parametrize("device", [SOFTWARE, HARDWARE], ids=["software", "hardware"])
@pytest.mark.parametrize("name", ["self additions", "residuals", "diamonds", "fibonacci"])
def test_the_text_grows_as_the_network_does(name: str, device: Any) -> None:
    """A value that is read twice is computed once."""
    few, many = (sum(len(kernel.source) for kernel in draft(shaped(name, ops), device).kernels) for ops in (240, 480))
    assert many < 2.2 * few


@pytest.mark.parametrize("name", PLANNED)
def test_values_are_those_of_tensorflow_lite(context: Context, name: str) -> None:
    sketch = Sketch(5)
    sketch.output(SHAPES[name](sketch, sketch.image(5, 7, 3), SMALL))
    model = sketch.build()
    inputs = [np.random.default_rng(1).uniform(-1, 1, (1, 5, 7, 3)).astype(np.float32)]
    wanted = on_cpu(model, inputs)
    others = [each for each in DEVICES.values() if each is not SOFTWARE]
    for device in (SOFTWARE, others[PLANNED.index(name) % len(others)]):
        assert worst(on_gpu(context, draft(read_model(model), device), inputs), wanted) < 1e-4


@pytest.mark.parametrize("name", ["diamonds", "residuals", "self additions"])
def test_deep_ones_are_planned_at_once(name: str) -> None:
    """60 ways that part and meet again would be 2**60 if each were gone for itself."""
    assert draft(shaped(name, 180), HARDWARE).kernels


def test_long_chains_need_no_deep_stack() -> None:
    limit = sys.getrecursionlimit()
    for name in ("chain", "gates"):
        assert draft(shaped(name, 3000), HARDWARE).kernels
    assert sys.getrecursionlimit() == limit


def test_what_would_take_too_long_is_refused() -> None:
    sketch = Sketch(0)
    x, kernel = sketch.image(40, 40, 3), (20, 20)
    for _ in range(MOST_TEXT_TAPS // 400 + 1):
        x = sketch.pool("MAX_POOL_2D", x, kernel)
    sketch.output(x)
    with pytest.raises(UnsupportedError, match=r"its windows would take \d+ taps of text, 120000 are allowed"):
        draft(read_model(sketch.build()), HARDWARE)


def test_weights_that_many_share_are_refused() -> None:
    """Each convolution has a packed copy of its own: 300 of 4 MB."""
    sketch = Sketch(0)
    x = sketch.image(1, 2, 1024)
    weights, bias = sketch.random(1024, 1, 1, 1024), sketch.random(1024)
    for _ in range(300):
        x = sketch.op("CONV_2D", [x, weights, bias], (1, 1, 2, 1024), stride=(1, 1), dilation=(1, 1), padding="SAME")
    sketch.output(x)
    with pytest.raises(UnsupportedError, match="its weights would take 1200 MiB, 1024 are allowed"):
        draft(read_model(sketch.build()), HARDWARE)


def test_the_benchmark_has_a_row_for_each_shape(capsys: pytest.CaptureFixture[str]) -> None:
    texelflow = Command(capsys)
    figures = json.loads(texelflow("bench", "compile", "--ops", 100, "--json").out)
    assert figures["ops"] == [10, 20, 50, 100]
    assert list(figures["shapes"]) == list(SHAPES)
    assert all(run["kernels"] or run["refused"] for runs in figures["shapes"].values() for run in runs)
    assert "diamonds" in texelflow("bench", "compile", "--ops", 100).out
    assert "--ops goes from 100 to 10000" in texelflow("bench", "compile", "--ops", 99).complaint
