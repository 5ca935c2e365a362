"""The kernel that samples a picture, in RGB or YUV planes of 8 or 16 bits, into a network's input.

A picture's planes have samples of 8 or 16 bits, of one channel or of several in turn. For each row of the map the rows
of every plane that it mixes are mixed first, over all of their samples, into floats that stay in the cache; then the
columns. Red, green and blue are such samples, or made of luma and chroma by a matrix; they are clamped to 0 to 1,
multiplied by a gain and brought into the range of the network; where it takes whole numbers, they are rounded. Places
that no sample counts for have weights of zero and are black.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ...model.graph import Steps
from ...model.packing import Float32Array
from . import ir
from .ir import FLOAT, I32, I64, Function, Module, Register
from .sampling_tables import Neighbors, Word, WordReader, WordTable, gathered, joined, least, transposed
from .vector_math import FloatMath

COLORS = 3
PIXEL = 4  # samples that lie side by side in RGBA
MOST_SAMPLES = 1 << 15  # of a plane's row, which is mixed on the stack
_MARGIN = 64  # floats in front of a mixed row and behind it, where the samples at its edges are repeated


@dataclass(frozen=True)
class SampledPlane:
    """Rows of one plane: so many samples of all channels, and how rows are mixed."""

    samples: int
    sample_bytes: int
    rows: Neighbors


@dataclass(frozen=True)
class SampledChannel:
    """One channel of a plane: every `step`th sample from `offset` on, and how columns are mixed."""

    plane: int
    offset: int
    step: int
    columns: Neighbors


@dataclass(frozen=True)
class SampledPicture:
    """How a network's input samples pictures of one format.

    Of three channels and no matrix they are red, green and blue, of which `white` is 1. A matrix (3, 4) makes these of
    the codes of luma and chroma and of a constant; of a single channel its first and last columns count. `seen` says
    which (rows, columns) of the map lie within the picture. Where the picture is turned, the map's rows become columns.
    """

    planes: tuple[SampledPlane, ...]
    channels: tuple[SampledChannel, ...]
    white: float
    matrix: Float32Array | None
    seen: tuple[npt.NDArray[np.bool_], npt.NDArray[np.bool_]]
    is_turned: bool = False

    @property
    def size(self) -> tuple[int, int]:
        """(rows, columns) of the map."""
        return len(self.seen[0]), len(self.seen[1])

    @property
    def fits(self) -> bool:
        """Whether a kernel can hold a row of each plane."""
        return all(plane.samples <= MOST_SAMPLES for plane in self.planes)


def sampler_tables(picture: SampledPicture, value_range: tuple[float, float], steps: Steps | None = None) -> WordTable:
    """What sampler_function's code reads of a picture's format; value_range is what black and white become."""
    rows_seen, columns_seen = (seen.astype(np.float32) for seen in picture.seen)
    low, high = value_range
    words: list[Word] = [len(columns_seen)]
    for plane in picture.planes:
        scale = (rows_seen if picture.matrix is None else 1) * np.float32(1 / picture.white)
        weights = (plane.rows.weights * scale).astype(np.float32)
        taps = [(plane.rows.inside(nth), weights[nth]) for nth in range(plane.rows.mixed)]
        words += [plane.samples, *(word for tap in taps for word in tap)]
    for channel in picture.channels:
        seen = columns_seen if picture.matrix is None else np.float32(1)
        weights = (channel.columns.weights * seen).astype(np.float32)
        words += [channel.columns.extent, channel.columns.near() * np.int32(channel.step), *weights]
    if picture.matrix is not None:
        words += [picture.matrix.astype(np.float32), rows_seen, columns_seen]
    limits = [steps.low, steps.high] if steps else []
    return WordTable([*words, np.array([low, high - low, *limits], np.float32)])


def sampler_function(module: Module, name: str, picture: SampledPicture, lanes: int, is_whole: bool = False) -> None:
    """Add a kernel over the map's rows; it serves all formats with the same numbers of samples mixed.

    Where it `is_whole`, values are rounded and limited to the steps of the tables.

    `tensors` are words: each plane's address and bytes from row to row, the gain's address, and of the network's input
    the address, and the floats from plane to plane and from row to row. `lanes` are no more than the map has columns.
    """
    parameters = [("ptr", "tensors"), ("ptr", "weights"), *((I32, each) for each in ("y0", "y1", "z0", "z1"))]
    _Sampler(module.function(name, parameters), picture, lanes, is_whole).write()


@dataclass(frozen=True)
class _PlaneWords:
    """What the code knows of a plane at run time."""

    address: Register
    row_bytes: Register
    samples: Register
    taps: tuple[tuple[Register, Register], ...]  # addresses of places and weights
    mixed: Register  # the address of its mixed row


@dataclass(frozen=True)
class _ChannelWords:
    """What the code knows of a channel at run time."""

    extent: Register
    places: Register
    weights: tuple[Register, ...]


class _Sampler:
    """The code of one sampler."""

    def __init__(self, function: Function, picture: SampledPicture, lanes: int, is_whole: bool) -> None:
        self.f, self.picture, self.lanes = function, picture, lanes
        self.vector = ir.vector(FLOAT, lanes)
        tensors, tables, self.first, self.last, *_ = function.parameters
        given, kept = WordReader(function, tensors), WordReader(function, tables)
        self.width = kept.number()
        self.planes = [self._plane(plane, given, kept) for plane in picture.planes]
        self.channels = [_ChannelWords(kept.number(), kept.pointer(), _pointers(kept, channel.columns.mixed))
                         for channel in picture.channels]  # fmt: skip
        has_matrix = picture.matrix is not None
        self.matrix, self.rows_seen, self.columns_seen = _pointers(kept, 3) if has_matrix else (tables,) * 3
        values = kept.pointer()
        self.low, self.span = (self._everywhere(values, index) for index in range(2))
        self.limits = [self._everywhere(values, index) for index in (2, 3)] if is_whole else []
        self.gain = function.load(FLOAT, given.pointer())
        self.out, self.plane_floats, self.row_floats = given.pointer(), given.long(), given.long()

    def _plane(self, plane: SampledPlane, given: WordReader, kept: WordReader) -> _PlaneWords:
        address, row_bytes, samples = given.pointer(), given.long(), kept.number()
        taps = tuple((kept.pointer(), kept.pointer()) for _ in range(plane.rows.mixed))
        whole = self.f.reserve(FLOAT, 1 << max(6, (plane.samples + 2 * _MARGIN - 1).bit_length()))
        return _PlaneWords(address, row_bytes, samples, taps, self.f.at(whole, _MARGIN))

    def _everywhere(self, table: Register, index: int | Register) -> Register:
        """A float of a table in all lanes."""
        return self.f.splat(self.f.load(FLOAT, self.f.at(table, index)), self.lanes)

    def write(self) -> None:
        """All of it: a loop over rows, in which each plane's row is mixed, then blocks of columns."""
        f = self.f
        with f.loop(self.first, self.last) as y:
            for words, plane in zip(self.planes, self.picture.planes, strict=True):
                self._mix_rows(words, plane.sample_bytes, y)
            for channel_words, channel in zip(self.channels, self.picture.channels, strict=True):
                self._repeat_edges(channel_words, channel)
            with f.loop(ir.integer(0), self.width, self.lanes) as x:
                # The last block begins earlier where it would reach over the end, and is computed twice in parts.
                start = least(f, x, f.binary("sub", self.width, ir.integer(self.lanes)))
                self._store(self._colors(start, y), start, y)
        f.give_back()

    # Rows -------------------------------------------------------------------------------------------------------------

    def _mix_rows(self, plane: _PlaneWords, sample_bytes: int, y: Register) -> None:
        f = self.f
        taps = []
        for places, weights in plane.taps:
            row = f.convert("sext", f.load(I32, f.at(places, y, I32)), I64)
            offset = f.binary("mul", row, plane.row_bytes)
            weight = f.load(FLOAT, f.at(weights, y))
            if self.picture.matrix is None:
                weight = f.binary("fmul", weight, self.gain)
            taps.append((f.at(plane.address, offset, ir.I8), weight))
        is_wide = f.compare("icmp sge", plane.samples, ir.integer(self.lanes))
        with f.when(is_wide):
            last = f.binary("sub", plane.samples, ir.integer(self.lanes))
            with f.loop(ir.integer(0), last, self.lanes) as at:
                self._mix_samples(plane, taps, sample_bytes, at, self.lanes)
            self._mix_samples(plane, taps, sample_bytes, last, self.lanes)
        with f.when(f.binary("xor", is_wide, Register("true", ir.I1))), f.loop(ir.integer(0), plane.samples) as at:
            self._mix_samples(plane, taps, sample_bytes, at, 1)

    def _mix_samples(
        self, plane: _PlaneWords, taps: list[tuple[Register, Register]], sample_bytes: int, at: Register, lanes: int
    ) -> None:
        """Some neighbors of a row: the sum of the same samples of all rows that are mixed, weighted."""
        f, kind = self.f, f"i{8 * sample_bytes}"
        total: Register | None = None
        for row, weight in taps:
            codes = f.load(ir.vector(kind, lanes), f.at(row, at, kind), sample_bytes)
            values = f.convert("uitofp", codes, ir.vector(FLOAT, lanes))
            factor = f.splat(weight, lanes)
            total = f.binary("fmul", values, factor) if total is None else f.fma(values, factor, total)
        assert total is not None
        f.store(total, f.at(plane.mixed, at))

    def _repeat_edges(self, words: _ChannelWords, channel: SampledChannel) -> None:
        """A channel's first and last sample of a mixed row, as often as columns outside may need them."""
        f = self.f
        first = f.at(self.planes[channel.plane].mixed, channel.offset)
        behind = f.binary("mul", f.binary("sub", words.extent, ir.integer(1)), ir.integer(channel.step))
        last = f.at(first, behind)
        for edge, way in ((first, -1), (last, 1)):
            value = f.load(FLOAT, edge)
            for nth in range(1, channel.columns.mixed + 1):
                f.store(value, f.at(edge, way * nth * channel.step))

    # Columns ----------------------------------------------------------------------------------------------------------

    def _colors(self, x: Register, y: Register) -> list[Register]:
        """Red, green and blue of some columns, 0 to 1."""
        f, one = self.f, ir.filled(ir.number(1.0), self.lanes)
        together = self.lanes >= PIXEL and all(channel.step == PIXEL for channel in self.picture.channels)
        values = self._pixels(x) if together else self._channels(x)
        if self.picture.matrix is None:
            return [self._limited("olt", value, one) for value in values]
        seen = f.binary("fmul", f.load(self.vector, f.at(self.columns_seen, x)), self._everywhere(self.rows_seen, y))
        found = []
        for color in range(COLORS if len(values) > 1 else 1):
            total = self._everywhere(self.matrix, 4 * color + 3)
            for number, value in enumerate(values):
                total = f.fma(value, self._everywhere(self.matrix, 4 * color + number), total)
            light = self._limited("ogt", total, ir.filled(ir.number(0.0), self.lanes))
            lit = f.binary("fmul", self._limited("olt", light, one), f.splat(self.gain, self.lanes))
            found.append(f.binary("fmul", self._limited("olt", lit, one), seen))
        return found if len(values) > 1 else found * COLORS

    def _pixels(self, x: Register) -> list[Register]:
        """The same where all channels are a pixel's four neighbors: a pixel is a vector, four of them are turned."""
        f, channels = self.f, self.picture.channels
        base, words = self.planes[channels[0].plane].mixed, self.channels[0]
        quads = []
        for first in range(0, self.lanes, PIXEL):
            pixels = [self._pixel(base, words, f.binary("add", x, ir.integer(first + nth))) for nth in range(PIXEL)]
            quads.append(transposed(f, pixels))
        return [joined(f, [quad[channel.offset] for quad in quads]) for channel in channels]

    def _pixel(self, base: Register, words: _ChannelWords, x: Register) -> Register:
        """All four samples of a column, mixed."""
        f, kind = self.f, ir.vector(FLOAT, PIXEL)
        start = f.at(base, f.load(I32, f.at(words.places, x, I32)))
        total: Register | None = None
        for nth, weights in enumerate(words.weights):
            samples = f.load(kind, f.at(start, PIXEL * nth))
            factor = f.splat(f.load(FLOAT, f.at(weights, x)), PIXEL)
            total = f.binary("fmul", samples, factor) if total is None else f.fma(samples, factor, total)
        assert total is not None
        return total

    def _channels(self, x: Register) -> list[Register]:
        """Each channel's samples of some columns, mixed."""
        f, known = self.f, dict[tuple[int, int], list[Register]]()
        values = []
        for words, channel in zip(self.channels, self.picture.channels, strict=True):
            group = id(channel.columns), channel.step
            places = known.get(group) or [
                f.load(I32, f.at(f.at(words.places, x, I32), lane, I32)) for lane in range(self.lanes)
            ]
            known[group] = places
            total: Register | None = None
            for nth, weights in enumerate(words.weights):
                base = self.planes[channel.plane].mixed
                samples = gathered(f, base, places, channel.offset + nth * channel.step)
                factor = f.load(self.vector, f.at(weights, x))
                total = f.binary("fmul", samples, factor) if total is None else f.fma(samples, factor, total)
            assert total is not None
            values.append(total)
        return values

    def _limited(self, how: str, value: Register, limit: Register) -> Register:
        return self.f.choose(self.f.compare(f"fcmp {how}", value, limit), value, limit)

    def _whole(self, values: Register) -> Register:
        """The nearest whole numbers, halves away from zero, within the limits, if there are any."""
        if not self.limits:
            return values
        low, high = self.limits
        rounded = FloatMath(self.f, self.vector).round_away(values)
        return self._limited("ogt", self._limited("olt", rounded, high), low)

    def _store(self, colors: list[Register], x: Register, y: Register) -> None:
        """Some columns of a row in the network's planes; where the picture is turned, of a column."""
        f = self.f
        across, along = (y, x) if not self.picture.is_turned else (x, y)
        row = f.binary("mul", f.convert("sext", across, I64), self.row_floats)
        first = f.at(f.at(self.out, row), along)
        for color, value in enumerate(colors):
            values = self._whole(f.fma(value, self.span, self.low))
            plane = f.at(first, f.binary("mul", self.plane_floats, ir.integer(color, I64)))
            if not self.picture.is_turned:
                f.store(values, plane)
                continue
            for lane in range(self.lanes):
                place = f.at(plane, f.binary("mul", self.row_floats, ir.integer(lane, I64)))
                f.store(f.lane(values, lane) if self.lanes > 1 else values, place)


def _pointers(words: WordReader, count: int) -> tuple[Register, ...]:
    return tuple(words.pointer() for _ in range(count))
