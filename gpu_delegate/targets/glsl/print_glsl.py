"""Prints values and statements of kernels as GLSL: the one place that knows GLSL's syntax.

READ, WEIGHT, WRITE and keep are the words of shaders/vocabulary.glsl.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache
from types import MappingProxyType
from typing import Any

import numpy as np

from ...code.expressions import Slice
from ...code.text_length import FUNCTIONS, JOINS, SIGNS, WHOLE
from ...code.vocabulary import (
    AcrossLanes,
    AddTo,
    Argument,
    Assign,
    Choose,
    ChooseLanes,
    Compared,
    Declare,
    Element,
    Elementwise,
    ForEach,
    ForRange,
    GridIndex,
    Halves,
    Inside,
    Keep,
    Lane,
    Leave,
    LoadFrom,
    Name,
    Not,
    OnGrid,
    Operand,
    Operation,
    Repeated,
    Reserve,
    Shared,
    Splat,
    Statement,
    StoreShared,
    StoreTo,
    Sum,
    Synchronize,
    Tap,
    Texel,
    Value,
    Vector,
    Weight,
    When,
    Widened,
    combined,
    type_of,
    values_in,
)

ONE = "int(gl_NumWorkGroups.x > 0u)"  # which no compiler can know
_LANES = "xyzw"
_LOOSE: Mapping[type, int] = MappingProxyType({Inside: 4, OnGrid: 3, Elementwise: 0, Texel: 5, Element: 5})
_GRID: Mapping[str, str] = MappingProxyType(
    {"thread": "gl_GlobalInvocationID", "group": "gl_WorkGroupID", "thread in group": "gl_LocalInvocationID"}
)
_LANE_COMPARISONS: Mapping[str, str] = MappingProxyType(
    {
        "less": "lessThan",
        "greater": "greaterThan",
        "at least": "greaterThanEqual",
        "at most": "lessThanEqual",
        "equal": "equal",
        "not equal": "notEqual",
    }
)
_QUOTIENT = (
    "vec4(uvec4(abs({0})) / max(uvec4(abs({1})), 1u)) * sign({0}) * sign({1} + 0.5)"  # half above it a 0 is no 0
)
_PATTERNS: Mapping[str, tuple[str, int]] = MappingProxyType(  # functions that are more than a call: how each binds
    {
        "negate": ("-{0}", 8),
        "multiply add": ("{2} + {0} * {1}", 5),
        "exponential less one": ("exp({0}) - 1.0", 5),
        "whole quotient": (_QUOTIENT, 6),
    }
)
_CALLS: Mapping[str, str] = MappingProxyType(
    {
        "absolute": "abs",
        "sign": "sign",
        "ceiling": "ceil",
        "truncate": "trunc",
        "round even": "roundEven",
        "square root": "sqrt",
        "inverse square root": "inversesqrt",
        "exponential": "exp",
        "logarithm": "log",
        "hyperbolic tangent": "tanh_exact",
        "logistic": "logistic",
        "hard swish": "hard_swish",
    }
)
_LIBRARIES: Mapping[str, Mapping[str, str]] = MappingProxyType(  # files of shaders/ that a kernel has if it calls any
    {
        "erf.glsl": {"error function": "erf"},
        "power.glsl": {"power": "power"},
        "atan2.glsl": {"angle": "atan2"},
        "waves.glsl": {"sine": "sine", "cosine": "cosine"},
        "floor_mod.glsl": {
            "floor quotient": "floor_div",
            "floor remainder": "floor_mod",
            "whole floor quotient": "whole_floor_div",
            "whole floor remainder": "whole_floor_mod",
        },
        "digits.glsl": {
            "int32 product": "int32_product",
            "int32 quotient": "int32_quotient",
            "int32 floor quotient": "int32_floor_quotient",
            "int32 floor remainder": "int32_floor_remainder",
            "int64 product": "int64_product",
            "int64 floor remainder": "int64_floor_remainder",
            "int32 value": "int32_value",
            "int64 value": "int64_value",
            "digit of halves": "digit_of_halves",
            "carry of halves": "carry_of_halves",
        },
        "requantize.glsl": {
            "requantize": "requantize",
            "requantize narrow": "requantize_narrow",
            "requantize once": "requantize_once",
            "round to steps": "round_to_steps",
            "add steps": "add_steps",
            "hard swish steps": "hard_swish_steps",
        },
        "wide.glsl": {
            "requantize wide": "requantize_wide",
            "requantize wide once": "requantize_wide_once",
            "requantize product": "requantize_product",
            "add short steps": "add_short_steps",
            "softmax steps": "softmax_steps",
        },
    }
)
_BINDINGS: Mapping[str, int] = MappingProxyType(  # how tightly operations bind that are no calls
    {**{word: binding for word, (_, binding) in _PATTERNS.items()}, **{w: binding for w, (_, binding) in SIGNS.items()}}
)
_NAMES = MappingProxyType({**FUNCTIONS, **_CALLS, **{k: v for names in _LIBRARIES.values() for k, v in names.items()}})


WORDS = frozenset({*_NAMES, *_PATTERNS, *SIGNS})  # of operations


def glsl(value: Operand) -> str:
    """The expression of a value."""
    return _WORDS[type(value)](value)


@lru_cache(maxsize=4096)  # of few ops, asked for each of their values
def _pattern(arithmetic: Value) -> str:
    """The text of what an elementwise op computes, with {0}, {1}, ... for its arguments."""
    return glsl(arithmetic)


def expression(arithmetic: Value, operands: Iterable[str]) -> str:
    """The text of what an elementwise op computes of operands, each a word, a call or in brackets."""
    return _pattern(arithmetic).format(*operands)


def libraries_of(arithmetic: Iterable[Value]) -> list[str]:
    """The files of shaders/ with functions that elementwise ops call, each once."""
    called = (v.operation for value in arithmetic for v in values_in(value) if isinstance(v, Operation))
    return list(dict.fromkeys(file for each in called for file, names in _LIBRARIES.items() if each in names))


_BLOCKS = (ForEach, ForRange, When)


def lines(statements: Iterable[Statement], depth: int = 1) -> Iterator[str]:
    """The lines of statements, indented."""
    space = "    " * depth
    for statement in statements:
        if isinstance(statement, _BLOCKS):
            yield f"{space}{_head(statement)}{{"
            yield from lines(statement.body, depth + 1)
            if isinstance(statement, When) and statement.otherwise:
                yield f"{space}}} else {{"
                yield from lines(statement.otherwise, depth + 1)
            yield f"{space}}}"
        else:
            yield space + _line(statement)


def _head(statement: ForEach | ForRange | When) -> str:
    if isinstance(statement, When):
        return f"if ({glsl(statement.condition)}) "
    if isinstance(statement, ForRange):
        name, limit, step = statement.name.name, glsl(statement.limit), statement.step
        following = f"++{name}" if step == 1 else f"{name} += {step}"
        return f"for (int {name} = {glsl(statement.start)}; {name} < {limit}; {following}) "
    rolled = "" if statement.may_unroll else f" * {ONE}"
    loops = ((name.name, f"{count}{rolled}") for name, count in statement.over)
    return "".join(f"for (int {name} = 0; {name} < {limit}; ++{name}) " for name, limit in loops)


def shared_array(name: str, texels: int) -> str:
    """The declaration of an array in shared memory."""
    return f"shared vec4 {name}[{texels}];"


def _line(statement: Declare | Reserve | Assign | AddTo | StoreTo | StoreShared | Synchronize | Leave) -> str:
    if isinstance(statement, Declare):
        declared = "HALF4" if statement.name.type == "half4" else statement.name.type
        return f"{declared} {statement.name.name} = {glsl(statement.value)};"
    if isinstance(statement, (Assign, AddTo)):
        sign = "=" if isinstance(statement, Assign) else "+="
        return f"{statement.name.name} {sign} {glsl(statement.value)};"
    if isinstance(statement, Reserve):
        return f"{statement.names[0].type} {', '.join(name.name for name in statement.names)};"
    if isinstance(statement, StoreTo):
        return f"WRITE({statement.target}, {glsl(statement.at)}, {glsl(statement.value)});"
    if isinstance(statement, StoreShared):
        return f"{statement.array}[{glsl(statement.at)}] = {glsl(statement.value)};"
    if isinstance(statement, Synchronize):
        return "SYNC();"
    return f"if ({glsl(statement.condition)}) return;"


# Values ---------------------------------------------------------------------------------------------------------------


def _binding(value: Operand) -> int:
    """How tightly the text of a value holds together."""
    kind = type(value)
    if kind is Name:  # most are
        return WHOLE
    if isinstance(value, Operation):
        return _BINDINGS.get(value.operation, WHOLE)
    if isinstance(value, Tap):
        return 0 if value.branches else WHOLE
    return _LOOSE.get(kind, WHOLE)


def _within(value: Operand, binding: int) -> str:
    """The text of a part of an expression, in brackets where it binds less tightly."""
    text = glsl(value)
    return text if _binding(value) >= binding else f"({text})"


def _atom(value: Operand) -> str:
    return _within(value, WHOLE)


def _number(value: float) -> str:
    """A float with all its digits; one that is not finite by its bits."""
    if math.isfinite(value):
        return repr(value).replace("e+", "e")
    return f"uintBitsToFloat(0x{int(np.float32(value).view(np.uint32)):08x}u)"


def _operation(value: Operation) -> str:
    if value.operation in _NAMES:
        return f"{_NAMES[value.operation]}({', '.join(_given(value))})"
    if value.operation in _PATTERNS:
        return _PATTERNS[value.operation][0].format(*map(_atom, value.operands))
    sign, binding = SIGNS[value.operation]
    left, right = value.operands
    return f"{_within(left, binding)} {sign} {_within(right, binding + (sign not in JOINS))}"


def _given(value: Operation) -> Iterator[str]:
    """What a function is given: vectors, and floats where GLSL's own function takes them all behind a vector."""
    first, *others = map(type_of, value.operands)
    takes_floats = value.operation in FUNCTIONS and "vec4" not in others
    for number, (operand, kind) in enumerate(zip(value.operands, (first, *others), strict=True)):
        is_vector = value.type != "vec4" or kind == "vec4" or (takes_floats and number > 0)
        yield glsl(operand) if is_vector else f"vec4({glsl(operand)})"


def _sum(value: Sum) -> str:
    """In brackets, whatever stands around it."""
    text = " + ".join(_atom(term) if factor == 1 else f"{_atom(term)} * {factor}" for term, factor in value.terms)
    rest = f" {'-' if value.constant < 0 else '+'} {abs(value.constant)}" if value.constant else ""
    return f"({text}{rest})"


def _lane(value: Lane) -> str:
    if isinstance(value.lane, int):
        return f"{_atom(value.value)}.{_LANES[value.lane]}"
    return f"{_atom(value.value)}[{glsl(value.lane)}]"


def _across(value: AcrossLanes) -> str:
    return f"({glsl(combined(value.operation, [Lane(value.value, lane) for lane in range(4)]))})"


def _keep(value: Keep) -> str:
    text, left = glsl(value.value), f"{value.channels} - 4 * ({glsl(value.at)})"
    if value.other is None:
        return f"keep({text}, {left})"
    return f"mix(vec4({_number(value.other)}), {text}, lessThan(ivec4(0, 1, 2, 3), ivec4({left})))"


def _choose_lanes(value: ChooseLanes) -> str:
    """mix() with truth values takes one of both, whatever the other is."""
    left, right, inside, other = map(glsl, (value.left, value.right, value.value, value.other))
    return f"mix({other}, {inside}, {_LANE_COMPARISONS[value.comparison]}({left}, {right}))"


def _on_grid(value: OnGrid) -> str:
    text, stride = glsl(value.value), value.stride
    return f"({text}) >= 0 && ({text}) % {stride} == 0 && ({text}) / {stride} < {value.size}"


def _tap(value: Tap) -> str:
    """mix() with a truth value takes one of both, whatever the other is."""
    valid, inside, outside = map(glsl, (value.valid, value.value, value.outside))
    return f"{valid} ? {inside} : {outside}" if value.branches else f"mix({outside}, {inside}, bvec4({valid}))"


def halves(value: Operand) -> str:
    """The text of sums and products in half precision; what they are made of is converted."""
    if isinstance(value, Operation):
        sign, _ = SIGNS[value.operation]
        left, right = map(halves, value.operands)
        return f"({left} {sign} {right})"
    return f"{'half4' if type_of(value) == 'vec4' else 'half1'}({glsl(value)})"


def _element(value: Element) -> str:
    first, *others = value.at
    text = _atom(first)
    for at, length in zip(others, value.lengths, strict=True):
        text = f"({text}) * {length} + {_atom(at)}"
    return f"{value.base} + {text}"


def _texel(value: Texel) -> str:
    start = str(value.at * value.pixels) if isinstance(value.at, int) else f"({_atom(value.at)}) * {value.pixels}"
    return f"{start} + {glsl(value.pixel)}"


_WORDS: Mapping[type, Callable[[Any], str]] = MappingProxyType(
    {
        bool: lambda value: str(value).lower(),
        int: str,
        float: _number,
        Name: lambda value: value.name,
        Slice: lambda value: _atom(value.at),
        Operation: _operation,
        Sum: _sum,
        Not: lambda value: f"!{_atom(value.condition)}",
        GridIndex: lambda value: f"int({_GRID[value.of]}.{value.axis})",
        Inside: lambda value: f"uint({glsl(value.value)}) < {value.size}u",
        OnGrid: _on_grid,
        Lane: _lane,
        Vector: lambda value: f"vec{len(value.lanes)}({', '.join(map(glsl, value.lanes))})",
        Splat: lambda value: f"vec4({_number(value.value)})",
        Repeated: lambda value: f"{_atom(value.value)}.xxxx",
        AcrossLanes: _across,
        Keep: _keep,
        Choose: lambda v: f"({glsl(v.condition)} ? {glsl(v.value)} : {glsl(v.other)})",
        ChooseLanes: _choose_lanes,
        Tap: _tap,
        Compared: lambda v: f"vec4({_LANE_COMPARISONS[v.comparison]}({glsl(v.left)}, {glsl(v.right)}))",
        Argument: lambda value: f"{{{value.number}}}",
        Elementwise: lambda v: expression(v.arithmetic, map(_atom, (*v.operands, *v.constants))),
        Halves: lambda value: halves(value.value),
        Widened: lambda value: f"vec4({glsl(value.value)})",
        Texel: _texel,
        Element: _element,
        LoadFrom: lambda value: f"READ({value.source}, {glsl(value.at)})",
        Weight: lambda value: f"WEIGHT({glsl(value.at)})",
        Shared: lambda value: f"{value.array}[{glsl(value.at)}]",
    }
)
