"""Statements of a kernel go in, the same with each load right before its first use come out.

Emission functions load a whole window before they multiply the first tap. Compilers of GPUs keep that order: 25 texels
of a 5x5 window are 100 registers, and few threads fit. On a CPU, where llvmpipe calls a function for each load, the
order makes no difference.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from .code import Declare, ForEach, LoadFrom, Name, Shared, Statement, Tap, Weight, When, variables_in


def loads_at_use(statements: Iterable[Statement]) -> tuple[Statement, ...]:
    """Each load right before the first statement of its block that needs it.

    Taps outside of a map are read where the nearest one is, and another value is selected: branches around loads keep
    compilers from moving them. Nothing is read that the same kernel stores, so loads may pass stores.
    """
    waiting: dict[Name, Declare] = {}
    done: list[Statement] = []
    for statement in statements:
        if isinstance(statement, Declare) and isinstance(statement.value, Tap | LoadFrom | Weight | Shared):
            waiting[statement.name] = _without_branch(statement)
        else:
            done += _needed(statement, waiting)
            done.append(_inside(statement))
    return (*done, *waiting.values())


def _without_branch(load: Declare) -> Declare:
    return replace(load, value=replace(load.value, branches=False)) if isinstance(load.value, Tap) else load


def _needed(statement: Statement, waiting: dict[Name, Declare]) -> Sequence[Declare]:
    """The loads that a statement waits for, and first those that these wait for; they are taken from `waiting`."""
    found: list[Declare] = []
    for name in variables_in(statement):
        if (load := waiting.pop(name, None)) is not None:
            found += [*_needed(load, waiting), load]
    return found


def _inside(statement: Statement) -> Statement:
    return replace(statement, body=loads_at_use(statement.body)) if isinstance(statement, ForEach | When) else statement
