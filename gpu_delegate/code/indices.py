"""Integer expressions for coordinates: they know their range, and are simplified when they are made.

An index is a sum of variables times whole numbers, and knows the range of its values. So what is constant becomes a
number, a coordinate that is multiplied and divided again is itself again, and what cannot happen (a remainder of
something smaller, a clamp that never clamps) is left out.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from .text_length import length_within
from .vocabulary import Name, Operand, Operation, Sum, Value, clamp, combined

LONGEST_PART = 24  # characters of an expression without a name; more in one that is about to be part of others
Validity = Value | bool  # where it always holds, or never, that is known


@dataclass(frozen=True)
class Variable:
    """An int that is not looked into; it lies between low and high, both inclusive."""

    code: Value
    low: int
    high: int


@dataclass(frozen=True)
class Index:
    """A sum of variables, each times a number, and a constant."""

    factors: Mapping[Variable, int]
    constant: int = 0

    @staticmethod
    def of(value: int) -> "Index":
        """A constant."""
        return Index(MappingProxyType({}), value)

    @staticmethod
    def variable(code: Operand, low: int, high: int) -> "Index":
        """A value with this range; a constant if there is but one in it."""
        if low == high or not isinstance(code, Value):
            return Index.of(low)
        return Index(MappingProxyType({Variable(code, low, high): 1}))

    @property
    def low(self) -> int:
        return self.constant + sum(min(v.low * factor, v.high * factor) for v, factor in self.factors.items())

    @property
    def high(self) -> int:
        return self.constant + sum(max(v.low * factor, v.high * factor) for v, factor in self.factors.items())

    @property
    def value(self) -> int | None:
        """The number, if it is constant."""
        return None if self.factors else self.constant

    @property
    def code(self) -> Operand:
        """The value in code; a single name is not made a sum."""
        if not self.factors:
            return self.constant
        terms = tuple((variable.code, factor) for variable, factor in self.factors.items())
        if not self.constant and len(terms) == 1 and terms[0][1] == 1 and isinstance(terms[0][0], Name):
            return terms[0][0]
        return Sum(terms, self.constant)

    def plus(self, other: "Index | int") -> "Index":
        if isinstance(other, int):
            return Index(self.factors, self.constant + other)
        factors = dict(self.factors)
        for variable, factor in other.factors.items():
            factors[variable] = factors.get(variable, 0) + factor
        kept = {variable: factor for variable, factor in factors.items() if factor}
        return Index(MappingProxyType(kept), self.constant + other.constant)

    def times(self, number: int) -> "Index":
        scaled = {variable: factor * number for variable, factor in self.factors.items() if number}
        return Index(MappingProxyType(scaled), self.constant * number)

    def over(self, divisor: int) -> "Index":
        """Divided and rounded down; the index is not negative."""
        whole, rest = self._divided(divisor)
        quotient = Index.variable(Operation("divide", (rest.code, divisor)), rest.low // divisor, rest.high // divisor)
        return whole.plus(quotient)

    def modulo(self, divisor: int) -> "Index":
        """The remainder; the index is not negative."""
        _, rest = self._divided(divisor)
        if rest.low // divisor == rest.high // divisor:
            return rest.plus(-(rest.low // divisor * divisor))
        return Index.variable(Operation("remainder", (rest.code, divisor)), 0, divisor - 1)

    def _divided(self, divisor: int) -> tuple["Index", "Index"]:
        """What is a multiple of the divisor for sure, divided by it, and the rest, which is not negative."""
        multiples = {v: factor // divisor for v, factor in self.factors.items() if factor % divisor == 0}
        others = {v: factor for v, factor in self.factors.items() if factor % divisor}
        rest = Index(MappingProxyType(others), self.constant)
        taken = rest.low // divisor
        return Index(MappingProxyType(multiples), taken), rest.plus(-taken * divisor)

    def clamped(self, low: int, high: int) -> "Index":
        """At least low and at most high."""
        if self.low >= low and self.high <= high:
            return self
        if self.high <= low or self.low >= high:
            return Index.of(low if self.high <= low else high)
        if self.low >= low:
            code = Operation("minimum", (self.code, high))
        elif self.high <= high:
            code = Operation("maximum", (self.code, low))
        else:
            code = clamp(self.code, low, high)
        return Index.variable(code, max(self.low, low), min(self.high, high))

    def mirrored(self, size: int, symmetric: bool) -> "Index":
        """Reflected, once, at both ends of 0 ... size - 1, which themselves are repeated if symmetric."""
        found = self
        if self.low < 0:
            code = Operation("maximum", (self.code, self.times(-1).plus(-int(symmetric)).code))
            found = Index.variable(code, 0, max(-self.low - symmetric, self.high))
        if found.high >= size:
            back = found.times(-1).plus(2 * size - 2 + symmetric)
            found = Index.variable(Operation("minimum", (found.code, back.code)), min(found.low, back.low), size - 1)
        return found

    def with_names(self, name: Callable[[Value], Name]) -> "Index":
        """With names in place of long expressions, so that what is made of it stays short."""
        named = {
            Variable(name(v.code), v.low, v.high) if length_within(v.code) > LONGEST_PART else v: factor
            for v, factor in self.factors.items()
        }
        return Index(MappingProxyType(named), self.constant)

    def below(self, limit: int) -> Validity:
        """Whether it is smaller than a limit."""
        return self.high < limit or (self.low < limit and Operation("less", (self.code, limit)))

    def inside(self, low: int, high: int) -> Validity:
        """Whether it lies between both, inclusive."""
        if self.high < low or self.low > high:
            return False
        parts = [Operation("at least", (self.code, low))] * (self.low < low)
        parts += [Operation("at most", (self.code, high))] * (self.high > high)
        return both(parts)


Place = tuple[Index, Index, Index]  # (b, y, x) of a pixel


def both(conditions: Sequence[Validity]) -> Validity:
    """Whether all conditions hold."""
    if not all(conditions):
        return False
    open_conditions = [condition for condition in conditions if isinstance(condition, Value)]
    return combined("both", open_conditions) if open_conditions else True
