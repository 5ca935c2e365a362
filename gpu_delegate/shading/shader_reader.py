"""Reads a fragment shader in the OpenGL Shading Language, as shaders.load gives it, into a tree.

As much of the language's grammar (3.30, section 9) as shaders/ uses: a function has one form, variables are not hidden
by others of their name, and what is not known is refused with the words around it.
"""

from collections.abc import Iterator

from ..base.errors import UnsupportedError
from .shader_tree import (
    MATRICES,
    SAMPLERS,
    SCALARS,
    VECTORS,
    Assignment,
    Binary,
    Call,
    Conditional,
    Declaration,
    Expression,
    Field,
    For,
    If,
    Indexed,
    Literal,
    Named,
    Parameter,
    Return,
    Shader,
    ShaderFunction,
    ShaderStatement,
    Unary,
    Uniform,
)
from .shader_words import words_of

_PRECEDENCE = (
    ("||",), ("^^",), ("&&",), ("|",), ("^",), ("&",), ("==", "!="), ("<", ">", "<=", ">="), ("<<", ">>"), ("+", "-"),
    ("*", "/", "%"),
)  # fmt: skip
_ASSIGNMENTS = ("=", "+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=", "<<=", ">>=")
_QUALIFIERS = ("const", "in", "out", "inout", "uniform", "highp", "mediump", "lowp", "restrict", "readonly")


def read_shader(text: str) -> Shader:
    """A shader with its parameters in place. Raises UnsupportedError for what is not understood."""
    return _Reader(words_of(text)).shader()


class _Reader:
    """Goes through the words from the first to the last."""

    def __init__(self, words: tuple[str, ...]) -> None:
        self._words, self._at = words, 0
        self._structs: dict[str, tuple[tuple[str, str], ...]] = {}

    # Words ------------------------------------------------------------------------------------------------------------

    @property
    def _next(self) -> str:
        return self._words[self._at] if self._at < len(self._words) else ""

    def _take(self) -> str:
        word = self._next
        self._at += 1
        return word

    def _took(self, *words: str) -> bool:
        """Whether the next word is one of these, which is behind us then."""
        if self._next not in words or not self._next:
            return False
        self._at += 1
        return True

    def _expect(self, word: str) -> None:
        if not self._took(word):
            around = " ".join(self._words[max(0, self._at - 6) : self._at + 6])
            raise UnsupportedError(f"a shader has no {word!r} where one is needed: {around}")

    def _is_type(self, word: str) -> bool:
        return word in SCALARS or word in VECTORS or word in MATRICES or word in self._structs or word in SAMPLERS

    # A shader ---------------------------------------------------------------------------------------------------------

    def shader(self) -> Shader:
        """All of it."""
        uniforms, output, constants = list[Uniform](), ("", ""), list[Declaration]()
        functions: dict[str, ShaderFunction] = {}
        while self._next:
            if self._took("struct"):
                self._struct()
                continue
            if self._took("layout"):
                while not self._took(")"):
                    self._take()
            qualifiers = self._qualifiers()
            if "uniform" in qualifiers:
                uniforms += self._uniforms()
            elif "out" in qualifiers:
                output = self._take(), self._take()
                self._expect(";")
            elif self._words[self._at + 2] == "(":
                function = self._function()
                if function.name in functions:
                    raise UnsupportedError(f"a shader has two forms of {function.name}")
                functions[function.name] = function
            else:
                constants += self._declarations()
        return Shader(tuple(uniforms), output, tuple(constants), self._structs, functions)

    def _qualifiers(self) -> list[str]:
        found = list[str]()
        while self._next in _QUALIFIERS:
            found.append(self._take())
        return found

    def _struct(self) -> None:
        name, members = self._take(), list[tuple[str, str]]()
        self._expect("{")
        while not self._took("}"):
            kind = self._take()
            members.append((kind, self._take()))
            while self._took(","):
                members.append((kind, self._take()))
            self._expect(";")
        self._expect(";")
        self._structs[name] = tuple(members)

    def _uniforms(self) -> Iterator[Uniform]:
        kind = self._take()
        while True:
            name, count = self._take(), None
            if self._took("["):
                count = self._expression()
                self._expect("]")
            yield Uniform(kind, name, count)
            if not self._took(","):
                break
        self._expect(";")

    def _function(self) -> ShaderFunction:
        kind, name, parameters = self._take(), self._take(), list[Parameter]()
        self._expect("(")
        while not self._took(")"):
            qualifiers = self._qualifiers()
            parameters.append(Parameter(self._take(), self._take(), "out" in qualifiers))
            self._took(",")
        return ShaderFunction(name, kind, tuple(parameters), self._block())

    # Statements -------------------------------------------------------------------------------------------------------

    def _block(self) -> tuple[ShaderStatement, ...]:
        """Between braces, or one statement."""
        if not self._took("{"):
            return tuple(self._statement())
        found = list[ShaderStatement]()
        while not self._took("}"):
            found += self._statement()
        return tuple(found)

    def _statement(self) -> list[ShaderStatement]:
        if self._next == "{":
            return list(self._block())
        if self._took("if"):
            self._expect("(")
            condition = self._expression()
            self._expect(")")
            then = self._block()
            return [If(condition, then, self._block() if self._took("else") else ())]
        if self._took("for"):
            self._expect("(")
            start = tuple(self._statement())
            condition = self._expression()
            self._expect(";")
            step = tuple(self._changes())
            self._expect(")")
            return [For(start, condition, step, self._block())]
        if self._took("return"):
            value = None if self._next == ";" else self._expression()
            self._expect(";")
            return [Return(value)]
        self._qualifiers()
        if self._is_type(self._next) and self._words[self._at + 1] not in ("(", "["):
            return list(self._declarations())
        changes = list[ShaderStatement](self._changes())
        self._expect(";")
        return changes

    def _declarations(self) -> Iterator[Declaration]:
        """`type name = value, name = value;`."""
        kind = self._take()
        while True:
            name, count, is_array = self._take(), None, False
            if self._took("["):
                is_array = True
                count = None if self._next == "]" else self._expression()
                self._expect("]")
            yield Declaration(kind, name, self._expression() if self._took("=") else None, is_array, count)
            if not self._took(","):
                break
        self._expect(";")

    def _changes(self) -> Iterator[Assignment]:
        """What changes variables, with commas in between."""
        while True:
            if self._next in ("++", "--"):
                sign = self._take()
                yield Assignment(self._postfix(), sign[0], Literal(1))
            else:
                to = self._expression()
                if self._next in ("++", "--"):
                    yield Assignment(to, self._take()[0], Literal(1))
                elif self._next in _ASSIGNMENTS:
                    operator = self._take()[:-1]
                    yield Assignment(to, operator, self._expression())
                elif isinstance(to, Call):
                    yield Assignment(Named(""), "", to)
                else:
                    raise UnsupportedError(f"a shader's statement does nothing near {self._next!r}")
            if not self._took(","):
                return

    # Expressions ------------------------------------------------------------------------------------------------------

    def _expression(self) -> Expression:
        value = self._binary(0)
        if self._took("?"):
            chosen = self._expression()
            self._expect(":")
            return Conditional(value, chosen, self._expression())
        return value

    def _binary(self, level: int) -> Expression:
        if level == len(_PRECEDENCE):
            return self._unary()
        left = self._binary(level + 1)
        while self._next in _PRECEDENCE[level]:
            operator = self._take()
            left = Binary(operator, left, self._binary(level + 1))
        return left

    def _unary(self) -> Expression:
        if self._next in ("-", "+", "!", "~"):
            return Unary(self._take(), self._unary())
        return self._postfix()

    def _postfix(self) -> Expression:
        value = self._primary()
        while True:
            if self._took("."):
                value = Field(value, self._take())
            elif self._took("["):
                value = Indexed(value, self._expression())
                self._expect("]")
            else:
                return value

    def _primary(self) -> Expression:
        if self._took("("):
            value = self._expression()
            self._expect(")")
            return value
        word = self._take()
        if word in ("true", "false"):
            return Literal(word == "true")
        if word[:1].isdigit() or word[:1] == ".":
            return Literal(_number(word))
        if not (word[:1].isalpha() or word[:1] == "_"):
            raise UnsupportedError(f"a shader has {word!r} where a value is needed")
        is_array = self._is_type(word) and self._next == "[" and self._words[self._at + 1] == "]"
        if is_array:
            self._at += 2
        if self._took("("):
            arguments = list[Expression]()
            while not self._took(")"):
                arguments.append(self._expression())
                self._took(",")
            return Call(word, tuple(arguments), is_array)
        return Named(word)


def _number(word: str) -> float | int:
    if word[:2].lower() == "0x":
        return int(word.rstrip("u"), 16)
    return int(word.rstrip("u")) if word.rstrip("u").isdecimal() else float(word)
