"""The record of an elementwise op goes in, its cases come out: maps, tables, vectors, and operands that repeat."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from ..model.graph import Activated, Alpha, Attributes, Shape
from ..ops.cast import Cast
from ..ops.elementwise import Gelu
from ..ops.fake_quant import FakeQuant
from ..ops.record import OpRecord
from .op_case import CHANNELS, LARGE, MAPS, OpCase, case_of, size_text

_RANGES: Mapping[str, tuple[float, float]] = MappingProxyType(
    {
        **dict.fromkeys(("LOG", "SQRT", "RSQRT", "POW", "DIV", "FLOOR_DIV", "FLOOR_MOD"), (0.25, 4.0)),
        **dict.fromkeys(("EXP", "ELU", "GELU", "LOGISTIC", "TANH", "HARD_SWISH"), (-8.0, 8.0)),
        **dict.fromkeys(("SIN", "COS"), (-20.0, 20.0)),
        "RELU6": (-2.0, 9.0),
    }
)
_FURTHER: Mapping[str, tuple[Attributes, ...]] = MappingProxyType(  # beside those of the record's example
    {
        "GELU": (Gelu(approximate=True),),
        "FAKE_QUANT": (
            FakeQuant(-1.5, 1.0, 4),
            FakeQuant(0.25, 1.75),
            FakeQuant(-2.0, -0.5),
            FakeQuant(-0.9, 0.9, 16),
        ),
        "LEAKY_RELU": (Alpha(-0.25), Alpha(2.0)),
        **dict.fromkeys(("ADD", "SUB", "MUL", "DIV"), tuple(map(Activated, ("RELU", "RELU6", "RELU_N1_TO_1")))),
    }
)
_LOWER_RANKS: tuple[Shape, ...] = ((13,), (7, 5), (3, 7, 5))
_ALIKE = frozenset({"ADD_N", "ATAN2", "SELECT"})  # whose operands do not broadcast
# Behind a map of 3x5x7x5; the first of a pair is the first operand, and constants come last.
_BESIDE: tuple[Shape, ...] = ((), (5,), (1, 1, 1, 5), (1, 5, 7, 5), (3, 5, 7, 1), (3, 1, 1, 5), (3, 5, 1, 5), (7, 1))
_MAP: Shape = (3, 5, 7, 5)


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

    def row(what: str, shapes: list[Shape], out: Shape, attributes: Attributes, constants: list[Shape]) -> OpCase:
        return case_of(record.name, what, shapes, out, attributes, constants, **limits)

    count = len(given.shapes)
    for shape in (*MAPS, *_LOWER_RANKS, LARGE):
        slopes = [shape[-1:]] * len(given.constants)
        yield row(size_text(shape), [shape] * count, shape, given.attributes, slopes)
    for attributes in _FURTHER.get(record.name, ()):
        text = ", ".join(str(value) for value in vars(attributes).values())
        yield row(f"{size_text(_MAP)} {text}", [_MAP] * count, _MAP, attributes, [])
    if count == 2 and record.name not in _ALIKE:
        for other in _BESIDE:
            yield row(f"map and {size_text(other)}", [_MAP, other], _MAP, given.attributes, [])
            if given.dtype == "float32":
                yield row(f"map and constant {size_text(other)}", [_MAP], _MAP, given.attributes, [other])
        yield row("row and column", [(3, 1, 7, 5), (1, 5, 1, 5)], _MAP, given.attributes, [])
        yield row("vector and map", [(5,), _MAP], _MAP, given.attributes, [])
    if record.name == "PRELU":
        for other in ((), (1, 1, 5), (5, 7, 5)):
            yield row(f"slopes {size_text(other)}", [_MAP], _MAP, given.attributes, [other])
    if record.name == "SELECT_V2":
        yield row("by a mask", [(3, 5, 7, 1), _MAP, _MAP], _MAP, given.attributes, [])
        yield row("map or constant", [_MAP, _MAP], _MAP, given.attributes, [()])


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
