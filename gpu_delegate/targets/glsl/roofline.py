"""The roofline model: which of arithmetic and memory traffic bounds a kernel on a machine.

A dispatch cannot be faster than its multiply-accumulates (MAC) at the device's peak rate, nor than its bytes at the
peak memory bandwidth. app/verbs/peaks.py measures both peaks. A MAC counts once, whether the device fuses it or not.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from ...model.layout import shape_of
from .compiled_graph import CompiledGraph
from .glsl_kernel import Kernel

Roof = Literal["compute", "memory"]


@dataclass(frozen=True)
class Cost:
    """The least work of a dispatch as it is executed.

    Every byte that it needs is moved once, and once more for each further work-group that computes vectors from it.
    """

    macs: int  # those that work-groups and threads repeat included
    read_bytes: int  # inputs and weights
    written_bytes: int

    @property
    def moved_bytes(self) -> int:
        return self.read_bytes + self.written_bytes

    @property
    def intensity(self) -> float:
        """MAC per byte."""
        return self.macs / self.moved_bytes if self.moved_bytes else 0.0


@dataclass(frozen=True)
class Peaks:
    """The peak rates of a machine."""

    macs_per_s: float
    bytes_per_s: float
    dispatch_s: float = 0.0  # of a dispatch that does next to nothing, with the barrier before it

    @property
    def ridge(self) -> float:
        """MAC per byte above which arithmetic is the bound, not memory."""
        return self.macs_per_s / self.bytes_per_s

    def roof(self, cost: Cost) -> Roof:
        """Which of the two bounds a dispatch."""
        return "compute" if cost.intensity > self.ridge else "memory"

    def least_ms(self, cost: Cost) -> float:
        """The least time that a dispatch of this cost can take."""
        return max(cost.macs / self.macs_per_s, cost.moved_bytes / self.bytes_per_s) * 1e3


def cost_of(compiled: CompiledGraph, kernel: Kernel) -> Cost:
    """The cost of one of the compiled graph's kernels."""

    def size_bytes(tensors: Iterable[int]) -> int:
        shapes = compiled.graph.tensors
        return sum(compiled.storages[tensor].size_bytes(shape_of(shapes[tensor])) for tensor in tensors)

    read_bytes = size_bytes(kernel.inputs) + kernel.weights_bytes + kernel.repeated_bytes
    return Cost(kernel.macs + kernel.repeated_macs, read_bytes, size_bytes(kernel.outputs))
