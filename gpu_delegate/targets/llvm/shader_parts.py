"""Arithmetic of shaders on parts: what is known while code is written, what all pixels have in common, and vectors.

A part is one component of a value: a number of Python, a register for all pixels, or a vector with a lane for each of
some pixels that lie side by side. Results are as narrow as their operands allow, so that what depends on the row alone
is computed once for a vector, and what depends on nothing not at all.
"""

import math
import operator
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Literal

import numpy as np

from . import ir
from .ir import FLOAT, I1, I32, Function, Register, filled, integer, lanes_of, number
from .vector_math import FloatMath

ComponentKind = Literal["float", "int", "bool"]
Component = Register | float | int | bool

_TYPES: Mapping[ComponentKind, str] = MappingProxyType({"float": FLOAT, "int": I32, "bool": I1})
_FLOAT_WORDS = MappingProxyType(
    {"+": "fadd contract", "-": "fsub contract", "*": "fmul contract", "/": "fdiv"}
)  # products and sums may be rounded once, as on GPUs
_INT_WORDS = MappingProxyType(
    {"+": "add", "-": "sub", "*": "mul", "/": "sdiv", "%": "srem", "&": "and", "|": "or", "^": "xor", "<<": "shl",
     ">>": "ashr"}
)  # fmt: skip
_COMPARISONS = MappingProxyType({"<": "lt", ">": "gt", "<=": "le", ">=": "ge", "==": "eq", "!=": "ne"})
_FOLDED: Mapping[str, Callable[[int, int], int]] = MappingProxyType(
    {"+": operator.add, "-": operator.sub, "*": operator.mul, "&": operator.and_, "|": operator.or_,
     "^": operator.xor, "<<": operator.lshift, ">>": operator.rshift, "/": lambda a, b: int(a / b),
     "%": lambda a, b: a - b * int(a / b)}
)  # fmt: skip
_TRUTHS: Mapping[str, Callable[[float, float], bool]] = MappingProxyType(
    {"<": operator.lt, ">": operator.gt, "<=": operator.le, ">=": operator.ge, "==": operator.eq, "!=": operator.ne}
)


def is_known(part: Component) -> bool:
    """Whether it is a number of Python."""
    return not isinstance(part, Register)


def is_uniform(part: Component) -> bool:
    """Whether all pixels have it in common."""
    return not isinstance(part, Register) or lanes_of(part.type) == 1


def to_float32(value: float) -> float:
    """To float32."""
    return float(np.float32(value))


class Parts:
    """Writes arithmetic into a function, for vectors of so many lanes."""

    def __init__(self, function: Function, lanes: int) -> None:
        self.f, self.lanes = function, lanes

    # Registers --------------------------------------------------------------------------------------------------------

    def register(self, part: Component, kind: ComponentKind, lanes: int) -> Register:
        """A part in a register of so many lanes."""
        if isinstance(part, Register):
            return part if lanes_of(part.type) == lanes else self.f.splat(part, lanes)
        if kind == "float":
            return filled(number(float(part)), lanes)
        return filled(integer(int(part), _TYPES[kind]), lanes)

    def vector(self, part: Component, kind: ComponentKind) -> Register:
        """A part with a lane for each pixel."""
        return self.register(part, kind, self.lanes)

    def _together(self, kind: ComponentKind, *parts: Component) -> list[Register]:
        """Parts in registers of the same width."""
        lanes = 1 if all(map(is_uniform, parts)) else self.lanes
        return [self.register(part, kind, lanes) for part in parts]

    def _math(self, register: Register) -> FloatMath:
        return FloatMath(self.f, register.type)

    # Operators --------------------------------------------------------------------------------------------------------

    def binary(self, word: str, kind: ComponentKind, left: Component, right: Component) -> Component:
        """An operator of arithmetic, as GLSL writes it."""
        if is_known(left) and is_known(right):
            return self._folded(word, kind, left, right)
        if (same := self._unchanged(word, kind, left, right)) is not None:
            return same
        if kind == "bool":
            return self.f.binary({"&&": "and", "||": "or", "^^": "xor"}[word], *self._together(kind, left, right))
        if kind == "float" and word == "/" and is_known(right) and right:
            word, right = "*", to_float32(1.0 / right)  # type: ignore[operator]
        words = _FLOAT_WORDS if kind == "float" else _INT_WORDS
        return self.f.binary(words[word], *self._together(kind, left, right))

    def _folded(self, word: str, kind: ComponentKind, left: Component, right: Component) -> Component:
        assert not isinstance(left, Register)
        assert not isinstance(right, Register)
        if kind == "bool":
            return bool({"&&": left and right, "||": left or right, "^^": bool(left) != bool(right)}[word])
        if kind == "float":
            if word == "/":
                return to_float32(left / right) if right else math.nan if not left else math.copysign(math.inf, left)
            return to_float32(_FOLDED[word](left, right))  # type: ignore[arg-type]
        return int(_FOLDED[word](int(left), int(right)))

    @staticmethod
    def _unchanged(word: str, kind: ComponentKind, left: Component, right: Component) -> Component | None:
        """What needs no instruction: of 0 and 1, true and false. A float times 0 is no such: it may be no number."""
        for known, other, is_right in ((right, left, True), (left, right, False)):
            if isinstance(known, Register):
                continue
            if kind == "bool" and word in ("&&", "||"):
                return other if bool(known) == (word == "&&") else bool(known)
            if kind == "bool":
                continue
            if known == 0 and (word in ("+", "|", "^") or (is_right and word in ("-", "<<", ">>"))):
                return other
            if known == 0 and kind == "int" and word in ("*", "&"):
                return 0
            if known == 1 and (word == "*" or (is_right and word == "/")):
                return other
        return None

    def compare(self, word: str, kind: ComponentKind, left: Component, right: Component) -> Component:
        """A comparison."""
        if not isinstance(left, Register) and not isinstance(right, Register):
            return _TRUTHS[word](left, right)
        name = _COMPARISONS[word]
        if kind == "float":
            how = f"fcmp {'une' if name == 'ne' else f'o{name}'}"
        else:
            how = f"icmp {name if name in ('eq', 'ne') else f's{name}'}"
        return self.f.compare(how, *self._together(kind, left, right))

    def negated(self, kind: ComponentKind, part: Component) -> Component:
        """-x, or not x."""
        if kind == "bool":
            return self.binary("^^", kind, part, True) if isinstance(part, Register) else not part
        if not isinstance(part, Register):
            return -part
        if kind == "float":
            return self.f.give(f"fneg {part.operand}", part.type)
        return self.binary("-", kind, 0, part)

    def chosen(self, condition: Component, kind: ComponentKind, value: Component, other: Component) -> Component:
        """One of both, pixel by pixel."""
        if not isinstance(condition, Register):
            return value if condition else other
        if value is other or (is_known(value) and value == other and type(value) is type(other)):
            return value
        if is_uniform(condition):
            lanes = 1 if is_uniform(value) and is_uniform(other) else self.lanes
            return self.f.choose(condition, *(self.register(part, kind, lanes) for part in (value, other)))
        return self.f.choose(condition, self.vector(value, kind), self.vector(other, kind))

    def converted(self, part: Component, kind: ComponentKind, to: ComponentKind) -> Component:
        """A part as another kind; floats lose their fraction where they become whole."""
        if kind == to:
            return part
        if not isinstance(part, Register):
            return to_float32(part) if to == "float" else int(part) if to == "int" else bool(part)
        if to == "bool":
            return self.compare("!=", kind, part, 0)
        how = {("int", "float"): "sitofp", ("float", "int"): "fptosi", ("bool", "float"): "uitofp"}.get(
            (kind, to), "zext"
        )
        return self.f.convert(how, part, ir.vector(_TYPES[to], lanes_of(part.type)))

    # Functions --------------------------------------------------------------------------------------------------------

    def larger(self, kind: ComponentKind, left: Component, right: Component) -> Component:
        """max(left, right): left where right is no number."""
        return self._one_of(">", kind, right, left)

    def smaller(self, kind: ComponentKind, left: Component, right: Component) -> Component:
        """min(left, right): left where right is no number."""
        return self._one_of("<", kind, right, left)

    def _one_of(self, word: str, kind: ComponentKind, left: Component, right: Component) -> Component:
        if not isinstance(left, Register) and not isinstance(right, Register):
            return left if _TRUTHS[word](left, right) else right
        first, second = self._together(kind, left, right)
        return self.chosen(self.compare(word, kind, first, second), kind, first, second)

    def clamped(self, kind: ComponentKind, part: Component, low: Component, high: Component) -> Component:
        return self.smaller(kind, high, self.larger(kind, low, part))

    def absolute(self, kind: ComponentKind, part: Component) -> Component:
        if not isinstance(part, Register):
            return abs(part)
        if kind == "float":
            return self._math(part).call("fabs", part)
        return self.larger(kind, part, self.negated(kind, part))

    def floor(self, part: Component) -> Component:
        return self._math(part).call("floor", part) if isinstance(part, Register) else float(math.floor(part))

    def root(self, part: Component) -> Component:
        return self._math(part).call("sqrt", part) if isinstance(part, Register) else to_float32(math.sqrt(part))

    def exponential(self, part: Component) -> Component:
        return self._math(part).exp(part) if isinstance(part, Register) else to_float32(math.exp(part))

    def logarithm(self, part: Component) -> Component:
        """Of numbers over 0."""
        return self._math(part).log(part) if isinstance(part, Register) else to_float32(math.log(part))

    def power(self, part: Component, exponent: Component) -> Component:
        """Of numbers that are not below 0."""
        if not isinstance(part, Register) and not isinstance(exponent, Register):
            return to_float32(math.pow(part, exponent))
        base, to = self._together("float", part, exponent)
        known = self._math(base)
        return known.choose(known.compare("ogt", base, 0.0), known.exp2(known.mul(known.log2(base), to)), 0.0)

    def fused(self, left: Component, right: Component, addend: Component) -> Component:
        """left * right + addend."""
        return self.binary("+", "float", self.binary("*", "float", left, right), addend)

    def mixed(self, left: Component, right: Component, share: Component) -> Component:
        """left + share * (right - left)."""
        return self.fused(self.binary("-", "float", right, left), share, left)

    def dot(self, left: Sequence[Component], right: Sequence[Component]) -> Component:
        """The sum of products."""
        total: Component = 0.0
        for pair in zip(left, right, strict=True):
            total = self.binary("+", "float", self.binary("*", "float", *pair), total)
        return total

    # All pixels together ----------------------------------------------------------------------------------------------

    def any(self, condition: Component) -> Component:
        """Whether a condition holds for any pixel."""
        if not isinstance(condition, Register) or is_uniform(condition):
            return condition
        kind = f"i{self.lanes}"
        return self.f.compare("icmp ne", self.f.convert("bitcast", condition, kind), integer(0, kind))

    def all(self, condition: Register) -> Register:
        """Whether a condition holds for all pixels of a vector."""
        kind = f"i{self.lanes}"
        return self.f.compare("icmp eq", self.f.convert("bitcast", condition, kind), integer(-1, kind))

    def least(self, part: Component, active: Component, otherwise: int) -> Component:
        """The least of whole numbers of those pixels that are active."""
        return self._reduced("smin", part, active, otherwise)

    def most(self, part: Component, active: Component, otherwise: int) -> Component:
        """The largest, likewise."""
        return self._reduced("smax", part, active, otherwise)

    def _reduced(self, how: str, part: Component, active: Component, otherwise: int) -> Component:
        if is_uniform(part):
            return part
        kept = self.vector(self.chosen(active, "int", part, otherwise), "int")
        return self.f.call(f"llvm.vector.reduce.{how}.v{self.lanes}i32", I32, kept)
