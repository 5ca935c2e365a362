"""Counts the instructions that one thread executes, from a kernel's text and its machine code.

Compilers that estimate cycles invent the turns of a loop (ten on Intel, eight on AMD). Here they are known: each loop
of the machine code is matched with the loop of the text that ends at the number which it compares with. Both sides of a
branch count.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

_LOOP = r"for \((?:int )?(?:\w+ = ([^;]+))?; (\w+) < (-?\w+)(?: \* int\([^;]*\))?; (?:\+\+\w+|\w+ \+= (\w+))\)"
_FOR_OR_INT = re.compile(_LOOP + r"|\bint (\w+) = ([^;]+);")
_DEFINE = re.compile(r"^#define (\w+) (-?\d+)\b", re.M)
_NUMBER = re.compile(r"(?<![\w.\[])(?:0x([0-9a-fA-F]{2,8})|(-?\d+))(?:D|UD|W|UW)?\b(?!:)")


@dataclass(frozen=True)
class TextLoop:
    """A loop of the kernel's text: where it ends, and how often it turns."""

    bound: int
    turns: int


@dataclass(frozen=True)
class Code:
    """Machine code: instructions in order, and the first and last of each loop."""

    instructions: tuple[str, ...]
    loops: tuple[tuple[int, int], ...]


def loops_of(source: str) -> tuple[TextLoop, ...]:
    """The loops of a kernel, in the order of the text; one that goes on counting begins where the last one ended.

    A first index that is not a number is a thread's own, less than the step, and counts as 0.
    """
    names = {name: int(value) for name, value in _DEFINE.findall(source)}
    at: dict[str, int] = {}

    def value(text: str) -> int:
        return int(text) if re.fullmatch(r"-?\d+", text) else names.get(text, 0)

    found = []
    for start, name, bound, step, declared, set_to in _FOR_OR_INT.findall(source):
        if declared:
            at[declared] = value(set_to)
            continue
        first = value(start) if start else at.get(name, 0)
        stride, end = max(1, value(step)), value(bound)
        turns = max(0, -(-(end - first) // stride))
        at[name] = first + turns * stride
        found.append(TextLoop(end, turns))
    return tuple(found)


def executed(source: str, code: Code) -> int | None:
    """How many instructions a thread executes; None if the machine code has more loops than the text."""
    turns = _matched(loops_of(source), code)
    if turns is None:
        return None
    total = 0
    for number in range(len(code.instructions)):
        times = 1
        for (first, last), each in zip(code.loops, turns, strict=True):
            times *= each if first <= number <= last else 1
        total += times
    return total


def _matched(found: Sequence[TextLoop], code: Code) -> list[int] | None:
    """The turns of each loop of the machine code: loops stay in order, some are unrolled and gone."""
    if len(found) < len(code.loops):
        return None
    bounds = [set(_compared(code.instructions[max(0, first - 1) : last + 1])) for first, last in code.loops]

    def agreeing(chosen: Sequence[TextLoop]) -> int:
        return sum(loop.bound in own for loop, own in zip(chosen, bounds, strict=True))

    return [loop.turns for loop in max(combinations(found, len(code.loops)), key=agreeing)]


def _compared(instructions: Sequence[str]) -> Iterator[int]:
    """Numbers that instructions of a loop compare with."""
    for line in instructions:
        if "cmp" in line.lower() or "s_movk" in line or "s_mov_b32" in line:
            for hexadecimal, decimal in _NUMBER.findall(line.split(";")[0].split("{")[0]):
                number = int(hexadecimal, 16) if hexadecimal else int(decimal)
                yield number - (1 << 32) if number >= 1 << 31 else number


def intel_code(text: str, width: int) -> Code | None:
    """The machine code for so many threads at once in what INTEL_DEBUG=cs prints, None if there is none."""
    sections = text.split("Native code for unnamed")
    own = [section for section in sections[1:] if re.search(rf"^SIMD{width} shader:", section, re.M)]
    if not own:
        return None
    lines = [line for line in own[-1].split("\nNIR (")[0].splitlines()[2:] if not line.startswith("sync ")]
    return _code(lines, label=re.compile(r"(LABEL\d+):"), jump=re.compile(r"\bwhile\(.*JIP:\s+(LABEL\d+)"))


def amd_code(text: str) -> Code:
    """The machine code in RADV's listing."""
    return _code(text.splitlines(), label=re.compile(r"(BB\d+):"), jump=re.compile(r"s_c?branch\w*\s+(BB\d+)"))


def _code(lines: Sequence[str], label: re.Pattern[str], jump: re.Pattern[str]) -> Code:
    """Loops are jumps back; an instruction's further lines and notes on blocks begin with three spaces."""
    instructions: list[str] = []
    labels: dict[str, int] = {}
    ends: dict[int, int] = {}
    for line in lines:
        if mark := label.fullmatch(line.strip()):
            labels[mark[1]] = len(instructions)
        elif line.strip() and not line.startswith("   "):
            if (target := jump.search(line)) and target[1] in labels:
                ends[labels[target[1]]] = len(instructions)
            instructions.append(line.strip())
    return Code(tuple(instructions), tuple(sorted(ends.items())))
