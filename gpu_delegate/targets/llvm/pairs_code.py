"""LLVM's instructions for products in bfloat16: two channels of a pixel in an int, added to a float32 sum at once.

They are AVX512-BF16's. VDPBF16PS adds the product of the upper halves, then that of the lower ones, and rounds each sum
to the nearest; what is below 2^-126 counts as 0 in what it reads and writes, and so it does where floats are rounded.
"""

from collections.abc import Sequence

from .ir import Register
from .lanes import FloatValue, Lanes


class PairCode:
    """Instructions on pairs, for vectors of so many lanes."""

    def __init__(self, lanes: Lanes) -> None:
        self.lanes = lanes
        self.f = lanes.f
        self._bits = 32 * lanes.count

    def words(self, texel: Sequence[FloatValue], channels: int) -> list[Register]:
        """The first channels of a slice in pairs, the last one beside zeros if it has no other."""
        found = list[Register]()
        for k in range(0, channels, 2):
            first = texel[k]
            if isinstance(first, Register) and first.type == self.lanes.pair_kind:  # both, from a panel
                found.append(first)
            else:
                found.append(self._joined(first, texel[k + 1] if k + 1 < channels else 0.0))
        return found

    def _joined(self, first: FloatValue, second: FloatValue) -> Register:
        low, high = self.lanes.floats(first), self.lanes.floats(second)

        def made() -> Register:
            halves = self.rounded(low, high)
            return self.f.shuffle(halves, halves, [k + side for k in range(count) for side in (0, count)])

        count = self.lanes.count
        return self.lanes.once(("in pairs", low.text, high.text), made)

    def rounded(self, first: Register, second: Register) -> Register:
        """Two vectors of floats in bfloat16, one behind the other."""
        return self.f.call(f"llvm.x86.avx512bf16.cvtne2ps2bf16.{self._bits}", self.lanes.pair_kind, second, first)

    def add(self, total: Register, word: Register, weights: FloatValue) -> Register:
        """A sum of each lane and the products of its two channels with weights that are ints of two."""
        ints = self.lanes.bits(weights)
        halves = self.lanes.once(("halves", ints.text), lambda: self.f.convert("bitcast", ints, self.lanes.pair_kind))
        return self.f.call(f"llvm.x86.avx512bf16.dpbf16ps.{self._bits}", total.type, total, word, halves)
