"""Turns the text of a shader into words: lines of the preprocessor are followed, macros replaced, comments left out.

As section 3 of the OpenGL Shading Language 3.30 has it, as far as shaders/ goes: #if, #ifdef, #elif, #else, #define
with and without arguments. Extensions are taken for missing, and the language for that of OpenGL.
"""

import operator
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from ..base.errors import UnsupportedError

_WORD = re.compile(
    r"\s*(?:(?P<number>(?:\d+\.\d*|\.\d+)(?:[eE][-+]?\d+)?|\d+[eE][-+]?\d+|0[xX][\da-fA-F]+u?|\d+u?)"
    r"|(?P<name>[A-Za-z_]\w*)"
    r"|(?P<mark><<=|>>=|\+\+|--|&&|\|\||\^\^|<<|>>|[-+*/%&|^!<>=]=|[-+*/%&|^!<>=~?:;,.(){}\[\]#]))"
)
_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_VERSION = re.compile(r"#version\s+(\d+)")
_LEVELS: Sequence[Mapping[str, Callable[[int, int], int]]] = (  # operators of conditions, by how strongly they bind
    {"||": lambda a, b: a or b},
    {"&&": lambda a, b: a and b},
    {"==": operator.eq, "!=": operator.ne},
    {"<": operator.lt, ">": operator.gt, "<=": operator.le, ">=": operator.ge},
    {"+": operator.add, "-": operator.sub},
    {"*": operator.mul, "/": lambda a, b: int(a / b) if b else 0, "%": lambda a, b: a % b if b else 0},
)
_MOST_EXPANSIONS = 64  # of macros in macros


@dataclass(frozen=True)
class _Macro:
    """What a name stands for; with arguments it is replaced where a parenthesis follows."""

    body: tuple[str, ...]
    parameters: tuple[str, ...] | None = None


@dataclass
class _Condition:
    """One #if that is open: whether its branch is read, one was read before, and the text around it is."""

    reads: bool
    has_read: bool
    inside: bool


def words_of(text: str) -> tuple[str, ...]:
    """The words of a shader behind its preprocessor. Raises UnsupportedError for what is none of the language."""
    macros = {"__VERSION__": _Macro((_version(text),))}
    found: list[str] = []
    open_conditions: list[_Condition] = []
    for line in _COMMENT.sub(" ", text).splitlines():
        reads = all(each.reads for each in open_conditions)
        if line.lstrip().startswith("#"):
            _follow(line.strip()[1:].strip(), macros, open_conditions, reads)
        elif reads:
            found += _expanded(words_in(line), macros)  # a name means what it does in its line
    return tuple(found)


def words_in(line: str) -> list[str]:
    """The words of a line. Raises UnsupportedError."""
    found, at, end = list[str](), 0, len(line.rstrip())
    while at < end:
        match = _WORD.match(line, at)
        if match is None:
            raise UnsupportedError(f"a shader has {line[at:].strip()[:20]!r}, which is no word of its language")
        found.append(match[match.lastgroup or 0])
        at = match.end()
    return found


def _version(text: str) -> str:
    match = _VERSION.search(text)
    return match[1] if match else "330"


def _follow(line: str, macros: dict[str, _Macro], conditions: list[_Condition], reads: bool) -> None:
    """A line of the preprocessor."""
    word, _, rest = line.partition(" ")
    if word in ("if", "ifdef", "ifndef"):
        holds = reads and _holds(word, rest, macros)
        conditions.append(_Condition(holds, holds, reads))
    elif word in ("elif", "else"):
        last = conditions[-1]
        last.reads = last.inside and not last.has_read and (word == "else" or _holds("if", rest, macros))
        last.has_read |= last.reads
    elif word == "endif":
        conditions.pop()
    elif word == "define" and reads:
        name, macro = _defined(rest)
        macros[name] = macro


def _holds(word: str, rest: str, macros: Mapping[str, _Macro]) -> bool:
    if word != "if":
        return (rest.strip() in macros) == (word == "ifdef")
    return bool(_value(_expanded(_without_defined(words_in(rest), macros), macros)))


def _without_defined(words: Sequence[str], macros: Mapping[str, _Macro]) -> list[str]:
    """`defined NAME` and `defined(NAME)` as numbers."""
    found, at = list[str](), 0
    while at < len(words):
        if words[at] != "defined":
            found.append(words[at])
            at += 1
            continue
        in_parentheses = words[at + 1] == "("
        found.append(str(int(words[at + 1 + in_parentheses] in macros)))
        at += 4 if in_parentheses else 2
    return found


def _value(words: Iterator[str]) -> int:
    """Of a condition: whole numbers, and names that nobody defined, which are 0. Raises UnsupportedError."""
    left = list(words)
    found = _operated(left, 0)
    if left:
        raise UnsupportedError(f"a shader's condition goes on with {left[0]!r}")
    return found


def _operated(left: list[str], level: int) -> int:
    """Of what binds at least as strongly as a level; it is taken from the words that are left."""
    if level == len(_LEVELS):
        return _operand(left)
    found = _operated(left, level + 1)
    while left and left[0] in _LEVELS[level]:
        operation = _LEVELS[level][left.pop(0)]
        found = int(operation(found, _operated(left, level + 1)))
    return found


def _operand(left: list[str]) -> int:
    word = left.pop(0) if left else ""
    if word in ("!", "-"):
        value = _operand(left)
        return int(not value) if word == "!" else -value
    if word == "(":
        found = _operated(left, 0)
        if not left or left.pop(0) != ")":
            raise UnsupportedError("a shader's condition has a parenthesis that stays open")
        return found
    if word.isdecimal():
        return int(word)
    if word.isidentifier():
        return 0
    raise UnsupportedError(f"a shader's condition has {word!r} where a whole number is needed")


def _defined(rest: str) -> tuple[str, _Macro]:
    """A macro's name, and what it stands for."""
    words = words_in(rest)
    name = words[0]
    if not rest.lstrip()[len(name) :].startswith("("):
        return name, _Macro(tuple(words[1:]))
    end = words.index(")")
    parameters = tuple(word for word in words[2:end] if word != ",")
    return name, _Macro(tuple(words[end + 1 :]), parameters)


def _expanded(words: Sequence[str], macros: Mapping[str, _Macro], depth: int = 0) -> Iterator[str]:
    """Words with macros replaced, also in what replaces them."""
    if depth > _MOST_EXPANSIONS:
        raise UnsupportedError("a shader's macros stand for each other")
    at = 0
    while at < len(words):
        word = words[at]
        at += 1
        macro = macros.get(word)
        if macro is None or (macro.parameters is not None and (at == len(words) or words[at] != "(")):
            yield word
            continue
        body: Sequence[str] = macro.body
        if macro.parameters is not None:
            given, at = _arguments(words, at)
            replaced = dict(zip(macro.parameters, given, strict=True))
            body = [inner for each in body for inner in replaced.get(each, [each])]
        yield from _expanded(body, macros, depth + 1)


def _arguments(words: Sequence[str], at: int) -> tuple[list[list[str]], int]:
    """The arguments of a macro whose parenthesis opens at a place, and the place behind it."""
    given, depth = [list[str]()], 0
    while True:
        word = words[at]
        at += 1
        depth += (word == "(") - (word == ")")
        if depth == 0:
            return given, at
        if word == "," and depth == 1:
            given.append([])
        elif not (word == "(" and depth == 1):
            given[-1].append(word)
