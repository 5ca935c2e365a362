"""A graph and a device go in; the work of all its kernels as they are executed comes out, in multiplications of vec4s.

Kernels are planned and counted, and none is written: decisions of fusion, tiling and lowering are those of the product.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from texelflow.gpu_delegate.body import Body
from texelflow.gpu_delegate.compile_options import CompileOptions
from texelflow.gpu_delegate.device import Device, Tuning
from texelflow.gpu_delegate.graph import Graph, Node
from texelflow.gpu_delegate.layout import Storages, ceil_div, shape_of
from texelflow.gpu_delegate.lower import lower_with
from texelflow.gpu_delegate.memory.records import aligned
from texelflow.gpu_delegate.nodes import has_weights, is_elementwise
from texelflow.gpu_delegate.partial_sums import PartialSum
from texelflow.gpu_delegate.program import rewrite_graph
from texelflow.gpu_delegate.tile import Tile
from texelflow.gpu_delegate.tiling import reduction_tile
from texelflow.gpu_delegate.tuning.static_model import thread_work
from texelflow.gpu_delegate.vector_work import VectorWork

LOAD, WEIGHT = 8, 4  # multiplications that take as long as a read of an input, and of a weight
DISPATCH_SOFTWARE, DISPATCH_HARDWARE = 60_000, 600_000  # and as a dispatch: 15 microseconds here, 5 on a GPU


@dataclass(frozen=True)
class CountedKernel:
    """A kernel that is not written."""

    nodes: tuple[Node, ...]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    work: float  # of all lanes
    dispatch: int

    @property
    def cost(self) -> float:
        return self.work + self.dispatch

    @property
    def names(self) -> str:
        return "+".join(node.op for node in self.nodes)


@dataclass(frozen=True)
class _Counts:
    """Makes counted kernels."""

    tuning: Tuning
    vector_threads: int

    @property
    def lanes(self) -> int:
        return self.tuning.simd_width if self.tuning.simd_width > 1 else self.tuning.wave_threads

    @property
    def dispatch(self) -> int:
        return DISPATCH_SOFTWARE if self.tuning.simd_width > 1 else DISPATCH_HARDWARE

    def pixel(
        self, body: Body, prologue: VectorWork, tile: Tile, left: Sequence[PartialSum], signature: str
    ) -> CountedKernel:
        """Rows of a work-group of a software renderer fill lanes each, on a GPU whole work-groups do."""
        x, y, parts = tile.local
        slices = shape_of(body.graph.tensors[body.outputs[0]]).slices
        groups = math.prod(tile.grid(body.domain, slices))
        threads = (
            aligned(x, self.lanes) * y * parts if self.tuning.simd_width > 1 else aligned(tile.threads, self.lanes)
        )
        work = groups * (threads * thread_work(body, tile).cost + self._vectors(prologue))
        outputs = (*body.outputs, *(each.tensor for each in left))
        return CountedKernel((*prologue.nodes, *body.nodes), (), outputs, work, self.dispatch)

    def vectors(self, work: VectorWork, outputs: Sequence[int]) -> Sequence[CountedKernel]:
        return [CountedKernel(work.nodes, (), tuple(outputs), self._vectors(work), self.dispatch)]

    def _vectors(self, work: VectorWork) -> float:
        return sum(self._vector(work, node) for node in work.nodes)

    def _vector(self, work: VectorWork, node: Node) -> float:
        """Slices of the output round and round, each by a lane; those of threads that share a sum count once."""
        slices, source = work.slices(node.outputs[0]), work.shape(node.inputs[0])
        width = min(work.threads, aligned(slices, self.lanes))
        lanes = ceil_div(slices, width) * aligned(width, self.lanes)
        if is_elementwise(node):
            return lanes * 2
        if has_weights(node):
            return lanes * source.slices * 4 * (WEIGHT + 1)
        return max(lanes, source.slices) * LOAD * (source.texels / max(1, source.slices))


def counted(source: Graph, device: Device, fuse: bool) -> list[CountedKernel]:
    """All kernels of a graph as read. Raises as compile_graph."""
    options = CompileOptions(fuse=fuse)
    graph, _ = rewrite_graph(source, fuse)

    def target(fitted: Device, _: Storages) -> _Counts:
        return _Counts(fitted.tuning, reduction_tile(fitted).threads)

    return list(lower_with(target, graph, device.fitted(), options).kernels)
