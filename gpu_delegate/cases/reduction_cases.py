"""Cases of reductions and normalizations: over every set of dimensions, kept and dropped."""

from collections.abc import Callable, Iterator, Mapping
from itertools import product
from types import MappingProxyType

from ..model.graph import Attributes, Reduce, Shape, Softmax
from ..ops.normalization import LocalResponse
from ..ops.running_sum import RunningSum
from ..ops.top import Top
from .op_case import CHANNELS, LARGE, MAPS, OpCase, case_of, size_text

_AXES = ((0,), (1,), (2,), (0, 2), (1, 3), (0, 1, 2), (1, 2, 3), (0, 1, 2, 3))
_NEAR_ONE, _AROUND_ZERO = (0.9, 1.1), (-2.0, 2.0)  # products of many values near one neither vanish nor overflow


def _reduced(op: str, shape: Shape, axes: tuple[int, ...], keep: bool) -> OpCase:
    out = tuple(1 if k in axes else n for k, n in enumerate(shape) if keep or k not in axes)
    what = f"{size_text(shape)} over {','.join(map(str, axes))}" + " dropped" * (not keep)
    low, high = _NEAR_ONE if op == "REDUCE_PROD" else _AROUND_ZERO
    return case_of(op, what, [shape], out, Reduce(axes, keep), low=low, high=high)


def _reductions(op: str) -> Iterator[OpCase]:
    for shape, axes in product(MAPS, ((3,), (1, 2))):
        yield _reduced(op, shape, axes, keep=True)
    for axes in _AXES:
        yield _reduced(op, (3, 5, 7, 5), axes, keep=True)
    for axes in ((1, 2), (3,), (0,)):
        yield _reduced(op, (3, 5, 7, 13), axes, keep=False)
    yield _reduced(op, (7, 5), (0,), keep=True)
    yield _reduced(op, (3, 7, 5), (2,), keep=False)
    yield _reduced(op, (1, 1, 1, 1001), (3,), keep=True)
    yield from _further_reductions(op)
    yield _reduced(op, LARGE, (1, 2), keep=True)
    yield _reduced(op, LARGE, (3,), keep=True)


def _further_reductions(op: str) -> Iterator[OpCase]:
    """Of maps of all sizes, and of several at once; over every set of dimensions for MEAN, over some for others."""
    for channels in (1, 3, 5, 13, 70):
        yield _reduced(op, (1, 4, 6, channels), (3,), keep=True)
        yield _reduced(op, (1, 5, 7, channels), (1, 2), keep=True)
    for batch, channels in product((2, 3), (1, 3, 5, 13)):
        yield _reduced(op, (batch, 5, 7, channels), (1, 2), keep=True)
    several = ((1,), (2,), (0, 1), (1, 2), (0,), (0, 2), (1, 3), (0, 1, 2), (1, 2, 3), (0, 1, 2, 3))
    for axes in several:
        yield _reduced(op, (2, 4, 6, 5), axes, keep=True)
    rows: tuple[tuple[Shape, tuple[int, ...], bool], ...] = (
        ((1, 37, 23, 13), (1, 2), True), ((1, 4, 6, 5), (3,), False), ((1, 4, 6, 5), (1, 2), True),
        ((1, 4, 6, 5), (2,), True), ((1, 5, 7, 6), (1, 2, 3), True),
        ((1, 1, 1, 5000), (3,), True), ((1, 5, 7, 5), (1, 2), False), ((1, 3, 2, 1100), (1, 2), True),
        ((3, 5, 7, 5), (1, 2), False), ((5, 7, 5), (0, 1), True), ((5, 7, 5), (0, 1), False),
    )  # fmt: skip
    yield from (_reduced(op, *row) for row in rows)


def _normalizations(op: str) -> Iterator[OpCase]:
    betas: tuple[Attributes, ...] = (Softmax(1.0), Softmax(0.5)) if op == "SOFTMAX" else (Attributes(),)
    for attributes in betas:
        beta = f" beta {attributes.beta:g}" if isinstance(attributes, Softmax) else ""
        for shape in (*MAPS, (1, 4, 6, 13), (1, 13), (3, 7, 5), (1, 1, 1, 1001), LARGE):
            yield case_of(op, f"{size_text(shape)}{beta}", [shape], shape, attributes, low=-8.0, high=8.0)
    for channels in CHANNELS:
        shape = (3, channels)
        yield case_of(op, f"{size_text(shape)} far apart", [shape], shape, betas[0], low=-80.0, high=80.0)


def _tops(op: str) -> Iterator[OpCase]:
    for shape in (*MAPS, (13,), (7, 5), (3, 7, 13), LARGE):
        for count in dict.fromkeys((1, min(3, shape[-1]), shape[-1]) if shape != LARGE else (5,)):
            out = (*shape[:-1], count)
            yield case_of(op, f"{count} of {size_text(shape)}", [shape], out, Top(count), others=[out])
    rows: tuple[tuple[int, Shape], ...] = (
        (3, (1, 5, 7, 13)), (5, (2, 4, 6, 5)), (1, (1, 3, 4, 1)), (2, (1, 3, 4, 3)), (5, (1, 1001)), (7, (7,)),
        (4, (300, 17)), (64, (3, 4, 6, 70)),
    )  # fmt: skip
    for count, shape in rows:
        out, what = (*shape[:-1], count), f"{count} of {size_text(shape)}, many equal"
        yield case_of(op, what, [shape], out, Top(count), others=[out], low=-9.0, high=9.0, whole=True)


def _running_sums(op: str) -> Iterator[OpCase]:
    rows = [(shape, RunningSum(3)) for shape in (*MAPS, LARGE)]
    flags = product((False, True), (False, True))
    rows += [((3, 5, 7, 13), RunningSum(axis, *both)) for axis, both in product((0, 1, 2), flags)]
    each: tuple[Shape, ...] = ((3, 4, 6, 5), (1, 12, 9, 13), (70, 3), (2, 300))
    for shape, both in zip(each, product((False, True), repeat=2), strict=True):
        rows += [(own, RunningSum(axis, *both)) for own in (shape, (1, 1, 7, 1)) for axis in range(len(own))]
    rows += [((13,), RunningSum(0)), ((7, 5), RunningSum(0)), ((3, 7, 5), RunningSum(1, reverse=True))]
    for shape, found in rows:
        words = " exclusive" * found.exclusive + " reverse" * found.reverse
        yield case_of(op, f"{size_text(shape)} along {found.axis}{words}", [shape], shape, found)


def _local_responses(op: str) -> Iterator[OpCase]:
    attributes = LocalResponse(2, 1.0, 0.5, 0.75), LocalResponse(5, 2.0, 0.1, 0.5)
    rows: list[tuple[Shape, LocalResponse]] = list(product((*MAPS, LARGE), attributes))
    rows += [((1, 4, 5, c), LocalResponse(radius, 1.5, 0.5, 0.75)) for radius, c in ((2, 13), (0, 5), (50, 3), (1, 1))]
    for shape, found in rows:
        yield case_of(op, f"{size_text(shape)} radius {found.radius}", [shape], shape, found)


REDUCTION_CASES: Mapping[str, Callable[[str], Iterator[OpCase]]] = MappingProxyType(
    {
        **dict.fromkeys(
            ("MEAN", "SUM", "REDUCE_PROD", "REDUCE_MAX", "REDUCE_MIN", "REDUCE_ANY", "REDUCE_ALL"), _reductions
        ),
        "TOPK_V2": _tops,
        "CUMSUM": _running_sums,
        "LOCAL_RESPONSE_NORMALIZATION": _local_responses,
        **dict.fromkeys(("SOFTMAX", "LOG_SOFTMAX", "L2_NORMALIZATION"), _normalizations),
    }
)
