"""Damages bytes as accidents and attackers do."""

import random
from collections.abc import Callable, Sequence

_WILD = (0, 1, 2, 0x7F, 0x80, 0xFF, 0x7FFF, 0x8000, 0xFFFF, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, 0xFFFFFFF0, 1 << 20)


def mutated(bases: Sequence[bytes], seeds: Sequence[bytes], chance: random.Random) -> bytes:
    """One of the bases with one to four mutations, one more often than two, and parts of any of the seeds."""
    data = chance.choice(bases)
    for _ in range(1 + min(3, int(chance.expovariate(1.0)))):
        data = chance.choice(_MUTATIONS)(data, seeds, chance)
    return data


def _bit(data: bytes, _: Sequence[bytes], chance: random.Random) -> bytes:
    at = _place(data, 1, chance)
    return data[:at] + bytes([data[at] ^ 1 << chance.randrange(8)]) + data[at + 1 :] if data else data


def _byte(data: bytes, _: Sequence[bytes], chance: random.Random) -> bytes:
    at = _place(data, 1, chance)
    return data[:at] + bytes([chance.randrange(256)]) + data[at + 1 :]


def _word(data: bytes, _: Sequence[bytes], chance: random.Random) -> bytes:
    """A number of two, four or eight bytes, of either order, becomes wild or moves a little."""
    size, order = chance.choice((2, 4, 4, 8)), chance.choice(("little", "little", "big"))
    at = _place(data, size, chance) // size * size
    old = int.from_bytes(data[at : at + size], "little")
    new = chance.choice((*_WILD, old + 1, old - 1, old + 4, old - 4, old * 2, len(data), len(data) - at))
    wrapped = new % (1 << 8 * size)
    return data[:at] + wrapped.to_bytes(size, "little" if order == "little" else "big") + data[at + size :]


def _run(data: bytes, _: Sequence[bytes], chance: random.Random) -> bytes:
    """A stretch of random bytes."""
    at = _place(data, 1, chance)
    count = chance.randrange(1, 65)
    return data[:at] + chance.randbytes(min(count, len(data) - at)) + data[at + count :]


def _cut(data: bytes, _: Sequence[bytes], chance: random.Random) -> bytes:
    return data[: _place(data, 1, chance)]


def _drop(data: bytes, _: Sequence[bytes], chance: random.Random) -> bytes:
    at = _place(data, 1, chance)
    return data[:at] + data[at + chance.randrange(1, 257) :]


def _double(data: bytes, _: Sequence[bytes], chance: random.Random) -> bytes:
    at = _place(data, 1, chance)
    return data[:at] + data[at : at + chance.randrange(1, 257)] * chance.randrange(2, 5) + data[at:]


def _splice(data: bytes, seeds: Sequence[bytes], chance: random.Random) -> bytes:
    """A stretch of another seed in place of one of the same length."""
    other = chance.choice(seeds)
    count = chance.randrange(1, max(2, min(len(other), 4096)))
    at, start = _place(data, 1, chance), _place(other, count, chance)
    return data[:at] + other[start : start + count] + data[at + count :]


def _place(data: bytes, size: int, chance: random.Random) -> int:
    """Where something of this size stands: anywhere, or near the beginning, where headers are."""
    last = max(0, len(data) - size)
    return chance.randint(0, min(last, 256) if chance.random() < 0.3 else last)


_MUTATIONS: tuple[Callable[[bytes, Sequence[bytes], random.Random], bytes], ...] = (
    *(_bit, _byte, _word, _word, _word, _run),
    *(_cut, _drop, _double, _splice),
)
