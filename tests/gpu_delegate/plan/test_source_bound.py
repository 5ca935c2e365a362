"""Kernels of hostile shapes under every tuning: at most 64 KB of source, or the op is refused."""

import math

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tests.helpers.markers import one_in
from tests.model_files.sketch import Sketch
from texelflow.app.models.catalogue import fetch
from texelflow.gpu_delegate.base.errors import UnsupportedError
from texelflow.gpu_delegate.device.device import SOFTWARE, Device
from texelflow.gpu_delegate.device.families import TUNINGS
from texelflow.gpu_delegate.device.limits import Limits
from texelflow.gpu_delegate.model.graph import Graph
from texelflow.gpu_delegate.plan import bounds
from texelflow.gpu_delegate.plan.bounds import MOST_SOURCE_BYTES
from texelflow.gpu_delegate.plan.compile_options import CompileOptions
from texelflow.gpu_delegate.plan.refusals import find_refusals
from texelflow.gpu_delegate.reading.reader import load_model, read_model
from texelflow.gpu_delegate.targets.glsl.compiled_graph import compile_graph

SIDES = st.sampled_from((1, 2, 3, 7, 8, 9, 16, 31, 64, 127))
CHANNELS = st.sampled_from((1, 3, 4, 13, 32, 61, 256))
MOST_WEIGHTS = 1 << 25  # of a window: 127 x 127 and 256 channels on both sides would take 20 GB to draw


def longest(graph: Graph, family: str, fuse: bool) -> int:
    """Characters of the longest kernel."""
    device = Device(Limits(storage_block_bytes=1 << 27), TUNINGS[family])
    return max(len(kernel.source) for kernel in compile_graph(graph, device, CompileOptions(fuse=fuse)).kernels)


@one_in(3, "family", TUNINGS)
def test_kernels_of_the_catalogue_are_short(family: str) -> None:
    graph = load_model(str(fetch("selfie")))
    assert longest(graph, family, fuse=True) <= MOST_SOURCE_BYTES


@given(
    size=st.tuples(SIDES, SIDES), window=st.tuples(SIDES, SIDES), channels=st.tuples(CHANNELS, CHANNELS),
    op=st.sampled_from(("conv", "depthwise", "transpose", "AVERAGE_POOL_2D", "MAX_POOL_2D", "mean")),
    family=st.sampled_from(tuple(TUNINGS)), fuse=st.booleans(),
)  # fmt: skip
@settings(max_examples=60, deadline=None)
def test_long_windows_have_short_kernels(
    size: tuple[int, int], window: tuple[int, int], channels: tuple[int, int], op: str, family: str, fuse: bool
) -> None:
    assume(math.prod((*window, *channels)) <= MOST_WEIGHTS)
    sketch = Sketch(0)
    x = sketch.image(*size, channels[0])
    if op == "conv":
        x = sketch.conv(x, channels[1], window)
    elif op == "depthwise":
        x = sketch.depthwise(x, window)
    elif op == "transpose":
        x = sketch.transpose(x, channels[1], window, (2, 2), "SAME")
    else:
        x = sketch.mean(x) if op == "mean" else sketch.pool(op, x, window)
    sketch.output(sketch.unary("TANH", x))
    graph = read_model(sketch.build())
    reasons = find_refusals(graph, SOFTWARE, fuse).reasons.values() if family == "software" else ()
    assert all("the loops of a thread would take" in reason for reason in reasons)
    assert reasons or longest(graph, family, fuse) <= MOST_SOURCE_BYTES


@pytest.mark.parametrize("family", ["software", "adreno"])
def test_blocks_of_many_channels_have_short_kernels(family: str) -> None:
    """4096 channels of a pixel become 256 pixels."""
    sketch = Sketch(0)
    block, channels = 16, 16
    x = sketch.image(3, 3, channels * block * block)
    sketch.output(sketch.op("DEPTH_TO_SPACE", [x], (1, 3 * block, 3 * block, channels), block_size=block))
    assert longest(read_model(sketch.build()), family, fuse=True) < MOST_SOURCE_BYTES // 4


@pytest.mark.parametrize("family", ["software", "adreno"])
def test_what_no_tile_makes_short_is_refused(family: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Under lower bounds: a tile of one pixel and slice makes each op short enough for 64 KB, as far as is known."""
    sketch = Sketch(0)
    sketch.output(sketch.conv(sketch.image(40, 40, 256), 256, (7, 7)))
    graph = read_model(sketch.build())
    usual, lower = longest(graph, family, fuse=True), 24 << 10
    assert usual > lower
    monkeypatch.setattr(bounds, "MOST_SOURCE_BYTES", lower)
    assert longest(graph, family, fuse=True) <= lower, "a shorter tile is taken"
    monkeypatch.setattr(bounds, "MOST_SOURCE_BYTES", 4 << 10)
    with pytest.raises(UnsupportedError, match=r"conv: its kernel would take \d+ KB of GLSL, at most 4 are allowed"):
        longest(graph, family, fuse=True)
