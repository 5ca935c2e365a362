"""Writes the epilogue of a kernel that adds up what each work-group has stored, for a kernel that needs the sums.

Every thread puts what it stores into shared memory, and the group adds that in two steps: as many threads for a slice
as each of them has values to add, then one of them. Pixels that a thread computes only because the map ends count in
the one thread that they belong to.
"""

import math
from collections.abc import Sequence

from ..code.expressions import Slice
from ..code.indices import Validity, both
from ..code.vocabulary import (
    PART,
    PAST,
    PIXEL,
    THREAD,
    X0,
    Y0,
    Z0,
    Choose,
    Declare,
    ForRange,
    GridIndex,
    Name,
    Not,
    Operand,
    Operation,
    Shared,
    Splat,
    Statement,
    StoreShared,
    StoreTo,
    Synchronize,
    Value,
    When,
    by_threads,
    combined,
)
from ..device.tile import Tile
from ..model.layout import shape_of
from ..plan.body import Body
from ..plan.epilogue_sums import EpilogueSum, slots_of

_SLOT, _AT, _TURN = (Name(name, "int") for name in ("t", "at", "k"))


class GroupSums:
    """Statements for the head of a kernel, for each value that is stored, and for the end."""

    def __init__(self, body: Body, tile: Tile, sums: Sequence[EpilogueSum], first_output: int) -> None:
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

    def _own(self, row: int) -> Validity:
        """Whether pixel `row` of a thread is no other thread's."""
        tile, domain = self._tile, self._body.domain
        width, height = tile.area(domain)
        if tile.leaves:
            return Not(PAST) if tile.shares_pixels else True  # which may store before threads past the edges leave
        conditions: list[Value] = []
        if width % tile.local[0]:
            conditions.append(Operation("less", (GridIndex("thread", "x"), width)))
        if height % (tile.local[1] * tile.down):
            first = GridIndex("thread", "y") * tile.down
            conditions.append(Operation("at least", (Y0 + (0 if tile.across else row), first)))
        if tile.across and (row + 1) * width > domain.width:
            conditions.append(Operation("less", (X0 + row * width, domain.width)))
        if tile.flat and (row + 1) * width > domain.pixels:
            conditions.append(Operation("less", ((Y0 + row) * width + X0, domain.pixels)))
        return both(conditions)

    def collect(self, tensor: int, at: Slice, values: Sequence[Value]) -> list[Statement]:
        """What keeps slice `at` of a value, one for each of the thread's pixels, if it is to be summed."""
        return [self._kept(each, at, values) for each in self._sums if each.source == tensor]

    def _kept(self, sums: EpilogueSum, at: Slice, values: Sequence[Value]) -> Statement:
        own = [
            value if self._own(row) is True else Choose(_own_name(row), value, Splat(sums.fold.neutral))
            for row, value in enumerate(values)
        ]
        slot = at.at if at.index is None and at.place is None else at.register
        return StoreShared(self._names[sums], self._place(slot), combined(sums.fold.operation, own))

    def _place(self, slot: Operand) -> Value:
        """Where a thread keeps its value of a slot."""
        thread = PIXEL if self._tile.parts > 1 else THREAD
        return thread + slot * self._threads

    def around(self, statements: tuple[Statement, ...], past: Value | None) -> tuple[Statement, ...]:
        """The kernel's statements, which threads without a pixel (`past`) pass by, and the sums at the end."""
        conditions = ((row, self._own(row)) for row in range(self._tile.rows))
        own = [Declare(_own_name(row), each) for row, each in conditions if each is not True]
        return (*own, *(statements if past is None else self._passing(statements, past)), *self._end())

    def _passing(self, statements: tuple[Statement, ...], past: Value) -> tuple[Statement, ...]:
        """Threads past the edges keep values that change no sum; of several parts, the first keeps them."""
        kept = tuple(
            StoreShared(self._names[each], self._place(slot), Splat(each.fold.neutral))
            for each in self._sums
            for slot in range(self._slots[each])
        )
        if self._tile.parts > 1:
            return (When(combined("both", [past, Operation("equal", (PART, 0))]), kept), *statements)
        return (When(past, kept, otherwise=statements),)

    def _end(self) -> list[Statement]:
        """Add up what all threads have kept, and store it."""
        first = [self._first_step(each) for each in self._sums if self._parts > 1]
        return [Synchronize(), *first, Synchronize(), *map(self._last_step, self._sums)]

    def _first_step(self, sums: EpilogueSum) -> Statement:
        name, fold, threads, parts = self._names[sums], sums.fold, self._threads, self._parts
        total, (turns, rest) = Name(fold.name, "vec4"), divmod(threads, parts)
        others = fold.into(total, Shared(name, _AT + _TURN * parts))
        text: list[Statement] = [
            Declare(_AT, _SLOT / parts * threads + _SLOT % parts),
            Declare(total, Shared(name, _AT)),
            ForRange(_TURN, 1, turns, 1, (others,)),
        ]
        if rest:
            last = fold.into(total, Shared(name, _AT + turns * parts))
            text.append(When(Operation("less", (_SLOT % parts, rest)), (last,)))
        return self._each(self._slots[sums] * parts, [*text, StoreShared(name, _AT, total)])

    def _last_step(self, sums: EpilogueSum) -> Statement:
        name, fold, threads = self._names[sums], sums.fold, self._threads
        columns, rows = self._tile.groups(self._body.domain)
        total, first = Name(fold.name, "vec4"), _SLOT * threads
        at = (Z0 + _SLOT if self._tile.z_slices else _SLOT) * (columns * rows)
        stored = StoreTo(self._outputs[sums], _AT, total if sums.scale == 1.0 else total * sums.scale)
        text: list[Statement] = [
            Declare(total, Shared(name, first)),
            ForRange(_TURN, 1, self._parts, 1, (fold.into(total, Shared(name, first + _TURN)),)),
            Declare(_AT, at + GridIndex("group", "y") * columns + GridIndex("group", "x")),
            self._where_it_is(sums, stored),
        ]
        return self._each(self._slots[sums], text)

    def _where_it_is(self, sums: EpilogueSum, stored: Statement) -> Statement:
        """The store of a slot, whose slice may be past the last one."""
        all_slices = shape_of(self._body.graph.tensors[sums.source]).slices
        sure = not self._tile.z_slices or self._tile.sure_slices(all_slices) == self._tile.z_slices
        return stored if sure else When(Operation("less", (Z0 + _SLOT, all_slices)), (stored,))

    def _each(self, count: int, statements: Sequence[Statement]) -> Statement:
        """Statements for t from 0 on, shared by the threads."""
        return by_threads(_SLOT, count, self._tile.threads, statements)


def _own_name(row: int) -> Name:
    return Name(f"own{row}", "bool")
