"""The name of an op that finds places, looks values up or runs along a dimension goes in, its cases come out."""

from collections.abc import Callable, Iterator, Mapping
from itertools import product
from types import MappingProxyType

from ..graph import Axis, Reduce, Shape
from ..ops.lookup import ReverseSequence, UpdateSlice
from .op_case import CHANNELS, LARGE, MAPS, OpCase, case_of, size_text

_Rows = Iterator[OpCase]
_MAP: Shape = (3, 5, 7, 13)


def _extrema(op: str) -> _Rows:
    rows = [(shape, 3) for shape in (*MAPS, LARGE)] + [(_MAP, axis) for axis in (0, 1, 2)]
    for shape, axis in [*rows, ((7, 13), 1), ((7, 5), 0), ((13,), 0), ((1, 1, 1, 1001), 3)]:
        out = (*shape[:axis], *shape[axis + 1 :])
        yield case_of(op, f"{size_text(shape)} along {axis}", [shape], out, Reduce((axis,), keep_dims=False))


def _one_hot(op: str) -> _Rows:
    """Also of positions that are out of range, of which all values are off."""
    for shape, depth in product(((5,), (3, 7), (1, 5, 7)), (1, 4, 5, 13)):
        out = (*shape, depth)
        what = f"{size_text(shape)} of {depth}"
        yield case_of(op, what, [shape], out, Axis(len(shape)), [(), ()], low=-1.0, high=depth)
    yield case_of(op, "3x7 of 5 along 0", [(3, 7)], (5, 3, 7), Axis(0), [(), ()], low=0.0, high=5.0)


def _embeddings(op: str) -> _Rows:
    for count, channels in product((1, 5, 13), CHANNELS):
        shapes = [(count,), (7, channels)]
        yield case_of(op, f"{count} of 7x{channels}", shapes, (count, channels), low=0.0, high=6.0)


def _scattered(op: str) -> _Rows:
    """Values of one place are added up."""
    for count, channels in product((1, 5), CHANNELS):
        shapes = [(count, 1), (count, channels)]
        yield case_of(op, f"{count} of 7x{channels}", shapes, (7, channels), low=0.0, high=6.0)


def _gathers(op: str) -> _Rows:
    """By one position, of the first dimensions."""
    for channels in CHANNELS:
        shape: Shape = (3, 5, 7, channels)
        yield case_of(op, f"{size_text(shape)} of 2", [shape], shape[2:], constants=[(2,)])
        yield case_of(op, f"{size_text(shape)} of 3", [shape], shape[3:], constants=[(3,)])


def _reversed(op: str) -> _Rows:
    for channels in CHANNELS:
        shape: Shape = (3, 7, channels)
        yield case_of(op, f"{size_text(shape)}", [shape], shape, ReverseSequence(1, 0), [(3,)])
        shape = (5, 4, 7, channels)
        yield case_of(op, f"{size_text(shape)}", [shape], shape, ReverseSequence(2, 1), [(4,)])


def _updates(op: str) -> _Rows:
    for batch, height, width, channels in MAPS:
        part = (batch, 3, 2, min(3, channels))
        shape = (batch, height, width, channels)
        starts = (0, 2, 5, channels - part[3])
        yield case_of(op, size_text(shape), [shape, part], shape, UpdateSlice(starts))


def _filled(op: str) -> _Rows:
    for shape in (*MAPS, (13,), (7, 5)):
        yield case_of(op, size_text(shape), [()], shape)


INDEX_CASES: Mapping[str, Callable[[str], _Rows]] = MappingProxyType(
    {
        **dict.fromkeys(("ARG_MAX", "ARG_MIN"), _extrema),
        "ONE_HOT": _one_hot,
        "EMBEDDING_LOOKUP": _embeddings,
        "SCATTER_ND": _scattered,
        "GATHER_ND": _gathers,
        "REVERSE_SEQUENCE": _reversed,
        "DYNAMIC_UPDATE_SLICE": _updates,
        "FILL": _filled,
    }
)
