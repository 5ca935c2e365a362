"""Steps and the rows that each reads of others' maps go in; rounds of tasks come out: which rows of which step when.

Where maps of some steps in a row are larger than the cache, their rows are computed depth first: a strip of the last
map, and of the maps before it what that needs and is not there yet, so that rows are read while they are in the cache.
Each thread has a part of all maps for itself and computes the rows at its ends again, which gives the same bytes.
Otherwise steps come one after the other, each divided among the threads. Nothing but the order changes.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from ..layout import ceil_div
from ..memory import UsageRecord
from .cutting import StepSize, cut_step, joined_rounds
from .work import StepRange, WorkRound, WorkTask

_CACHE_SHARE = 2  # strips take this part of the cache, weights and other things the rest
_MOST_REPEATED = 1.08  # of the work, for rows that two threads compute


@dataclass(frozen=True)
class RowsRead:
    """Row y of a map needs the rows y * step // spread + first ... + last of another, as far as they exist."""

    step: int = 1
    spread: int = 1
    first: int = 0
    last: int = 0

    def of(self, start: int, stop: int, rows: int) -> tuple[int, int]:
        """The rows that rows start ... stop - 1 need, of a map of so many: the first, and the one behind the last."""
        low = start * self.step // self.spread + self.first
        high = (stop - 1) * self.step // self.spread + self.last
        return min(max(low, 0), rows - 1), min(max(high, 0), rows - 1) + 1


@dataclass(frozen=True)
class RowsSource:
    """An earlier step whose map a step reads; rows are None where any rows may be needed."""

    step: int
    rows: RowsRead | None
    height: int  # of the map
    width: int


@dataclass(frozen=True)
class StepRows:
    """What a step computes: pixels in the order of memory, each group of rows so many of them, and what it reads."""

    size: StepSize
    group_pixels: int
    pixels: int
    width: int
    sources: tuple[RowsSource, ...]
    written_bytes: int
    scale: int = 1  # rows that it writes for one of its own

    def rows_of(self, start: int, stop: int) -> tuple[int, int]:
        """The rows that groups start ... stop - 1 compute; the last group may begin among the one before."""
        first = min(start * self.group_pixels, max(0, self.pixels - self.group_pixels))
        last = min(stop * self.group_pixels, self.pixels)
        return first // self.width, ceil_div(last, self.width)

    def groups_of(self, start: int, stop: int) -> tuple[int, int]:
        """The groups that compute rows start ... stop - 1 of what it writes."""
        first, last = start // self.scale * self.width, ceil_div(stop, self.scale) * self.width
        return min(first // self.group_pixels, self.size.row_groups - 1), min(
            ceil_div(last, self.group_pixels), self.size.row_groups
        )


def sections(steps: Sequence[StepRows]) -> list[range]:
    """Runs of steps in which none needs more than some rows of another, in order."""
    found, start = list[range](), 0
    for number, step in enumerate(steps):
        if any(source.step >= start and source.rows is None for source in step.sources):
            found.append(range(start, number))
            start = number
    return [*found, range(start, len(steps))] if steps else []


def strip_rounds(steps: Sequence[StepRows], threads: int, cache_bytes: int) -> tuple[WorkRound, ...]:
    """All work of all steps: rounds of tasks for so many threads with a cache each."""
    rounds = list[WorkRound]()
    for section in sections(steps):
        tasks = _strips(steps, section, threads, cache_bytes)
        rounds += [tasks] if tasks else [cut_step(number, steps[number].size, threads) for number in section]
    return joined_rounds(rounds)


def kept_together(records: Sequence[UsageRecord], steps: Sequence[StepRows], cache_bytes: int) -> list[UsageRecord]:
    """Lifetimes where tensors of steps that run in strips do not take each other's place."""
    first, last = {}, {}
    for section in sections(steps):
        if _strip_count(steps, section, cache_bytes) > 1:
            first.update(dict.fromkeys(section, section.start))
            last.update(dict.fromkeys(section, section.stop - 1))
    return [
        replace(
            record,
            first_task=first.get(record.first_task, record.first_task),
            last_task=last.get(record.last_task, record.last_task),
        )
        for record in records
    ]


# Depth first ----------------------------------------------------------------------------------------------------------


def _strip_count(steps: Sequence[StepRows], section: range, cache_bytes: int) -> int:
    """Strips of a section so that what each reads and writes fits into the cache."""
    read = {source.step: steps[source.step].written_bytes for number in section for source in steps[number].sources}
    written = {number: steps[number].written_bytes for number in section}
    return ceil_div(sum({**read, **written}.values()), max(1, cache_bytes // _CACHE_SHARE)) if len(section) > 1 else 1


def _strips(steps: Sequence[StepRows], section: range, threads: int, cache_bytes: int) -> WorkRound:
    """A task for each thread; none where strips are of no use."""
    count = _strip_count(steps, section, cache_bytes)
    ends = _ends(steps, section)
    if count < 2 or any(steps[end].size.row_groups < threads for end in ends):
        return ()
    shares = [_share(steps, section, ends, k, threads) for k in range(threads)]
    work = sum(
        steps[n].size.work * (stop - start) / steps[n].size.row_groups
        for each in shares
        for n, (start, stop) in each.items()
    )
    if work > _MOST_REPEATED * sum(steps[number].size.work for number in section):
        return ()
    return tuple(_task(steps, section, ends, share, ceil_div(count, threads)) for share in shares)


def _ends(steps: Sequence[StepRows], section: range) -> list[int]:
    """Steps of a section that no other one of it reads."""
    read = {source.step for number in section for source in steps[number].sources}
    return [number for number in section if number not in read]


Groups = Mapping[int, tuple[int, int]]  # of steps by number: the first group, and the one behind the last


def _share(steps: Sequence[StepRows], section: range, ends: Sequence[int], part: int, parts: int) -> Groups:
    """The groups of each step that one of some threads computes: an even part of the ends, and what that needs.

    Groups that nothing needs go to the thread before them.
    """
    mine = _needed(steps, section, {n: _slice(steps[n].size.row_groups, part, parts) for n in ends})
    if part == 0:
        mine = {number: (0, stop) for number, (_, stop) in mine.items()}
    if part == parts - 1:
        return {number: (start, steps[number].size.row_groups) for number, (start, _) in mine.items()}
    after = _needed(steps, section, {n: _slice(steps[n].size.row_groups, part + 1, parts) for n in ends})
    return {number: (start, max(stop, after[number][0])) for number, (start, stop) in mine.items()}


def _slice(total: int, part: int, parts: int) -> tuple[int, int]:
    return total * part // parts, total * (part + 1) // parts


def _needed(steps: Sequence[StepRows], section: range, ends: Groups) -> dict[int, tuple[int, int]]:
    """Of each step of a section the groups that groups of the ends need."""
    needed = dict(ends)
    for number in reversed(section):
        for source in steps[number].sources:
            if source.step in section and source.rows is not None:
                rows = source.rows.of(*steps[number].rows_of(*needed[number]), source.height)
                start, stop = steps[source.step].groups_of(*rows)
                known = needed.get(source.step, (start, stop))
                needed[source.step] = min(start, known[0]), max(stop, known[1])
    return needed


def _task(steps: Sequence[StepRows], section: range, ends: Sequence[int], share: Groups, strips: int) -> WorkTask:
    """Strip by strip what is needed and not done yet, and at the end what nothing needs."""
    done = {number: share[number][0] for number in section}
    ranges = list[StepRange]()

    def advance(wanted: Mapping[int, int]) -> None:
        for number in section:
            stop = min(wanted.get(number, 0), share[number][1])
            if stop > done[number]:
                ranges.append(StepRange(number, done[number], stop, 0, steps[number].size.slice_blocks))
                done[number] = stop

    sizes = {end: share[end][1] - share[end][0] for end in ends}
    for strip in range(1, strips + 1):
        upto = {end: (share[end][0], share[end][0] + max(1, sizes[end] * strip // strips)) for end in ends}
        advance({number: stop for number, (_, stop) in _needed(steps, section, upto).items()})
    advance({number: stop for number, (_, stop) in share.items()})
    return tuple(ranges)
