"""Channel slices and weights as operands of a kernel's expressions."""

from dataclasses import dataclass

from ..model.packing import Float32Array
from .vocabulary import Element, Operand, Value, Vector, Weight


@dataclass(frozen=True)
class Slice(Value):
    """A channel slice: its number, or the value that says it, and its index among held values."""

    at: Operand
    place: int | None = None  # among the registers of a thread that computes only some of the slices
    type = "int"

    @property
    def index(self) -> int | None:
        """Its number, if constant."""
        return self.at if isinstance(self.at, int) else None

    @property
    def register(self) -> int:
        """The index of the slice among held values."""
        place = self.index if self.place is None else self.place
        assert place is not None, "held values are read at constant positions"
        return place


@dataclass(frozen=True)
class Weights:
    """An array of vec4s (..., 4): texels of the kernel's weights from `base` on, or literals where there is no base."""

    values: Float32Array
    base: int | None

    def texel(self, *at: Operand) -> Value:
        """The vec4 at a position with a coordinate for each axis; literals are read at constant indices."""
        if self.base is None:
            return literal(self.values[tuple(_number(each) for each in at)])
        return Weight(Element(self.base, at, self.values.shape[1:-1]))


def literal(values: Float32Array) -> Vector:
    """A vec4 that keeps its float32 values exactly."""
    return Vector(tuple(float(value) for value in values))


def _number(at: Operand) -> int:
    number = at.index if isinstance(at, Slice) else at
    assert isinstance(number, int), "loops over literals are unrolled"
    return number
