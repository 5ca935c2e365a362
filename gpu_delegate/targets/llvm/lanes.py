"""Instructions on lanes: ints, conditions and floats of neighboring pixels, as LLVM's vectors.

A lane is a pixel. An int that grows from lane to lane in equal steps is Affine: what it reads lies in a row. One that
differs between lanes by less than their number is Near: what it reads is loaded at once and permuted. All others are
gathered.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple, TypeVar

import numpy as np

from ...base.errors import UnsupportedError
from ...model.layout import LINE_FLOATS, ceil_div
from ...model.rewrite import END_OF_INTEGERS
from .ir import (
    FLOAT,
    HALF,
    I1,
    I32,
    I64,
    POINTER,
    Function,
    Register,
    constants,
    filled,
    integer,
    number,
    suffix,
    vector,
)
from .machine import CpuTarget
from .vector_math import FloatMath

LONGEST_STEP = 4  # pixels from lane to lane that are read in a row
QUAD = vector(FLOAT, 4)
NO_LOW = integer(0)  # of bytes that are the numbers themselves


class Affine(NamedTuple):
    """register + constant + step * lane, an i64."""

    register: Register | None
    constant: int
    step: int = 0


class Near(NamedTuple):
    """register + constant + what a vector of i32 has in each lane, at least 0 and less than there are lanes."""

    register: Register
    constant: int
    offsets: Register


class Piece(NamedTuple):
    """A float that all lanes share, one of four in a register."""

    quad: Register
    lane: int


class ByteLane(NamedTuple):
    """A whole number of each lane: one of the four bytes of an int, and what the byte 0 is."""

    word: Register
    lane: int
    low: Register


class Limited(NamedTuple):
    """A whole number of each lane, at least the first limit and at most the second one, which is done where it counts.

    `byte_low` is the number whose byte is 0 where the limits are those of its bytes: what packs them limits them, too.
    """

    value: Register
    limits: tuple[Register, Register]
    byte_low: Register | None


class PlaneMemory(NamedTuple):
    """A tensor: float `channel` of texel i lies at scale * i + step * channel; of bytes an int of four lies there.

    In pairs two channels of bfloat16 do, as one instruction multiplies them.
    """

    pointer: Register
    scale: int
    step: int
    low: Register | None = None  # of bytes: the whole number whose byte is 0
    in_pairs: bool = False
    channels: int = 4  # of each texel


IntValue = Affine | Near | Register  # a register: a vector of i32
LaneCondition = bool | Register  # of i1, or a vector of them
FloatValue = float | Piece | ByteLane | Limited | Register  # of a float, or a vector of them, or of ints
T = TypeVar("T")
_UNKNOWN: Any = object()


class Lanes:
    """Instructions at the end of a function; what was computed in an enclosing block is found again.

    An example with four lanes: x = Affine(x0, 0, 2) is x0, x0 + 2, x0 + 4, x0 + 6, the even columns from x0 on, as a
    window with stride 2 reads them. `load_channel(PlaneMemory(plane, 1, 1000), x, 0)` loads two vectors and picks
    lanes:

        %v1 = getelementptr inbounds float, ptr %plane, i64 %x0
        %v2 = load <4 x float>, ptr %v1, align 4
        %v3 = getelementptr inbounds float, ptr %v1, i64 4
        %v4 = load <4 x float>, ptr %v3, align 4
        %v5 = shufflevector <4 x float> %v2, <4 x float> %v4, <4 x i32> <i32 0, i32 2, i32 4, i32 6>

    The next tap, add(x, Affine(None, 1)), is Affine(x0, 1, 2). Its load finds %v2 and %v4, and is one shuffle of lanes
    1, 3, 5, 7. Affine(x0, 0, 1) is one load; Affine(x0, 0, 0) one float, which all lanes share. Near(x0, 0, offsets)
    loads four floats from x0 on and permutes them by `offsets`; a vector of places in a register is gathered.
    """

    def __init__(self, function: Function, target: CpuTarget) -> None:
        self.f = function
        self.count = target.lanes
        self.kind = vector(FLOAT, self.count)
        self.int_kind = vector(I32, self.count)
        self.pair_kind = vector(HALF, 2 * self.count)  # of each lane two channels, one behind the other
        self.math = FloatMath(function, self.kind)
        self.scalar_math = FloatMath(function, FLOAT)
        self._is_arm = target.triple.startswith(("aarch64", "arm64"))
        self._permutes_16 = target.name == "avx512"
        self.present = self.first_lanes(self.count)  # lanes with a pixel: others may have places far from memory
        self._known: dict[Any, Any] = {}
        self._blocks: list[list[Any]] = [[]]
        self._splats = [_mask([lane] * self.count) for lane in range(4)]

    # What is computed once --------------------------------------------------------------------------------------------

    def once(self, key: Any, make: Callable[[], T]) -> T:
        """What `make` gives, which is called unless an enclosing block has it; keys begin with a word of their own."""
        found: T = self._known.get(key, _UNKNOWN)
        if found is not _UNKNOWN:
            return found
        found = self._known[key] = make()
        self._blocks[-1].append(key)
        return found

    @contextmanager
    def block(self) -> Iterator[None]:
        """What is computed inside is known only there."""
        self._blocks.append([])
        yield
        for key in self._blocks.pop():
            del self._known[key]

    # Ints -------------------------------------------------------------------------------------------------------------

    def scalar(self, value: Affine) -> Register:
        """An int that all lanes share, as i64."""
        if value.register is None:
            return integer(value.constant, I64)
        return self._plus(value.register, value.constant)

    def _plus(self, register: Register, constant: int) -> Register:
        if constant == 0:
            return register
        key = ("plus", register.text, constant)
        return self.once(key, lambda: self.f.binary("add nsw", register, integer(constant, I64)))

    def add(self, left: IntValue, right: IntValue) -> IntValue:
        if isinstance(right, Near):
            left, right = right, left
        if isinstance(right, Affine) and not isinstance(left, Register):
            constant = left.constant + right.constant
            if isinstance(left, Affine):
                return Affine(self._sum(left.register, right.register), constant, left.step + right.step)
            if not right.step:
                register = self._sum(left.register, right.register)
                assert register is not None
                return Near(register, constant, left.offsets)
        return self.f.binary("add", self.int_vector(left), self.int_vector(right))

    def _sum(self, left: Register | None, right: Register | None) -> Register | None:
        if left is None or right is None:
            return left or right
        key = ("sum", left.text, right.text)
        return self.once(key, lambda: self.f.binary("add nsw", left, right))

    def times(self, value: IntValue, factor: int) -> IntValue:
        if isinstance(value, Affine):
            return Affine(self._product(value.register, factor), value.constant * factor, value.step * factor)
        if factor == 1:
            return value
        return self.f.binary("mul", self.int_vector(value), self._int_constant(factor))

    def _product(self, register: Register | None, factor: int) -> Register | None:
        if register is None or factor == 1:
            return register
        key = ("times", register.text, factor)
        return self.once(key, lambda: self.f.binary("mul nsw", register, integer(factor, I64)))

    def _int_constant(self, value: int) -> Register:
        return filled(integer(value), self.count)

    def int_vector(self, value: IntValue) -> Register:
        """An int of each lane, as i32."""
        if isinstance(value, Register):
            return value
        return self.once(("ints", *_key(value)), lambda: self._int_vector(value))

    def _int_vector(self, value: Affine | Near) -> Register:
        steps = (
            constants([integer(value.constant + value.step * lane) for lane in range(self.count)])
            if isinstance(value, Affine)
            else self.f.binary("add", value.offsets, self._int_constant(value.constant))
        )
        if value.register is None:
            return steps
        first = self.f.splat(self.f.convert("trunc", value.register, I32), self.count)
        return self.f.binary("add", first, steps)

    def int_operation(self, how: str, left: IntValue, right: IntValue) -> IntValue:
        """sdiv, srem, mul, sub, smin or smax, of what all lanes share or lane by lane."""
        if isinstance(left, Affine) and isinstance(right, Affine) and not left.step and not right.step:
            return Affine(self._instruction(how, self.scalar(left), self.scalar(right)), 0)
        return self._instruction(how, self.int_vector(left), self.int_vector(right))

    def _instruction(self, how: str, left: Register, right: Register) -> Register:
        def made() -> Register:
            if how in ("smin", "smax"):
                return self.f.call(f"llvm.{how}.{suffix(left.type)}", left.type, left, right)
            return self.f.binary(how, left, right)

        return self.once((how, left.text, right.text), made)

    # Conditions -------------------------------------------------------------------------------------------------------

    def compare_ints(self, how: str, left: IntValue, right: IntValue) -> LaneCondition:
        """`how` is a condition of icmp: "slt", "ult", "eq" ..."""
        if isinstance(left, Affine) and isinstance(right, Affine) and not left.step and not right.step:
            first, second = self.scalar(left), self.scalar(right)
        else:
            first, second = self.int_vector(left), self.int_vector(right)
        return self.once((how, first.text, second.text), lambda: self.f.compare(f"icmp {how}", first, second))

    def both(self, left: LaneCondition, right: LaneCondition) -> LaneCondition:
        if isinstance(left, bool):
            return right if left else False
        if isinstance(right, bool):
            return left if right else False
        if left.type != right.type:
            left, right = self.mask(left), self.mask(right)
        first, second = left, right
        return self.once(("and", first.text, second.text), lambda: self.f.binary("and", first, second))

    def mask(self, condition: Register) -> Register:
        """A condition of each lane."""
        if condition.type != I1:
            return condition
        return self.once(("mask", condition.text), lambda: self.f.splat(condition, self.count))

    def first_lanes(self, count: int) -> Register:
        """True in so many lanes, from the first on."""
        return constants([Register("true" if lane < count else "false", I1) for lane in range(self.count)])

    def within(self, value: Affine, first: int, behind: int | None) -> LaneCondition:
        """Whether lanes lie from `first` on and before `behind`."""
        above = self.compare_ints("sge", value, Affine(None, first)) if first > 0 else True
        below = self.compare_ints("slt", value, Affine(None, behind)) if behind is not None else True
        return self.both(above, below)

    # Floats -----------------------------------------------------------------------------------------------------------

    def floats(self, value: FloatValue) -> Register:
        """A float of each lane."""
        if isinstance(value, Piece):
            key = ("splat", value.quad.text, value.lane)
            if key in self._known:
                kept: Register = self._known[key]
                return kept
            text = f"shufflevector {value.quad.operand}, {QUAD} poison, {self._splats[value.lane]}"
            return self.once(key, lambda: self.f.give(text, self.kind))
        if isinstance(value, ByteLane | Limited):
            value = self.wholes(value)
        if isinstance(value, Register):
            if value.type == FLOAT:
                return self.once(("floats", value.text), lambda: self.f.splat(value, self.count))
            if value.type == self.int_kind:
                return self.once(("from ints", value.text), lambda: self.f.convert("sitofp", value, self.kind))
            return value
        return filled(number(value), self.count)

    def one_float(self, value: FloatValue) -> Register:
        """What all lanes share, or what the first one has."""
        if isinstance(value, Piece):
            return self.f.lane(value.quad, value.lane)
        if isinstance(value, float):
            return number(value)
        return value if isinstance(value, Register) and value.type == FLOAT else self.f.lane(self.floats(value), 0)

    def to_floats(self, value: IntValue) -> FloatValue:
        if isinstance(value, Affine) and not value.step:
            if value.register is None:
                return float(value.constant)
            return self.f.convert("sitofp", self.scalar(value), FLOAT)
        return self.f.convert("sitofp", self.int_vector(value), self.kind)

    def to_ints(self, value: FloatValue) -> IntValue:
        """Towards zero."""
        if isinstance(value, float):
            return Affine(None, int(value))
        scalar = isinstance(value, Register) and value.type == FLOAT
        if scalar and isinstance(value, Register):
            return Affine(self.f.convert("fptosi", value, I64), 0)
        return self.f.convert("fptosi", self.floats(value), self.int_kind)

    def select(self, condition: LaneCondition, value: FloatValue, other: FloatValue) -> FloatValue:
        if isinstance(condition, bool):
            return value if condition else other
        has_ints = [self.has_ints(value), self.has_ints(other)]
        if any(has_ints) and all(has_ints[k] or is_whole_number(each) for k, each in enumerate((value, other))):
            return self.f.choose(condition, self.wholes(value), self.wholes(other))
        return self.f.choose(condition, self.floats(value), self.floats(other))

    # Whole numbers ----------------------------------------------------------------------------------------------------

    def has_ints(self, value: FloatValue) -> bool:
        """Whether a value is there as ints."""
        return isinstance(value, ByteLane | Limited) or (isinstance(value, Register) and value.type == self.int_kind)

    def wholes(self, value: FloatValue) -> Register:
        """Whole numbers of each lane, as ints."""
        if isinstance(value, ByteLane):
            found, low = self.byte(value.word, value.lane), value.low
            if low == NO_LOW:
                return found
            return self.once(("low", found.text, low.text), lambda: self.f.binary("add", found, self.splat_int(low)))
        if isinstance(value, Limited):
            return self.once(("limited", *value), lambda: self._limited(value))
        if isinstance(value, float):
            return self._int_constant(int(value))
        if isinstance(value, Register) and value.type == self.int_kind:
            return value
        floats = self.floats(value)
        return self.once(("to ints", floats.text), lambda: self.f.convert("fptosi", floats, self.int_kind))

    def _limited(self, value: Limited) -> Register:
        low, high = map(self.splat_int, value.limits)
        above = self.f.call(f"llvm.smax.{suffix(self.int_kind)}", self.int_kind, value.value, low)
        return self.f.call(f"llvm.smin.{suffix(self.int_kind)}", self.int_kind, above, high)

    def splat_int(self, value: Register) -> Register:
        """One int in all lanes."""
        return self.once(("splat int", value.text), lambda: self.f.splat(value, self.count))

    def byte(self, word: Register, lane: int) -> Register:
        """A byte of each int, the lowest first, from 0 to 255."""

        def made() -> Register:
            moved = self.f.binary("lshr", word, self._int_constant(8 * lane)) if lane else word
            return moved if lane == 3 else self.f.binary("and", moved, self._int_constant(255))

        return self.once(("byte", word.text, lane), made)

    def bits(self, value: FloatValue) -> Register:
        """The bits of a float of each lane as ints, or the ints that it is."""
        if isinstance(value, Register) and value.type == self.int_kind:
            return value
        if isinstance(value, Piece):
            return self.once(("int splat", value.quad.text, value.lane), lambda: self._int_splat(*value))
        floats = self.floats(value)
        return self.once(("bits", floats.text), lambda: self.f.convert("bitcast", floats, self.int_kind))

    def _int_splat(self, quad: Register, lane: int) -> Register:
        """ARM's instructions on bytes take a lane of ints, but of floats only a copy."""
        kind = vector(I32, 4)
        ints = self.once(("quad of ints", quad.text), lambda: self.f.convert("bitcast", quad, kind))
        return self.f.give(f"shufflevector {ints.operand}, {kind} poison, {self._splats[lane]}", self.int_kind)

    # Loads ------------------------------------------------------------------------------------------------------------

    def address(self, pointer: Register, register: Register | None, constant: int) -> Register:
        """Of a float.

        What loops count is hidden in the address from which others lie at constant distances: to choose what to
        count up, LLVM's loop strength reduction takes a third of all of LLVM's time where a window reads many places.
        """
        if register is not None:
            base, known = pointer, register
            pointer = self.once(("at", base.text, known.text), lambda: self.f.opaque(self.f.at(base, known)))
        return self.f.at(pointer, constant) if constant else pointer

    def place(self, memory: PlaneMemory, at: IntValue) -> Register:
        """The address of a texel that all lanes share."""
        assert isinstance(at, Affine)
        assert not at.step
        return self.address(memory.pointer, self._product(at.register, memory.scale), memory.scale * at.constant)

    def quad(self, memory: PlaneMemory, at: Affine) -> Register:
        """Four floats that lie one behind the other, which all lanes share."""
        register, constant = self._product(at.register, memory.scale), memory.scale * at.constant
        key = ("quad", memory.pointer.text, register.text if register else "", constant)
        if key in self._known:
            kept: Register = self._known[key]
            return kept
        return self.once(
            key, lambda: self.f.load(QUAD, self.address(memory.pointer, register, constant), align_bytes=16)
        )

    def load(self, memory: PlaneMemory, at: IntValue, channels: int = 4) -> tuple[FloatValue, ...]:
        """A texel of each lane, or its first channels."""
        if memory.low is not None:
            word = self.bits(self.load_channel(memory, at, 0))
            return tuple(ByteLane(word, lane, memory.low) for lane in range(channels))
        if memory.in_pairs and isinstance(at, Affine):
            words = [self._pair(memory, at, k) for k in range(ceil_div(channels, 2))]
            return tuple(words[k // 2] for k in range(channels))
        if channels == 4 and memory.scale == 4 and isinstance(at, Affine) and not at.step:
            quad = self.quad(memory, at)
            return tuple(Piece(quad, lane) for lane in range(4))
        return tuple(self.load_channel(memory, at, channel) for channel in range(channels))

    def _pair(self, memory: PlaneMemory, at: Affine, number: int) -> Register:
        """Two channels of a texel of each lane."""
        place = self.address(memory.pointer, at.register, at.constant + memory.step * number)
        return self.f.load(self.pair_kind, place)

    def load_channel(self, memory: PlaneMemory, at: IntValue, channel: int) -> Register:
        """One float of a texel."""
        if isinstance(at, Affine) and (memory.scale == 1 or not at.step):
            register = self._product(at.register, memory.scale)
            return self._row(memory.pointer, register, memory.scale * at.constant + memory.step * channel, at.step)
        if isinstance(at, Near) and memory.scale == 1:
            start = self.address(memory.pointer, at.register, at.constant + memory.step * channel)
            return self.permuted(self.f.load(self.kind, start), at.offsets)
        places = self.times(self.int_vector(at), memory.scale)
        return self._gathered(memory.pointer, self.int_vector(places), memory.step * channel)

    def _row(self, pointer: Register, register: Register | None, constant: int, step: int) -> Register:
        """Floats `step` apart from lane to lane; those of the same row share what they load."""
        key = ("row", pointer.text, register.text if register else "", constant, step)
        return self.once(key, lambda: self._load_row(pointer, register, constant, step))

    def _load_row(self, pointer: Register, register: Register | None, constant: int, step: int) -> Register:
        if step == 0:
            return self.f.load(FLOAT, self.address(pointer, register, constant))
        if step == 1:
            return self.f.load(self.kind, self.address(pointer, register, constant))
        if step == -1:
            row = self._row(pointer, register, constant - self.count + 1, 1)
            return self.f.shuffle(row, row, range(self.count - 1, -1, -1))
        if 1 < step <= LONGEST_STEP:
            start = self._strided_start(pointer, register, constant, step)
            return self._load_strided(pointer, register, start, constant - start, step)
        return self._gathered(pointer, self.int_vector(Affine(register, constant, step)), 0)

    def _strided_start(self, pointer: Register, register: Register | None, constant: int, step: int) -> int:
        """Near a place to read from: where a plane may begin, where others were read from, or where it is a lane's."""
        line = (constant + LINE_FLOATS // 2) // LINE_FLOATS * LINE_FLOATS
        if abs(constant - line) <= step:
            return line
        key = ("starts", pointer.text, register.text if register else "", step)
        starts: list[int] = self.once(key, list)
        for start in starts:
            if -step <= constant - start <= LONGEST_STEP:
                return start
        starts.append(-(-constant // step) * step)
        return starts[-1]

    def _load_strided(
        self, pointer: Register, register: Register | None, start: int, offset: int, step: int
    ) -> Register:
        """Floats `step` apart, near a start: those of the same start share their loads, and most of their shuffles."""
        shift, first = divmod(offset, step)
        if not -self.count <= offset <= self.count - step:  # beyond the next vector
            start, shift, first = start + shift * step, 0, first
        key = ("strided", pointer.text, register.text if register else "", start, first, step)

        def load(part: int) -> Register:
            return self._row(pointer, register, start + part * self.count, 1)

        def unshifted() -> Register:
            return self._picked([load(k) for k in range(step)], [first + step * lane for lane in range(self.count)])

        found = self.once(key, unshifted)
        if not shift:
            return found
        every = range(shift, shift + self.count)
        if shift > 0:
            lanes = [k if k < self.count else self.count + first + step * (k - self.count) for k in every]
            return self.f.shuffle(found, load(step), lanes)
        return self.f.shuffle(found, load(-1), [k if k >= 0 else 2 * self.count + first + step * k for k in every])

    def _picked(self, parts: Sequence[Register], places: Sequence[int]) -> Register:
        """Lanes by number among those of several vectors, in rising order."""
        found, known = parts[0], [(place if place < self.count else None) for place in places]
        for number_of_part, part in enumerate(parts[1:], start=1):
            first = number_of_part * self.count
            lanes = []
            for lane, place in enumerate(places):
                if first <= place < first + self.count:
                    lanes.append(self.count + place - first)
                else:
                    held = known[lane]
                    lanes.append(lane if held is None else held)
            found = self.f.shuffle(found, part, lanes)
            known = [(lane if place < first + self.count else None) for lane, place in enumerate(places)]
        return found

    def _gathered(self, pointer: Register, places: Register, constant: int) -> Register:
        pointers = f"<{self.count} x {POINTER}>"
        start = self.f.at(pointer, constant) if constant else pointer
        all_places = self.f.give(f"getelementptr float, {start.operand}, {places.operand}", pointers)
        name = f"llvm.masked.gather.{suffix(self.kind)}.{suffix(pointers)}"
        return self.f.call(name, self.kind, all_places, integer(4), self.present, self.math.of(0.0))

    def permuted(self, value: Register, offsets: Register) -> Register:
        """Lanes of a vector by number."""
        if self.count == 16 and self._permutes_16:
            return self.f.call("llvm.x86.avx512.permvar.sf.512", self.kind, value, offsets)
        if self.count == 16:
            return self._permuted_by_halves(value, offsets)
        if self.count == 8:
            return self.f.call("llvm.x86.avx2.permps", self.kind, value, offsets)
        if not self._is_arm:
            return self.f.call("llvm.x86.avx.vpermilvar.ps", self.kind, value, offsets)
        sixteen = vector("i8", 16)
        every = self.f.binary("mul", offsets, self._int_constant(0x04040404))
        table = self.f.binary("add", every, self._int_constant(0x03020100))
        whole, places = self.f.convert("bitcast", value, sixteen), self.f.convert("bitcast", table, sixteen)
        return self.f.convert("bitcast", self.f.call("llvm.aarch64.neon.tbl1.v16i8", sixteen, whole, places), self.kind)

    def _permuted_by_halves(self, value: Register, offsets: Register) -> Register:
        """Sixteen lanes by AVX2, which looks at the last three bits of a number: the fourth says which half."""
        halves = (range(8), range(8, 16))
        sources = [self.f.shuffle(value, value, half) for half in halves]
        numbers = [self.f.shuffle(offsets, offsets, half) for half in halves]
        from_each = [
            [self.f.call("llvm.x86.avx2.permps", vector(FLOAT, 8), source, number) for number in numbers]
            for source in sources
        ]
        low, high = (self.f.shuffle(first, second, range(16)) for first, second in from_each)
        return self.f.choose(self.f.compare("icmp slt", offsets, self._int_constant(8)), low, high)

    # Stores -----------------------------------------------------------------------------------------------------------

    def store(self, pointer: Register, at: Affine, value: FloatValue, mask: Register | None) -> None:
        """A float of each lane, one behind the other; where all lanes have one place, that of the first lane."""
        place = self.address(pointer, at.register, at.constant)
        if at.step == 0:
            self.f.store(self.one_float(value), place)
        elif mask is None:
            self.f.store(self.floats(value), place)
        else:
            name = f"llvm.masked.store.{suffix(self.kind)}.p0"
            self.f.call(name, "void", self.floats(value), place, integer(4), mask)

    def scatter(self, pointer: Register, at: IntValue, value: FloatValue, mask: Register | None) -> None:
        """A float of each lane, anywhere."""
        pointers = f"<{self.count} x {POINTER}>"
        places = self.int_vector(at)
        every = self.f.give(f"getelementptr float, {pointer.operand}, {places.operand}", pointers)
        name = f"llvm.masked.scatter.{suffix(self.kind)}.{suffix(pointers)}"
        self.f.call(name, "void", self.floats(value), every, integer(4), mask or self.present)

    def interleaved(self, values: Sequence[FloatValue]) -> list[Register]:
        """Vectors of which each lane has its values one behind the other."""
        parts = [self.floats(value) for value in values]
        together = len(parts)
        if together & (together - 1):
            raise UnsupportedError(f"{together} vectors are not interleaved")
        if together == 1:
            return parts
        left, right = self.interleaved(parts[::2]), self.interleaved(parts[1::2])
        found = []
        for one, other in zip(left, right, strict=True):
            for start in (0, self.count // 2):
                lanes = [lane for k in range(self.count // 2) for lane in (start + k, self.count + start + k)]
                found.append(self.f.shuffle(one, other, lanes))
        return found


def is_whole_number(value: FloatValue) -> bool:
    """Whether a constant is one that ints have, too."""
    return isinstance(value, float) and value.is_integer() and abs(value) < END_OF_INTEGERS


def is_affine(values: "np.ndarray[Any, Any]") -> tuple[int, int] | None:
    """(step, first) of whole numbers in equal steps."""
    if len(values) == 1:
        return 0, int(values[0])
    step = int(values[1]) - int(values[0])
    return (step, int(values[0])) if (values[1:] - values[:-1] == step).all() else None


def _mask(lanes: Sequence[int]) -> str:
    """Of a shufflevector."""
    return f"<{len(lanes)} x i32> <{', '.join(f'i32 {lane}' for lane in lanes)}>"


def _key(value: Affine | Near) -> tuple[Any, ...]:
    register = value.register.text if value.register else ""
    last = value.step if isinstance(value, Affine) else value.offsets.text
    return register, value.constant, last
