"""Depthwise windows over planes with zeros around them: right at odd sizes and paddings, and used where it pays."""

from typing import Any

import numpy as np
import pytest

from tests.helpers.engine import on_cpu, worst
from tests.helpers.native import native_networks, target_of
from tests.model_files.sketch import Size, Sketch
from texelflow.gpu_delegate.model.graph import Graph
from texelflow.gpu_delegate.reading.reader import read_model
from texelflow.gpu_delegate.targets.llvm.ir import Register
from texelflow.gpu_delegate.targets.llvm.native_kernel import _Writer
from texelflow.gpu_delegate.targets.llvm.padded_planes import PaddedPlane

# Height, width, taps, distance of taps
CASES: tuple[tuple[int, int, Size, int], ...] = (
    (33, 33, (3, 3), 4), (33, 33, (3, 3), 2), (17, 19, (3, 3), 6), (14, 14, (3, 3), 1), (9, 23, (5, 5), 1),
    (12, 11, (5, 3), 3), (25, 16, (1, 5), 2), (21, 40, (4, 4), 5),
)  # fmt: skip


def windows(height: int, width: int, taps: Size, apart: int) -> bytes:
    """Odd numbers of channels: alone, with what is added, between other kernels, and with one channel added to all."""
    sketch = Sketch(height * width + apart)
    x = sketch.image(height, width, 5)
    options: dict[str, Any] = {"dilation_h_factor": apart, "dilation_w_factor": apart}
    first = sketch.depthwise(x, taps, **options)
    second = sketch.binary("ADD", sketch.unary("RELU6", sketch.depthwise(x, taps, **options)), first)
    across = sketch.binary(
        "ADD", sketch.depthwise(x, taps, **options), sketch.constant(sketch.rng.uniform(size=(1, height, width, 1)))
    )
    sketch.output(sketch.depthwise(sketch.conv(second, 7), taps, **options), first, sketch.unary("LOGISTIC", across))
    return sketch.build()


@pytest.mark.parametrize("lanes", [8, 16])
def test_windows(lanes: int, monkeypatch: pytest.MonkeyPatch) -> None:
    copies, room_for = list[PaddedPlane](), _Writer._room_for

    def counted(writer: _Writer, plane: PaddedPlane) -> Register:
        copies.append(plane)
        return room_for(writer, plane)

    monkeypatch.setattr(_Writer, "_room_for", counted)
    models = {case: windows(*case) for case in CASES}
    graphs: dict[tuple[int, int, Size, int], Graph] = {case: read_model(model) for case, model in models.items()}
    networks = native_networks(graphs, target_of(lanes))
    assert len(copies) >= len(CASES)
    rng = np.random.default_rng(lanes)
    for case, network in networks.items():
        x = rng.uniform(-1, 1, (1, *case[:2], 5)).astype(np.float32)
        for _ in range(2):
            assert worst(network.run([x]), on_cpu(models[case], [x])) < 1e-5, case
