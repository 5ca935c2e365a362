"""FAKE_QUANT: floats of a range, rounded to as many values as a number of bits has.

The range is moved so that zero is one of the values, as TensorFlow Lite's kernel and arXiv 1712.05877 (3.1) do it.
"""

import math
from dataclasses import dataclass

import numpy as np

from ..code.vocabulary import Operation, Value
from ..model.graph import Attributes, Graph, Node
from ..model.operators import EncodedOperator, Operator, attributes_of
from .elementwise import elementwise
from .record import Example, FileForm, OptionsStruct

_FEWEST_BITS, _MOST_BITS = 2, 16


@dataclass(frozen=True)
class FakeQuant(Attributes):
    """FAKE_QUANT: input (x,); the range as the file has it."""

    low: float = -1.0
    high: float = 1.0
    bits: int = 8

    @property
    def levels(self) -> tuple[float, float, float]:
        """The least and the greatest value and the distance between two, all of float32."""
        low, high, most = np.float32(self.low), np.float32(self.high), np.float32((1 << self.bits) - 1)
        step = (high - low) / most
        zero = np.clip(np.floor(np.float32(0.5) - low / step), 0, most)
        return float(-zero * step), float((most - zero) * step), float(step)


def read_fake_quant(operator: Operator) -> Attributes:
    operator.expect(operator.shape(0))
    options = operator.options("FakeQuantOptions")
    low, high, bits = float(options.Min()), float(options.Max()), int(options.NumBits())
    if not _FEWEST_BITS <= bits <= _MOST_BITS:
        operator.unsupported(f"{bits} bits")
    if options.NarrowRange():
        operator.unsupported("a narrow range")  # TensorFlow Lite refuses it, too
    found = FakeQuant(low, high, bits)
    if not (math.isfinite(low) and math.isfinite(high) and low < high):
        operator.unsupported(f"a range from {low:g} to {high:g}")
    if not all(map(math.isfinite, found.levels)) or found.levels[2] < np.finfo(np.float32).tiny:
        operator.unsupported(f"a range from {low:g} to {high:g}")
    return found


def write_fake_quant(graph: Graph, node: Node) -> EncodedOperator:
    given = attributes_of(node, FakeQuant)
    options = {"Min": given.low, "Max": given.high, "NumBits": given.bits}
    return EncodedOperator(node.inputs, "FakeQuantOptions", options)


def _rounded(attributes: FakeQuant, x: Value) -> Value:
    low, high, step = attributes.levels
    inverse = float(np.float32(1) / np.float32(step))
    levels = (Operation("clamp", (x, low, high)) - low) * inverse
    return Operation("floor", (levels + 0.5,)) * step + low


RECORDS = (
    elementwise(
        "FAKE_QUANT",
        _rounded,
        FileForm(
            read_fake_quant,
            write_fake_quant,
            struct=OptionsStruct("FakeQuantOptions", "Min:f Max:f NumBits:i NarrowRange:b"),
        ),
        Example(attributes=FakeQuant(-1.0, 2.0)),
    ),
)
