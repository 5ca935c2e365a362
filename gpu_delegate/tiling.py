"""Tiles: bodies and a tuning go in, for each body a tile comes out: rows per thread, work-group, literals or not."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

from .body import Body, thread_slices
from .device import Tuning
from .layout import MapShape, ceil_div, shape_of
from .memory import aligned
from .nodes import (
    has_role,
    has_weights,
    is_contraction,
    is_elementwise,
    is_pixelwise_contraction,
    reads_window,
    record_of,
)
from .source_size import source_size
from .tile import Tile

NONE_CHOSEN: Mapping[int, Tile] = MappingProxyType({})


def choose_tiles(
    bodies: Sequence[Body], tuning: Tuning, compile_budget_s: float, chosen: Mapping[int, Tile] = NONE_CHOSEN
) -> list[Tile]:
    """A tile for each body: those of the tuning, or with as much shorter sources as it takes for the budget.

    Tiles that were `chosen` by measurement, by the number of the body, go before those of the tuning. Bodies with the
    least work get shorter sources first: what that costs is paid for each run. Where no sources are short enough, the
    shortest are taken.
    """
    *tunings, least = _tunings(tuning)
    tiles = [chosen.get(number, tile) for number, tile in enumerate(_tiles(bodies, tuning))]
    groups = _same_sources(bodies, tiles)
    budget = compile_budget_s * 1e6 / tuning.operation_compile_us  # in operations
    needed = sum(_operations(bodies, tiles, group) for group in groups)
    if needed > budget:
        shortest = _tiles(bodies, least)
        if sum(_operations(bodies, shortest, group) for group in groups) >= budget:
            return shortest
    for each in (*tunings[1:], least):
        if needed <= budget:
            break
        shorter = _tiles(bodies, each)
        for group in groups:
            if needed <= budget:
                break
            saved = _operations(bodies, tiles, group) - _operations(bodies, shorter, group)
            if saved > 0:
                needed -= saved
                for number in group:
                    tiles[number] = shorter[number]
    return tiles


def _same_sources(bodies: Sequence[Body], tiles: Sequence[Tile]) -> list[list[int]]:
    """Bodies by number in groups that need to be compiled but once; first those that have the least work."""
    groups: dict[object, list[int]] = {}
    for number, (body, tile) in enumerate(zip(bodies, tiles, strict=True)):
        ops = tuple(node.op for node in body.nodes)
        key = number if tile.baked else (ops, tile, source_size(body, tile), body.domain)
        groups.setdefault(key, []).append(number)
    work = [sum(record_of(node).macs(body.graph, node) for node in body.nodes) for body in bodies]
    return sorted(groups.values(), key=lambda group: sum(work[number] for number in group))


def _operations(bodies: Sequence[Body], tiles: Sequence[Tile], group: Sequence[int]) -> int:
    """What the driver compiles for a group of bodies with the same source."""
    return source_size(bodies[group[0]], tiles[group[0]]).operations


def is_too_long(body: Body, tuning: Tuning) -> bool:
    """Whether a body's source is too long even for the least tile."""
    least = Tile(z_slices=_z_slices(body, False, replace(tuning, whole_slices=0, thread_slices=1)))
    return source_size(body, least).characters > tuning.source_characters


def _tunings(tuning: Tuning) -> Iterator[Tuning]:
    """The tuning, then others for ever shorter sources: fewer rows of a thread, no literals, fewer slices."""
    rows = tuning.rows
    while rows > 1:
        yield replace(tuning, rows=rows)
        rows //= 2
    yield replace(tuning, rows=1)
    slices = tuning.thread_slices
    while slices:
        yield replace(tuning, rows=1, bake_weights=0, whole_slices=0, thread_slices=slices)
        slices //= 2


def _fitting(body: Body, baked: bool, tuning: Tuning) -> Tile | None:
    """The first tile whose source is short enough: of the tuning, else of those for shorter sources."""
    for each in _tunings(tuning):
        tile = choose_tile(body, baked, each)
        if source_size(body, tile).characters <= tuning.source_characters:
            return tile
    return None


def _tiles(bodies: Sequence[Body], tuning: Tuning) -> list[Tile]:
    """A tile for each body. Bodies with most pixels get literals first, until the budget of weights is spent."""
    budget = tuning.bake_weights
    *_, least = _tunings(tuning)
    tiles: dict[int, Tile] = {}
    for number in sorted(range(len(bodies)), key=lambda k: -bodies[k].domain.pixels):
        body, weights = bodies[number], weight_count(bodies[number])
        wanted = 0 < weights <= budget and body.domain.pixels >= tuning.bake_pixels
        tile = _fitting(body, True, tuning) if wanted else None
        if tile:
            budget -= weights
        tiles[number] = tile or _fitting(body, False, tuning) or choose_tile(body, False, least)
    return [tiles[number] for number in range(len(bodies))]


def weight_count(body: Body) -> int:
    """Weights that a body would hold as literals."""
    return sum(
        int(tensor.data.size)
        for node in body.nodes
        if has_weights(node)
        if (tensor := body.graph.tensors[node.inputs[1]]).data is not None
    )


def choose_tile(body: Body, baked: bool, tuning: Tuning) -> Tile:
    """Rows, slices and work-group of one body."""
    z_slices = _z_slices(body, baked, tuning)
    tuned = 1 if _writes_slices(body) else tuning.rows
    most = min(tuned, (2 if _shares_loads(body) else 1) if baked else tuned)
    most_rows = max(1, min(most, tuning.unrolled // _unrolled(body, z_slices)))
    domain = body.domain
    unit = domain.height if domain.batch > 1 and _shares_loads(body) else 0
    shapes = [map_area(domain.width, domain.rows, most_rows, tuning, unit)]
    if tuning.simd_width > 1 and domain.width % tuning.simd_width and is_pixelwise(body):
        shapes += [flat_area(domain.pixels, rows, tuning) for rows in range(1, most_rows + 1)]
    area = min(shapes, key=lambda area: (area.cost, -area.rows))
    return Tile(area.rows, z_slices, (*area.local, 1), baked, area.flat)


@dataclass(frozen=True)
class Area:
    """How threads lie over a map's pixels: rows of a thread, a work-group's sides, and what it costs."""

    rows: int
    local: tuple[int, int]  # (x, y)
    cost: int  # of all threads, also of those past the edges
    flat: bool = False


def map_area(width: int, height: int, most_rows: int, tuning: Tuning, unit: int = 0) -> Area:
    """Threads over rows and columns. Where windows are over one map of a batch each, the rows of a thread are, too:
    they divide the `unit` rows of a map.

    llvmpipe computes neighbours along x at once, also past the edge: of a map 33 wide, groups 32 wide waste half. So
    their width is that which wastes least, and where it is not the usual one, so is their height. DeepLab's kernels of
    33 x 33 pixels take half the time by that.
    """
    usual = min(tuning.group_width, max(8, power_of_two_from(width))) if width > 1 else 1
    widths = [usual, *range(usual - tuning.simd_width, 0, -tuning.simd_width)] if tuning.simd_width > 1 else [usual]
    local_x = min(widths, key=lambda side: aligned(width, side))
    lanes, most_y = aligned(width, max(local_x, tuning.simd_width)), max(1, tuning.group_threads // local_x)

    def area(rows: int, local_y: int) -> Area:
        return Area(rows, (local_x, local_y), _cost(lanes, aligned(ceil_div(height, rows), local_y), rows))

    choices = [rows for rows in range(1, min(most_rows, height) + 1) if not unit or unit % rows == 0]
    if local_x == usual:
        rows = min(choices, key=lambda k: (_cost(lanes, ceil_div(height, k), k), -k))
        return area(rows, min(most_y, ceil_div(height, rows)))
    areas = [area(rows, local_y) for rows in choices for local_y in range(min(most_y, ceil_div(height, rows)), 0, -1)]
    return min(areas, key=lambda area: (area.cost, -area.rows))


def flat_area(pixels: int, rows: int, tuning: Tuning) -> Area:
    """Threads over pixels in the order of memory, those of one thread as far apart as there are threads.

    A pointwise convolution of 33 x 33 pixels takes two thirds of the time of the best map_area.
    """
    threads = ceil_div(pixels, rows)
    groups = ceil_div(threads, tuning.group_threads)
    local_x = aligned(ceil_div(threads, groups), tuning.simd_width)
    return Area(rows, (local_x, 1), _cost(groups * local_x, 1, rows), flat=True)


def _cost(width: int, height: int, rows: int) -> int:
    """What threads cost: each about as much as its rows and four more, for the weights, which it loads once."""
    return width * height * (rows + 4)


def is_pixelwise(body: Body) -> bool:
    """Whether every pixel is computed from the same pixel of the inputs, wherever it lies in the map."""
    graph, domain = body.graph, body.domain
    read = {tensor for node in body.nodes for tensor in node.inputs}
    shapes = [shape_of(graph.tensors[tensor]) for tensor in body.inputs]
    return (
        all(is_elementwise(node) or is_pixelwise_contraction(graph, node) for node in body.nodes)
        and not read & body.through.keys()
        and all(s.is_vector or (s.batch, s.height, s.width) == domain_sides(domain) for s in shapes)
    )


def domain_sides(domain: MapShape) -> tuple[int, int, int]:
    """(b, h, w) of the pixels that threads run over."""
    return domain.batch, domain.height, domain.width


def _writes_slices(body: Body) -> bool:
    """Whether moves are unrolled: their slices are known, and share no more than neighbours in a column do."""
    if any(is_contraction(node) for node in body.nodes):
        return False
    moves = {out for node in body.nodes if has_role(node, "movement") for out in node.outputs}
    return any(phase.unrolled and moves & phase.evaluates for phase in body.phases)


def _z_slices(body: Body, baked: bool, tuning: Tuning) -> int:
    """Output slices of one thread; 0 for all of them: where they depend on each other, are few, or have literals."""
    if not body.split:
        return 0
    slices = shape_of(body.graph.tensors[body.outputs[0]]).slices
    if not any(is_contraction(node) for node in body.nodes):
        return 0 if _writes_slices(body) else 1
    return 0 if baked else thread_slices(slices, tuning)


def _shares_loads(body: Body) -> bool:
    """Whether pixels in a column read some of the same texels: windows, and resizing."""
    return any(reads_window(body.graph, node) for node in body.nodes)


def _unrolled(body: Body, z_slices: int) -> int:
    """The longest unrolled source for one pixel: taps times output slices of a contraction, taps of a window."""
    lengths = [1]
    for node in body.nodes:
        if has_weights(node):
            taps = record_of(node).taps(body.graph, node)
            slices = z_slices or shape_of(body.graph.tensors[node.outputs[0]]).slices
            lengths.append(taps * slices if node.outputs[0] in body.held else max(taps, slices))
    return max(lengths)


def power_of_two_from(value: int) -> int:
    """The smallest power of two that is not below a number."""
    return 1 << (value - 1).bit_length()
