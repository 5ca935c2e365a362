"""One kernel for the CPU: a planned body and a tile go in, a function in LLVM's words, and what a caller of it needs,
come out.

    void NAME(ptr tensors, ptr weights, i32 y0, i32 y1, i32 z0, i32 z1)

`tensors` has a float pointer for each input, then one for each output, in the order of LlvmKernel; `weights` points at
the kernel's own, 64-byte aligned. Row groups y0 to y1 - 1 of the map are computed, slice blocks z0 to z1 - 1 of the
output, and all columns: what calls with other groups and blocks write is never written with other values.
"""

from dataclasses import dataclass

from ..body import Body
from ..graph import Node
from ..layout import Storages
from ..packing import Float32Array
from ..tile import Tile
from .ir import Module
from .machine import CpuTarget


@dataclass(frozen=True)
class LlvmKernel:
    """A function that was added to a module, before memory is planned. Tensors are numbers of the graph."""

    name: str  # of its ops
    symbol: str  # of the function
    nodes: tuple[Node, ...]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    weights: Float32Array  # (N,), texels one behind the other
    row_groups: int  # y0 and y1 are among 0 ... row_groups
    rows: int  # of a group; of a flat tile runs of as many pixels as there are lanes
    slice_blocks: int  # z0 and z1 are among 0 ... slice_blocks
    macs: int
    tile: Tile
    signature: str = ""  # by which its tile is chosen


def pixel_function(
    module: Module, symbol: str, body: Body, tile: Tile, target: CpuTarget, storages: Storages
) -> LlvmKernel:
    """Add the function of a body under a tile to a module."""
    raise NotImplementedError
