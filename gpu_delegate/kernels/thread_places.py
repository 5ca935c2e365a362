"""Where a thread's pixels and slices begin: a tile goes in, the statements at the head of a kernel come out.

Tiles whose threads neither leave nor are turned or deep have those that stand in shaders/kernel.comp.
"""

from ..code.vocabulary import (
    PART,
    PAST,
    PIXEL,
    THREAD,
    X0,
    Y0,
    Z0,
    Assign,
    Declare,
    GridIndex,
    Name,
    Operand,
    Operation,
    Statement,
    Value,
    combined,
)
from ..device.tile import Tile
from ..model.layout import MapShape


def threads_begin(tile: Tile, domain: MapShape, slices: int) -> tuple[list[Statement], Value | None]:
    """Where a thread begins, and the condition under which it has no pixel of its own; none if all have some."""
    if tile.deep:
        return _in_slices(tile, slices)
    (width, height), (columns, rows), (x, y, parts) = tile.area(domain), tile.sides, tile.local
    place: list[Statement] = [
        Declare(X0, GridIndex("thread", "y" if tile.turned else "x")),
        Declare(Y0, _times(GridIndex("thread", "x" if tile.turned else "y"), tile.down)),
    ]
    if tile.z_slices:
        place.append(Declare(Z0, _times(GridIndex("group", "z"), tile.z_slices)))
    past = [Operation("at least", (X0, width))] if width % columns else []
    past += [Operation("at least", (Y0, height))] if height % (rows * tile.down) else []
    is_past = combined("either", past) if past else None
    if parts == 1 and tile.leaves:
        return place, is_past
    last: list[Statement] = [_at_most(X0, width - 1), _at_most(Y0, height - tile.down)]
    if not tile.leaves:
        return [*place, *last, *([_at_most(Z0, slices - tile.z_slices)] if tile.z_slices else [])], None
    return [*place, *_parts(x * y, is_past), *last], PAST


def _in_slices(tile: Tile, slices: int) -> tuple[list[Statement], Value | None]:
    """The same for threads over the slices of one pixel."""
    count, (x, y, parts) = tile.blocks(slices), tile.local
    last = (count - 1) * tile.z_slices if tile.leaves else slices - tile.z_slices
    place: list[Statement] = [
        Declare(X0, 0),
        Declare(Y0, 0),
        Declare(Z0, _times(GridIndex("thread", "x"), tile.z_slices)),
    ]
    past = Operation("less", (last, Z0)) if count % x and tile.leaves else None
    if parts > 1:
        return [*place, *_parts(x * y, past), _at_most(Z0, last)], PAST
    return [*place, *([] if tile.leaves else [_at_most(Z0, last)])], past


def _parts(pixels: int, past: Value | None) -> list[Statement]:
    """Which part of a pixel's work a thread has; one that is past repeats work until all threads have met."""
    return [
        Declare(PART, GridIndex("thread in group", "z")),
        Declare(PIXEL, THREAD % pixels),
        Declare(PAST, False if past is None else past),
    ]


def _times(value: Value, number: int) -> Value:
    return value if number == 1 else value * number


def _at_most(name: Name, last: Operand) -> Statement:
    return Assign(name, Operation("minimum", (name, last)))
