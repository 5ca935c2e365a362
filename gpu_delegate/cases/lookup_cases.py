"""The name of an op that looks values up goes in, its cases come out, with indices that are in range."""

from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType

from ..graph import Axis
from .op_case import BATCHES, CHANNELS, LARGE, OpCase, case_of, size_text


def _rows(op: str) -> Iterator[OpCase]:
    """Indices are inputs, from 0 to 4."""
    for channels in CHANNELS:
        yield case_of(op, f"5 of 7x{channels}", [(5,), (7, channels)], (5, channels), low=0.0, high=4.0)
    yield case_of(op, f"of {size_text(LARGE[1:])}", [(50,), LARGE[1:]], (50, *LARGE[2:]), low=0.0, high=4.0)


def _scattered(op: str) -> Iterator[OpCase]:
    for channels in CHANNELS:
        for batch in BATCHES:
            shapes = [(batch, 2, 2), (batch, 2, channels)]
            yield case_of(op, f"{batch * 2} of 5x6x{channels}", shapes, (5, 6, channels), low=0.0, high=4.0)
    yield case_of(op, f"of {size_text(LARGE[1:])}", [(9, 2), (9, LARGE[3])], LARGE[1:], low=0.0, high=4.0)


def _one_hot(op: str) -> Iterator[OpCase]:
    for channels in CHANNELS:
        for batch in BATCHES:
            shape, what = (batch, 5, channels), f"{batch}x5x{channels} along"
            for axis in range(4):
                out = (*shape[:axis], 4, *shape[axis:])
                yield case_of(op, f"{what} {axis}", [shape], out, Axis(axis), [(), ()], low=-1.0, high=5.0)
    out = (*LARGE[1:], 8)
    yield case_of(op, f"of {size_text(LARGE[1:])}", [LARGE[1:]], out, Axis(3), [(), ()], low=0.0, high=9.0)


LOOKUP_CASES: Mapping[str, Callable[[str], Iterator[OpCase]]] = MappingProxyType(
    {"EMBEDDING_LOOKUP": _rows, "SCATTER_ND": _scattered, "ONE_HOT": _one_hot}
)
