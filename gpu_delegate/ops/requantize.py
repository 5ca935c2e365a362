"""REQUANTIZE, which passes alone make: whole numbers in some scale go in, steps of the output's scale come out.

TensorFlow Lite's reference kernels multiply by a number of 31 bits, round, divide by a power of two, round again, and
limit the result to the output's type or to its fused activation (MultiplyByQuantizedMultiplier in its kernels'
common.h; arXiv 1712.05877, section 2.4). The first rounding takes halves up, the second away from zero. This is the
same in floats.
"""

from dataclasses import dataclass, field

from ..graph import Attributes, Node, Steps
from ..operators import attributes_of
from .elementwise import elementwise
from .record import Example


@dataclass(frozen=True)
class Requantize(Attributes):
    """REQUANTIZE: inputs (x, multiplier, power), the latter two constants for all channels or for each."""

    limits: Steps = field(default_factory=lambda: Steps(-128, 127))


def _requantized(node: Node) -> str:
    limits = attributes_of(node, Requantize).limits
    return f"requantize({{0}}, {{1}}, {{2}}, {float(limits.low)!r}, {float(limits.high)!r})"


RECORDS = (
    elementwise(
        "REQUANTIZE",
        _requantized,
        None,
        Example(constants=((8,), (8,)), attributes=Requantize()),
        functions="requantize.glsl",
    ),
)
