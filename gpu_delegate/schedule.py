"""Statements of a kernel go in, the same with each load right before its first use come out.

Emission functions load a whole window before they multiply the first tap. Compilers of GPUs keep that order: 25 texels
of a 5x5 window are 100 registers, and few threads fit. On a CPU, where llvmpipe calls a function for each load, the
order makes no difference.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from .code import Declare, ForEach, Lane, LoadFrom, Name, Shared, Statement, Tap, Weight, When, values_in
from .tile import Tile


def scheduled(statements: tuple[Statement, ...], tile: Tile) -> tuple[Statement, ...]:
    """As a tile says."""
    if tile.loads_at_use:
        statements = loads_at_use(statements)
    return statements if tile.unrolls else rolled(statements)


def loads_at_use(statements: Iterable[Statement]) -> tuple[Statement, ...]:
    """Each load right before the first statement of its block that needs it.

    Nothing is read that the same kernel stores, so loads may pass stores. Where a tap lies outside of its map, the
    nearest one is read and another value selected: 24 branches of a 5x5 window take more registers and instructions
    than it does itself. Only taps of matrices keep theirs, since compilers would load all of them and their weights
    first: 12 registers spill on an Adreno 618.
    """
    waiting: dict[Name, Declare] = {}
    done: list[Statement] = []
    for statement in statements:
        if isinstance(statement, Declare) and isinstance(statement.value, Tap | LoadFrom | Weight | Shared):
            waiting[statement.name] = statement
        else:
            done += _needed(statement, waiting)
            done.append(_inside(statement))
    return (*done, *waiting.values())


def rolled(statements: Iterable[Statement]) -> tuple[Statement, ...]:
    """The same with loops that no compiler can unroll."""
    return tuple(map(_rolled, statements))


def _rolled(statement: Statement) -> Statement:
    if isinstance(statement, ForEach):
        return ForEach(statement.over, rolled(statement.body), may_unroll=False)
    return replace(statement, body=rolled(statement.body)) if isinstance(statement, When) else statement


def _needed(statement: Statement, waiting: dict[Name, Declare]) -> Sequence[Declare]:
    """The loads that a statement waits for, and first those that these wait for; they are taken from `waiting`."""
    found: list[Declare] = []
    lanes = {value.value for value in values_in(statement) if isinstance(value, Lane)}
    for name in values_in(statement):
        if isinstance(name, Name) and (load := waiting.pop(name, None)) is not None:
            found += [*_needed(load, waiting), load if name in lanes else _without_branch(load)]
    return found


def _without_branch(load: Declare) -> Declare:
    return replace(load, value=replace(load.value, branches=False)) if isinstance(load.value, Tap) else load


def _inside(statement: Statement) -> Statement:
    return replace(statement, body=loads_at_use(statement.body)) if isinstance(statement, ForEach | When) else statement
