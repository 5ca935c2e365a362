"""Models whose kernels NumPy reads: a target beside GLSL and LLVM, with work-groups, shared memory and barriers."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from tests.helpers.engine import Floats
from tests.helpers.numpy_kernels import Threads, Values, grid_of_threads
from texelflow.gpu_delegate.code.vocabulary import Statement, blocks_in
from texelflow.gpu_delegate.device.device import Device
from texelflow.gpu_delegate.device.tile import Tile
from texelflow.gpu_delegate.kernels.kernel_code import KernelCode, pixel_code, vector_code
from texelflow.gpu_delegate.model.graph import Graph
from texelflow.gpu_delegate.model.layout import Storages, shape_of
from texelflow.gpu_delegate.model.packing import from_phwc4, phwc4
from texelflow.gpu_delegate.model.rewrite import float_data
from texelflow.gpu_delegate.passes.pipeline import run_passes
from texelflow.gpu_delegate.plan.body import Body
from texelflow.gpu_delegate.plan.compile_options import CompileOptions
from texelflow.gpu_delegate.plan.dispatch import LoweredGraph
from texelflow.gpu_delegate.plan.epilogue_sums import EpilogueSum
from texelflow.gpu_delegate.plan.lower import lower
from texelflow.gpu_delegate.plan.tiling import reduction_tile
from texelflow.gpu_delegate.plan.vector_work import VectorWork
from texelflow.gpu_delegate.reading.reader import read_model


@dataclass(frozen=True)
class NumpyKernel:
    """One kernel, and the sides of its work-groups."""

    code: KernelCode
    local: tuple[int, int, int]

    @property
    def inputs(self) -> tuple[int, ...]:
        return tuple(self.code.inputs)

    @property
    def outputs(self) -> tuple[int, ...]:
        return self.code.outputs

    @property
    def statements(self) -> tuple[Statement, ...]:
        """All that a thread does."""
        return (*self.code.place, *self.code.statements)

    def run(self, texels: Mapping[int, Values]) -> dict[int, dict[int, Values]]:
        """What it stores, by place, from the texels of its inputs."""
        inputs = {name: texels[tensor] for tensor, name in self.code.inputs.items()}
        grid = grid_of_threads(self.code.grid, self.local)
        threads = Threads({}, inputs, self.code.blob.data(), grid, self.code.shared)
        with np.errstate(all="ignore"):  # lanes past the last channel, and threads that do not count
            threads.run(self.statements)
        return {tensor: threads.stored[f"out{k}"] for k, tensor in enumerate(self.outputs)}


@dataclass(frozen=True)
class NumpyKernels:
    """Makes the kernels of a program."""

    storages: Storages
    vector_tile: Tile

    def pixel(
        self, body: Body, prologue: VectorWork, tile: Tile, left: Sequence[EpilogueSum], signature: str
    ) -> NumpyKernel:
        return NumpyKernel(pixel_code(body, prologue, tile, left, self.storages), tile.local)

    def vectors(self, work: VectorWork, outputs: Sequence[int]) -> Sequence[NumpyKernel]:
        return [NumpyKernel(vector_code(work, outputs), self.vector_tile.local)]


def numpy_program(model: bytes, device: Device) -> LoweredGraph[NumpyKernel]:
    """All kernels of a model as they are for a device."""
    graph, _ = run_passes(read_model(model))

    def makes(fitted: Device, storages: Storages) -> NumpyKernels:
        return NumpyKernels(storages, reduction_tile(fitted))

    return lower(makes, graph, device, CompileOptions().with_memory(uses_views=False))


def run_in_numpy(program: LoweredGraph[NumpyKernel], inputs: Sequence[Floats]) -> list[Floats]:
    """Its outputs as arrays BHWC, from inputs of the same kind."""
    graph = program.graph
    given = dict(zip(graph.inputs, inputs, strict=True))
    given |= {k: float_data(each) for k, each in graph.tensors.items() if each.is_constant and len(each.shape) == 4}
    texels = {tensor: _texels(values) for tensor, values in given.items()}
    for kernel in program.kernels:
        for tensor, stored in kernel.run(texels).items():
            texels[tensor] = _stored(graph, program.storages, tensor, stored)
    return [_values(graph, tensor, texels[tensor]) for tensor in graph.outputs]


def _texels(values: Floats) -> Values:
    batch, height, width, channels = values.shape
    return phwc4(values.reshape(batch * height, width, channels)).reshape(-1, 4)


def _stored(graph: Graph, storages: Storages, tensor: int, stored: Mapping[int, Values]) -> Values:
    """What a kernel has stored, every texel of it; of one float for each pixel the other lanes are zeros."""
    lanes = storages[tensor].lanes
    found = np.zeros((shape_of(graph.tensors[tensor]).texels, 4), np.float32)
    assert set(stored) == set(range(len(found))), "a kernel stores every texel, and no other"
    for place, values in stored.items():
        found[place, :lanes] = values[:lanes]
    return found


def _values(graph: Graph, tensor: int, texels: Values) -> Floats:
    shape = shape_of(graph.tensors[tensor])
    rows = from_phwc4(texels.reshape(shape.slices, shape.rows, shape.width, 4), shape.channels)
    return np.ascontiguousarray(rows.reshape(graph.tensors[tensor].shape))


def all_statements(statements: Sequence[Statement]) -> Iterator[Statement]:
    """Those of all blocks, too."""
    for statement in statements:
        yield statement
        for block in blocks_in(statement):
            yield from all_statements(block)


def without(kernel: NumpyKernel, number: int) -> NumpyKernel:
    """The kernel without one of the statements of its outermost block."""
    statements = kernel.code.statements
    return replace(kernel, code=replace(kernel.code, statements=(*statements[:number], *statements[number + 1 :])))
