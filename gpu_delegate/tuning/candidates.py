"""Proposes tiles of a kernel that may be faster, the most promising first.

The search goes in steps: each step varies one kind of choice and keeps what has won so far in the others, so that few
kernels have to be compiled. What a static model says to take twice as long as the best is left out.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import product
from typing import get_args

from ..device.device import Device
from ..device.tile import Tile
from ..model.layout import Fetch, ceil_div, shape_of
from ..plan.body import Body
from ..plan.source_size import source_size
from ..plan.split_k import shared_texels_of
from ..plan.static_model import estimate, held_texels, loop_turns
from ..plan.tiling import is_pixelwise, possible_parts, runs_across, slices_of_group, weight_count

GROUPS = ((8, 8), (8, 4), (16, 4), (16, 8), (32, 2), (32, 8), (64, 1))  # sides of work-groups, in threads
# Fewer threads than a wave: of phones' GPUs some are fastest so (arXiv 1907.01989 has sides of 2, 4 and 8)
SMALL_GROUPS = ((4, 4), (8, 2), (2, 8), (4, 2), (2, 4), (2, 2))
FLAT_GROUPS = (32, 64, 128)

_INPUT_FETCHES: tuple[Fetch, ...] = ("texture", "storage")
_PART_SIDES = ((8, 8), (8, 4), (4, 4), (8, 2))  # of a work-group whose threads share sums
MOST_PARTS = 16
_ROWS = (1, 2, 4, 8)
_SLICES = (1, 2, 3, 4)
_MOST_SLICES = 16  # that one thread computes
_MOST_LITERALS = 4096  # weights in one source
_MOST_COMPILE_S = 2.0
_MOST_TIMES_BEST = 2.0  # of the static model
_MOST_TRIED = 8  # in a step
_OF_EACH_ROWS = 2


@dataclass(frozen=True)
class DeviceFacts:
    """What bounds a search, whatever settings it begins with."""

    least_threads: int  # that fill the device
    operation_compile_us: float  # of its driver
    most_held: int  # vec4s of sums in a thread


SOFTWARE_FACTS = DeviceFacts(16, 900.0, 64)
HARDWARE_FACTS = DeviceFacts(16384, 150.0, 32)


@dataclass(frozen=True)
class Search:
    """What candidates are for."""

    body: Body
    device: Device
    facts: DeviceFacts

    KINDS = (
        "rows and slices", "rows or slices", "ways to read", "work-groups", "parts of sums", "rows or slices",
        "small work-groups",
    )  # fmt: skip

    def others(self, kind: int, best: Tile) -> list[Tile]:
        """Tiles that differ from the best so far in one of KINDS, by its number."""
        makers = self._layouts, self._neighbors, self._ways, self._groups, self._parts, self._neighbors, self._small
        found = self._promising(best, makers[kind](best))
        if kind == 0:  # of each number of rows the best two, since slices are looked at once more
            seen = Counter[int]()
            found = [tile for tile in found if (seen.update([tile.rows]) or seen[tile.rows]) <= _OF_EACH_ROWS]
        return found[:_MOST_TRIED]

    def _layouts(self, best: Tile) -> Iterator[Tile]:
        """Other rows and slices of a thread, literals, threads in the order of memory."""
        flats = (False, True) if is_pixelwise(self.body) else (False,)
        for rows, (slices, baked), flat in product(self._rows(), self._slices(), flats):
            tile = replace(best, rows=rows, z_slices=slices, baked=baked, flat=flat)
            if flat == best.flat:
                yield tile
            shapes = [replace(tile, local=local) for local in self._locals(flat)]
            yield min(shapes, key=self._cost)

    def _neighbors(self, best: Tile) -> Iterator[Tile]:
        """Other rows of a thread, and other slices or literals."""
        yield from (replace(best, rows=rows) for rows in self._rows())
        yield from (replace(best, z_slices=slices, baked=baked) for slices, baked in self._slices())

    def _ways(self, best: Tile) -> Iterator[Tile]:
        """Other ways to read weights and inputs."""
        weights = get_args(Fetch) if weight_count(self.body) and not best.baked else (best.weights_fetch,)
        for weights_fetch, inputs_fetch in product(weights, _INPUT_FETCHES):
            yield replace(best, weights_fetch=weights_fetch, inputs_fetch=inputs_fetch)
        yield replace(best, loads_at_use=not best.loads_at_use)

    def _groups(self, best: Tile) -> Iterator[Tile]:
        """Work-groups with other sides."""
        return (replace(best, local=local) for local in self._locals(best.flat))

    def _small(self, best: Tile) -> Iterator[Tile]:
        """Work-groups of fewer threads, which leave lanes of a software renderer idle: there are none for these."""
        if self.device.tuning.simd_width == 1 and not best.flat and best.parts == 1:
            yield from (replace(best, local=(x, y, 1)) for x, y in SMALL_GROUPS)

    def _parts(self, best: Tile) -> Iterator[Tile]:
        """More or fewer threads that share the terms of a sum; what remains of a work-group lies over fewer pixels."""
        if best.baked or not best.z_slices:
            return
        for parts in possible_parts(self.body, replace(self.device.tuning, split_k=MOST_PARTS)):
            for x, y in _PART_SIDES:
                yield replace(best, rows=1, flat=False, local=(x, y, parts))

    def _rows(self) -> list[int]:
        """Pixels of a thread, none of another map of the batch, or of another row."""
        domain = self.body.domain
        if runs_across(self.body):
            return [rows for rows in _ROWS if domain.width % rows == 0]
        return [rows for rows in _ROWS if rows <= domain.rows and (domain.batch == 1 or domain.height % rows == 0)]

    def _slices(self) -> Iterator[tuple[int, bool]]:
        """Slices of a thread, 0 for all, and whether its weights are literals."""
        slices, weights = shape_of(self.body.graph.tensors[self.body.outputs[0]]).slices, weight_count(self.body)
        if (own := slices_of_group(self.body)) < slices:
            yield from ((count, False) for count in _SLICES if own % count == 0)
            return
        yield 0, False
        if 0 < weights <= _MOST_LITERALS:
            yield 0, True
        if self.body.split and slices > 1:
            halves = {ceil_div(slices, parts) for parts in (2, 3)}
            yield from ((count, False) for count in sorted({*_SLICES, *halves}) if count < slices)

    def _locals(self, flat: bool) -> Iterator[tuple[int, int, int]]:
        limits = self.device.limits
        sides = [(threads, 1) for threads in FLAT_GROUPS] if flat else GROUPS
        most_x, most_y, _ = limits.work_group_size
        for x, y in sides:
            if x <= most_x and y <= most_y and x * y <= limits.work_group_invocations:
                yield x, y, 1

    def _cost(self, tile: Tile) -> float:
        return estimate(self.body, tile, self.facts.least_threads)

    def _promising(self, best: Tile, tiles: Iterable[Tile]) -> list[Tile]:
        """Those that fit and that the static model does not rule out, the best first."""
        proper = dict.fromkeys(map(self._proper, tiles))
        fitting = [tile for tile in proper if tile != best and self._fits(tile)]
        costs = {tile: self._cost(tile) for tile in (best, *fitting)}
        most = _MOST_TIMES_BEST * min(costs.values())
        return sorted((tile for tile in fitting if costs[tile] <= most), key=costs.__getitem__)

    def _proper(self, tile: Tile) -> Tile:
        """The tile, whose threads stay where there are some that have a part of their rows only."""
        leaves = tile.rows == 1 or tile.across or (self.body.domain.height % tile.rows == 0 and not tile.flat)
        deep = tile.deep and tile.z_slices > 0 and not tile.baked and tile.local[1] == 1
        return replace(tile, leaves=tile.leaves and leaves, deep=deep, turned=tile.turned and not tile.flat)

    def _fits(self, tile: Tile) -> bool:
        """Whether it can be had, and a thread's registers, the source and its compilation stay within bounds."""
        tuning = self.device.tuning
        if tile.parts > 1 and not (
            tile.leaves and tile.z_slices and shared_texels_of(self.body, tile) <= tuning.sum_texels
        ):
            return False
        if held_texels(self.body, tile) > self.facts.most_held and tile.rows > 1:
            return False
        if not tile.z_slices and self.body.split and self._all_slices() > _MOST_SLICES:
            return False
        size = source_size(self.body, tile)
        compile_s = size.operations * self.facts.operation_compile_us / 1e6
        is_short = size.characters <= tuning.source_characters and compile_s <= _MOST_COMPILE_S
        return is_short and loop_turns(self.body, tile) <= tuning.loop_turns

    def _all_slices(self) -> int:
        return shape_of(self.body.graph.tensors[self.body.outputs[0]]).slices
