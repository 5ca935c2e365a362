"""Loads and stores pixels whose places are apart from lane to lane: by runs of pixels, or one by one.

Where each lane wants several pixels that lie one behind the other, it loads four at once, and two permutations for each
pixel give them to the lanes: AVX2 takes longer to gather them. Places of lanes are taken from their vector once, in
front of loops over slices and channels.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from ...code.vocabulary import LoadFrom, Value
from .ir import I64, Register
from .lanes import QUAD, Affine, FloatValue, IntValue, Lanes

EVEN_STEP = 2  # up to so many floats from lane to lane, whole vectors are loaded and stored elsewhere
_TOGETHER = 4
_PAIRED = ((0, 4, 1, 5), (2, 6, 3, 7))  # of four lanes of two vectors: the first halves in turn, and the second ones
_JOINED = ((0, 1, 4, 5), (2, 3, 6, 7))


@dataclass(frozen=True)
class RunPixel(Value):
    """Pixel `number` of a run of `count`, of which the first one is loaded so."""

    first: LoadFrom
    number: int
    count: int
    type = "vec4"


class Spread(NamedTuple):
    """Where lanes begin: at a place that all of them share, plus one of each."""

    pointer: Register
    shared: Affine
    places: IntValue

    def address(self, lanes: Lanes, lane: int, offset: int = 0) -> Register:
        """Of a lane's float, so many behind its first one."""
        start = lanes.address(self.pointer, self.shared.register, self.shared.constant + offset)
        if isinstance(self.places, Affine):
            of_lane = Affine(self.places.register, self.places.constant + self.places.step * lane)
            return lanes.f.at(start, lanes.scalar(of_lane))
        vector = lanes.int_vector(self.places)
        place = lanes.once(
            ("place", vector.text, lane), lambda: lanes.f.convert("sext", lanes.f.lane(vector, lane), I64)
        )
        return lanes.f.at(start, place)


def pixel_of_run(lanes: Lanes, run: Spread, number: int, count: int) -> Register:
    """One pixel of a run in each lane, of one channel."""
    first = min(number // _TOGETHER * _TOGETHER, max(0, count - _TOGETHER))
    return lanes.once(("run", run, first), lambda: _four_of(lanes, run, first))[number - first]


def store_apart(lanes: Lanes, spread: Spread, value: FloatValue) -> None:
    """A float of each lane, the first lane first."""
    vector = lanes.floats(value)
    for lane in range(lanes.count):
        lanes.f.store(lanes.f.lane(vector, lane), spread.address(lanes, lane))


def _four_of(lanes: Lanes, run: Spread, first: int) -> Sequence[Register]:
    quads = [lanes.f.load(QUAD, run.address(lanes, lane, first)) for lane in range(lanes.count)]
    rows = [_joined(lanes, quads[k::_TOGETHER]) for k in range(_TOGETHER)]
    pairs = [_shuffled(lanes, rows[k], rows[k + 1], order) for order in _PAIRED for k in (0, 2)]
    return [_shuffled(lanes, pairs[k], pairs[k + 1], order) for k in (0, 2) for order in _JOINED]


def _joined(lanes: Lanes, quads: Sequence[Register]) -> Register:
    """Vectors one behind the other."""
    if len(quads) == 1:
        return quads[0]
    half = len(quads) // 2
    return lanes.f.shuffle(_joined(lanes, quads[:half]), _joined(lanes, quads[half:]), range(_TOGETHER * len(quads)))


def _shuffled(lanes: Lanes, left: Register, right: Register, order: Sequence[int]) -> Register:
    """Four lanes of two vectors, of each four lanes of them."""
    starts, count = range(0, lanes.count, _TOGETHER), lanes.count
    return lanes.f.shuffle(left, right, [k + start + (count - 4 if k >= 4 else 0) for start in starts for k in order])
