"""Chooses a tile for each kernel: pixels and slices of a thread, work-group, weights as literals or in memory."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from types import MappingProxyType

from ..device.device import Device, Tuning
from ..device.tile import Tile
from ..device.work_group_shapes import (
    LEAST_GROUP,
    WorkGroupShape,
    across_group,
    flat_group,
    gpu_flat_group,
    gpu_map_group,
    map_group,
    power_of_two_from,
    power_of_two_to,
    turned_group,
)
from ..model.graph import Graph, Node
from ..model.layout import MapShape, ceil_div, shape_of
from ..ops.nodes import (
    computed_weights,
    groups_of_channels,
    has_role,
    has_weights,
    is_channel_reduction,
    is_contraction,
    is_elementwise,
    is_pixelwise_contraction,
    multiplies_rows,
    reads_window,
    record_of,
)
from ..ops.sliding import is_long, written_taps
from .body import Accumulate, Body, thread_slices
from .body_keys import BodyKey
from .source_size import VECTOR_NODE, source_size
from .split_k import can_share_pixels, folds_of, most_shared_slices, possible_fold_parts, texels_of_pixel
from .static_model import loop_turns

NONE_CHOSEN: Mapping[int, Tile] = MappingProxyType({})
REDUCTION_THREADS = 256  # of the one work-group of a reduction kernel, if a device allows as many
MOST_UNROLLED_SLICES = 32  # of each of several loops in a kernel with contractions ...
MOST_REDUCED_SLICES = 10  # ... and in others: in a softmax of 12 Mali spills 3 registers, of 25 332; of 84 AMD 146
LEAST_SHARED_PIXELS = 8  # of a work-group whose threads share them: as many read the same weights at once


def choose_tiles(
    bodies: Sequence[Body],
    tuning: Tuning,
    compile_budget_s: float,
    chosen: Mapping[int, Tile] = NONE_CHOSEN,
    vector_nodes: int = 0,
) -> list[Tile]:
    """A tile for each body: those of the tuning, or with as much shorter sources as it takes for the budget.

    Bodies with the same key have the same source, and the same tile if weights are no literals.

    Tiles that were `chosen` by measurement, by the number of the body, go before those of the tuning. Bodies with the
    least work get shorter sources first: what that costs is paid for each run. Where no sources are short enough, the
    shortest are taken. Of the budget vector nodes have their part, which no tile changes.
    """
    *tunings, least = _tunings(tuning)
    tiles = [chosen.get(number, tile) for number, tile in enumerate(_tiles(bodies, tuning))]
    groups = _same_sources(bodies, tiles)
    budget = compile_budget_s * 1e6 / tuning.operation_compile_us - vector_nodes * VECTOR_NODE  # in operations
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
        groups.setdefault(number if tile.baked else (tile, body.key), []).append(number)
    work = [sum(record_of(node).macs(body.graph, node) for node in body.nodes) for body in bodies]
    return sorted(groups.values(), key=lambda group: sum(work[number] for number in group))


def _operations(bodies: Sequence[Body], tiles: Sequence[Tile], group: Sequence[int]) -> int:
    """What the driver compiles for a group of bodies with the same source."""
    return source_size(bodies[group[0]], tiles[group[0]]).operations


def is_too_long(body: Body, tuning: Tuning) -> bool:
    """Whether a body's source is too long even for the least tile."""
    return source_size(body, _least_tile(body, tuning)).characters > tuning.source_characters


def takes_too_many_turns(body: Body, tuning: Tuning) -> bool:
    """Whether a thread's loops take more turns than they may even with the least tile."""
    return loop_turns(body, _least_tile(body, tuning)) > tuning.loop_turns


def _least_tile(body: Body, tuning: Tuning) -> Tile:
    z_slices = _z_slices(body, False, replace(tuning, whole_slices=0, thread_slices=1))
    return Tile(z_slices=z_slices, written_taps=tuning.written_taps)


@lru_cache(maxsize=64)  # asked for each body, for few tunings
def _tunings(tuning: Tuning) -> tuple[Tuning, ...]:
    """The tuning, then others for ever shorter sources: fewer rows of a thread, no literals, fewer slices."""
    found, rows = [], tuning.rows
    while rows > 1:
        found.append(replace(tuning, rows=rows))
        rows //= 2
    found.append(replace(tuning, rows=1))
    slices = tuning.thread_slices
    while slices:
        found.append(replace(tuning, rows=1, bake_weights=0, whole_slices=0, thread_slices=slices))
        slices //= 2
    return tuple(found)


def _fitting(body: Body, baked: bool, tuning: Tuning) -> Tile | None:
    """The first tile whose source, and whose loops, are short enough: of the tuning, else of those for shorter ones."""
    for each in _tunings(tuning):
        tile = choose_tile(body, baked, each)
        is_short = source_size(body, tile).characters <= tuning.source_characters
        if is_short and loop_turns(body, tile) <= tuning.loop_turns:
            return tile
    return None


def usual_tile(body: Body, tuning: Tuning) -> Tile:
    """A body's tile as if it were alone: no other takes literals from it, and no budget has to be kept."""
    *_, least = _tunings(tuning)
    tile = _fitting(body, True, tuning) if _wants_literals(body, tuning.bake_weights, tuning) else None
    return tile or _fitting(body, False, tuning) or choose_tile(body, False, least)


def _wants_literals(body: Body, budget: int, tuning: Tuning) -> bool:
    return 0 < weight_count(body) <= budget and body.domain.pixels >= tuning.bake_pixels


def _tiles(bodies: Sequence[Body], tuning: Tuning) -> list[Tile]:
    """A tile for each body. Bodies with most pixels get literals first, until the budget of weights is spent."""
    budget = tuning.bake_weights
    *_, least = _tunings(tuning)
    tiles: dict[int, Tile] = {}
    in_memory: dict[BodyKey, Tile] = {}
    for number in sorted(range(len(bodies)), key=lambda k: -bodies[k].domain.pixels):
        body = bodies[number]
        tile = _fitting(body, True, tuning) if _wants_literals(body, budget, tuning) else None
        if tile:
            budget -= weight_count(body)
        elif body.key not in in_memory:
            in_memory[body.key] = _fitting(body, False, tuning) or choose_tile(body, False, least)
        tiles[number] = tile or in_memory[body.key]
    return [tiles[number] for number in range(len(bodies))]


def weight_count(body: Body) -> int:
    """Weights that a body would hold as literals: none of groups, of which each thread has others."""
    return sum(
        int(tensor.data.size)
        for node in body.nodes
        if has_weights(node) and groups_of_channels(body.graph, node) == 1
        if not is_long(record_of(node).taps(body.graph, node))  # a loop has none
        if (tensor := body.graph.tensors[node.inputs[1]]).data is not None
    )


def reduction_tile(device: Device) -> Tile:
    """The one work-group of a kernel of vector nodes."""
    fetches = device.tuning.fetch_of_weights(is_varied=True), device.tuning.inputs_fetch
    return Tile(1, 0, (min(REDUCTION_THREADS, device.limits.work_group_invocations), 1, 1), False, *fetches)


def choose_tile(body: Body, baked: bool, tuning: Tuning) -> Tile:
    """Rows, slices and work-group of one body."""
    if _has_slices_for_lanes(body, baked, tuning):
        return _deep_tile(body, tuning)
    return _lanes_tile(body, baked, tuning) if tuning.simd_width > 1 else _waves_tile(body, baked, tuning)


def _lanes_tile(body: Body, baked: bool, tuning: Tuning) -> Tile:
    """For a renderer on a CPU: threads that compute much, neighbors along x in the lanes of its registers."""
    z_slices = _z_slices(body, baked, tuning)
    most_rows, domain = _most_rows(body, baked, z_slices, tuning), body.domain
    if runs_across(body):
        return _tile(across_group(domain.width, domain.rows, most_rows, tuning), z_slices, 1, baked, tuning)
    shapes = [map_group(domain.width, domain.rows, most_rows, tuning, _unit(body))]
    if domain.width % tuning.simd_width and is_pixelwise(body):
        shapes += [flat_group(domain.pixels, rows, tuning) for rows in range(1, most_rows + 1)]
    elif tuning.fills_lanes:
        shapes += _narrow_groups(body, most_rows, shapes[0].cost, tuning)
    group = min(shapes, key=lambda group: (group.cost, -group.rows))
    return _tile(group, z_slices, 1, baked, tuning)


def _narrow_groups(body: Body, most_rows: int, usual_cost: int, tuning: Tuning) -> list[WorkGroupShape]:
    """Areas of maps with fewer columns than lanes, or fewer rows than a thread may have; where they save a quarter."""
    domain, found = body.domain, list[WorkGroupShape]()
    if domain.width < tuning.simd_width:
        found.append(turned_group(domain.width, domain.rows, most_rows, tuning, _unit(body)))
    if domain.rows < most_rows and not _shares_loads(body) and any(map(has_weights, body.nodes)):
        found.append(across_group(domain.width, domain.rows, most_rows, tuning))
    return [group for group in found if 4 * group.cost <= 3 * usual_cost]


def _waves_tile(body: Body, baked: bool, tuning: Tuning) -> Tile:
    """For a GPU: the most work of a thread that leaves threads enough, in groups that have few idle lanes.

    No thread works past an edge, and none writes what another writes: rows divide a map's height.
    """
    z_slices, rows, parts = _share(body, baked, tuning)
    domain, most = body.domain, tuning.group_threads
    if parts > 1:  # of one part they are whole waves, where that is possible: they read the same weights
        texels = z_slices * parts or texels_of_pixel(body, parts)
        most = min(most, power_of_two_to(min(tuning.sum_group_threads // parts, tuning.sum_texels // texels)))
        most = min(most, power_of_two_from(domain.pixels)) if folds_of(body) else most
    if runs_across(body):
        group = gpu_map_group(domain.width // rows, domain.rows, 1, most, tuning.wave_threads)
        return _tile(replace(group, rows=rows, across=True), z_slices, parts, baked, tuning)
    shapes = [gpu_map_group(domain.width, domain.rows, rows, most, tuning.wave_threads)]
    if rows == 1 and is_pixelwise(body):
        shapes.append(gpu_flat_group(domain.pixels, most, tuning.wave_threads))
    tile = _tile(min(shapes, key=lambda group: group.cost), z_slices, parts, baked, tuning)
    if _sums_windows(body):
        tile = replace(tile, written_taps=min(tile.written_taps, tuning.written_deep_taps))
    return replace(tile, unrolls=False) if _reads_often(body) else tile


def _sums_windows(body: Body) -> bool:
    """Whether a contraction has its window within a loop over slices of its input."""
    return any(
        is_contraction(node)
        and reads_window(body.graph, node)
        and shape_of(body.graph.tensors[node.inputs[0]]).slices > 1
        for node in body.nodes
    )


def _reads_often(body: Body) -> bool:
    """Whether a kernel has several long loops: written out, compilers keep in registers what more than one reads."""
    most = MOST_UNROLLED_SLICES if any(map(is_contraction, body.nodes)) else MOST_REDUCED_SLICES
    long = [phase for phase in body.phases if phase.slices > most and not phase.unrolled]
    return len(long) > 1


def _has_slices_for_lanes(body: Body, baked: bool, tuning: Tuning) -> bool:
    """Whether a work-group's lanes shall have slices, since there is one pixel alone."""
    slices = shape_of(body.graph.tensors[body.outputs[0]]).slices
    is_one = body.domain.pixels == 1 and slices > 1 and body.split
    return tuning.fills_lanes and is_one and not baked


def _deep_tile(body: Body, tuning: Tuning) -> Tile:
    """For one pixel: threads along x have its slices, as many as a device computes at once.

    In software a thread has several slices only where that leaves work for all lanes: they share what is read.
    """
    slices, own = shape_of(body.graph.tensors[body.outputs[0]]).slices, slices_of_group(body)
    if tuning.simd_width > 1:
        has_sums = any(map(is_contraction, body.nodes))
        most = min(tuning.thread_slices if has_sums else 1, slices // tuning.simd_width)
        z_slices = max((k for k in range(1, most + 1) if own == slices or own % k == 0), default=1)
        return _tile(WorkGroupShape(1, (tuning.simd_width, 1), 0, deep=True), z_slices, 1, False, tuning)
    z_slices, _, parts = _share(body, False, tuning)
    z_slices = z_slices or 1
    lanes = max(LEAST_GROUP, min(tuning.wave_threads, power_of_two_from(ceil_div(slices, z_slices))))
    if parts > 1:
        lanes = min(lanes, power_of_two_to(min(tuning.sum_group_threads, tuning.sum_texels // z_slices) // parts))
    return _tile(WorkGroupShape(1, (lanes, 1), 0, deep=True), z_slices, parts, False, tuning)


def _share(body: Body, baked: bool, tuning: Tuning) -> tuple[int, int, int]:
    """Slices and rows of one thread, and how many threads share the terms of its sums.

    Rows are given up first, whose weights cost little to read again, then slices, whose inputs cost more. Last, sums
    are computed in parts.
    """
    domain, unit = body.domain, _unit(body) or body.domain.rows
    slices = shape_of(body.graph.tensors[body.outputs[0]]).slices

    def threads(z_slices: int, rows: int, part: int) -> int:
        return domain.pixels // rows * (ceil_div(slices, z_slices) if z_slices else 1) * part

    each_slices = _even_slices(body, baked, tuning)
    parts = [1] if baked else possible_parts(body, tuning)  # literals are the same for all threads
    shares = [
        (z_slices, rows, 1)
        for z_slices in each_slices
        for rows in range(_most_rows(body, baked, z_slices, tuning), 0, -1)
        if unit % rows == 0
    ]
    shares += [(each_slices[-1], 1, part) for part in parts[1:]]
    busy = (share for share in shares if threads(*share) >= tuning.least_threads)
    return next(busy, max(shares, key=lambda share: threads(*share)))


def possible_parts(body: Body, tuning: Tuning) -> list[int]:
    """How many threads may share the terms of a body's sums: each has as many, and at least two."""
    first = body.phases[0]
    is_sum = body.split and any(isinstance(root, Accumulate) for root in first.roots) and not first.unrolled
    if can_share_pixels(body):
        most = min(tuning.split_k, power_of_two_from(most_shared_slices(body)))
        parts = [1 << k for k in range(most.bit_length())]
        return [part for part in parts if part == 1 or _shared_pixels(body, part, tuning) >= LEAST_SHARED_PIXELS]
    if not is_sum:
        return possible_fold_parts(body, tuning)
    slices = max(1, _even_slices(body, False, tuning)[-1])
    most = min(tuning.split_k, first.slices // 2, tuning.sum_group_threads, tuning.sum_texels // slices)
    return [1, *(part for part in range(2, most + 1) if first.slices % part == 0)]


def _shared_pixels(body: Body, parts: int, tuning: Tuning) -> int:
    """Pixels of a work-group whose threads share them."""
    return min(tuning.sum_group_threads // parts, tuning.sum_texels // texels_of_pixel(body, parts))


def has_threads_enough(body: Body, tuning: Tuning) -> bool:
    """Whether a kernel of whole pixels has enough of them, or of threads that share them, to occupy the device."""
    if body.domain.pixels >= tuning.min_fused_threads:
        return True
    parts = max(possible_parts(body, tuning))
    return parts > 1 and body.domain.pixels * parts >= tuning.min_shared_threads


def _tile(group: WorkGroupShape, z_slices: int, parts: int, baked: bool, tuning: Tuning) -> Tile:
    return Tile(
        group.rows,
        z_slices,
        (*group.local, parts),
        baked,
        tuning.fetch_of_weights(group.deep or parts > 1),
        tuning.inputs_fetch,
        group.flat,
        loads_at_use=tuning.loads_at_use,
        unrolls=tuning.unrolls,
        leaves=tuning.simd_width == 1,
        across=group.across,
        turned=group.turned,
        deep=group.deep,
        written_taps=tuning.written_taps,
    )


def _even_slices(body: Body, baked: bool, tuning: Tuning) -> list[int]:
    """Output slices of one thread, most first, where all threads have as many, or one less: of 6 slices 3, 2 and 1.

    Where a window is computed for them, so many that it is not computed too often.
    """
    most = _z_slices(body, baked, tuning)
    if most <= 1:
        return [most]
    slices = shape_of(body.graph.tensors[body.outputs[0]]).slices
    threads = range(ceil_div(slices, most), slices + 1)
    if any(has_role(node, "window") for node in body.nodes):
        least = ceil_div(slices, tuning.window_slices or most)
        threads = range(least, max(least, tuning.window_repeats) + 1)
    counts = {ceil_div(slices, count) for count in threads}
    own = slices_of_group(body)
    return sorted((count for count in counts if own == slices or own % count == 0), reverse=True)


def _most_rows(body: Body, baked: bool, z_slices: int, tuning: Tuning) -> int:
    """Pixels that one thread may compute."""
    has_sums = any(is_contraction(node) for node in body.nodes)
    usual = tuning.window_rows if tuning.window_rows and _shares_loads(body) and not has_sums else tuning.rows
    tuned = 1 if _writes_slices(body) else usual
    most = min(tuned, (2 if _shares_loads(body) else 1) if baked else tuned)
    return max(1, min(most, tuning.unrolled // _unrolled(body, z_slices)))


def _unit(body: Body) -> int:
    """What the pixels of one thread divide: a map of a batch, over which their windows are, or a row; 0 if any do."""
    if runs_across(body):
        return body.domain.width
    return body.domain.height if body.domain.batch > 1 and _shares_loads(body) else 0


def runs_across(body: Body) -> bool:
    """Whether the pixels of a thread lie in one row, where they share what matrices are multiplied by."""
    return any(map(multiplies_rows, body.nodes))


def is_pixelwise(body: Body) -> bool:
    """Whether every pixel is computed from the same pixel of the inputs, wherever it lies, and channel by channel."""
    return needs_its_pixels(body) and not any(is_channel_reduction(body.graph, node) for node in body.nodes)


def needs_its_pixels(body: Body) -> bool:
    """Whether every pixel is computed from the same pixel of the inputs, wherever it lies in the map."""
    graph, domain = body.graph, body.domain
    read = {tensor for node in body.nodes for tensor in node.inputs}
    shapes = [shape_of(graph.tensors[tensor]) for tensor in body.inputs]
    return (
        not runs_across(body)
        and all(_needs_its_pixel(graph, node) for node in body.nodes)
        and not read & body.through.keys()
        and all(s.is_vector or (s.batch, s.height, s.width) == domain_sides(domain) for s in shapes)
    )


def _needs_its_pixel(graph: Graph, node: Node) -> bool:
    return is_elementwise(node) or is_pixelwise_contraction(graph, node) or is_channel_reduction(graph, node)


def only_reduces(body: Body) -> bool:
    """Whether a body reduces channels and does nothing else that could occupy more threads on its own."""
    reductions = [is_channel_reduction(body.graph, node) for node in body.nodes]
    return any(reductions) and all(r or is_elementwise(n) for r, n in zip(reductions, body.nodes, strict=True))


def domain_sides(domain: MapShape) -> tuple[int, int, int]:
    """(b, h, w) of the pixels that threads run over."""
    return domain.batch, domain.height, domain.width


def _writes_slices(body: Body) -> bool:
    """Whether moves are unrolled: their slices are known, and share no more than neighbors in a column do."""
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
    if (own := slices_of_group(body)) < slices:
        return max(count for count in range(1, min(own, tuning.thread_slices) + 1) if own % count == 0)
    return 0 if baked else thread_slices(slices, tuning)


def slices_of_group(body: Body) -> int:
    """Output slices that are computed from the same channels: as many, or a part of them, are one thread's."""
    slices = shape_of(body.graph.tensors[body.outputs[0]]).slices
    contractions = (node for node in body.nodes if is_contraction(node))
    return slices // max((groups_of_channels(body.graph, node) for node in contractions), default=1)


def _shares_loads(body: Body) -> bool:
    """Whether pixels in a column read some of the same texels: windows, and resizing."""
    return any(reads_window(body.graph, node) for node in body.nodes)


def _unrolled(body: Body, z_slices: int) -> int:
    """The longest unrolled source for one pixel: taps times output slices of a contraction, taps of a window."""
    lengths = [1]
    for node in body.nodes:
        if has_weights(node) or computed_weights(node):
            taps = written_taps(record_of(node).taps(body.graph, node))
            slices = z_slices or shape_of(body.graph.tensors[node.outputs[0]]).slices
            lengths.append(taps * slices if node.outputs[0] in body.held else max(taps, slices))
    return max(lengths)
