"""The kernel that samples a rotated part of a picture, in RGB or YUV planes of 8 or 16 bits, into a network's input.

Numbers that change from call to call take pixels of the input to places of the planes, in 32nds of their pixels:
app/picture/region_cut.py has the definition. A site is what lies at one place of a plane: its word holds the samples of
that place and of the next one in the row, so that two loads give all four neighbors.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ...model.graph import Steps
from ...model.layout import FLOAT_BYTES
from ...model.packing import Float32Array
from . import ir
from .cutting import StepSize
from .frame_steps import FrameKernels, widest
from .ir import FLOAT, I8, I32, I64, Function, Module, Register
from .sampler import COLORS
from .sampling_tables import Word, WordReader, WordTable, least
from .vector_math import FloatMath
from .work import StepAddresses

MOST_PLANE_BYTES = 1 << 31  # of what offsets of 32 bits reach
_NAME = "region_step"
_WORK = 80  # of a pixel, in multiply-adds of a network that take as long
_ROW = 4  # numbers of a place along an axis
_PARTS, _PART_BITS = 32, 5  # of a pixel
_WHITE, _HALF = 255.0, 0.5 + 1 / 4096


@dataclass(frozen=True)
class Site:
    """What lies at a place of a plane: `samples` of (offset, bytes) in `place_bytes`; grid 0 is luma's, 1 chroma's."""

    plane: int
    grid: int
    place_bytes: int
    samples: tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class RegionPicture:
    """How places of pictures of one format are stored.

    Of three samples and no matrix they are red, green and blue, 0 to 255. A matrix (3, 4) makes these of the codes of
    luma and chroma and of a constant; of a single sample its first and last columns count.
    """

    grids: tuple[tuple[int, int], ...]  # (columns, rows) of each
    sites: tuple[Site, ...]
    matrix: Float32Array | None

    @property
    def fits(self) -> bool:
        """Whether a kernel can sample it: a place needs a neighbor in its row."""
        sizes = (np.prod(self.grids[site.grid]) * site.place_bytes for site in self.sites)
        return all(columns > 1 for columns, _ in self.grids) and all(size < MOST_PLANE_BYTES // 2 for size in sizes)


class RegionStep:
    """Fills the planes of a network's input from regions of pictures of one format."""

    def __init__(
        self,
        picture: RegionPicture,
        value_range: tuple[float, float],
        repeats_edges: bool,
        planes: npt.NDArray[np.float32],
        kernels: FrameKernels,
        steps: Steps | None = None,
    ) -> None:
        """`planes` are the first three of the input in memory, (3, H, W), which must outlive this.

        `steps` are the whole numbers that the input takes, if it takes no others. Raises DeviceError.
        """
        _, self.rows, columns = planes.shape
        lanes = widest(kernels.target, columns)
        self._code = kernels.compiled(lambda module: region_function(module, _NAME, picture, lanes, bool(steps)))
        self._planes, self._picture = planes, picture
        self._matrices = np.zeros((len(picture.grids), 2 * _ROW), np.int32)
        count = 1 + max(site.plane for site in picture.sites)
        plane_bytes, row_bytes, _ = planes.strides
        self._words = WordTable([0] * (2 * count) + [planes.ctypes.data, plane_bytes // FLOAT_BYTES,
                                                      row_bytes // FLOAT_BYTES])  # fmt: skip
        self._tables = _tables(picture, columns, value_range, repeats_edges, self._matrices, steps)
        self.addresses = StepAddresses(self._code.address(_NAME), self._words.address, self._tables.address)
        self.size = StepSize(self.rows, 1, self.rows * columns * _WORK)

    def take(self, planes: Sequence[npt.NDArray[Any]], places: Sequence[npt.NDArray[np.int32]]) -> None:
        """The next picture and region: planes of the format's shapes, each row in one piece, kept until the next one.

        `places` are rows (2, 4) of each grid: (a, b, c, bits), with which (a X + b Y + c) >> bits is in 32nds.
        """
        self._taken = tuple(planes)
        for row, matrix in zip(self._matrices, places, strict=False):
            row[:] = matrix.ravel()
        for number, plane in enumerate(planes):
            self._words[2 * number] = plane.ctypes.data
            self._words[2 * number + 1] = plane.strides[0] & (1 << 64) - 1


def _tables(
    picture: RegionPicture,
    columns: int,
    value_range: tuple[float, float],
    repeats_edges: bool,
    matrices: npt.NDArray[np.int32],
    steps: Steps | None,
) -> WordTable:
    """What region_function's code reads; matrices are written over from call to call."""
    words: list[Word] = [columns]
    for (wide, tall), matrix in zip(picture.grids, matrices, strict=True):
        words += [matrix, wide, tall]
    if picture.matrix is not None:
        words.append(picture.matrix.astype(np.float32))
    low, high = value_range
    values = [low, (high - low) / _WHITE, *([steps.low, steps.high] if steps else [])]
    return WordTable([*words, np.array(values, np.float32), _PARTS if repeats_edges else 0])


def region_function(module: Module, name: str, picture: RegionPicture, lanes: int, is_whole: bool = False) -> None:
    """Add a kernel over the input's rows; it serves all formats with the same sites.

    Where it `is_whole`, values are rounded and limited to the steps of the tables. `tensors` are words: each plane's
    address and bytes from row to row, and of the network's input the address, and the floats from plane to plane and
    from row to row. `lanes` are no more than the input has columns.
    """
    parameters = [("ptr", "tensors"), ("ptr", "weights"), *((I32, each) for each in ("y0", "y1", "z0", "z1"))]
    _RegionSampler(module.function(name, parameters), picture, lanes, is_whole).write()


@dataclass(frozen=True)
class _Grid:
    """What the code knows of a grid at run time."""

    rows: list[list[Register]]  # cut_places' numbers of each axis, in all lanes
    extents: list[Register]  # columns and rows


@dataclass(frozen=True)
class _Place:
    """Where some pixels sample a grid."""

    column: Register  # whole numbers
    row: Register
    below: Register  # rows to the one below: 1, or 0 at the last one
    part_x: Register
    part_y: Register


class _RegionSampler:
    """The code of one sampler."""

    def __init__(self, function: Function, picture: RegionPicture, lanes: int, is_whole: bool) -> None:
        self.f, self.picture, self.lanes = function, picture, lanes
        self.floats, self.ints = ir.vector(FLOAT, lanes), ir.vector(I32, lanes)
        tensors, tables, self.first, self.last, *_ = function.parameters
        given, kept = WordReader(function, tensors), WordReader(function, tables)
        self.width = kept.number()
        self.grids = [self._grid(kept) for _ in picture.grids]
        self.matrix = kept.pointer() if picture.matrix is not None else tables
        values = kept.pointer()
        self.low, self.step = (self._everywhere(values, index) for index in range(2))
        self.limits = [self._everywhere(values, index) for index in (2, 3)] if is_whole else []
        self.least_cover = function.splat(kept.number(), lanes)
        planes = 1 + max(site.plane for site in picture.sites)
        self.planes = [(given.pointer(), given.number()) for _ in range(planes)]
        self.out, self.plane_floats, self.row_floats = given.pointer(), given.long(), given.long()

    def _grid(self, kept: WordReader) -> _Grid:
        matrix = kept.pointer()
        numbers = [
            self.f.splat(self.f.load(I32, self.f.at(matrix, index, I32)), self.lanes) for index in range(2 * _ROW)
        ]
        return _Grid([numbers[:_ROW], numbers[_ROW:]], [kept.number(), kept.number()])

    def _everywhere(self, table: Register, index: int) -> Register:
        """A float of a table in all lanes."""
        return self.f.splat(self.f.load(FLOAT, self.f.at(table, index)), self.lanes)

    def write(self) -> None:
        """All of it: a loop over rows, in it one over blocks of columns."""
        f = self.f
        numbers = ir.constants([ir.integer(lane) for lane in range(self.lanes)])
        if self.lanes == 1:
            numbers = ir.integer(0)
        with f.loop(self.first, self.last) as y:
            row = f.splat(y, self.lanes)
            with f.loop(ir.integer(0), self.width, self.lanes) as x:
                # The last block begins earlier where it would reach over the end, and is computed twice in parts.
                start = least(f, x, f.binary("sub", self.width, ir.integer(self.lanes)))
                column = f.binary("add", f.splat(start, self.lanes), numbers)
                self._store(self._colors(column, row), start, y)
        f.give_back()

    def _colors(self, column: Register, row: Register) -> list[Register]:
        """Red, green and blue of some pixels, whole numbers from 0 to 255."""
        f = self.f
        coordinates = [self._coordinates(grid, column, row) for grid in self.grids]
        places = [self._place(*each) for each in zip(self.grids, coordinates, strict=True)]
        values = [value for site in self.picture.sites for value in self._mixed(site, places[site.grid])]
        cover = self._cover(self.grids[0], coordinates[0])
        if self.picture.matrix is None:
            return [self._in_bytes(value, cover) for value in values]
        found = []
        for color in range(COLORS if len(values) > 1 else 1):
            total = self._everywhere(self.matrix, 4 * color + 3)
            for number, value in enumerate(values):
                total = f.fma(value, self._everywhere(self.matrix, 4 * color + number), total)
            light = self._limited("olt", self._limited("ogt", total, self._filled(0.0)), self._filled(_WHITE))
            found.append(self._in_bytes(light, cover))
        return found if len(values) > 1 else found * COLORS

    def _in_bytes(self, light: Register, cover: Register) -> Register:
        """What a color is where so much of it is covered, to whole numbers."""
        f = self.f
        whole = f.convert("fptosi", f.fma(light, cover, self._filled(_HALF)), self.ints)
        return f.convert("sitofp", whole, self.floats)

    def _coordinates(self, grid: _Grid, column: Register, row: Register) -> list[Register]:
        """Of some pixels along both axes of a grid, in 32nds."""
        f, found = self.f, list[Register]()
        for across, down, start, bits in grid.rows:
            begun = f.binary("add", f.binary("mul", row, down), start)
            found.append(f.binary("ashr", f.binary("add", f.binary("mul", column, across), begun), bits))
        return found

    def _place(self, grid: _Grid, coordinates: list[Register]) -> _Place:
        f, found = self.f, list[tuple[Register, Register]]()
        # The last column that has a right neighbor; in the last row, part_y is 0.
        lasts = [f.binary("sub", grid.extents[0], ir.integer(2)), f.binary("sub", grid.extents[1], ir.integer(1))]
        for each, extent, last in zip(coordinates, grid.extents, lasts, strict=True):
            edge = f.binary("mul", f.binary("sub", extent, ir.integer(1)), ir.integer(_PARTS))
            inside = self._between(each, self._whole(0), f.splat(edge, self.lanes))
            whole = f.binary("ashr", inside, self._whole(_PART_BITS))
            whole = least(f, whole, f.splat(last, self.lanes))
            rest = f.binary("sub", inside, f.binary("shl", whole, self._whole(_PART_BITS)))
            found.append((whole, self._in_pixels(rest)))
        (column, part_x), (row, part_y) = found
        below = f.convert("zext", f.compare("icmp slt", row, f.splat(lasts[1], self.lanes)), self.ints)
        return _Place(column, row, below, part_x, part_y)

    def _mixed(self, site: Site, place: _Place) -> list[Register]:
        """Each sample of a site, mixed of four neighbors."""
        f, lanes = self.f, self.lanes
        address, row_bytes = self.planes[site.plane]
        pitch = f.splat(row_bytes, lanes)
        across = f.binary("mul", place.column, ir.filled(ir.integer(site.place_bytes), lanes))
        upper = f.binary("add", f.binary("mul", place.row, pitch), across)
        lower = f.binary("add", upper, f.binary("mul", place.below, pitch))
        words = [self._loaded(address, offsets, 16 * site.place_bytes) for offsets in (upper, lower)]
        found = []
        for offset, size in site.samples:
            rows = []
            for word in words:
                near, far = (self._sample(word, 8 * at, 8 * size) for at in (offset, offset + site.place_bytes))
                rows.append(f.fma(place.part_x, f.binary("fsub", far, near), near))
            found.append(f.fma(place.part_y, f.binary("fsub", rows[1], rows[0]), rows[0]))
        return found

    def _loaded(self, address: Register, offsets: Register, bits: int) -> Register:
        """Words of so many bits in all lanes, loaded one by one."""
        f, kind, single = self.f, ir.vector(f"i{bits}", self.lanes), f"i{bits}"
        made = Register("poison", kind)
        for lane in range(self.lanes):
            offset = f.lane(offsets, lane) if self.lanes > 1 else offsets
            word = f.load(single, f.at(address, offset, I8), 1)
            if self.lanes == 1:
                return word
            made = f.give(f"insertelement {made.operand}, {word.operand}, i32 {lane}", kind)
        return made

    def _sample(self, word: Register, first_bit: int, bits: int) -> Register:
        """Some bits of words, as floats."""
        f, whole = self.f, int(word.type.strip("<>").rpartition("i")[2])
        if first_bit:
            word = f.binary("lshr", word, ir.filled(ir.integer(first_bit, f"i{whole}"), self.lanes))
        if whole != 32:
            word = f.convert("trunc" if whole > 32 else "zext", word, self.ints)
        if first_bit + bits < whole:
            word = f.binary("and", word, ir.filled(ir.integer((1 << bits) - 1), self.lanes))
        return f.convert("sitofp", word, self.floats)

    def _cover(self, grid: _Grid, coordinates: list[Register]) -> Register:
        """How much of the weights falls on the picture, or 1 where edges are repeated."""
        f, found = self.f, list[Register]()
        for each, extent in zip(coordinates, grid.extents, strict=True):
            end = f.splat(f.binary("mul", extent, ir.integer(_PARTS)), self.lanes)
            within = least(f, f.binary("add", each, self._whole(_PARTS)), f.binary("sub", end, each))
            found.append(self._in_pixels(self._between(within, self.least_cover, self._whole(_PARTS))))
        return f.binary("fmul", *found)

    def _in_pixels(self, parts: Register) -> Register:
        """32nds as floats."""
        return self.f.binary("fmul", self.f.convert("sitofp", parts, self.floats), self._filled(1 / _PARTS))

    def _between(self, value: Register, low: Register, high: Register) -> Register:
        """Whole numbers, limited."""
        f = self.f
        value = f.choose(f.compare("icmp sgt", value, low), value, low)
        return least(f, value, high)

    def _whole(self, value: int) -> Register:
        return ir.filled(ir.integer(value), self.lanes)

    def _filled(self, value: float) -> Register:
        return ir.filled(ir.number(value), self.lanes)

    def _limited(self, how: str, value: Register, limit: Register) -> Register:
        return self.f.choose(self.f.compare(f"fcmp {how}", value, limit), value, limit)

    def _store(self, colors: list[Register], x: Register, y: Register) -> None:
        """Some columns of a row in the network's planes."""
        f = self.f
        row = f.binary("mul", f.convert("sext", y, I64), self.row_floats)
        first = f.at(f.at(self.out, row), x)
        for color, value in enumerate(colors):
            values = f.fma(value, self.step, self.low)
            if self.limits:
                low, high = self.limits
                rounded = FloatMath(f, self.floats).round_away(values)
                values = self._limited("ogt", self._limited("olt", rounded, high), low)
            f.store(values, f.at(first, f.binary("mul", self.plane_floats, ir.integer(color, I64))))
