"""Mathematical functions on vectors of floats as LLVM's instructions, without libraries.

Polynomials and reductions of arguments are those of Moshier's Cephes library (netlib.org/cephes, single), with fused
multiply-adds, and for erf that of Abramowitz and Stegun. Where results would be subnormal they are zero.
"""

from collections.abc import Callable, Sequence
from functools import cached_property
from types import MappingProxyType

from .ir import FLOAT, I32, I64, Function, Register, filled, integer, lanes_of, number, suffix, vector

ROUNDER = 12582912.0  # 1.5 * 2^23: floats next to it have no fraction, and whole numbers as their last bits
LOG2_E, LN_2_HIGH, LN_2_LOW = 1.44269504088896341, 0.693359375, -2.12194440e-4
EXP = (1.9875691500e-4, 1.3981999507e-3, 8.3334519073e-3, 4.1665795894e-2, 1.6666665459e-1, 5.0000001201e-1)
LOG = (
    7.0376836292e-2, -1.1514610310e-1, 1.1676998740e-1, -1.2420140846e-1, 1.4249322787e-1, -1.6668057665e-1,
    2.0000714765e-1, -2.4999993993e-1, 3.3333331174e-1,
)  # fmt: skip
SIN = (-1.9515295891e-4, 8.3321608736e-3, -1.6666654611e-1)
COS = (2.443315711809948e-5, -1.388731625493765e-3, 4.166664568298827e-2)
HALF_PI_PARTS = (1.5703125, 4.837512969970703e-4, 7.549789948768648e-8)
ATAN = (8.05374449538e-2, -1.38776856032e-1, 1.99777106478e-1, -3.33329491539e-1)
ERF = (1.061405429, -1.453152027, 1.421413741, -0.284496736, 0.254829592)
LARGEST_EXP, LEAST_EXP = 88.72283, -87.33654  # whose exponential is a normal number
HALF_PI, PI = 1.5707963268, 3.1415926536

_INSTRUCTIONS = MappingProxyType({"add": "fadd", "subtract": "fsub", "multiply": "fmul", "divide": "fdiv"})
Number = Register | float
OwnNumbers = Callable[[float, str], Register]  # a number and its type to where it was loaded


class FloatMath:
    """Arithmetic on floats, or vectors of them, of one type. Numbers of Python may stand for operands."""

    def __init__(self, function: Function, kind: str, numbers: "OwnNumbers | None" = None) -> None:
        """`numbers` has those that are in memory."""
        self._numbers = numbers
        self.f = function
        self.kind = kind
        self.lanes = lanes_of(kind)

    # Words ------------------------------------------------------------------------------------------------------------

    @cached_property
    def integers(self) -> str:
        """The type of as many ints."""
        return vector(I32, self.lanes)

    def of(self, value: Number) -> Register:
        """A number in all lanes."""
        return value if isinstance(value, Register) else filled(number(value), self.lanes)

    def own(self, value: float) -> Register:
        """A number of one layer, which the next layer may have another of, in all lanes."""
        return self.f.splat(self._numbers(value, FLOAT), self.lanes) if self._numbers else self.of(value)

    def own_int(self, value: int) -> Register:
        """An int of one layer, likewise."""
        return self.f.splat(self._numbers(value, I32), self.lanes) if self._numbers else self.int_of(value)

    def int_of(self, value: int) -> Register:
        """An int in all lanes."""
        return filled(integer(value), self.lanes)

    def add(self, left: Number, right: Number) -> Register:
        return self.f.binary("fadd", self.of(left), self.of(right))

    def sub(self, left: Number, right: Number) -> Register:
        return self.f.binary("fsub", self.of(left), self.of(right))

    def mul(self, left: Number, right: Number) -> Register:
        return self.f.binary("fmul", self.of(left), self.of(right))

    def div(self, left: Number, right: Number) -> Register:
        return self.f.binary("fdiv", self.of(left), self.of(right))

    def fma(self, left: Number, right: Number, addend: Number) -> Register:
        return self.f.fma(self.of(left), self.of(right), self.of(addend))

    def neg(self, value: Register) -> Register:
        return self.f.give(f"fneg {value.operand}", self.kind)

    def call(self, name: str, *operands: Number) -> Register:
        """An intrinsic of LLVM ("floor", "fabs", "copysign"), one of those that CPUs have instructions for."""
        return self.f.call(f"llvm.{name}.{suffix(self.kind)}", self.kind, *map(self.of, operands))

    def round_away(self, value: Register) -> Register:
        """The nearest whole number, of two the one farther from zero."""
        whole = self.call("trunc", value)
        return self.add(whole, self.call("trunc", self.mul(self.sub(value, whole), 2.0)))

    def whole(self, value: Register) -> Register:
        """Whole numbers as ints."""
        return self.f.convert("fptosi", value, self.integers)

    def float_of(self, value: Register) -> Register:
        """Ints as floats."""
        return self.f.convert("sitofp", value, self.kind)

    def long(self, value: Register) -> Register:
        """Ints with 64 bits."""
        return self.f.convert("sext", value, vector(I64, self.lanes))

    def long_of(self, value: int) -> Register:
        """An int with 64 bits in all lanes."""
        return filled(integer(value, I64), self.lanes)

    def compare(self, how: str, left: Number, right: Number) -> Register:
        """`how` is a condition of fcmp: "olt", "oeq", "une", ..."""
        return self.f.compare(f"fcmp {how}", self.of(left), self.of(right))

    def choose(self, condition: Register, value: Number, other: Number) -> Register:
        return self.f.choose(condition, self.of(value), self.of(other))

    def larger(self, least: Number, value: Number) -> Register:
        """The larger of both: `value` if one is no number, as the instructions of x86 have it."""
        return self.choose(self.compare("ogt", least, value), least, value)

    def smaller(self, most: Number, value: Number) -> Register:
        """The smaller of both, likewise."""
        return self.choose(self.compare("olt", most, value), most, value)

    def clamp(self, value: Number, low: Number, high: Number) -> Register:
        return self.smaller(high, self.larger(low, value))

    def arithmetic(self, operation: str, *operands: Register) -> Register:
        """Arithmetic of the kernels' vocabulary."""
        if operation in _INSTRUCTIONS:
            return self.f.binary(_INSTRUCTIONS[operation], *operands)
        first, *others = operands
        if operation == "floor":
            return self.call("floor", first)
        if operation == "fraction":
            return self.sub(first, self.call("floor", first))
        if operation == "clamp":
            return self.smaller(others[1], self.larger(others[0], first))
        return (self.larger if operation == "maximum" else self.smaller)(others[0], first)

    def truth(self, condition: Register) -> Register:
        """1.0 where a condition holds, else 0.0."""
        return self.choose(condition, 1.0, 0.0)

    def bits(self, value: Register) -> Register:
        return self.f.convert("bitcast", value, self.integers)

    def of_bits(self, value: Register) -> Register:
        return self.f.convert("bitcast", value, self.kind)

    def polynomial(self, at: Register, first: Number, *others: float) -> Register:
        """By Horner's rule; the first coefficient is that of the highest power."""
        total = self.of(first)
        for coefficient in others:
            total = self.fma(total, at, coefficient)
        return total

    def is_nan(self, value: Register) -> Register:
        return self.compare("uno", value, value)

    def is_negative(self, value: Register) -> Register:
        """Whether the sign bit is set."""
        return self.f.compare("icmp slt", self.bits(value), self.int_of(0))

    # Functions --------------------------------------------------------------------------------------------------------

    def exp(self, value: Register) -> Register:
        """Of any number; above LARGEST_EXP infinite, below LEAST_EXP zero."""
        found = self._exp_of(self.clamp(value, LEAST_EXP, LARGEST_EXP))
        found = self.choose(self.compare("ogt", value, LARGEST_EXP), float("inf"), found)
        return self.choose(self.compare("olt", value, LEAST_EXP), 0.0, found)

    def exp_of_limited(self, value: Register) -> Register:
        """Within 1e-37 of exp for numbers up to 88, of which larger ones are taken for 88."""
        return self._exp_of(self.clamp(value, LEAST_EXP, 88.0), is_limited=True)

    def _exp_of(self, value: Register, is_limited: bool = False) -> Register:
        biased = self.fma(value, LOG2_E, ROUNDER)
        whole = self.sub(biased, ROUNDER)
        rest = self.fma(whole, -LN_2_LOW, self.fma(whole, -LN_2_HIGH, value))
        return self._scaled(self._exp_near_zero(rest), biased, is_limited)

    def exp2(self, value: Register) -> Register:
        """2 to the power of a number, likewise infinite or zero."""
        limited = self.clamp(value, -126.0, 128.0)
        biased = self.add(limited, ROUNDER)
        rest = self.mul(self.sub(limited, self.sub(biased, ROUNDER)), LN_2_HIGH + LN_2_LOW)
        found = self._scaled(self._exp_near_zero(rest), biased)
        found = self.choose(self.compare("oge", value, 128.0), float("inf"), found)
        return self.choose(self.compare("olt", value, -126.0), 0.0, found)

    def _exp_near_zero(self, rest: Register) -> Register:
        """Between -ln(2) / 2 and ln(2) / 2."""
        square = self.mul(rest, rest)
        return self.add(self.fma(self.polynomial(rest, *EXP), square, rest), 1.0)

    def _scaled(self, value: Register, biased: Register, is_limited: bool = False) -> Register:
        """value * 2^n, where the last bits of `biased` are n: as 2 * value * 2^(n - 1), whose power is finite."""
        bias = 127 if is_limited else 126
        power = self.f.binary("shl", self.f.binary("add", self.bits(biased), self.int_of(bias)), self.int_of(23))
        value = value if is_limited else self.add(value, value)
        return self.mul(value, self.of_bits(power))

    def log_parts(self, value: Register) -> tuple[Register, Register]:
        """(e, r): ln(value) = e * ln(2) + r, for positive normal numbers."""
        bits, one = self.bits(value), self.int_of(0x3F800000)
        moved = self.f.binary(
            "sub", bits, self.int_of(0x3F3504F3)
        )  # of sqrt(1/2): mantissas lie between it and sqrt(2)
        exponent = self.f.binary("ashr", moved, self.int_of(23))
        mantissa = self.f.binary("sub", bits, self.f.binary("shl", exponent, self.int_of(23)))
        x = self.sub(self.of_bits(mantissa), self.of_bits(one))
        square = self.mul(x, x)
        rest = self.mul(self.mul(self.polynomial(x, *LOG), x), square)
        return self.f.convert("sitofp", exponent, self.kind), self.add(self.fma(square, -0.5, rest), x)

    def _log_ends(self, value: Register, found: Register) -> Register:
        """Logarithms of zero, of infinity and of what has none."""
        found = self.choose(self.compare("oeq", value, float("inf")), value, found)
        found = self.choose(self.compare("olt", self.call("fabs", value), 1.17549435e-38), float("-inf"), found)
        return self.choose(self.compare("ult", value, 0.0), float("nan"), found)

    def log(self, value: Register) -> Register:
        exponent, rest = self.log_parts(value)
        found = self.fma(exponent, LN_2_HIGH, self.fma(exponent, LN_2_LOW, rest))
        return self._log_ends(value, found)

    def log2(self, value: Register) -> Register:
        exponent, rest = self.log_parts(value)
        high = self.mul(rest, LOG2_E)
        return self._log_ends(value, self.add(exponent, high))

    def sin(self, value: Register, quarters: int = 0) -> Register:
        """The sine of a number and so many quarters of a circle; exact to 1e-6 up to some ten thousands."""
        biased = self.fma(value, 2.0 / PI, ROUNDER)
        turns = self.sub(biased, ROUNDER)
        x = value
        for part in HALF_PI_PARTS:
            x = self.fma(turns, -part, x)
        square = self.mul(x, x)
        sine = self.fma(self.mul(self.polynomial(square, *SIN), square), x, x)
        cosine = self.fma(self.polynomial(square, *COS), self.mul(square, square), self.fma(square, -0.5, 1.0))
        quarter = self.f.binary("add", self.bits(biased), self.int_of(quarters))
        odd = self._has_bit(quarter, 1)
        found = self.choose(odd, cosine, sine)
        return self.choose(self._has_bit(quarter, 2), self.neg(found), found)

    def _has_bit(self, value: Register, bit: int) -> Register:
        return self.f.compare("icmp ne", self.f.binary("and", value, self.int_of(bit)), self.int_of(0))

    def tanh(self, value: Register) -> Register:
        """exp of the magnitude never overflows, unlike (exp(v) - exp(-v)) / (exp(v) + exp(-v))."""
        size = self.exp_of_limited(self.mul(self.call("fabs", value), -2.0))
        return self.call("copysign", self.div(self.sub(1.0, size), self.add(1.0, size)), value)

    def erf(self, value: Register) -> Register:
        """Handbook of Mathematical Functions, 7.1.26: within 1.5e-7."""
        size = self.call("fabs", value)
        t = self.div(1.0, self.fma(size, 0.3275911, 1.0))
        total = self.mul(self.polynomial(t, *ERF), t)
        falling = self.exp_of_limited(self.neg(self.mul(value, value)))
        return self.call("copysign", self.fma(self.neg(total), falling, 1.0), value)

    def power(self, x: Register, y: Register) -> Register:
        """As C has it: below zero whole exponents give results, with the sign that they make."""
        size = self.exp2(self.mul(y, self.log2(self.call("fabs", x))))
        size = self.choose(self.compare("oeq", self.call("fabs", x), 1.0), 1.0, size)
        is_infinite = self.compare("oeq", self.call("fabs", x), float("inf"))
        is_whole = self.compare("oeq", self.call("floor", y), y)
        negative = self.choose(is_whole, size, self.choose(is_infinite, size, float("nan")))
        half = self.mul(y, 0.5)
        is_odd = self.compare("oeq", self.call("fabs", self.sub(half, self.call("floor", half))), 0.5)
        negative = self.choose(is_odd, self.neg(size), negative)
        found = self.choose(self.compare("olt", x, 0.0), negative, size)
        found = self._with_nan(found, x, y)
        found = self.choose(self.compare("oeq", x, 1.0), 1.0, found)
        return self.choose(self.compare("oeq", y, 0.0), 1.0, found)

    def _with_nan(self, found: Register, *operands: Register) -> Register:
        for operand in operands:
            found = self.choose(self.is_nan(operand), operand, found)
        return found

    def atan2(self, y: Register, x: Register) -> Register:
        """The angle of (x, y) as C has it: within 2e-7."""
        size_x, size_y = self.call("fabs", x), self.call("fabs", y)
        high, low = self.larger(size_x, size_y), self.smaller(size_x, size_y)
        ratio = self.choose(self.compare("oeq", low, high), 1.0, self.div(low, high))
        angle = self._atan_to_one(self.choose(self.compare("oeq", low, 0.0), 0.0, ratio))
        angle = self.choose(self.compare("ogt", size_y, size_x), self.sub(HALF_PI, angle), angle)
        angle = self.choose(self.is_negative(x), self.sub(PI, angle), angle)
        return self._with_nan(self.call("copysign", angle, y), x, y)

    def _atan_to_one(self, value: Register) -> Register:
        """Of 0 to 1, in two ranges, which meet at tan(pi / 8)."""
        far = self.compare("ogt", value, 0.4142135624)
        t = self.choose(far, self.div(self.sub(value, 1.0), self.add(value, 1.0)), value)
        square = self.mul(t, t)
        total = self.fma(self.mul(self.polynomial(square, *ATAN), square), t, t)
        return self.add(self.choose(far, HALF_PI / 2, 0.0), total)

    def floor_mod(self, x: Register, y: Register) -> Register:
        """What a quotient rounded down leaves, with the sign of the divisor: exact, by the fmodf() of C."""
        rest = self.f.binary("frem", x, y)
        differs = self.compare("olt", self.mul(self.sign(rest), self.sign(y)), 0.0)
        return self.choose(differs, self.add(rest, y), rest)

    def floor_div(self, x: Register, y: Register) -> Register:
        quotient = self.div(x, y)
        infinite = float("inf")
        overflows = self.compare("oeq", self.call("fabs", quotient), infinite)
        is_far = self.compare("oeq", self.call("fabs", y), infinite)
        exact = self.call("roundeven", self.div(self.sub(x, self.floor_mod(x, y)), y))
        found = self.choose(overflows, self.call("floor", quotient), exact)
        return self.choose(is_far, self.call("floor", quotient), found)

    def sign(self, value: Register) -> Register:
        below = self.choose(self.compare("olt", value, 0.0), -1.0, value)
        return self.choose(self.compare("ogt", value, 0.0), 1.0, below)


def math_of(function: Function, operands: Sequence[Register], numbers: OwnNumbers | None = None) -> FloatMath:
    """Arithmetic of the operands' type."""
    return FloatMath(function, operands[0].type if operands else FLOAT, numbers)
