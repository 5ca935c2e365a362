"""LLVM's instructions for bytes: four channels of a pixel in an int, their products with weights, their rounding.

Sums are ints, and products of bytes with weights are added four at once (VPDPBUSD of AVX-VNNI and AVX512-VNNI, SDOT of
ARM), two (VPMADDWD, or VPDPWSSD), or one. Bytes are from 0 to 255; SDOT takes them less 128.
"""

from collections.abc import Callable, Sequence

from ...code.vocabulary import TexelNumbers
from ...ops.requantize import FRACTION_BITS, MULTIPLIER_BITS, SUM_BITS
from .ir import I32, I64, Register, filled, integer, vector
from .lanes import ByteLane, FloatValue, Lanes, Limited, is_whole_number
from .machine import CpuTarget
from .steps_code import HALF_UNIT, numbers_of_sum

_LOW_BYTES = 0x00FF00FF  # of both halves of an int
_SIGNS = -0x7F7F7F80  # 0x80808080: the sign bits of four bytes


def word_of(texel: Sequence[FloatValue]) -> ByteLane | None:
    """The first byte of an int whose bytes are a slice's channels, if they are."""
    first = texel[0]
    if not isinstance(first, ByteLane) or any(each != first._replace(lane=k) for k, each in enumerate(texel)):
        return None
    return first


class ByteCode:
    """Instructions on bytes for a kind of CPU."""

    def __init__(self, lanes: Lanes, target: CpuTarget) -> None:
        self.lanes = lanes
        self.f = lanes.f
        self._is_x86 = target.is_x86
        self._subtracts = target.subtracts_products
        self._bits = 32 * lanes.count
        self._hides = lanes.count <= target.register_lanes  # what is hidden is in one register

    # Words ------------------------------------------------------------------------------------------------------------

    def word(self, texel: Sequence[FloatValue], low: Register) -> Register:
        """The four bytes of a slice: whole numbers, of which none is below `low` or 256 more."""
        found = word_of(texel)
        if found and found.low == low:
            return found.word
        return self.lanes.once(("word", low.text, *texel), lambda: self._word_of(texel, low))

    def _word_of(self, texel: Sequence[FloatValue], low: Register) -> Register:
        values = [self._above(each, low) for each in texel]
        return self._packed(values) if self._is_x86 else self._joined(values)

    def _above(self, value: FloatValue, low: Register) -> Register:
        """How much a number is above another one."""
        if isinstance(value, ByteLane) and value.low == low:
            return self.lanes.byte(value.word, value.lane)
        if is_whole_number(value) and low.text.lstrip("-").isdigit():
            assert isinstance(value, float)
            return filled(integer(int(value) - int(low.text)), self.lanes.count)
        limits_itself = self._is_x86 and isinstance(value, Limited) and value.byte_low == low
        found = value.value if limits_itself and isinstance(value, Limited) else self.lanes.wholes(value)
        if low.text == "0":
            return found
        return self.f.binary("sub", found, self.lanes.splat_int(low))

    def _packed(self, values: Sequence[Register]) -> Register:
        """By x86's instructions that pack ints of two vectors, in each 16 bytes of them: saturated."""
        count, parts = self.lanes.count, {4: "sse2.{}.128", 8: "avx2.{}", 16: "avx512.{}.512"}[self.lanes.count]
        halves, whole = vector("i16", 2 * count), vector("i8", 4 * count)
        low, high = (self.f.call(f"llvm.x86.{parts.format('packssdw')}", halves, *values[k : k + 2]) for k in (0, 2))
        joined = self.f.call(f"llvm.x86.{parts.format('packuswb')}", whole, low, high)
        order = [
            16 * block + 4 * channel + pixel
            for block in range(count // 4)
            for pixel in range(4)
            for channel in range(4)
        ]
        return self.f.convert("bitcast", self.f.shuffle(joined, joined, order), self.lanes.int_kind)

    def _joined(self, values: Sequence[Register]) -> Register:
        """By shifts."""
        parts = [values[0]]
        parts += [
            self.f.binary("shl", value, filled(integer(8 * k), self.lanes.count)) for k, value in enumerate(values) if k
        ]
        left, right = self.f.binary("or", *parts[:2]), self.f.binary("or", *parts[2:])
        return self.f.binary("or", left, right)

    # Products ---------------------------------------------------------------------------------------------------------

    def add(self, total: Register, word: Register, weight: FloatValue, together: int, part: int) -> Register:
        """A sum with products of bytes of an int with a weight's parts: all four, the first or second two, or one."""
        values = word if together == 4 else self._pair(word, part) if together == 2 else self.lanes.byte(word, part)
        return self.add_parts(total, values, self.lanes.bits(weight), together)

    def add_parts(self, total: Register, values: Register, weights: Register, together: int) -> Register:
        """A sum with products of the parts of two ints: four bytes, two halves, or each as a whole."""
        if together == 4:
            return self._four(total, values, weights)
        if together == 2:
            return self._two(total, values, weights)
        return self.f.binary("add", total, self.f.binary("mul", values, self._as(self.lanes.int_kind, weights)))

    def _as(self, kind: str, value: Register) -> Register:
        """The same bits as another type."""
        if value.type == kind:
            return value
        return self.lanes.once(("as", kind, value.text), lambda: self.f.convert("bitcast", value, kind))

    def _four(self, total: Register, word: Register, weights: Register) -> Register:
        if self._is_x86:
            ints = self._as(total.type, weights)
            return self.f.call(f"llvm.x86.avx512.vpdpbusd.{self._bits}", total.type, total, word, ints)
        signs = filled(integer(_SIGNS), self.lanes.count)
        signed = self.lanes.once(("signed", word.text), lambda: self.f.binary("xor", word, signs))
        sixteen = vector("i8", 16)
        operands = [self._as(sixteen, each) for each in (signed, weights)]
        return self.f.call("llvm.aarch64.neon.sdot.v4i32.v16i8", total.type, total, *operands)

    def _pair(self, word: Register, part: int) -> Register:
        """The first and third byte of an int in its halves, or the second and fourth."""

        def made() -> Register:
            moved = self.f.binary("lshr", word, filled(integer(8), self.lanes.count)) if part else word
            return self.f.binary("and", moved, filled(integer(_LOW_BYTES), self.lanes.count))

        return self.lanes.once(("pair", word.text, part), made)

    def _two(self, total: Register, pair: Register, weights: Register) -> Register:
        if self._is_x86 and not self._subtracts:
            ints = self._as(total.type, weights)
            return self.f.call(f"llvm.x86.avx512.vpdpwssd.{self._bits}", total.type, total, pair, ints)
        halves = vector("i16", 2 * self.lanes.count)
        name = {4: "sse2.pmadd.wd", 8: "avx2.pmadd.wd", 16: "avx512.pmaddw.d.512"}[self.lanes.count]
        operands = [self._as(halves, each) for each in (pair, weights)]
        return self.f.binary("sub", total, self.f.call(f"llvm.x86.{name}", total.type, *operands))

    # Rounding ---------------------------------------------------------------------------------------------------------

    def requantized(
        self,
        value: Register,
        multiplier: Register,
        half: Register,
        shift: Register,
        no_shift: bool,
        is_positive: bool,
    ) -> Register:
        """REQUANTIZE (gpu_delegate/ops/requantize.py) of ints by an int of 31 bits, half a power of two and its bits.

        The product's bits from 31 on, rounded up at one half; then divided by a power of two, rounded away from zero.
        What is below zero may come out as any such number where only what is positive counts. Limits are not kept.
        """
        product = self._high_product(value, multiplier)
        if not is_positive:
            return self._shifted(product, half, shift, no_shift)
        return self.f.binary("ashr", self.f.binary("add", product, half), shift)

    def added(
        self, left: Register, right: Register, numbers: Sequence[TexelNumbers], own: Callable[[int], Register]
    ) -> Register:
        """ADD_STEPS of ints, with its numbers as steps_code.py has them; `own` loads one. Limits are not kept."""
        (factor, shift), total, signs, _ = numbers_of_sum(numbers)
        parts = [self._half_in_parts(left), self._divided(self._in_parts(right, factor, own), shift, own)]
        parts = parts if signs[0] > 0 else parts[::-1]
        summed = self.f.binary("add" if signs[0] * signs[1] > 0 else "sub", *parts)
        return self._times(summed, *total, own)

    def _half_in_parts(self, value: Register) -> Register:
        """Steps, times one half."""
        return self.f.binary("shl", value, filled(integer(SUM_BITS - 1), self.lanes.count))

    def _in_parts(self, value: Register, factor: int, own: Callable[[int], Register]) -> Register:
        """Steps of bytes, which leave room for the factor in an int, times it, and rounded up at one half."""
        if factor == HALF_UNIT:
            return self._half_in_parts(value)
        if not self._is_x86:
            in_parts = self.f.binary("shl", value, filled(integer(SUM_BITS), self.lanes.count))
            return self._high_product(in_parts, self.lanes.splat_int(own(factor)))
        bits, half = (filled(integer(each), self.lanes.count) for each in (FRACTION_BITS, 1 << (FRACTION_BITS - 1)))
        whole, fraction = (
            self.f.binary("mul", value, self.lanes.splat_int(own(part))) for part in divmod(factor, 1 << FRACTION_BITS)
        )
        return self.f.binary("add", whole, self.f.binary("ashr", self.f.binary("add", fraction, half), bits))

    def _times(self, value: Register, multiplier: int, shift: int, own: Callable[[int], Register]) -> Register:
        """Rounded up behind the product, and away from zero behind the shift."""
        return self._divided(self._high_product(value, self.lanes.splat_int(own(multiplier))), shift, own)

    def _divided(self, product: Register, shift: int, own: Callable[[int], Register]) -> Register:
        """By a power of two."""
        if not shift:
            return product
        half, bits = (self.lanes.splat_int(own(each)) for each in (1 << (shift - 1), shift))
        return self._shifted(product, half, bits)

    def _shifted(self, product: Register, half: Register, shift: Register, no_shift: bool = False) -> Register:
        """Divided by a power of two, rounded away from zero; `no_shift`: it may be 1."""
        kind = product.type
        negative = self.f.binary("ashr", product, filled(integer(31), self.lanes.count))  # -1 below zero
        if no_shift:
            shifts = self.f.convert(
                "sext", self.f.compare("icmp sgt", shift, filled(integer(0), self.lanes.count)), kind
            )
            negative = self.f.binary("and", negative, shifts)
        nudged = self.f.binary("add", self.f.binary("add", product, half), negative)
        return self.f.binary("ashr", nudged, shift)

    def _hidden(self, value: Register) -> Register:
        """The same value, of which LLVM does not know how it was computed, where that can be had."""
        return self.f.opaque(value) if self._hides else value

    def _high_product(self, value: Register, multiplier: Register) -> Register:
        """Bits 31 to 62 of a product of ints, rounded up at one half: of the even lanes, and of the odd ones.

        How the value came to be is hidden, since at each step from here on LLVM looks for what its bits may be; so is
        what rounds, which is subtracted as products of bytes are: constants that are subtracted would be added.
        """
        count = self.lanes.count
        if not self._is_x86:
            return self.f.call("llvm.aarch64.neon.sqrdmulh.v4i32", value.type, value, multiplier)
        longs = vector(I64, count // 2)
        thirty_two = filled(integer(32, I64), count // 2)
        half = filled(integer(-1 << (MULTIPLIER_BITS - 1), I64), count // 2)
        rounding = self.lanes.once(("rounding",), lambda: self._hidden(half))

        def odd(pair: Register) -> Register:
            return self.f.binary("ashr", pair, thirty_two)

        def even(pair: Register) -> Register:
            return odd(self.f.binary("shl", pair, thirty_two))

        factor = self.lanes.once(("long", multiplier.text), lambda: even(self._as(longs, multiplier)))  # of all lanes
        pair = self.f.convert("bitcast", self._hidden(value), longs)
        products = [self.f.binary("sub", self.f.binary("mul", each(pair), factor), rounding) for each in (even, odd)]
        low = self.f.binary("lshr", products[0], filled(integer(MULTIPLIER_BITS, I64), count // 2))
        high = self.f.binary("shl", products[1], filled(integer(32 - MULTIPLIER_BITS, I64), count // 2))
        parts = [self.f.convert("bitcast", each, vector(I32, count)) for each in (low, high)]
        return self.f.shuffle(parts[0], parts[1], [k if k % 2 == 0 else count + k for k in range(count)])
