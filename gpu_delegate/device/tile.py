"""A Tile: how the pixels and channel slices of one kernel are distributed over threads and work-groups."""

import math
from dataclasses import dataclass

from ..model.layout import Fetch, MapShape, ceil_div

# 7x7: positions and conditions of taps are registers for a whole kernel, of which compilers for Adreno
# spill some from 8x8 on. A loop costs some eight instructions on ints a tap.
WRITTEN_TAPS = 49


@dataclass(frozen=True)
class Tile:
    """How a kernel's pixels and slices are distributed over threads."""

    rows: int = 1  # pixels of one thread, in a column
    z_slices: int = 0  # output slices of one thread; 0: all of them
    local: tuple[int, int, int] = (8, 8, 1)  # threads of a work-group: columns, rows, parts of a sum
    baked: bool = False  # weights as literals in the source, loops unrolled
    weights_fetch: Fetch = "texture"
    inputs_fetch: Fetch = "texture"
    flat: bool = False  # threads run over pixels in the order of memory, whatever their rows and columns
    loads_at_use: bool = False  # right before what needs them; else all of a window first
    unrolls: bool = True  # whether a compiler may unroll loops
    leaves: bool = False  # threads past an edge end at once; else they repeat what the last ones compute
    across: bool = False  # a thread's pixels lie in one row
    turned: bool = False  # threads along x have rows, and those along y columns: of a narrow map
    deep: bool = False  # of one pixel: threads along x have slices of it, where they would have pixels
    written_taps: int = WRITTEN_TAPS  # of a window; one of more is a loop

    @property
    def threads(self) -> int:
        """Of a work-group."""
        return math.prod(self.local)

    def area(self, domain: MapShape) -> tuple[int, int]:
        """(width, height) of the pixels as threads run over them; the last row of a flat area may be incomplete."""
        if self.across:
            return ceil_div(domain.width, self.rows), domain.rows
        return (ceil_div(domain.pixels, self.rows), self.rows) if self.flat else (domain.width, domain.rows)

    @property
    def sides(self) -> tuple[int, int]:
        """Threads of a work-group over columns and over rows of the area."""
        x, y, _ = self.local
        return (y, x) if self.turned else (x, y)

    @property
    def down(self) -> int:
        """Rows of that area that one thread computes."""
        return 1 if self.across else self.rows

    @property
    def parts(self) -> int:
        """Threads that share the terms of a sum, see plan/split_k.py."""
        return self.local[2]

    @property
    def shares_pixels(self) -> bool:
        """Whether parts share all loops over a pixel's slices, see plan/split_k.py; else just a sum's."""
        return self.parts > 1 and self.z_slices == 0

    @property
    def has_literals(self) -> bool:
        """Whether weights are literals: where they may be, and a thread has all slices."""
        return self.baked and self.z_slices == 0 and self.parts == 1

    def sure_slices(self, slices: int) -> int:
        """Of `slices` output slices those that every thread has; in the last threads some may be past the end."""
        return self.z_slices - (-slices % self.z_slices if self.leaves else 0)

    def blocks(self, slices: int) -> int:
        """Parts of `slices` output slices that threads of their own have."""
        return ceil_div(slices, self.z_slices) if self.z_slices else 1

    def grid(self, domain: MapShape, slices: int) -> tuple[int, int, int]:
        """Work-groups along x, y and z of a kernel with so many output slices."""
        if self.deep:
            return ceil_div(self.blocks(slices), self.local[0]), 1, 1
        return (*self.groups(domain), self.blocks(slices))

    def groups(self, domain: MapShape) -> tuple[int, int]:
        """Work-groups along x and y."""
        width, height = self.area(domain)
        columns, rows = self.sides
        groups = ceil_div(width, columns), ceil_div(height, rows * self.down)
        return (groups[1], groups[0]) if self.turned else groups
