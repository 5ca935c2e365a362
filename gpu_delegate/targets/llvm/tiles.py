"""Adapts a kernel's tile to the CPU, and chooses how many lanes its vectors have."""

from dataclasses import replace
from typing import NamedTuple

from ...device.tile import Tile
from ...model.layout import LINE_FLOATS, MapShape, ceil_div, shape_of
from ...ops.nodes import is_contraction
from ...plan.body import Body
from ...plan.tiling import is_pixelwise, needs_its_pixels, only_reduces
from .machine import CpuTarget
from .panels import may_be_flat
from .patches import LEAST_LANES, Patches, lanes_for, patches
from .quads import saved_by_quads

_LEAST_SLICES = 2  # of sums at once: four depend on one another too often
_MOST_ROWS = 8  # of a group: more take long to compile, and gain nothing
_ACROSS_SLICES = 2  # of their sums: more would not stay in registers
_REGISTERS_OF_ROW = 8  # of windows over bytes, whose four channels are computed together: half of them are sums
_MOST_WHOLE_ROWS = 10  # of a map in one group: what its rows share is loaded once


class NativeTile(NamedTuple):
    """What a kernel computes together, and its target with as many lanes as a map has use for."""

    tile: Tile
    target: CpuTarget
    patches: Patches | None = None  # that it computes instead of pixels (winograd.py)
    ends_in_quads: bool = False  # whether its last pixels are computed four at a time (quads.py)


def native_tile(body: Body, tile: Tile, target: CpuTarget, has_bytes: bool = False) -> NativeTile:
    """The tile of a kernel.

    Where each pixel is made of the same pixel of the inputs, pixels are taken in the order of memory, whatever their
    rows: of a map 14 wide a vector of 16 would have two lanes too many in every row. Elsewhere vectors are narrower
    where a whole row fits, and groups have as many rows as leave the fewest to be computed twice.
    """
    domain, slices = body.domain, shape_of(body.graph.tensors[body.outputs[0]]).slices
    if tile.across:
        return _across_tile(body, tile, target)
    if not has_bytes and target.is_x86 and only_reduces(body):
        return _reduced_tile(body, target)
    if not has_bytes and tile.z_slices and (found := patches(body, target)):
        patched = Tile(found.rows, found.slices, (1, 1, 1), flat=found.flat, loads_at_use=True)
        return NativeTile(patched, replace(target, lanes=found.lanes), found)
    z_slices, flat = min(tile.z_slices, slices), tile.flat or is_pixelwise(body)
    flat = flat or (not has_bytes and may_be_flat(body) and _saves_lanes(domain, tile.rows, target.lanes))
    target = replace(target, lanes=lanes_for(domain.pixels if flat else domain.width, target.lanes))
    most = domain.pixels // target.lanes if flat else domain.rows
    is_sum = any(map(is_contraction, body.nodes)) and (flat or domain.batch == 1)  # rows are of one map of a batch
    least = _LEAST_SLICES // (z_slices or slices) if is_sum else 1
    rows, ends_in_quads = max(1, min(max(tile.rows, least), most)), False
    if flat:
        choices = range(rows, max(0, min(rows, least) - 1), -1)  # fewer sums would wait for one another
        saved = {k: 0 if has_bytes or not is_sum else saved_by_quads(body, k, target) for k in choices}
        rows = min(choices, key=lambda k: ceil_div(domain.pixels, k * target.lanes) * k * target.lanes - saved[k])
        ends_in_quads = saved[rows] > 0
        if has_bytes and is_sum and (rows, z_slices) == (2, 1) and slices > 1:
            runs = ceil_div(domain.pixels, target.lanes)
            rows, z_slices = (1, 2) if runs % 2 else (2, 1)  # as many sums, in the same time, and no run twice
        elif is_sum and rows < tile.rows and z_slices == 1 and slices > 1:
            z_slices = tile.rows  # as many sums where a map is too small for more vectors
    elif tile.rows > 2 and has_bytes:
        rows = min(most, max(1, target.registers // _REGISTERS_OF_ROW))
        while domain.batch > 1 and domain.height % rows:  # a group has rows of one map of the batch
            rows -= 1
    elif tile.rows > 2 and domain.batch == 1 and domain.rows <= _MOST_WHOLE_ROWS:
        rows = domain.rows
    elif tile.rows > 2 and domain.batch == 1:
        nearest = sorted(range(3, min(_MOST_ROWS, most) + 1), key=lambda k: abs(k - tile.rows))
        rows = min(nearest, key=lambda k: ceil_div(domain.rows, k) * k, default=rows)
    return NativeTile(Tile(rows, z_slices, (1, 1, 1), flat=flat, loads_at_use=True), target, None, ends_in_quads)


def _reduced_tile(body: Body, target: CpuTarget) -> NativeTile:
    """For what reduces channels, in several loops over all planes: a cache line of each, taken at once.

    Narrower vectors would use half of what is loaded, and each other half after all planes.
    """
    domain = body.domain
    flat = needs_its_pixels(body) and (domain.rows == 1 or _saves_lanes(domain, 1, LINE_FLOATS))
    target = replace(target, lanes=lanes_for(domain.pixels if flat else domain.width, LINE_FLOATS))
    return NativeTile(Tile(1, 0, (1, 1, 1), flat=flat, loads_at_use=True), target)


def _across_tile(body: Body, tile: Tile, target: CpuTarget) -> NativeTile:
    """For the products of matrices that matrix_kernel.py leaves."""
    slices = shape_of(body.graph.tensors[body.outputs[0]]).slices
    z_slices = min(tile.z_slices, _ACROSS_SLICES, slices)
    tile = Tile(1, z_slices, (1, 1, 1), loads_at_use=True, across=True)
    return NativeTile(tile, replace(target, lanes=lanes_for(body.domain.width, target.lanes)))


def _saves_lanes(domain: MapShape, rows: int, lanes: int) -> bool:
    """Whether pixels in the order of memory fill vectors better than those of rows, by a tenth."""
    of_row = lanes_for(domain.width, lanes)
    blocks, rest = divmod(domain.width, of_row)
    end = of_row // 2 if 0 < rest <= of_row // 2 and of_row > LEAST_LANES * 2 else of_row if rest else 0
    by_rows = ceil_div(domain.rows, rows) * rows * (blocks * of_row + end)
    return 1.1 * ceil_div(domain.pixels, rows * lanes) * rows * lanes <= by_rows * (lanes / of_row)
