"""Layers that are alike: what is made once for all of them is what would have been made of each alone."""

from collections.abc import Hashable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tests.helpers.engine import on_cpu, worst
from tests.helpers.native import native_networks
from tests.model_files.sketch import Sketch
from texelflow.gpu_delegate.device.device import HARDWARE, SOFTWARE, Device
from texelflow.gpu_delegate.model.layout import Storages
from texelflow.gpu_delegate.passes.pipeline import run_passes
from texelflow.gpu_delegate.plan.compile_options import CompileOptions
from texelflow.gpu_delegate.plan.lower import lower
from texelflow.gpu_delegate.plan.tiling import reduction_tile
from texelflow.gpu_delegate.reading.reader import read_model
from texelflow.gpu_delegate.targets.glsl.glsl_kernel import GlslKernels, Kernel

LAYERS = 4
DEVICES = [
    pytest.param(SOFTWARE, id="software"),
    pytest.param(HARDWARE, id="hardware"),
    pytest.param(SOFTWARE.with_tuning(bake_weights=1200), id="software, some literals"),
]


def repeated(seed: int) -> bytes:
    """Layers with weights, slopes and constant vectors of their own; odd channels, and rows in a row."""
    sketch = Sketch(seed)
    x = sketch.conv(sketch.image(13, 17, 3), 24, (3, 3))
    for layer in range(LAYERS):
        wide = sketch.unary("LEAKY_RELU", sketch.conv(x, 39), alpha=0.1 * (layer + 1))
        turned = sketch.op("REVERSE_V2", [wide, sketch.constant([2], "int32")], sketch.shape(wide))
        moved = sketch.binary("MUL", sketch.depthwise(turned, (3, 3)), sketch.random(39))
        x = sketch.binary("ADD", sketch.conv(sketch.conv(moved, 32, (3, 3)), 24, (3, 3)), x)
    sketch.output(x)
    return sketch.build()


class Forgetful(dict[Hashable, Any]):
    """Never has what was put into it."""

    def __contains__(self, key: object) -> bool:
        return False


def kernels(model: bytes, device: Device, known: dict[Hashable, Any]) -> tuple[Kernel, ...]:
    def makes(fitted: Device, storages: Storages) -> GlslKernels:
        return GlslKernels(fitted.limits, storages, reduction_tile(fitted), known)

    return lower(makes, run_passes(read_model(model))[0], device, CompileOptions()).kernels


@pytest.mark.parametrize("device", DEVICES)
def test_kernels_are_those_that_each_layer_would_have(device: Device) -> None:
    model, known = repeated(3), dict[Hashable, Any]()
    shared, alone = kernels(model, device, known), kernels(model, device, Forgetful())
    assert len(known) < len(shared) - LAYERS, "most layers have kernels of those before"
    for one, other in zip(shared, alone, strict=True):
        assert one.weights.tobytes() == other.weights.tobytes()
        empty = np.zeros(0, np.float32)
        assert replace(one, weights=empty) == replace(other, weights=empty, bindings=one.bindings)
        assert one.bindings.lines == other.bindings.lines


def test_native_functions_are_shared_and_right() -> None:
    model = repeated(4)
    network = native_networks({0: read_model(model)})[0]
    symbols = [kernel.symbol for kernel in network.compiled.kernels]
    assert len({*symbols}) <= len(symbols) - 2 * LAYERS
    x = np.random.default_rng(1).uniform(-1, 1, (1, 13, 17, 3)).astype(np.float32)
    assert worst(network.run(x), on_cpu(model, [x])) < 1e-5
