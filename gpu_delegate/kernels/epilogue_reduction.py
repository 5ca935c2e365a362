"""GLSL of partial sums: a body, its tile and what it leaves go in, lines that add up a work-group's values come out.

Every thread puts what it stores into shared memory, and the group adds that in two steps: as many threads for a slice
as each of them has values to add, then one of them. Pixels that a thread computes only because the map ends count in
the one thread that they belong to.
"""

import math
from collections.abc import Callable, Sequence

from ..code.expressions import Slice
from ..code.vocabulary import PIXEL, THREAD, Choose, Name, Operand, Splat, Statement, StoreShared, Value, combined
from ..device.tile import Tile
from ..model.layout import shape_of
from ..plan.body import Body
from ..plan.partial_sums import PartialSum, slots_of
from ..targets.glsl.print_glsl import lines
from .reduction import fold_into


class GroupSums:
    """Lines for the head of main(), for each value that is stored, and for the end of the kernel."""

    def __init__(self, body: Body, tile: Tile, sums: Sequence[PartialSum], first_output: int) -> None:
        """The kernel's outputs from `first_output` on are the sums' tensors."""
        self._body = body
        self._tile = tile
        self._sums = sums
        self._names = {each: f"sums{k}" for k, each in enumerate(sums)}
        self._outputs = {each: f"out{first_output + k}" for k, each in enumerate(sums)}
        self._slots = {each: slots_of(body, tile, each) for each in sums}
        self._threads = tile.local[0] * tile.local[1]  # that store something
        self._parts = 1 << (math.isqrt(self._threads).bit_length() - 1)  # of a slice's sum, a thread for each

    @property
    def are_left(self) -> bool:
        """Whether there are any."""
        return bool(self._sums)

    @property
    def shared(self) -> dict[str, int]:
        """Arrays in shared memory, and how many texels each has."""
        return {self._names[each]: self._slots[each] * self._threads for each in self._sums}

    def _own(self, row: int) -> str:
        """Whether pixel `row` of a thread is no other thread's; "" for always."""
        tile, domain = self._tile, self._body.domain
        width, height = tile.area(domain)
        conditions = []
        if tile.leaves:
            return "!past" if tile.shares_pixels else ""  # which may store before threads past the edges leave
        if width % tile.local[0]:
            conditions.append("gl_GlobalInvocationID.x < WIDTH")
        if height % (tile.local[1] * tile.down):
            conditions.append(f"y0 + {0 if tile.across else row} >= int(gl_GlobalInvocationID.y) * ROWS")
        if tile.across and (row + 1) * width > domain.width:
            conditions.append(f"x0 + {row * width} < {domain.width}")
        if tile.flat and (row + 1) * width > domain.pixels:
            conditions.append(f"(y0 + {row}) * WIDTH + x0 < {domain.pixels}")
        return " && ".join(conditions)

    def collect(self, tensor: int, at: Slice, values: Sequence[Value]) -> list[Statement]:
        """What keeps slice `at` of a value, one for each of the thread's pixels, if it is to be summed."""
        return [self._kept(each, at, values) for each in self._sums if each.source == tensor]

    def _kept(self, sums: PartialSum, at: Slice, values: Sequence[Value]) -> Statement:
        own = [
            Choose(Name(f"own{row}", "bool"), value, Splat(sums.fold.neutral)) if self._own(row) else value
            for row, value in enumerate(values)
        ]
        slot = at.at if at.index is None and at.place is None else at.register
        return StoreShared(self._names[sums], self._place(slot), combined(sums.fold.operation, own))

    def _place(self, slot: Operand) -> Value:
        """Where a thread keeps its value of a slot."""
        thread = PIXEL if self._tile.parts > 1 else THREAD
        return thread + slot * self._threads

    def around(self, text: Sequence[str], past: str) -> list[str]:
        """The kernel's lines, which threads without a pixel pass by (`past` says which), and the sums at the end."""
        conditions = (self._own(row) for row in range(self._tile.rows))
        own = [f"    bool own{row} = {text};" for row, text in enumerate(conditions) if text]
        return [*own, *(self._passing(text, past) if past else text), *self._end()]

    def _passing(self, text: Sequence[str], past: str) -> list[str]:
        """Threads past the edges keep values that change no sum; of several parts, the first keeps them."""
        kept = [
            StoreShared(self._names[each], self._place(slot), Splat(each.fold.neutral))
            for each in self._sums
            for slot in range(self._slots[each])
        ]
        if self._tile.parts > 1:
            return [f"    if ({past} && part == 0) {{", *lines(kept, 2), "    }", *text]
        return [f"    if ({past}) {{", *lines(kept, 2), "    } else {", *text, "    }"]

    def _end(self) -> list[str]:
        """Add up what all threads have kept, and store it."""
        steps = (line for step in (self._first_step, self._last_step) for line in ("SYNC();", *self._of_all(step)))
        return ["    " + line for line in steps]

    def _of_all(self, step: Callable[[PartialSum], list[str]]) -> list[str]:
        return [line for each in self._sums for line in step(each)]

    def _first_step(self, sums: PartialSum) -> list[str]:
        name, fold, threads, parts = self._names[sums], sums.fold, self._threads, self._parts
        if parts == 1:
            return []
        turns, rest = divmod(threads, parts)
        text = [
            f"int at = t / {parts} * {threads} + t % {parts};",
            f"vec4 {fold.name} = {name}[at];",
            f"for (int k = 1; k < {turns}; ++k) {fold_into(fold, f'{name}[at + k * {parts}]')}",
        ]
        if rest:
            text.append(f"if (t % {parts} < {rest}) {fold_into(fold, f'{name}[at + {turns * parts}]')}")
        return self._each(self._slots[sums] * parts, [*text, f"{name}[at] = {fold.name};"])

    def _last_step(self, sums: PartialSum) -> list[str]:
        name, fold, slots, threads = self._names[sums], sums.fold, self._slots[sums], self._threads
        columns, rows = self._tile.groups(self._body.domain)
        group = f"int(gl_WorkGroupID.y) * {columns} + int(gl_WorkGroupID.x)"
        scale = f" * {sums.scale!r}" if sums.scale != 1.0 else ""
        text = [
            f"vec4 {fold.name} = {name}[t * {threads}];",
            f"for (int k = 1; k < {self._parts}; ++k) {fold_into(fold, f'{name}[t * {threads} + k]')}",
            f"int at = ({'z0 + t' if self._tile.z_slices else 't'}) * {columns * rows} + {group};",
            f"{self._where_it_is(sums)}WRITE({self._outputs[sums]}, at, {fold.name}{scale});",
        ]
        return self._each(slots, text)

    def _where_it_is(self, sums: PartialSum) -> str:
        """A condition in front of the store of slot t, whose slice may be past the last one."""
        all_slices = shape_of(self._body.graph.tensors[sums.source]).slices
        sure = not self._tile.z_slices or self._tile.sure_slices(all_slices) == self._tile.z_slices
        return "" if sure else f"if (z0 + t < {all_slices}) "

    def _each(self, count: int, text: Sequence[str]) -> list[str]:
        """Lines for t from 0 on, shared by the threads."""
        if count <= self._tile.threads:
            head = [f"if (thread < {count}) {{", "    int t = thread;"]
        else:
            head = [f"for (int t = thread; t < {count}; t += {self._tile.threads}) {{"]
        return [*head, *(f"    {line}" for line in text), "}"]
