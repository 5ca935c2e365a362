"""The kernel that resizes a network's mask to the size of a frame.

Bilinear: for each row of the frame two rows of the mask are mixed, then their columns. Where the frame is larger, the
columns that a vector of results needs lie in two vectors, one of them a column further on, and are permuted by what is
said of them once; elsewhere they are loaded one by one.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from . import ir
from .ir import FLOAT, I32, I64, Function, Module, Register
from .machine import CpuTarget
from .sampling_tables import Neighbors, Word, WordReader, WordTable, gathered

MOST_COLUMNS = 1 << 14  # of a mask, of which a row is mixed on the stack
_MARGIN = 64  # floats in front of a mixed row and behind it, where the columns at its edges are repeated
_PERMUTE = {16: "llvm.x86.avx512.permvar.sf.512", 8: "llvm.x86.avx2.permps"}  # of a vector by another one


@dataclass(frozen=True)
class ResizedMask:
    """How a frame samples a mask, two rows and two columns each; `seen` (rows, columns) of the frame, others are 0."""

    rows: Neighbors
    columns: Neighbors
    seen: tuple[npt.NDArray[np.bool_], npt.NDArray[np.bool_]]

    @property
    def frame_size(self) -> tuple[int, int]:
        """(rows, columns)."""
        return len(self.seen[0]), len(self.seen[1])

    @property
    def fits(self) -> bool:
        """Whether a kernel can hold a row of the mask."""
        return self.columns.extent <= MOST_COLUMNS

    def starts(self, lanes: int) -> npt.NDArray[np.int32]:
        """The columns where blocks of so many begin, the last one earlier where it would reach over the end."""
        width = self.frame_size[1]
        return np.minimum(np.arange(0, width, lanes), width - lanes).astype(np.int32)

    def is_permuted(self, target: CpuTarget, lanes: int) -> bool:
        """Whether a target permutes vectors so wide, and each block's columns lie in one."""
        starts, near = self.starts(lanes), self.columns.near()
        wide = target.name.startswith("avx") and lanes in _PERMUTE
        return wide and bool((near[starts + lanes - 1] - near[starts] < lanes).all())


def mask_tables(mask: ResizedMask, lanes: int) -> WordTable:
    """What mask_function's code reads of a mask and a frame."""
    rows_seen, columns_seen = (seen.astype(np.float32) for seen in mask.seen)
    starts, near = mask.starts(lanes), mask.columns.near()
    blocks = starts[:, None] + np.arange(lanes)
    words: list[Word] = [mask.columns.extent, len(starts), starts, near[starts], near[blocks] - near[starts][:, None]]
    words += [(each * columns_seen)[blocks].astype(np.float32) for each in mask.columns.weights]
    for nth in range(2):
        words += [mask.rows.inside(nth), (mask.rows.weights[nth] * rows_seen).astype(np.float32)]
    return WordTable(words)


def mask_function(module: Module, name: str, lanes: int, is_permuted: bool) -> None:
    """Add a kernel over the frame's rows, for all sizes.

    `tensors` are words: the mask's address, in whose margins may be read, the frame's mask's, and how many floats lie
    from row to row of each. `lanes` are no more than the frame has columns.
    """
    parameters = [("ptr", "tensors"), ("ptr", "weights"), *((I32, each) for each in ("y0", "y1", "z0", "z1"))]
    _Resizer(module.function(name, parameters), lanes, is_permuted).write()


class _Resizer:
    """The code of one kernel."""

    def __init__(self, function: Function, lanes: int, is_permuted: bool) -> None:
        self.f, self.lanes, self.is_permuted = function, lanes, is_permuted
        self.vector = ir.vector(FLOAT, lanes)
        tensors, tables, self.first, self.last, *_ = function.parameters
        given, kept = WordReader(function, tensors), WordReader(function, tables)
        self.mask, self.out, self.mask_row, self.out_row = (
            given.pointer(), given.pointer(), given.long(), given.long()
        )  # fmt: skip
        self.extent, self.blocks = kept.number(), kept.number()
        self.starts, self.origins, self.places = (kept.pointer() for _ in range(3))
        self.column_weights = [kept.pointer() for _ in range(2)]
        self.rows = [(kept.pointer(), kept.pointer()) for _ in range(2)]
        self.mixed = function.at(function.reserve(FLOAT, MOST_COLUMNS + 2 * _MARGIN), _MARGIN)

    def write(self) -> None:
        """A loop over rows: two rows mixed, then blocks of columns."""
        f = self.f
        with f.loop(self.first, self.last) as y:
            self._mix_rows(y)
            row = f.at(self.out, f.binary("mul", f.convert("sext", y, I64), self.out_row))
            with f.loop(ir.integer(0), self.blocks) as block:
                f.store(self._columns(block), f.at(row, f.load(I32, f.at(self.starts, block, I32))))
        f.give_back()

    def _mix_rows(self, y: Register) -> None:
        """The two rows of the mask, weighted, with what is at the edges repeated."""
        f = self.f
        taps = []
        for places, weights in self.rows:
            row = f.convert("sext", f.load(I32, f.at(places, y, I32)), I64)
            weight = f.splat(f.load(FLOAT, f.at(weights, y)), self.lanes)
            taps.append((f.at(self.mask, f.binary("mul", row, self.mask_row)), weight))
        (above, weight), (below, other) = taps
        with f.loop(ir.integer(0), self.extent, self.lanes) as x:
            upper, lower = (f.load(self.vector, f.at(each, x)) for each in (above, below))
            f.store(f.fma(lower, other, f.binary("fmul", upper, weight)), f.at(self.mixed, x))
        last = f.at(self.mixed, f.binary("sub", self.extent, ir.integer(1)))
        for edge, way in ((self.mixed, -1), (last, 1)):
            value = f.load(FLOAT, edge)
            for nth in (1, 2):
                f.store(value, f.at(edge, way * nth))

    def _columns(self, block: Register) -> Register:
        """The results of one block."""
        f = self.f
        origin = f.at(self.mixed, f.load(I32, f.at(self.origins, block, I32)))
        first = f.binary("mul", block, ir.integer(self.lanes))
        total: Register | None = None
        for nth, weights in enumerate(self.column_weights):
            values = self._taken(f.at(origin, nth) if nth else origin, first)
            factor = f.load(self.vector, f.at(weights, first))
            total = f.binary("fmul", values, factor) if total is None else f.fma(values, factor, total)
        assert total is not None
        return total

    def _taken(self, origin: Register, first: Register) -> Register:
        """The values at a block's places behind its origin."""
        f, places = self.f, self.f.at(self.places, first, I32)
        if not self.is_permuted:
            return gathered(f, origin, [f.load(I32, f.at(places, lane, I32)) for lane in range(self.lanes)])
        order = f.load(ir.vector(I32, self.lanes), places)
        return f.call(_PERMUTE[self.lanes], self.vector, f.load(self.vector, origin), order)
