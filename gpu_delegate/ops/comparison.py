"""Comparisons, logic and selection: a record for each. A truth value is 1.0 or 0.0 in kernels."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from ..code.evaluate import Values
from ..code.vocabulary import ZEROS, ChooseLanes, Compared, LaneComparison, Value
from ..model.graph import Attributes, Node, Shape, Tensor
from ..model.operators import Operator
from .elementwise import NUMBERS, calls, elementwise, read_broadcasting, read_plain, write_plain
from .facts import broadcasts, expect_types
from .record import ONE_SCALE, ByteRules, Evaluation, Example, FileForm, OpRecord, ShapeCheck


def read_comparison(operator: Operator) -> Attributes:
    _expect_one_type(operator, [tensor.dtype for tensor in operator.inputs if tensor])
    return read_broadcasting(operator)


def read_select_v2(operator: Operator) -> Attributes:
    _expect_one_type(operator, [tensor.dtype for tensor in (*operator.inputs[1:], operator.outputs[0]) if tensor])
    return read_broadcasting(operator)


def _expect_one_type(operator: Operator, dtypes: list[str]) -> None:
    if len(set(dtypes)) > 1:
        operator.damaged(f"values of types {' and '.join(sorted(set(dtypes)))}")


def read_select(operator: Operator) -> Attributes:
    """SELECT does not broadcast: its condition has the operands' shape, is one value, or one for each of a batch."""
    _expect_one_type(operator, [tensor.dtype for tensor in (*operator.inputs[1:], operator.outputs[0]) if tensor])
    condition, first, second = (operator.shape(i) for i in range(3))
    if first != second:
        operator.damaged(f"a choice between shapes {list(first)} and {list(second)}")
    if condition not in (first, (), (1,), first[:1]):
        operator.damaged(f"a condition of shape {list(condition)} for shape {list(first)}")
    operator.expect(first)
    return Attributes()


_EIGHT = (1, 8, 8, 8)
_TO_BOOL = Example(shapes=(_EIGHT, _EIGHT), out_dtype="bool")
_COMPARISON = FileForm(read_comparison, write_plain, (0, 1), (2, 2), dtypes=NUMBERS, out_dtypes=("bool",))
_EQUALITY = replace(_COMPARISON, dtypes=(*NUMBERS, "bool"))
_LOGIC = replace(_COMPARISON, dtypes=("bool",))


def _comparison(name: str, comparison: LaneComparison, form: FileForm = _COMPARISON) -> OpRecord:
    rules = ByteRules(most_scale=1.0)  # by which reference kernels shift to the right
    return elementwise(name, lambda _, x, y: Compared(comparison, x, y), form, _TO_BOOL, quantized=rules)


def _chosen(_: Attributes, condition: Value, value: Value, other: Value) -> Value:
    return ChooseLanes("not equal", condition, ZEROS, value, other)


def _select_values(node: Node, values: Sequence[Values], output: Tensor) -> Values:
    """A vector of conditions is one for each map of a batch."""
    condition, value, other = values
    expect_types(values)
    if condition.ndim == 1:
        condition = condition.reshape(-1, *(1,) * (len(output.shape) - 1))
    return np.where(np.broadcast_to(condition, output.shape), value, other)


def _selects(node: Node, inputs: list[Shape], output: Shape) -> bool:
    """Likewise."""
    condition, *values = inputs
    per_map = len(condition) == 1 and condition == output[:1]
    return broadcasts(node, values if per_map else inputs, output)


def _choice(
    name: str, file: FileForm, evaluate: Evaluation | None = None, agrees: ShapeCheck | None = None
) -> OpRecord:
    return elementwise(
        name,
        _chosen,
        file,
        Example(shapes=(_EIGHT, _EIGHT, _EIGHT)),
        quantized=ONE_SCALE,
        evaluate=evaluate,
        agrees=agrees,
    )


_ANY = (*NUMBERS, "bool")
_SELECT = FileForm(read_select, write_plain, (0, 1, 2), (3, 3), dtypes=_ANY, first_dtypes=("bool",), out_dtypes=_ANY)

RECORDS = (
    _comparison("EQUAL", "equal", _EQUALITY),
    _comparison("NOT_EQUAL", "not equal", _EQUALITY),
    _comparison("GREATER", "greater"),
    _comparison("GREATER_EQUAL", "at least"),
    _comparison("LESS", "less"),
    _comparison("LESS_EQUAL", "at most"),
    elementwise("LOGICAL_AND", lambda _, x, y: x * y, _LOGIC, replace(_TO_BOOL, dtype="bool")),
    elementwise("LOGICAL_OR", calls("maximum"), _LOGIC, replace(_TO_BOOL, dtype="bool")),
    elementwise(
        "LOGICAL_NOT",
        lambda _, x: 1.0 - x,
        FileForm(read_plain, write_plain, dtypes=("bool",), out_dtypes=("bool",)),
        Example(dtype="bool", out_dtype="bool"),
        undone_by=("LOGICAL_NOT",),
    ),
    _choice("SELECT", _SELECT, _select_values, _selects),
    _choice("SELECT_V2", replace(_SELECT, parse=read_select_v2)),
)
