"""DIV, FLOOR_DIV and FLOOR_MOD: options of an operator go in, its GLSL on vec4 operands comes out.

Integers are divided by the GPU's integers, since its floats may divide inexactly. A divisor of zero, at which
TensorFlow Lite stops, counts as one there.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

from ..model.graph import Activated, Attributes, Node
from ..model.operators import Operator
from .elementwise import ARITHMETIC, BROADCAST, PAIR, elementwise, read_arithmetic, read_broadcasting
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


def _either(floats: str, integers: str) -> Callable[[Node], str]:
    return lambda node: integers if divides_integers(node.attributes) else floats


# The sign of a whole divisor is that of what lies half above it: zero counts as one.
_TOWARDS_ZERO = "vec4(uvec4(abs({0})) / max(uvec4(abs({1})), 1u)) * sign({0}) * sign({1} + 0.5)"


def _division(name: str, arithmetic: Callable[[Node], str], form: FileForm, functions: str = "") -> OpRecord:
    example = replace(PAIR, attributes=Division())
    return elementwise(name, arithmetic, replace(form, parse=read_division), example, functions=functions, finite=False)


RECORDS = (
    _division("DIV", _either("{0} / {1}", _TOWARDS_ZERO), ARITHMETIC),
    _division("FLOOR_DIV", _either("floor_div({0}, {1})", "whole_floor_div({0}, {1})"), BROADCAST, "floor_mod.glsl"),
    _division("FLOOR_MOD", _either("floor_mod({0}, {1})", "whole_floor_mod({0}, {1})"), BROADCAST, "floor_mod.glsl"),
)
