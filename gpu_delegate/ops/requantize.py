"""Ops of steps, which passes alone make: whole numbers in some scale go in, steps of the output's scale come out.

TensorFlow Lite's reference kernels multiply by a number of 31 bits, round, divide by a power of two, round again, and
limit the result to the output's type or to its fused activation (MultiplyByQuantizedMultiplier in its kernels'
common.h; arXiv 1712.05877, section 2.4). The first rounding takes halves up, the second away from zero. REQUANTIZE does
the same in floats. ADD_STEPS rounds the sum of values in two scales once, and HARD_SWISH_STEPS computes in 16 bits.
"""

from dataclasses import dataclass, field

from ..graph import Attributes, Node, Steps
from ..operators import attributes_of
from .elementwise import elementwise
from .record import Example

_BYTE = Steps(-128, 127)


@dataclass(frozen=True)
class Requantize(Attributes):
    """REQUANTIZE: inputs (x, multiplier, rest, power), all but x constants for all channels or for each.

    What x is multiplied with is multiplier + rest. The multiplier has so few bits that it is a multiple of 1/4096.
    """

    limits: Steps = field(default_factory=lambda: _BYTE)


@dataclass(frozen=True)
class AddSteps(Attributes):
    """ADD_STEPS: inputs (x, y). Each is multiplied with its factor + rest."""

    factors: tuple[float, float] = (1.0, 1.0)  # so few bits that products with steps, and their sum, are exact
    rests: tuple[float, float] = (0.0, 0.0)
    half: float = 0.5  # is added to the size of a sum before its fraction is cut off
    limits: Steps = field(default_factory=lambda: _BYTE)


@dataclass(frozen=True)
class HardSwishSteps(Attributes):
    """HARD_SWISH_STEPS: input (x,). Numbers of 16 bits, as factors of the steps."""

    multiplier: float = 64.0  # of x, in the output's scale before the last shift
    gates: tuple[float, float, float] = (128.0, 0.5, 1.0)  # of x, up to 1 being 32768: with a rounding behind each
    power: float = 2.0**-7  # the last shift
    limits: Steps = field(default_factory=lambda: _BYTE)


def _limits(limits: Steps) -> str:
    return f"{float(limits.low)!r}, {float(limits.high)!r}"


def _vector(values: tuple[float, ...]) -> str:
    return f"vec{len(values)}({', '.join(map(repr, map(float, values)))})"


def _requantized(node: Node) -> str:
    return f"requantize({{0}}, {{1}}, {{2}}, {{3}}, {_limits(attributes_of(node, Requantize).limits)})"


def _added(node: Node) -> str:
    add = attributes_of(node, AddSteps)
    factors = f"{_vector(add.factors)}, {_vector(add.rests)}, {add.half!r}"
    return f"add_steps({{0}}, {{1}}, {factors}, {_limits(add.limits)})"


def _swished(node: Node) -> str:
    swish = attributes_of(node, HardSwishSteps)
    factors = f"{swish.multiplier!r}, {_vector(swish.gates)}, {swish.power!r}"
    return f"hard_swish_steps({{0}}, {factors}, {_limits(swish.limits)})"


_FUNCTIONS = "requantize.glsl"
_TWO = ((1, 8, 8, 8), (1, 8, 8, 8))

RECORDS = (
    elementwise(
        "REQUANTIZE",
        _requantized,
        None,
        Example(constants=((8,), (8,), (8,)), attributes=Requantize()),
        functions=_FUNCTIONS,
    ),
    elementwise("ADD_STEPS", _added, None, Example(_TWO, attributes=AddSteps()), functions=_FUNCTIONS),
    elementwise("HARD_SWISH_STEPS", _swished, None, Example(attributes=HardSwishSteps()), functions=_FUNCTIONS),
)
