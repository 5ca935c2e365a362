"""Rewrites a kernel's statements so that products with weights are computed in half precision; sums stay float32.

The products of one texel, or of a depthwise window, are added to each other as halves, at most MOST_PRODUCTS of them,
and the result to the float32 sum: rounding errors do not grow with the number of channels.
"""

from collections.abc import Iterable

from .vocabulary import (
    ZEROS,
    AddTo,
    Declare,
    Halves,
    Name,
    Operand,
    Operation,
    Statement,
    Widened,
    blocks_in,
    values_in,
    with_blocks,
)

MOST_PRODUCTS = 32  # that are added as halves before they are added to a sum


def in_halves(statements: Iterable[Statement]) -> tuple[Statement, ...]:
    """Products that are added to sums, in halves. Sums of products at once, single ones by a sum of their own."""
    done: list[Statement] = []
    open_sums: dict[Name, tuple[Name, int]] = {}  # of halves, for a sum: its name and how many products it has

    def close(names: Iterable[Name]) -> None:
        done.extend(AddTo(name, Widened(open_sums.pop(name)[0])) for name in names)

    for number, statement in enumerate(statements):
        if blocks_in(statement):
            close(list(open_sums))
            done.append(with_blocks(statement, in_halves))
        elif isinstance(statement, AddTo) and _is_sum(statement.value):
            done.append(AddTo(statement.name, Widened(Halves(statement.value))))
        elif isinstance(statement, AddTo) and _is_product(statement.value):
            if statement.name not in open_sums:
                half = Name(f"h_{statement.name.name}_{number}", "half4")
                done.append(Declare(half, Halves(ZEROS)))
                open_sums[statement.name] = half, 0
            half, products = open_sums[statement.name]
            done.append(AddTo(half, Halves(statement.value)))
            open_sums[statement.name] = half, products + 1
            if products + 1 == MOST_PRODUCTS:
                close([statement.name])
        else:
            close([name for name in open_sums if name in set(values_in(statement))])
            done.append(statement)
    close(list(open_sums))
    return tuple(done)


def _is_product(value: Operand) -> bool:
    return isinstance(value, Operation) and value.operation == "multiply" and value.type == "vec4"


def _is_sum(value: Operand) -> bool:
    """Of products alone."""
    return (
        isinstance(value, Operation)
        and value.operation == "add"
        and all(_is_product(each) or _is_sum(each) for each in value.operands)
    )
