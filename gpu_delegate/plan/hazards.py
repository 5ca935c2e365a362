"""Memory barriers: which a list of dispatches needs, from the byte ranges that each reads and writes.

OpenGL does not order dispatches: what one writes, a later one sees only after a barrier for the kind of access that the
later one makes. Software renderers hide a missing barrier, so the search is a pure function, and another one
(`unordered`) verifies it; tests delete each barrier in turn and expect the verifier to notice.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

UNIFORM = 0x4  # GL_UNIFORM_BARRIER_BIT: reads through uniform blocks
TEXTURE_FETCH = 0x8  # GL_TEXTURE_FETCH_BARRIER_BIT: reads through buffer textures
STORAGE = 0x2000  # GL_SHADER_STORAGE_BARRIER_BIT: reads and writes through SSBOs
WAYS = (UNIFORM, TEXTURE_FETCH, STORAGE)


@dataclass(frozen=True)
class Access:
    """Bytes [start, end) of one buffer, and how a dispatch accesses them."""

    buffer: int
    start: int
    end: int
    way: int  # UNIFORM, TEXTURE_FETCH or STORAGE
    writes: bool = False

    def conflicts(self, other: "Access") -> bool:
        same = self.buffer == other.buffer and self.start < other.end and other.start < self.end
        return same and (self.writes or other.writes)


def find_barriers(dispatches: Sequence[Sequence[Access]], given: Sequence[int] | None = None) -> tuple[int, ...]:
    """Barrier bits to issue before each dispatch, 0 for none: a bit only where no earlier barrier has it covered.

    `given` are barriers that exist already, none by default; the result includes them.
    """
    bits = list(given or [0] * len(dispatches))
    since = {way: _Since() for way in WAYS}
    for number, accesses in enumerate(dispatches):
        for access in accesses:
            if not bits[number] & access.way and since[access.way].conflicts(access):
                bits[number] |= access.way
        for way in since:
            if bits[number] & way:
                since[way] = _Since()
            for access in accesses:
                since[way].add(access)
    return tuple(bits)


def find_cyclic_barriers(dispatches: Sequence[Sequence[Access]], given: Sequence[int] | None = None) -> tuple[int, ...]:
    """Barrier bits for a list that runs repeatedly: its first dispatches also wait for the last of the run before."""
    twice = [*dispatches, *dispatches]
    found = find_barriers(twice)
    first, later = found[: len(dispatches)], found[len(dispatches) :]
    if find_barriers(twice, later * 2) == later * 2:
        return later
    return tuple(a | b for a, b in zip(first, later, strict=True))


def levels_of(dispatches: Sequence[Sequence[Access]]) -> tuple[int, ...]:
    """For each dispatch the longest chain of earlier ones that it has to wait for: those of one level may run at once.

    A list sorted by its levels needs one barrier for each, if buffers are not used again for something else.
    """
    levels, known = list[int](), dict[int, list[tuple[int, Access]]]()
    for accesses in dispatches:
        before = (
            level for access in accesses for level, other in known.get(access.buffer, ()) if access.conflicts(other)
        )
        levels.append(1 + max(before, default=-1))
        for access in accesses:
            known.setdefault(access.buffer, []).append((levels[-1], access))
    return tuple(levels)


def barriers_of_levels(dispatches: Sequence[Sequence[Access]], levels: Sequence[int]) -> tuple[int, ...]:
    """The same for a list whose levels ascend, at most one before each, so that nothing parts what is in it.

    What dispatches of one level access must not conflict.
    """
    together: list[list[Access]] = [[] for _ in range(1 + max(levels, default=-1))]
    for level, accesses in zip(levels, dispatches, strict=True):
        together[level] += accesses
    bits = find_cyclic_barriers(together)
    return tuple(bits[level] if number == bisect_left(levels, level) else 0 for number, level in enumerate(levels))


class _Since:
    """What dispatches have accessed since the last barrier of one kind."""

    def __init__(self) -> None:
        self._read, self._written = _Ranges(), _Ranges()

    def add(self, access: Access) -> None:
        (self._written if access.writes else self._read).add(*_ends_of(access))

    def conflicts(self, access: Access) -> bool:
        start, end = _ends_of(access)
        return self._written.overlaps(start, end) or (access.writes and self._read.overlaps(start, end))


_End = tuple[int, int]  # a buffer, and a byte of it: in this order those of one buffer stand together


def _ends_of(access: Access) -> tuple[_End, _End]:
    return (access.buffer, access.start), (access.buffer, access.end)


class _Ranges:
    """A set of bytes as sorted ranges [start, end) of one buffer each that neither overlap nor adjoin."""

    def __init__(self) -> None:
        self._starts: list[_End] = []
        self._ends: list[_End] = []

    def add(self, start: _End, end: _End) -> None:
        if start >= end:
            return
        first, after = bisect_left(self._ends, start), bisect_right(self._starts, end)
        if first < after:
            start, end = min(start, self._starts[first]), max(end, self._ends[after - 1])
        self._starts[first:after], self._ends[first:after] = [start], [end]

    def overlaps(self, start: _End, end: _End) -> bool:
        first = bisect_right(self._ends, start)  # the first that ends behind the start
        return first < len(self._starts) and self._starts[first] < end


def unordered(dispatches: Sequence[Sequence[Access]], bits: Sequence[int]) -> tuple[tuple[int, int], ...]:
    """Pairs (earlier, later) of dispatches that access the same bytes with no barrier of the right kind between."""
    return tuple(
        (earlier, number) for number in range(len(dispatches)) for earlier, _ in _conflicts(dispatches, number, bits)
    )


def _conflicts(
    dispatches: Sequence[Sequence[Access]], number: int, bits: Sequence[int]
) -> Iterator[tuple[int, Access]]:
    """Earlier dispatches that conflict with an access of this one, and that access, given the barriers so far."""
    for access in dispatches[number]:
        if bits[number] & access.way:
            continue
        for earlier in range(number - 1, -1, -1):
            if any(access.conflicts(other) for other in dispatches[earlier]):
                yield earlier, access
            if bits[earlier] & access.way:
                break


def reasons(dispatches: Sequence[Sequence[Access]], bits: Sequence[int]) -> tuple[tuple[tuple[int, Access], ...], ...]:
    """What would be unordered without the barrier before each dispatch of a list that runs repeatedly.

    For each dispatch pairs of an earlier one (of the run before, if its number is not smaller) and an access of this
    one; none where there is no barrier.
    """
    count, twice, given, found = len(dispatches), [*dispatches, *dispatches], [*bits, *bits], []
    for number in range(count):
        given[count + number] = 0
        conflicts = _conflicts(twice, count + number, given) if bits[number] else ()
        found.append(tuple((earlier % count, access) for earlier, access in conflicts))
        given[count + number] = bits[number]
    return tuple(found)
