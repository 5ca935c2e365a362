"""CPU kernels on maps about as wide as a vector: they write only their outputs, and ignore what is around."""

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from tests.helpers.engine import on_cpu, worst
from tests.helpers.markers import one_in
from tests.helpers.native import native_networks
from tests.model_files.sketch import Sketch
from texelflow.gpu_delegate.model.layout import FLOAT_BYTES
from texelflow.gpu_delegate.reading.reader import read_model
from texelflow.gpu_delegate.targets.llvm.compiler import native_target
from texelflow.gpu_delegate.targets.llvm.native_runtime import CheckedNetwork
from texelflow.gpu_delegate.targets.llvm.planes import planes_of


def network_of(width: int, batch: int) -> Sketch:
    """Windows of several kinds over one map, whose edges no vector ends with."""
    sketch = Sketch(width)
    x = sketch.image(1 + 4 * (width % 2), width, 3, batch)
    wide = sketch.conv(x, 5, (3, 3), activation="RELU6")
    apart = [
        sketch.depthwise(wide, (1, 3), padding="VALID"),
        sketch.conv(wide, 4, (3, 2), dilation=(1, 2)),
        sketch.pool("MAX_POOL_2D", wide, (3, 3), stride=(2, 2)),
        sketch.transpose(wide, 1, (3, 3), (2, 2), "SAME"),
        sketch.resize(wide, (3, width + 1), half_pixel_centers=True),
    ]
    sketch.output(sketch.unary("TANH", apart[0]), *apart[1:], sketch.mean(wide))
    return sketch


def check_writes(network: CheckedNetwork, number: int) -> None:
    """One step: all of its outputs are written, and nothing else in memory, margins included."""
    memory, kernel = whole_memory(network), network.compiled.kernels[number]
    allowed = np.zeros(memory.shape, np.float32)
    outputs = [network.image.tensors[tensor] for tensor in kernel.outputs]
    for tensor, stored in zip(kernel.outputs, outputs, strict=True):
        floats = network.memory(tensor)
        start = (floats.ctypes.data - memory.ctypes.data) // FLOAT_BYTES
        planes_of(allowed[start : start + floats.size], stored.shape, stored.storage)[:] = 1
    before = memory.view(np.int32).copy()
    network.run_part(number, (0, kernel.row_groups), (0, kernel.slice_blocks))
    assert not ((memory.view(np.int32) != before) & (allowed == 0)).any(), kernel.name
    for tensor, stored in zip(kernel.outputs, outputs, strict=True):
        assert np.isfinite(planes_of(network.memory(tensor), stored.shape, stored.storage)).all(), kernel.name


def whole_memory(network: CheckedNetwork) -> npt.NDArray[np.float32]:
    """All tensors with the margins around them."""
    base = network.memory(network.image.inputs[0]).base
    assert isinstance(base, np.ndarray)
    return base


@one_in(3, "lanes", [4, 8, 16])
def test_edges_of_maps(lanes: int) -> None:
    sizes = zip((lanes - 1, lanes, lanes + 1, 2 * lanes + 1), (2, 1, 3, 1), strict=True)
    models = {size: network_of(*size).build() for size in sizes}
    target = replace(native_target(), lanes=lanes)
    networks = native_networks({size: read_model(model) for size, model in models.items()}, target, keep_all=True)
    for size, network in networks.items():
        (shape,), (tensor,) = network.input_shapes, network.image.inputs
        values = np.random.default_rng(lanes).uniform(-2, 2, shape).astype(np.float32)
        whole_memory(network)[:] = np.nan
        network.memory(tensor)[:] = 0
        network.write(tensor, values)
        for number in range(len(network.steps)):
            check_writes(network, number)
        found = [network.read(number) for number in network.image.outputs]
        assert worst(found, on_cpu(models[size], [values])) < 1e-5
