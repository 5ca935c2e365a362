"""What the engine's tests do most often: run a model on the CPU or GPU and compare outputs."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType

import numpy as np
import numpy.typing as npt

from texelflow.gpu_delegate.cpu.reference import Reference
from texelflow.gpu_delegate.device.device import HARDWARE, SOFTWARE, Device
from texelflow.gpu_delegate.reading.reader import read_model
from texelflow.gpu_delegate.targets.gl.context import Context
from texelflow.gpu_delegate.targets.gl.runtime import Program
from texelflow.gpu_delegate.targets.glsl.compiled_graph import CompiledGraph

Floats = npt.NDArray[np.float32]

# Tunings under which every decision that a device may ask for is taken somewhere: kernels of whole pixels or of single
# slices, weights as literals or in memory, vector work on its own or in front of other kernels.
DEVICES: Mapping[str, Device] = MappingProxyType(
    {
        "software": SOFTWARE,
        "hardware": HARDWARE,
        "baked": SOFTWARE.with_tuning(bake_pixels=2),
        "eager": HARDWARE.with_tuning(min_fused_threads=1, held_slices=64, prologue_loads=1 << 30),
    }
)


def on_cpu(model: bytes, inputs: Sequence[Floats]) -> list[Floats]:
    """The outputs of TensorFlow Lite's own kernels; XNNPACK's differ on SAME with a stride larger than the kernel."""
    return [
        np.asarray(output, np.float32) for output in Reference(read_model(model), keep_all_tensors=True).run(inputs)
    ]


def on_gpu(context: Context, compiled: CompiledGraph, inputs: Sequence[Floats]) -> list[Floats]:
    """The outputs of a compiled graph's program."""
    with Program(context, compiled) as program:
        return run(program, inputs)


def run(program: Program, inputs: Sequence[Floats]) -> list[Floats]:
    """One inference of a program that is there already."""
    graph = program.compiled.source
    for tensor, values in zip(graph.inputs, inputs, strict=True):
        program.write(tensor, values)
    program.run()
    return [program.read(tensor) for tensor in graph.outputs]


def kernel_names(compiled: CompiledGraph) -> list[str]:
    """Of its dispatches, in order."""
    return [kernel.name for kernel in compiled.kernels]


def worst(found: Sequence[Floats], wanted: Sequence[Floats]) -> float:
    """The largest error, in parts of the tensor's largest magnitude or of 1; NaN if anything is not a number."""
    errors = [
        float(np.abs(np.subtract(a.reshape(b.shape), b, dtype=np.float64)).max()) / max(1.0, float(np.abs(b).max()))
        for a, b in zip(found, wanted, strict=True)
    ]
    return float(np.max(errors))
