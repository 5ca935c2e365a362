"""Chooses the shape of work-groups for a map's size: sides of a group, and pixels of a thread."""

from dataclasses import dataclass
from functools import lru_cache

from ..model.layout import aligned, ceil_div
from .device import Tuning

LEAST_GROUP = 16  # threads of a GPU's work-group: for fewer Intel's compilers take half the lanes


@dataclass(frozen=True)
class WorkGroupShape:
    """How threads lie over a map's pixels: rows of a thread, a work-group's sides, and what it costs."""

    rows: int
    local: tuple[int, int]  # (x, y)
    cost: int  # of all threads, also of those past the edges
    flat: bool = False
    across: bool = False  # pixels of a thread lie in a row
    turned: bool = False  # threads along x have rows
    deep: bool = False  # of one pixel: threads have slices of it


# Software renderers --------------------------------------------------------------------------------------------------


def map_group(width: int, height: int, most_rows: int, tuning: Tuning, unit: int = 0) -> WorkGroupShape:
    """Threads over rows and columns. Where windows are over one map of a batch each, the rows of a thread are, too:
    they divide the `unit` rows of a map.

    llvmpipe computes neighbors along x at once, also past the edge: of a map 33 wide, groups 32 wide waste half. So
    their width is that which wastes least, and where it is not the usual one, so is their height. DeepLab's kernels of
    33 x 33 pixels take half the time by that.
    """
    usual = min(tuning.group_width, max(8, power_of_two_from(width))) if width > 1 else 1
    local_x = min(range(usual, 0, -tuning.simd_width), key=lambda side: aligned(width, side))
    lanes, most_y = aligned(width, max(local_x, tuning.simd_width)), max(1, tuning.group_threads // local_x)

    def group(rows: int, local_y: int) -> WorkGroupShape:
        return WorkGroupShape(rows, (local_x, local_y), _cost(lanes, aligned(ceil_div(height, rows), local_y), rows))

    choices = [rows for rows in range(1, min(most_rows, height) + 1) if not unit or unit % rows == 0]
    if local_x == usual:
        rows = min(choices, key=lambda k: (_cost(lanes, ceil_div(height, k), k), -k))
        return group(rows, min(most_y, ceil_div(height, rows)))
    groups = [group(rows, local_y) for rows in choices for local_y in range(min(most_y, ceil_div(height, rows)), 0, -1)]
    return min(groups, key=lambda group: (group.cost, -group.rows))


def turned_group(width: int, height: int, most_rows: int, tuning: Tuning, unit: int = 0) -> WorkGroupShape:
    """The same with rows in the lanes: of a map one pixel wide, as sound has, columns would fill one lane."""

    def group(rows: int) -> WorkGroupShape:
        threads = ceil_div(height, rows)
        local_x = aligned(min(tuning.group_threads, threads), tuning.simd_width)
        local_y = max(1, min(width, tuning.group_threads // local_x))
        return WorkGroupShape(
            rows, (local_x, local_y), _cost(aligned(threads, local_x), aligned(width, local_y), rows), turned=True
        )

    choices = [rows for rows in range(1, min(most_rows, height) + 1) if not unit or unit % rows == 0]
    return min(map(group, choices), key=lambda group: (group.cost, -group.rows))


def flat_group(pixels: int, rows: int, tuning: Tuning) -> WorkGroupShape:
    """Threads over pixels in the order of memory, those of one thread as far apart as there are threads.

    A pointwise convolution of 33 x 33 pixels takes two thirds of the time of the best map_group.
    """
    threads = ceil_div(pixels, rows)
    groups = ceil_div(threads, tuning.group_threads)
    local_x = aligned(ceil_div(threads, groups), tuning.simd_width)
    return WorkGroupShape(rows, (local_x, 1), _cost(groups * local_x, 1, rows), flat=True)


def across_group(width: int, height: int, most_rows: int, tuning: Tuning) -> WorkGroupShape:
    """Threads over rows and columns whose pixels lie in one row each."""
    groups = [
        (count, map_group(ceil_div(width, count), height, 1, tuning)) for count in range(1, min(most_rows, width) + 1)
    ]
    found = (
        WorkGroupShape(k, group.local, group.cost // _cost(1, 1, 1) * _cost(1, 1, k), across=True)
        for k, group in groups
    )
    return min(found, key=lambda group: (group.cost, -group.rows))


def _cost(width: int, height: int, rows: int) -> int:
    """What threads cost: each about as much as its rows and four more, for the weights, which it loads once."""
    return width * height * (rows + 4)


def power_of_two_from(value: int) -> int:
    """The smallest power of two that is not below a number."""
    return 1 << (value - 1).bit_length()


def power_of_two_to(value: int) -> int:
    """The largest power of two that is not above a number."""
    return 1 << (value.bit_length() - 1)


# GPUs ----------------------------------------------------------------------------------------------------------------


@lru_cache(maxsize=1024)  # asked for many bodies, for few maps
def gpu_map_group(width: int, height: int, rows: int, group_threads: int, wave_threads: int) -> WorkGroupShape:
    """The work-group's sides that leave fewest lanes of waves without a pixel: a GPU runs whole waves of each group.

    Of equal ones the squarest, whose windows overlap most. Sides that are no powers of two have to save a tenth: their
    indices take divisions on some GPUs. `rows` divides the height.
    """
    threads_y = height // rows

    def key(sides: tuple[int, int]) -> tuple[float, int, int, int]:
        x, y = sides
        groups = ceil_div(width, x) * ceil_div(threads_y, y)
        lanes = groups * aligned(x * y, wave_threads)
        return lanes * (1.0 if x & (x - 1) == 0 else 1.1), groups * x * y, groups, abs(x - y)

    found = [
        (x, y)
        for x in range(1, min(group_threads, power_of_two_from(width)) + 1)
        for y in range(1, min(group_threads // x, threads_y) + 1)
    ]
    x, y = min(found, key=key)
    y = max(y, min(ceil_div(LEAST_GROUP, x), group_threads // x))
    return WorkGroupShape(rows, (x, y), ceil_div(width, x) * ceil_div(threads_y, y) * aligned(x * y, wave_threads))


def gpu_flat_group(pixels: int, group_threads: int, wave_threads: int) -> WorkGroupShape:
    """The same for threads over pixels in the order of memory, one each."""
    local_x = min(group_threads, max(LEAST_GROUP, aligned(pixels, wave_threads)))
    return WorkGroupShape(1, (local_x, 1), ceil_div(pixels, local_x) * aligned(local_x, wave_threads), flat=True)
