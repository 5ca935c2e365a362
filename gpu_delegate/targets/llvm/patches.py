"""Chooses the patches of pixels that Winograd's products compute, by counted cost, where these take less time.

Of each candidate are counted, in multiply-adds of a vector: products, or loads where these take longer; transforms of
inputs, once for all output slices, and of outputs; and weights, which each group of patches reads again. Pixels past
the end of a map count as others do. The numbers fit what was measured on a Zen 3 with AVX2.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from math import inf, prod
from operator import itemgetter

from ...model.graph import Conv2D
from ...model.layout import FLOAT_BYTES, LINE_FLOATS, MapShape, ceil_div, shape_of
from ...model.operators import attributes_of
from ...plan.body import Body
from .machine import CpuTarget
from .panels import LEAST_SLICES, MOST_PIXELS, convolved
from .toom_cook import WindowProducts, pixels_with_products, products_of

LEAST_LANES = 4
MOST_PANEL_BYTES = 300 << 10  # of the stack
MOST_POINTS = (12, 8)  # of an axis, of windows of one and of two: errors grow with them (docs/cpu.md)
_PANEL_SHARE = 5 / 8  # of the second cache, beside what runs past the panel
_SUMS_SHARE = 3 / 4  # of all registers
_LEAST_SOURCES = 4  # slices of the input: with fewer, sums are short beside transforms
_LEAST_GAIN = 1.05  # counted cost of direct sums for one of these
_WAITING = 8.0  # sums that hide what each waits for the one before
_LOADED = 1.25  # of a value or a weight that is loaded, meanwhile
_FROM_MEMORY = 2.0  # of a weight that no cache holds, when a kernel begins
_FROM_CACHE = 1.0  # of a weight that the last cache alone holds
_STEP = 1.5  # of a transform: registers do not hold all that it needs
_READ = 5.0  # of a value of the input, one of several in a row, until it is in the panel
_GATHERED = 20.0  # the same of one alone
_STORED = 16.0  # of a pixel of each patch: their places lie apart
_IN_A_ROW = 2.0  # of either, where lanes lie one behind the other


@dataclass(frozen=True)
class Patches:
    """The patches of a kernel: what is computed of each, and how a thread takes them."""

    map: MapShape  # of all patches
    down: WindowProducts
    across: WindowProducts
    flat: bool  # in the order of memory; else by rows
    rows: int  # vectors of patches at once
    lanes: int
    sources: int  # slices of the input
    slices: int  # of the output at once

    @property
    def points(self) -> int:
        """Products of a patch, for each input and output channel."""
        return self.down.points * self.across.points

    @property
    def pixels(self) -> int:
        """Of a patch."""
        return self.down.pixels * self.across.pixels

    @property
    def groups(self) -> int:
        """Of so many vectors, in the whole map."""
        if self.flat:
            return ceil_div(self.map.pixels, self.rows * self.lanes)
        return ceil_div(self.map.height, self.rows) * ceil_div(self.map.width, self.lanes)

    @property
    def product_floats(self) -> int:
        """Of one of the products in a panel: those of the next one lie in other sets of the cache."""
        return self.sources * self.rows * 4 * self.lanes + LINE_FLOATS

    @property
    def packed_floats(self) -> int:
        """Of all products, for all input slices."""
        return self.points * self.product_floats

    @property
    def panel_floats(self) -> int:
        """With their sums behind them."""
        return self.packed_floats + self.points * self.slices * self.rows * 4 * self.lanes


def patches(body: Body, target: CpuTarget) -> Patches | None:
    """Those of a body that is such a convolution, where they take less time; None elsewhere."""
    node, graph, domain = convolved(body), body.graph, body.domain
    if node is None or domain.batch > 1 or target.precision != "fp32":  # in pairs, two products take an instruction
        return None
    conv, window = attributes_of(node, Conv2D), graph.tensors[node.inputs[1]].shape[1:3]
    if max(window) == 1 or not conv.stride == conv.dilation == (1, 1):
        return None
    if graph.tensors[node.inputs[0]].steps:  # whose sums are exact
        return None
    sources, targets = (shape_of(graph.tensors[tensor]).slices for tensor in (node.inputs[0], node.outputs[0]))
    if sources < _LEAST_SOURCES or targets < LEAST_SLICES:
        return None
    found = _candidates(domain, window, (sources, targets), target)
    cost, best = min(((_cost(each, targets, target), each) for each in found), key=itemgetter(0), default=(inf, None))
    vectors = ceil_div(domain.pixels, target.lanes)
    direct = (vectors + (vectors > 1) * vectors % 2) * prod(window) * 16 * sources * targets  # most are taken in pairs
    return best if direct >= _LEAST_GAIN * cost else None


def _candidates(
    domain: MapShape, window: Sequence[int], slices: tuple[int, int], target: CpuTarget
) -> Iterator[Patches]:
    """All whose panel is small enough; `slices` are those of the input and of the output."""
    most_points = MOST_POINTS[min(window) > 1]
    most_bytes = min(MOST_PANEL_BYTES, _PANEL_SHARE * target.caches.l2_bytes)
    axes = [
        [products_of(pixels, size) for pixels in sorted({1, *pixels_with_products(size, most_points)})]
        for size in window
    ]
    for (down, across), flat, rows in product(product(*axes), (True, False), (3, 2, 1)):
        found = MapShape(
            1, ceil_div(domain.height, down.pixels), ceil_div(domain.width, across.pixels), domain.channels
        )
        lanes = lanes_for(found.pixels if flat else found.width, target.lanes)
        together = min(slices[1], max(1, int(_SUMS_SHARE * target.registers) // 4 // rows))
        each = Patches(found, down, across, flat, rows, lanes, slices[0], together)
        is_whole = rows <= (max(1, found.pixels // lanes) if flat else found.height * (found.width >= lanes))
        has_tables = found.pixels <= MOST_PIXELS or not flat
        if each.pixels > 1 and is_whole and has_tables and FLOAT_BYTES * each.panel_floats <= most_bytes:
            yield each


def _cost(each: Patches, targets: int, target: CpuTarget) -> float:
    """Of all pixels, in multiply-adds of a whole vector."""
    down, across, sums = each.down, each.across, 4 * each.slices * each.rows
    weights = each.points * 16 * each.sources * targets
    products = each.rows * max(1.0, _LOADED * (4 * each.slices + each.rows) / sums, _WAITING / sums)
    again = _FROM_CACHE if FLOAT_BYTES * weights > target.caches.l2_bytes // 2 else 0.0
    summed = weights * (max(products, _FROM_MEMORY) + (each.groups - 1) * max(products, again))
    into = _STEP * (down.input_steps * across.points + across.input_steps * down.points)
    into += each.points * (_READ if across.points > 1 else _GATHERED if each.flat else _IN_A_ROW)
    out = _STEP * (down.output_steps * across.points + across.output_steps * down.pixels + each.points)
    out += each.pixels * (_STORED if each.flat or across.pixels > 1 else _IN_A_ROW)
    return summed + each.groups * each.rows * 4 * (each.sources * into + targets * out)


def lanes_for(pixels: int, lanes: int) -> int:
    """As many lanes as a vector has, or fewer where that is enough for all of so many pixels."""
    while lanes > LEAST_LANES and pixels <= lanes // 2:
        lanes //= 2
    return lanes
