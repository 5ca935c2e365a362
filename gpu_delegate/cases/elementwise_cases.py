"""Cases of elementwise ops: maps, tables, vectors, and operands that broadcast."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import product
from types import MappingProxyType
from typing import Any

import numpy as np

from ..model.graph import Activated, Alpha, Attributes, Shape
from ..ops.cast import Cast
from ..ops.division import Division
from ..ops.elementwise import Gelu
from ..ops.fake_quant import FakeQuant
from ..ops.record import OpRecord
from .op_case import CHANNELS, LARGE, MAPS, OpCase, case_of, size_text

_RANGES: Mapping[str, tuple[float, float]] = MappingProxyType(
    {
        **dict.fromkeys(("POW", "DIV", "FLOOR_DIV", "FLOOR_MOD"), (0.25, 4.0)),
        **dict.fromkeys(("LOG", "SQRT", "RSQRT"), (0.1, 4.0)),
        **dict.fromkeys(("EXP", "ELU", "GELU", "LOGISTIC", "TANH", "HARD_SWISH"), (-8.0, 8.0)),
        **dict.fromkeys(("SIN", "COS"), (-20.0, 20.0)),
        **dict.fromkeys(("RELU", "RELU_N1_TO_1", "RELU_0_TO_1", "ABS", "NEG", "SQUARE"), (-4.0, 4.0)),
        **dict.fromkeys(("SIGN", "CEIL", "FLOOR", "ROUND"), (-4.0, 4.0)),
        "RELU6": (-4.0, 9.0),
    }
)
_ACTIVATIONS = ("RELU", "RELU6", "RELU_N1_TO_1")
_FURTHER: Mapping[str, tuple[Attributes, ...]] = MappingProxyType(  # beside those of the record's example
    {
        "GELU": (Gelu(approximate=True),),
        "FAKE_QUANT": (
            FakeQuant(-1.5, 1.0, 4),
            FakeQuant(0.25, 1.75),
            FakeQuant(-2.0, -0.5),
            FakeQuant(-0.9, 0.9, 16),
        ),
        "LEAKY_RELU": (Alpha(-0.25), Alpha(0.3), Alpha(2.0)),
        **dict.fromkeys(("ADD", "SUB", "MUL"), tuple(map(Activated, _ACTIVATIONS))),
        "DIV": tuple(map(Division, _ACTIVATIONS)),
    }
)
_FAR: Mapping[str, float] = MappingProxyType(  # from zero, where these are flat or turn fast
    {
        **dict.fromkeys(("LOGISTIC", "TANH", "HARD_SWISH", "RELU6"), 120.0),
        **dict.fromkeys(("SIN", "COS"), 60.0),
        "GELU": 40.0,
        "ELU": 200.0,
    }
)
_FAR_SIZES: tuple[Shape, ...] = ((1, 3, 3, 5), (1, 5, 7, 3), (1, 5, 7, 5), (1, 5, 7, 13))
_LOWER_RANKS: tuple[Shape, ...] = ((13,), (7, 5), (3, 7, 5))
_ALIKE = frozenset({"ADD_N", "ATAN2", "SELECT"})  # whose operands do not broadcast
# Behind a map of 3x5x7x5; the first of a pair is the first operand, and constants come last.
_BESIDE: tuple[Shape, ...] = ((), (5,), (1, 1, 1, 5), (1, 5, 7, 5), (3, 5, 7, 1), (3, 1, 1, 5), (3, 5, 1, 5), (7, 1))
_MAP: Shape = (3, 5, 7, 5)
_ONE_MAP: Shape = (1, 4, 6, 5)
_BESIDE_ONE: tuple[Shape, ...] = ((), (1,), (5,), (1, 5), (4, 6, 5), (1, 1, 1, 5), (1, 4, 6, 1), _ONE_MAP)
_COMPARED = frozenset({"EQUAL", "NOT_EQUAL", "GREATER", "GREATER_EQUAL", "LESS", "LESS_EQUAL"})
_PAIRED = frozenset({"SUB", "DIV", "MUL"})
_PAIRS: tuple[tuple[Shape, Shape], ...] = (  # of size 1 in any dimensions, on either side and on both
    ((1, 4, 6, 5), (1, 1, 6, 5)), ((1, 4, 6, 5), (1, 4, 1, 5)), ((1, 4, 6, 5), (1, 1, 6, 1)),
    ((1, 4, 6, 5), (4, 1, 1)), ((1, 13, 1, 5), (1, 1, 7, 5)), ((1, 13, 1, 1), (1, 1, 7, 13)), ((1, 4, 6, 1), (3,)),
    ((6, 5), (4, 6, 5)), ((13,), (13,)), ((), (3, 5)), ((3, 1), (5,)), ((1, 1, 6, 1), (1, 4, 1, 1)),
    ((3, 4, 6, 5), (3, 4, 6, 5)), ((3, 4, 6, 5), (5,)), ((3, 4, 6, 5), (3, 1, 1, 5)), ((3, 4, 6, 5), (1, 4, 6, 5)),
    ((3, 4, 6, 5), (3, 4, 1, 1)), ((3, 4, 6, 5), (1, 4, 1, 5)), ((3, 4, 6, 5), (3, 1, 6, 5)),
    ((3, 1, 6, 5), (1, 4, 1, 5)), ((3, 1, 1, 1), (1, 1, 7, 1)), ((2, 1, 1, 13), (1, 1, 1, 13)),
    ((2, 1, 6, 5), (1, 1, 6, 1)), ((2, 40, 33, 3), (1, 40, 1, 3)), ((3, 5, 1, 3), (3, 1, 1, 1)),
)  # fmt: skip


def elementwise_cases(record: OpRecord) -> Iterator[OpCase]:
    """All of an op's."""
    given, limits = record.example, dict[str, Any]()
    if record.name in _RANGES:
        low, high = _RANGES[record.name]
        limits = {"low": low, "high": high, "like_constants": True}
    if not given.shapes:
        yield from _of_constants(record)
        return
    if record.name == "CAST":
        yield from _casts()
        return

    if record.name in _COMPARED:
        limits |= {"whole": True, "like_constants": True}  # or none were equal

    def row(what: str, shapes: list[Shape], out: Shape, attributes: Attributes, constants: list[Shape]) -> OpCase:
        return case_of(record.name, what, shapes, out, attributes, constants, **limits)

    count = len(given.shapes)
    for shape in (*MAPS, *_LOWER_RANKS, _ONE_MAP, LARGE):
        slopes = [shape[-1:]] * len(given.constants)
        yield row(size_text(shape), [shape] * count, shape, given.attributes, slopes)
    for attributes, shape in product(_FURTHER.get(record.name, ()), (_MAP, (1, 5, 7, 3), (1, 5, 7, 5))):
        text = ", ".join(str(value) for value in vars(attributes).values())
        yield row(f"{size_text(shape)} {text}", [shape] * count, shape, attributes, [])
    if count == 2 and record.name not in _ALIKE:
        for other in _BESIDE:
            yield row(f"map and {size_text(other)}", [_MAP, other], _MAP, given.attributes, [])
            if given.dtype == "float32":
                yield row(f"map and constant {size_text(other)}", [_MAP], _MAP, given.attributes, [other])
        yield row("row and column", [(3, 1, 7, 5), (1, 5, 1, 5)], _MAP, given.attributes, [])
        yield row("vector and map", [(5,), _MAP], _MAP, given.attributes, [])
        yield from _beside_one(record, limits)
    if record.name == "PRELU":
        for other in ((), (1, 1, 5), (5, 7, 5)):
            yield row(f"slopes {size_text(other)}", [_MAP], _MAP, given.attributes, [other])
        for other in ((), (5,), (1, 1, 5), (1, 1, 1, 1), (1, 4, 6, 1), _ONE_MAP):
            yield row(
                f"{size_text(_ONE_MAP)} slopes {size_text(other)}", [_ONE_MAP], _ONE_MAP, given.attributes, [other]
            )
        yield row("slopes that are an input", [_ONE_MAP] * 2, _ONE_MAP, given.attributes, [])
    if record.name == "ADD_N":
        for terms in (2, 3, 20):
            yield row(f"of {terms}", [(1, 4, 5, 3)] * terms, (1, 4, 5, 3), given.attributes, [])
    if record.name == "ATAN2":
        for shape in ((1, 4, 6, 1), (1, 4, 6, 13), (1, 1, 1, 5)):
            yield row(size_text(shape), [shape] * 2, shape, given.attributes, [])
    if record.name in _FAR:
        far = _FAR[record.name]
        for attributes, shape in product((given.attributes, *_FURTHER.get(record.name, ())), _FAR_SIZES):
            text = f"{size_text(shape)}{''.join(f' {value}' for value in vars(attributes).values())}"
            yield case_of(record.name, f"far from zero {text}", [shape], shape, attributes, low=-far, high=far)
    if record.name == "SELECT_V2":
        yield row("by a mask", [(3, 5, 7, 1), _MAP, _MAP], _MAP, given.attributes, [])
        yield row("map or constant", [_MAP, _MAP], _MAP, given.attributes, [()])


def _beside_one(record: OpRecord, limits: dict[str, Any]) -> Iterator[OpCase]:
    """What has two operands that broadcast: of one map, and of pairs of any shapes."""
    op, given = record.name, record.example
    first = size_text(_ONE_MAP)
    for other in _BESIDE_ONE:
        yield case_of(op, f"{first} and {size_text(other)}", [_ONE_MAP, other], _ONE_MAP, given.attributes, **limits)
        if given.dtype == "float32":
            what = f"{first} and constant {size_text(other)}"
            yield case_of(op, what, [_ONE_MAP], _ONE_MAP, given.attributes, [other], **limits)
    for shapes in (((1, 1, 1, 5), _ONE_MAP), ((1, 1, 1, 5), (1, 1, 1, 1)), ((1, 1, 1, 5), (1, 1, 1, 5))):
        out = np.broadcast_shapes(*shapes)
        yield case_of(op, " and ".join(map(size_text, shapes)), shapes, out, given.attributes, **limits)
    for channels in (1, 3, 13):
        shape = (1, 4, 6, channels)
        yield case_of(op, size_text(shape), [shape, shape], shape, given.attributes, **limits)
    for pair in _PAIRS if op in _PAIRED else ():
        out, (before, behind) = np.broadcast_shapes(*pair), (pair if op != "DIV" else pair[::-1])
        what = f"{size_text(before)} and {size_text(behind)}"
        if op == "MUL":
            yield case_of(op, f"{what}, constant", [before], out, given.attributes, [behind], **limits)
        else:
            yield case_of(op, f"{what}, inputs", [before, behind], out, given.attributes, **limits)


def _of_constants(record: OpRecord) -> Iterator[OpCase]:
    """Ops that are computed before anything runs, each read by an ADD; DEQUANTIZE also of bytes at run time."""
    if record.name == "DEQUANTIZE":
        for shape in (*MAPS, *_LOWER_RANKS, LARGE):
            of_bytes = replace(record.example, shapes=(shape,), constants=(), out=shape, dtype="int8")
            yield OpCase(record.name, f"int8 {size_text(shape)}", of_bytes)
    for channels in CHANNELS:
        shape = (1, 5, 7, channels)
        example = replace(record.example, out=shape, constants=(shape,))
        yield OpCase(record.name, size_text(shape), example)


def _casts() -> Iterator[OpCase]:
    pairs = (("bool", "float32"), ("float32", "bool"), ("float32", "int32"), ("bool", "int32"))
    for source, target in pairs:
        for shape in (*MAPS, (13,), LARGE):
            what = f"{source} to {target} {size_text(shape)}"
            made = case_of("CAST", what, [shape], shape, Cast(source, target), low=-9.0, high=9.0)
            yield replace(made, example=replace(made.example, dtype=source, out_dtype=target))
    shape, far = (1, 4, 6, 13), 1e6
    cast = case_of("CAST", "large fractions to int32", [shape], shape, Cast("float32", "int32"), low=-far, high=far)
    yield replace(cast, example=replace(cast.example, dtype="float32", out_dtype="int32"))
