"""Random networks of moves and arithmetic, GPU against TensorFlow Lite: fused and not, in batches, in halves.

TEXELFLOW_NETWORKS=FIRST:COUNT tries other networks, as many as there is time for.
"""

import numpy as np

from tests.generators.profiles import random_graph
from tests.gpu_delegate.targets.gl.test_random_networks import asked_for, check_values, choices
from tests.helpers.markers import one_in
from texelflow.gpu_delegate.cpu.reference import Reference
from texelflow.gpu_delegate.model.layout import Precision
from texelflow.gpu_delegate.reading.reader import read_model
from texelflow.gpu_delegate.targets.gl.context import Context
from texelflow.gpu_delegate.targets.gl.runtime import device_of

QUICK = (1, 10, 12, 15, 18, 23, 24)  # that compile quickly; two of them in batches, one in halves


@one_in(4, "seed", asked_for(QUICK))
def test_gpu_agrees_with_tensorflow_lite(context: Context, seed: int) -> None:
    """On this device, and on one other whose tensors begin at odd or even places."""
    model = random_graph(seed, "moves", 1 + seed % 4 // 3).build()
    reference = Reference(read_model(model), keep_all_tensors=True)
    rng, here = np.random.default_rng(seed), device_of(context)
    inputs = [rng.uniform(-2, 2, shape).astype(np.float32) for shape in reference.input_shapes]
    precision: Precision = "fp16" if seed % 5 == 4 else "fp32"
    others = list(choices(seed).values())
    other, fuse = others[1 + seed % (len(others) - 1)]
    alignment = max((16, 64, 256)[seed % 3], here.offset_alignment_bytes)
    other = other.with_limits(texture_buffer_alignment_bytes=alignment, storage_alignment_bytes=alignment)
    check_values(context, model, inputs, reference, here, True, precision)
    check_values(context, model, inputs, reference, other, fuse, precision)
