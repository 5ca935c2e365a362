"""Random networks on ordinary and odd devices: values against the CPU, kernels and plans against what they may be.

TEXELFLOW_NETWORKS=FIRST:COUNT tries other networks, as many as there is time for: 1000:500 takes ten minutes.
"""

import math
import os
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from tests.generators.profiles import random_graph
from tests.generators.random_devices import random_device
from tests.gpu_delegate.plan.memory.test_offsets import collisions
from tests.gpu_delegate.plan.test_fusion import check_kernels
from tests.gpu_delegate.plan.test_hazards import check_barriers
from tests.helpers.boundless import BoundlessProgram
from tests.helpers.engine import DEVICES
from tests.helpers.markers import exhaustive, one_in
from tests.model_files.sketch import Sketch
from texelflow.gpu_delegate.cpu.compare import compare, first_divergence
from texelflow.gpu_delegate.cpu.reference import Reference
from texelflow.gpu_delegate.device.device import HARDWARE, SOFTWARE, Device
from texelflow.gpu_delegate.device.limits import Limits
from texelflow.gpu_delegate.model.layout import TEXEL_BYTES, Precision
from texelflow.gpu_delegate.plan.compile_options import CompileOptions
from texelflow.gpu_delegate.plan.memory.offsets import naive
from texelflow.gpu_delegate.reading.reader import read_model
from texelflow.gpu_delegate.targets.gl.context import Context
from texelflow.gpu_delegate.targets.gl.runtime import Program, device_of
from texelflow.gpu_delegate.targets.glsl.compiled_graph import CompiledGraph, accesses_of, compile_graph

Floats = npt.NDArray[np.float32]

# Networks that compile quickly and between them take nearly all decisions that sixty would.
QUICK = (1, 3, 5, 6, 9, 10, 11, 12, 14, 23, 30, 39, 40, 41, 47, 50, 53, 56, 58)
BATCHED = (0, 3, 6, 12, 25, 34)


def asked_for(quick: Iterable[int]) -> Iterable[int]:
    """The seeds that the environment asks for, else these."""
    asked = os.environ.get("TEXELFLOW_NETWORKS")
    if not asked:
        return quick
    first, count = map(int, asked.split(":"))
    return range(first, first + count)


def choices(seed: int) -> dict[str, tuple[Device, bool]]:
    """Devices to compile for, and whether to fuse."""
    rng = np.random.default_rng(seed)
    return {
        "software": (SOFTWARE, True),
        "hardware": (HARDWARE, True),
        "unfused": (SOFTWARE, False),
        "odd": (random_device(SOFTWARE, rng), True),
        "odder": (random_device(HARDWARE, rng), True),
        "odd and unfused": (random_device(SOFTWARE, rng), False),
    }


def outputs(program: Program, inputs: Sequence[Floats]) -> list[bytes]:
    """The outputs of a program's second run, whose memory the first has used already."""
    graph = program.compiled.graph
    for tensor, values in zip(graph.inputs, inputs, strict=True):
        program.write(tensor, values)
    program.run()
    program.run()
    return [program.read(tensor).tobytes() for tensor in (*graph.outputs, *graph.inputs)]


def check_limits(compiled: CompiledGraph, limits: Limits) -> None:
    """Each kernel within the device's limits; vector work on one node has no other way than its shared memory."""
    for kernel in compiled.kernels:
        read_as_storage = [*kernel.fetches, kernel.weights_fetch].count("storage")
        assert len(kernel.outputs) + read_as_storage <= limits.storage_bindings
        assert len(kernel.inputs) < limits.compute_textures
        assert math.prod(kernel.local) <= limits.work_group_invocations
        shared = sum(map(int, re.findall(r"shared vec4 \w+\[(\d+)\]", kernel.source)))
        assert shared * TEXEL_BYTES <= limits.shared_memory_bytes or len(kernel.nodes) == 1


@one_in(5, "seed", asked_for(range(40)))
def test_kernels_barriers_and_memory(seed: int) -> None:
    graph = read_model(random_graph(seed, "segmentation").build())
    for device, fuse in choices(seed).values():
        compiled = compile_graph(graph, device, CompileOptions(fuse=fuse))
        check_kernels(compiled)
        check_limits(compiled, device.limits)
        check_barriers(accesses_of(compiled), compiled.barriers)
        assert collisions(compiled.records, compiled.plan) == []
        assert compiled.plan.total_bytes <= naive(compiled.records, device.offset_alignment_bytes).total_bytes


def check_values(
    context: Context,
    model: bytes,
    inputs: Sequence[Floats],
    reference: Reference,
    device: Device,
    fuse: bool,
    precision: Precision = "fp32",
) -> None:
    """All stored tensors against the CPU, then the outputs where memory is shared; nothing outside of them touched."""
    graph = read_model(model)
    with BoundlessProgram(
        context, compile_graph(graph, device, CompileOptions(fuse=fuse, keep_all=True, precision=precision))
    ) as program:
        differences = compare(program, reference, inputs)
        assert first_divergence(differences) is None
        assert {difference.tensor for difference in differences} >= set(graph.outputs)
        wanted = outputs(program, inputs)
        assert not program.strayed()
    with BoundlessProgram(
        context, compile_graph(graph, device, CompileOptions(fuse=fuse, keep_all=False, precision=precision))
    ) as program:
        assert outputs(program, inputs) == wanted, "a tensor was overwritten while it was needed"
        assert not program.strayed()


def check_network(context: Context, seed: int, precision: Precision, sketch: Sketch) -> None:
    """check_values of one random network, on this device and on one other."""
    model = sketch.build()
    reference = Reference(read_model(model), keep_all_tensors=True)
    rng = np.random.default_rng(seed)
    inputs = [rng.uniform(-2, 2, shape).astype(np.float32) for shape in reference.input_shapes]
    others = list(choices(seed).values())
    for device, fuse in ((device_of(context), True), others[1 + seed % (len(others) - 1)]):
        check_values(context, model, inputs, reference, device, fuse, precision)


def stored_mask(m: Sketch) -> list[int]:
    x = m.conv(m.image(9, 10, 5), 13, (3, 3))
    mask = m.unary("LOGISTIC", m.conv(x, 1))
    return [m.binary("MUL", x, mask), mask]


def summed_mask(m: Sketch) -> list[int]:
    x, mask = m.image(9, 10, 13), m.unary("LOGISTIC", m.image(9, 10, 1))
    return [m.binary("ADD", m.conv(m.binary("MUL", x, mask), 5), m.conv(mask, 5))]


ONE_CHANNEL = (stored_mask, summed_mask)


@one_in(10, "seed", asked_for(QUICK))
def test_gpu_agrees_with_tensorflow_lite(context: Context, seed: int) -> None:
    check_network(context, seed, "fp32", random_graph(seed, "segmentation"))


@one_in(6, "seed", asked_for(BATCHED))
def test_gpu_agrees_with_tensorflow_lite_on_several_maps(context: Context, seed: int) -> None:
    check_network(context, seed, "fp32", random_graph(seed, "segmentation", 2 + seed % 2))


@exhaustive
@one_in(2, "draw", ONE_CHANNEL, ids=lambda draw: draw.__name__)
def test_one_channel_that_is_repeated_and_used_alone(context: Context, draw: Callable[[Sketch], list[int]]) -> None:
    sketch = Sketch(0)
    sketch.output(*draw(sketch))
    model = sketch.build()
    reference = Reference(read_model(model), keep_all_tensors=True)
    inputs = [np.random.default_rng(1).uniform(-2, 2, s).astype(np.float32) for s in reference.input_shapes]
    for device in DEVICES.values():
        check_values(context, model, inputs, reference, device, fuse=True)


def test_straying_shows(context: Context) -> None:
    """One input slice too many, and one row too many written."""
    sketch = Sketch(0)
    sketch.output(sketch.conv(sketch.unary("TANH", sketch.image(5, 6, 5)), 9))
    model = sketch.build()
    reference = Reference(read_model(model), keep_all_tensors=True)
    inputs = [np.ones((1, 5, 6, 5), np.float32)]
    compiled = compile_graph(read_model(model), SOFTWARE, CompileOptions(keep_all=True))
    for right, wrong in (("s < 2", "s < 3"), ("WRITE(out0, ", "WRITE(out0, 6 + ")):
        (kernel,) = compiled.kernels
        assert right in kernel.source
        strayed = replace(compiled, kernels=(replace(kernel, source=kernel.source.replace(right, wrong)),))
        with BoundlessProgram(context, strayed) as program:
            assert first_divergence(compare(program, reference, inputs)) is not None or program.strayed()
