"""Cases of ops that find places or look values up, with indices in range."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from types import MappingProxyType

from ..model.graph import Axis, Reduce, Shape
from ..ops.lookup import ReverseSequence
from .op_case import BATCHES, CHANNELS, LARGE, MAPS, OpCase, case_of, size_text


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


_MAP: Shape = (3, 5, 7, 13)


def _extrema(op: str) -> Iterator[OpCase]:
    rows = [(shape, 3) for shape in (*MAPS, LARGE)] + [(_MAP, axis) for axis in (0, 1, 2)]
    for shape, axis in [*rows, ((7, 13), 1), ((7, 5), 0), ((13,), 0), ((1, 1, 1, 1001), 3)]:
        out = (*shape[:axis], *shape[axis + 1 :])
        yield case_of(op, f"{size_text(shape)} along {axis}", [shape], out, Reduce((axis,), keep_dims=False))
    equal: tuple[tuple[Shape, tuple[int, ...], str], ...] = (
        ((3, 4, 6, 5), (0, 1, 2, 3), "int32"), ((1, 5, 7, 13), (0, 1, 2, 3), "int64"), ((2, 4, 6, 1), (3,), "int32"),
        ((1, 1001), (1,), "int64"), ((3, 300, 17), (0, 1, 2), "int32"), ((1, 500, 13), (1,), "int32"),
    )  # fmt: skip
    for shape, axes, dtype in equal:
        for axis in axes:
            out, what = (*shape[:axis], *shape[axis + 1 :]), f"{size_text(shape)} along {axis}, many equal"
            made = case_of(op, what, [shape], out, Reduce((axis,), keep_dims=False), whole=True)
            yield replace(made, example=replace(made.example, out_dtype=dtype))


def _gathered(op: str) -> Iterator[OpCase]:
    """By one position, of the first dimensions."""
    for channels in CHANNELS:
        shape: Shape = (3, 5, 7, channels)
        yield case_of(op, f"{size_text(shape)} of 2", [shape], shape[2:], constants=[(2,)])
        yield case_of(op, f"{size_text(shape)} of 3", [shape], shape[3:], constants=[(3,)])


def _reversed(op: str) -> Iterator[OpCase]:
    for channels in CHANNELS:
        shape: Shape = (3, 7, channels)
        yield case_of(op, f"{size_text(shape)}", [shape], shape, ReverseSequence(1, 0), [(3,)])
        shape = (5, 4, 7, channels)
        yield case_of(op, f"{size_text(shape)}", [shape], shape, ReverseSequence(2, 1), [(4,)])


def _updates(op: str) -> Iterator[OpCase]:
    for batch, height, width, channels in MAPS:
        part = (batch, 3, 2, min(3, channels))
        shape = (batch, height, width, channels)
        yield case_of(op, size_text(shape), [shape, part], shape, constants=[(4,)])


def _filled(op: str) -> Iterator[OpCase]:
    for shape in (*MAPS, (13,), (7, 5)):
        yield case_of(op, size_text(shape), [()], shape)


LOOKUP_CASES: Mapping[str, Callable[[str], Iterator[OpCase]]] = MappingProxyType(
    {
        "EMBEDDING_LOOKUP": _rows,
        "SCATTER_ND": _scattered,
        "ONE_HOT": _one_hot,
        **dict.fromkeys(("ARG_MAX", "ARG_MIN"), _extrema),
        "GATHER_ND": _gathered,
        "REVERSE_SEQUENCE": _reversed,
        "DYNAMIC_UPDATE_SLICE": _updates,
        "FILL": _filled,
    }
)
