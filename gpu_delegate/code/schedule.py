"""Orders a kernel's statements: loads and positions go right before their first use.

Emission functions load a whole window before they multiply the first tap. Compilers of GPUs keep that order: 25 texels
of a 5x5 window are 100 registers, and few threads fit. On a CPU, where llvmpipe calls a function for each load, the
order makes no difference.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from ..device.tile import Tile
from .vocabulary import Declare, ForEach, Lane, LoadFrom, Name, Statement, Tap, Value, Weight, values_in, with_blocks


def scheduled(statements: tuple[Statement, ...], tile: Tile) -> tuple[Statement, ...]:
    """As a tile says."""
    if tile.loads_at_use:
        statements = loads_at_use(statements)
    return statements if tile.unrolls else rolled(statements)


def loads_at_use(statements: Iterable[Statement]) -> tuple[Statement, ...]:
    """Each load, and each position, right before the first statement of its block that needs it.

    Nothing in memory is read that the same kernel stores, so loads may pass stores; positions are never assigned to.
    Where a tap lies outside of its map, the nearest one is read and another value selected: 24 branches of a 5x5 window
    take more registers and instructions than it does itself. Only taps of matrices keep theirs, since compilers would
    load all of them and their weights first: 12 registers spill on an Adreno 618.
    """
    waiting: dict[Name, Declare] = {}
    done: list[Statement] = []
    for statement in statements:
        if isinstance(statement, Declare) and _may_move(statement):
            waiting[statement.name] = statement
        else:
            done += _needed(statement, waiting)
            done.append(with_blocks(statement, loads_at_use))
    return (*done, *waiting.values())


def rolled(statements: Iterable[Statement]) -> tuple[Statement, ...]:
    """The same with loops that no compiler can unroll."""
    return tuple(map(_rolled, statements))


def _rolled(statement: Statement) -> Statement:
    inner = with_blocks(statement, rolled)
    return replace(inner, may_unroll=False) if isinstance(inner, ForEach) else inner


def _may_move(statement: Declare) -> bool:
    """Whether it is a load, or no vector: then it is a position, or what one is made of."""
    return statement.name.type != "vec4" or isinstance(statement.value, (Tap, LoadFrom, Weight))


def _needed(statement: Statement, waiting: dict[Name, Declare]) -> Sequence[Declare]:
    """The loads that a statement waits for, and first those that these wait for; they are taken from `waiting`."""
    if not waiting:
        return []
    found: list[Declare] = []
    values = list(values_in(statement))
    for name in values:
        if isinstance(name, Name) and (load := waiting.pop(name, None)) is not None:
            found += [*_needed(load, waiting), _without_branch(load, values)]
    return found


def _without_branch(load: Declare, readers: Sequence[Value]) -> Declare:
    """The load without the branch of a tap, unless it is one of matrices, of which single lanes are read."""
    if not isinstance(load.value, Tap) or any(isinstance(each, Lane) and each.value == load.name for each in readers):
        return load
    return replace(load, value=replace(load.value, branches=False))
