"""The table of all op cases, which tests and `inspect --ops` share."""

from dataclasses import replace

from ..ops.registry import OPS, SUPPORTED_OPS
from .elementwise_cases import elementwise_cases
from .lookup_cases import LOOKUP_CASES
from .move_cases import MOVE_CASES
from .op_case import OpCase
from .reduction_cases import REDUCTION_CASES
from .window_cases import WINDOW_CASES

_ROWS = {**WINDOW_CASES, **MOVE_CASES, **REDUCTION_CASES, **LOOKUP_CASES}
_TYPES = ("float32", "bool", "float16", "int8")  # of elementwise ops that have cases by their record


def cases_of(op: str) -> tuple[OpCase, ...]:
    """An op's cases: at least the example of its record. None of one that no file says, or that means nothing alone."""
    record = OPS[op]
    if op not in SUPPORTED_OPS or record.role == "state":
        return ()
    if op in _ROWS:
        rows = tuple(dict.fromkeys(_ROWS[op](op)))  # a size may stand in two families of sizes
    elif record.role == "elementwise" and {record.example.dtype, record.example.out_dtype} <= {*_TYPES}:
        rows = tuple(dict.fromkeys(elementwise_cases(record)))
    else:
        return (OpCase(op, "example", record.example),)
    return (replace(rows[0], what="example", example=record.example), *rows)
