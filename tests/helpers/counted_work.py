"""Counts the work of all kernels of a graph, in multiplications of vec4s.

Kernels are planned and counted, and none is written: decisions of fusion, tiling and lowering are those of the product.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from texelflow.gpu_delegate.device.device import Device, Tuning
from texelflow.gpu_delegate.device.tile import Tile
from texelflow.gpu_delegate.model.graph import Graph, Node
from texelflow.gpu_delegate.model.layout import Storages, aligned, ceil_div
from texelflow.gpu_delegate.ops.nodes import has_weights, is_elementwise
from texelflow.gpu_delegate.plan.admission import rewrite_graph
from texelflow.gpu_delegate.plan.body import Body
from texelflow.gpu_delegate.plan.compile_options import CompileOptions
from texelflow.gpu_delegate.plan.epilogue_sums import EpilogueSum
from texelflow.gpu_delegate.plan.lower import lower
from texelflow.gpu_delegate.plan.static_model import dispatch_cost, whole_cost, work_groups
from texelflow.gpu_delegate.plan.tiling import reduction_tile
from texelflow.gpu_delegate.plan.vector_work import VectorWork

LOAD, WEIGHT = 8, 4  # multiplications that take as long as a read of an input, and of a weight


@dataclass(frozen=True)
class CountedKernel:
    """A kernel that is not written."""

    nodes: tuple[Node, ...]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    cost: float  # of all lanes and the dispatch

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

    def pixel(
        self, body: Body, prologue: VectorWork, tile: Tile, left: Sequence[EpilogueSum], signature: str
    ) -> CountedKernel:
        """What is in front of a kernel, each of its work-groups computes."""
        cost = whole_cost(body, tile, self.tuning) + work_groups(body, tile) * self._vectors(prologue)
        outputs = (*body.outputs, *(each.tensor for each in left))
        return CountedKernel((*prologue.nodes, *body.nodes), (), outputs, cost)

    def vectors(self, work: VectorWork, outputs: Sequence[int]) -> Sequence[CountedKernel]:
        cost = self._vectors(work) + dispatch_cost(self.tuning)
        return [CountedKernel(work.nodes, (), tuple(outputs), cost)]

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

    return list(lower(target, graph, device.fitted(), options).kernels)
