"""DIV, FLOOR_DIV and FLOOR_MOD: how files say them, and what they compute.

Integers are divided by the GPU's integers, since its floats may divide inexactly. A divisor of zero, at which
TensorFlow Lite stops, counts as one there.
"""

from dataclasses import dataclass, replace

from ..code.vocabulary import Value
from ..model.graph import Activated, Attributes
from ..model.operators import Operator
from .elementwise import (
    ARITHMETIC,
    BROADCAST,
    PAIR,
    Computation,
    activated_struct,
    calls,
    elementwise,
    read_arithmetic,
    read_broadcasting,
)
from .record import FileForm, OpRecord


@dataclass(frozen=True)
class Division(Activated):
    """DIV, FLOOR_DIV, FLOOR_MOD: whether they are of integers."""

    is_whole: bool = False


def divides_integers(attributes: Attributes) -> bool:
    """Whether a division is one of integers. Those that passes make are not, and do not say so."""
    return isinstance(attributes, Division) and attributes.is_whole


def read_division(operator: Operator) -> Attributes:
    given = read_arithmetic(operator) if operator.op == "DIV" else read_broadcasting(operator)
    divisor, dtype = operator.inputs[1], operator.outputs[0].dtype
    stops = operator.op == "FLOOR_DIV" or dtype in ("int32", "int64")
    if stops and divisor is not None and divisor.data is not None and not divisor.data.all():
        operator.unsupported("a divisor is 0, at which TensorFlow Lite stops")
    activation = given.activation if isinstance(given, Activated) else "NONE"
    return Division(activation, dtype != "float32")


def _division(name: str, of_floats: Computation, of_integers: Computation, form: FileForm) -> OpRecord:
    def arithmetic(attributes: Attributes, x: Value, y: Value) -> Value:
        return (of_integers if divides_integers(attributes) else of_floats)(attributes, x, y)

    example = replace(PAIR, attributes=Division())
    return elementwise(name, arithmetic, replace(form, parse=read_division), example, finite=False)


RECORDS = (
    _division("DIV", calls("divide"), calls("whole quotient"), replace(ARITHMETIC, struct=activated_struct("DIV"))),
    _division("FLOOR_DIV", calls("floor quotient"), calls("whole floor quotient"), BROADCAST),
    _division("FLOOR_MOD", calls("floor remainder"), calls("whole floor remainder"), BROADCAST),
)
