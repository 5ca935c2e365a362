"""The vocabulary of kernels: values, places in memory and statements, as plain data without any language's text.

Emission functions (gpu_delegate/ops) build values with Python's operators, an Emitter (kernels/emit.py) collects
statements, and a printer in gpu_delegate/targets turns them into its language. Nodes are equal when they mean the same,
so that a value which is needed twice is found again by the node itself.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeVar, get_args

ValueType = Literal["bool", "int", "float", "vec2", "vec4", "half4"]
_WIDTH: tuple[ValueType, ...] = ("bool", "int", "float", "vec2", "vec4")

Comparison = Literal["less", "at least", "at most", "equal", "both", "either"]
_COMPARISONS = frozenset(get_args(Comparison))
LaneComparison = Literal["less", "greater", "at least", "at most", "equal", "not equal"]
Arithmetic = Literal[
    "add", "subtract", "multiply", "divide", "remainder", "minimum", "maximum", "clamp", "floor", "fraction"
]
Conversion = Literal["int", "float"]  # of an int, a float or a truth value; to int: towards zero
FunctionWord = Literal[  # of vec4s, lane by lane; each target knows each of them (a test compares their tables)
    "negate", "absolute", "sign", "ceiling", "truncate", "round even", "square root", "inverse square root",
    "multiply add",  # of a and b, and c: a * b + c, rounded once or twice, as is quicker
    "exponential", "exponential less one", "logarithm", "power", "sine", "cosine",
    "angle",  # of y and x, as atan2() of C
    "hyperbolic tangent", "error function", "logistic", "hard swish",
    "floor quotient", "floor remainder",  # with the sign of the divisor
    # of whole numbers, a divisor of 0 counting as one:
    "whole quotient", "whole floor quotient", "whole floor remainder",
    # of digits (gpu_delegate/ops/digit_ops.py), and which one is asked for; a divisor of 0 counting as one:
    "int32 product", "int32 quotient", "int32 floor quotient", "int32 floor remainder",
    "int64 product", "int64 floor remainder",
    "int32 value", "int64 value",  # of all digits: the nearest float
    "digit of halves", "carry of halves",  # of sums of lower and of upper halves, and what is carried over
    # of 8-bit ops (gpu_delegate/ops/requantize.py):
    "requantize", "requantize narrow", "requantize once", "round to steps", "add steps", "hard swish steps",
    # of ops of 16-bit integers (gpu_delegate/ops/short_steps.py):
    "requantize wide", "requantize wide once", "requantize product", "add short steps", "softmax steps",
]  # fmt: skip


class Value:
    """What a node stands for. Numbers are Python's own; `divide` on ints rounds towards zero."""

    type: ValueType  # one for the whole class where it says so, else each value's

    def __add__(self, other: "Operand") -> "Operation":
        return Operation("add", (self, other))

    def __radd__(self, other: int | float) -> "Operation":
        return Operation("add", (other, self))

    def __sub__(self, other: "Operand") -> "Operation":
        return Operation("subtract", (self, other))

    def __mul__(self, other: "Operand") -> "Operation":
        return Operation("multiply", (self, other))

    def __rmul__(self, other: int | float) -> "Operation":
        return Operation("multiply", (other, self))

    def __truediv__(self, other: "Operand") -> "Operation":
        return Operation("divide", (self, other))

    def __mod__(self, other: "Operand") -> "Operation":
        return Operation("remainder", (self, other))

    def __rsub__(self, other: int | float) -> "Operation":
        return Operation("subtract", (other, self))

    def __neg__(self) -> "Operation":
        return Operation("negate", (self,))


Operand = Value | int | float
TexelNumbers = tuple[float, float, float, float]
T = TypeVar("T", bound=Operand)


def type_of(value: Operand) -> ValueType:
    """The type of a value or number."""
    if isinstance(value, Value):
        return value.type
    return "bool" if isinstance(value, bool) else "int" if isinstance(value, int) else "float"


# Values ---------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Name(Value):
    """A variable: one that a statement declares, or that every kernel has (x0, y0, z0, and those of loops)."""

    name: str
    type: ValueType

    def __hash__(self) -> int:
        return hash(self.name)


@dataclass(frozen=True)
class Operation(Value):
    """Arithmetic on numbers and vectors, lane by lane; a comparison; a conversion; a function."""

    operation: Arithmetic | Comparison | Conversion | FunctionWord
    operands: tuple[Operand, ...]

    @property
    def type(self) -> ValueType:  # type: ignore[override]
        if self.operation in ("int", "float"):
            return self.operation
        if self.operation in _COMPARISONS:
            return "bool"
        return max(map(type_of, self.operands), key=_WIDTH.index)


@dataclass(frozen=True)
class Not(Value):
    """Whether a condition does not hold."""

    condition: Value
    type = "bool"


@dataclass(frozen=True)
class GridIndex(Value):
    """The number along an axis of a thread or of its work-group in the grid, or of the thread in its work-group."""

    of: Literal["thread", "group", "thread in group"]
    axis: Literal["x", "y", "z"]
    type = "int"


@dataclass(frozen=True)
class Sum(Value):
    """A sum of ints, each times a number, and a constant (gpu_delegate/code/indices.py)."""

    terms: tuple[tuple[Value, int], ...]
    constant: int
    type = "int"


@dataclass(frozen=True)
class Inside(Value):
    """Whether an int is one of 0 ... size - 1."""

    value: Operand
    size: int
    type = "bool"


@dataclass(frozen=True)
class OnGrid(Value):
    """Whether an int is a multiple of `stride`, one of 0 ... size - 1 of them."""

    value: Operand
    stride: int
    size: int
    type = "bool"


@dataclass(frozen=True)
class Lane(Value):
    """One lane of a vec4, by its number."""

    value: Operand
    lane: Operand
    type = "float"


@dataclass(frozen=True)
class Vector(Value):
    """A vector of two or four floats."""

    lanes: tuple[Operand, ...]

    @property
    def type(self) -> ValueType:  # type: ignore[override]
        return "vec2" if len(self.lanes) == 2 else "vec4"


@dataclass(frozen=True)
class Splat(Value):
    """A vec4 of one number four times."""

    value: float
    type = "vec4"


@dataclass(frozen=True)
class Repeated(Value):
    """A vec4 with the first lane of another one in all of its own."""

    value: Operand
    type = "vec4"


@dataclass(frozen=True)
class AcrossLanes(Value):
    """The four lanes of a vec4 as one float: added, multiplied, or the least or greatest of them."""

    operation: Arithmetic
    value: Value
    type = "float"


@dataclass(frozen=True)
class Keep(Value):
    """A vec4 whose lanes past the last channel of a slice hold `other`, zeros where it is None."""

    value: Operand
    channels: int
    at: Operand  # the slice
    other: float | None = None
    type = "vec4"


@dataclass(frozen=True)
class Choose(Value):
    """One of two values."""

    condition: Value
    value: Operand
    other: Operand

    @property
    def type(self) -> ValueType:  # type: ignore[override]
        return type_of(self.value)


@dataclass(frozen=True)
class ChooseLanes(Value):
    """A vec4 with lanes of `value` where those of `left` and `right` compare so, and lanes of `other` elsewhere."""

    comparison: LaneComparison
    left: Value
    right: Value
    value: Value
    other: Value
    type = "vec4"


@dataclass(frozen=True)
class Compared(Value):
    """A vec4 with 1.0 in lanes where those of `left` and `right` compare so, and 0.0 elsewhere."""

    comparison: LaneComparison
    left: Value
    right: Value
    type = "vec4"


@dataclass(frozen=True)
class Tap(Value):
    """A value of a window that may lie outside of the map: then it was read at the nearest place, and `outside` counts.

    Only where it `branches` the place may be left unread.
    """

    value: Operand
    valid: Value
    outside: Value
    branches: bool = True
    type = "vec4"


@dataclass(frozen=True)
class Argument(Value):
    """An operand of an elementwise op, by its number, in what the op's record says that it makes of them."""

    number: int
    type = "vec4"


@dataclass(frozen=True)
class Elementwise(Value):
    """What an elementwise op makes of vec4s. Each word of its arithmetic rounds its result."""

    arithmetic: Value  # of arguments: the operands, then the constants
    operands: tuple[Operand, ...]
    constants: tuple[Value, ...] = ()  # texels with numbers of the op's attributes
    numbers: tuple[TexelNumbers, ...] = ()  # what is in those, for printers that do not read them
    type = "vec4"


@dataclass(frozen=True)
class Bits(Value):
    """Whole numbers that a texel of the weights has as ints of 32 bits."""

    value: Value
    type = "vec4"


@dataclass(frozen=True)
class ByteProducts(Value):
    """Sums of products of a slice's four bytes: what `words` has of each is said by code/product_forms.py.

    Where it is `by_lanes` each lane of the result is the same lane's byte times one weight, else all four bytes, each
    times a weight of that lane's.
    """

    value: Operand
    words: tuple[Value, ...]
    together: int  # weights in an int of a word: four, two or one
    low: int  # the whole number whose byte is 0
    by_lanes: bool = False
    type = "vec4"


@dataclass(frozen=True)
class PairProducts(Value):
    """Sums of products of a slice's first channels, two in a word, all of them rounded to bfloat16."""

    value: Operand
    words: tuple[Value, ...]  # texels of ints: the weights of two channels for each of four sums
    channels: int
    type = "vec4"


@dataclass(frozen=True)
class Requantized(Value):
    """REQUANTIZE with each channel's multiplier and shift to the right as ints."""

    value: Operand
    multiplier: Value
    half: Value  # of the power of two that it is divided by, and how many bits that has
    shift: Value
    limits: tuple[int, int]
    may_not_shift: bool  # whether a shift may be 0
    type = "vec4"


@dataclass(frozen=True)
class Halves(Value):
    """Sums and products of vec4s and floats, computed in half precision."""

    value: Operand
    type = "half4"


@dataclass(frozen=True)
class Widened(Value):
    """Four halves as a vec4."""

    value: Value
    type = "vec4"


# Memory ---------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Texel(Value):
    """The place of slice `at` of a pixel in a PHWC4 map of so many pixels; the pixel is given by its index."""

    at: Operand
    pixels: int
    pixel: Operand
    type = "int"


@dataclass(frozen=True)
class Element(Value):
    """The place of an element of an array in C order, which begins at `base`: a coordinate for each axis."""

    base: int
    at: tuple[Operand, ...]
    lengths: tuple[int, ...] = ()  # of all axes but the first
    type = "int"


@dataclass(frozen=True)
class LoadFrom(Value):
    """A texel of an input; what stands behind the name is chosen for each device (bindings.py)."""

    source: str
    at: Operand
    type = "vec4"


@dataclass(frozen=True)
class Weight(Value):
    """A texel of the kernel's weights."""

    at: Operand
    type = "vec4"


@dataclass(frozen=True)
class Shared(Value):
    """A vec4 of an array in the work-group's shared memory."""

    array: str
    at: Operand
    type = "vec4"


# Statements -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Declare:
    """A new variable with a value."""

    name: Name
    value: Operand


@dataclass(frozen=True)
class Reserve:
    """New variables of one type, without values yet."""

    names: tuple[Name, ...]


@dataclass(frozen=True)
class Assign:
    """Another value for a variable."""

    name: Name
    value: Operand


@dataclass(frozen=True)
class AddTo:
    """A value added to a variable: products are multiply-adds."""

    name: Name
    value: Operand


@dataclass(frozen=True)
class StoreTo:
    """A value written to an output."""

    target: str
    at: Operand
    value: Operand


@dataclass(frozen=True)
class ForEach:
    """Statements for each number from 0 on, over several variables one in the other; over none: once.

    What is declared inside is known only there.
    """

    over: tuple[tuple[Name, int], ...]  # variables and how many numbers each takes
    body: "tuple[Statement, ...]"
    may_unroll: bool = True  # else a compiler must not know how many numbers there are


@dataclass(frozen=True)
class ForRange:
    """Statements for start, start + step, ... below a limit; both may be other numbers in each thread."""

    name: Name
    start: Operand
    limit: Operand
    step: int
    body: "tuple[Statement, ...]"


@dataclass(frozen=True)
class When:
    """Statements for threads for which a condition holds, and for the others. What is declared inside is known only
    there."""

    condition: Value
    body: "tuple[Statement, ...]"
    otherwise: "tuple[Statement, ...]" = ()


@dataclass(frozen=True)
class StoreShared:
    """A vec4 written to an array in shared memory."""

    array: str
    at: Operand
    value: Operand


@dataclass(frozen=True)
class Synchronize:
    """All threads of the work-group wait for each other, and see what they wrote to shared memory."""


@dataclass(frozen=True)
class Leave:
    """Threads for which a condition holds end."""

    condition: Value


Statement = (
    Declare | Reserve | Assign | AddTo | StoreTo | ForEach | ForRange | When | StoreShared | Synchronize | Leave
)  # fmt: skip


THREAD = Name("thread", "int")  # its number in the work-group
PART, PAST = Name("part", "int"), Name("past", "bool")  # of kernels whose sums threads share: plan/split_k.py
PIXEL = Name("pixel", "int")  # the thread's in the work-group of such a kernel, whose parts have the same
PART_SUMS = "part_sums"  # the array in shared memory by which the parts of such a pixel are joined
X0, Y0, Z0 = (Name(name, "int") for name in ("x0", "y0", "z0"))  # of every kernel: a thread's first pixel and slice
ZEROS = Splat(0.0)
SourceIndex = tuple[Operand, Value | None]  # a source coordinate, and whether it is valid if it is not always

# Reading --------------------------------------------------------------------------------------------------------------


def values_in(node: Value | Statement) -> Iterator[Value]:
    """All values that a value or statement consists of, in order, itself among them."""
    waiting: list[object] = [node]
    while waiting:
        part = waiting.pop()
        kind = type(part)
        if kind in _LEAVES:
            continue
        if isinstance(part, Name):  # most are
            yield part
        elif kind is tuple:
            waiting += reversed(part)  # type: ignore[call-overload]
        else:
            if isinstance(part, Value):
                yield part
            waiting += reversed(vars(part).values())


_LEAVES = frozenset({int, str, float, bool, type(None)})


def blocks_in(statement: Statement) -> tuple[tuple[Statement, ...], ...]:
    """The blocks that stand inside a statement."""
    if isinstance(statement, When):
        return statement.body, statement.otherwise
    return (statement.body,) if isinstance(statement, ForEach | ForRange) else ()


def with_blocks(statement: Statement, change: "Callable[[tuple[Statement, ...]], tuple[Statement, ...]]") -> Statement:
    """A statement with other statements in place of those of each block inside it."""
    if isinstance(statement, When):
        return replace(statement, body=change(statement.body), otherwise=change(statement.otherwise))
    return replace(statement, body=change(statement.body)) if isinstance(statement, ForEach | ForRange) else statement


# Longer words ---------------------------------------------------------------------------------------------------------


def combined(operation: Arithmetic | Comparison, values: Sequence[T]) -> T | Operation:
    """Values joined two by two, from the first to the last."""
    first, *others = values
    found: T | Operation = first
    for other in others:
        found = Operation(operation, (found, other))
    return found


def by_threads(name: Name, count: int, threads: int, body: Sequence[Statement]) -> Statement:
    """Statements for each number from 0 on: of so many threads, thread n takes n, n + threads, ..."""
    if count <= threads:
        return When(Operation("less", (THREAD, count)), (Declare(name, THREAD), *body))
    return ForRange(name, THREAD, count, threads, tuple(body))


def clamp(value: Operand, low: int, high: int) -> Operation:
    """An int, at least low and at most high."""
    return Operation("clamp", (value, low, high))


def to_float(value: Operand) -> Operation:
    """An int or a truth value as a float."""
    return Operation("float", (value,))


def to_int(value: Operand) -> Operation:
    """A float, or a truth value, as an int."""
    return Operation("int", (value,))


def larger(value: Operand, other: Operand) -> Operation:
    """The larger of two."""
    return Operation("maximum", (value, other))


def smaller(value: Operand, other: Operand) -> Operation:
    """The smaller of two."""
    return Operation("minimum", (value, other))
