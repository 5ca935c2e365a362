"""Writes the text of modules in LLVM's intermediate representation (llvm.org/docs/LangRef).

A plain writer of text, since a network takes tens of thousands of instructions, and the start waits for them. Variables
are allocas, which LLVM's mem2reg turns into registers; loops and branches are blocks of Python's `with`.
"""

import struct
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

import numpy as np

I1, I8, I32, I64, HALF, FLOAT, POINTER, VOID = "i1", "i8", "i32", "i64", "bfloat", "float", "ptr", "void"


class Register(NamedTuple):
    """A value of LLVM: what it is called, or a constant, and its type."""

    text: str
    type: str

    @property
    def operand(self) -> str:
        """As instructions take it: with its type."""
        return f"{self.type} {self.text}"


def vector(element: str, lanes: int) -> str:
    """The type of a vector; of one lane it is the element's own."""
    return element if lanes == 1 else f"<{lanes} x {element}>"


def integer(value: int, kind: str = I32) -> Register:
    """A constant int."""
    return Register(str(value), kind)


def number(value: float) -> Register:
    """A constant float: its bits, widened to a double, as LLVM writes floats."""
    return Register(f"0x{struct.pack('>d', np.float32(value)).hex().upper()}", FLOAT)


def constants(values: Sequence[Register]) -> Register:
    """A constant vector of constants of one type."""
    return Register(f"<{', '.join(value.operand for value in values)}>", vector(values[0].type, len(values)))


def filled(value: Register, lanes: int) -> Register:
    """A constant vector of one constant in all lanes."""
    return value if lanes == 1 else Register(f"splat ({value.operand})", vector(value.type, lanes))


def lanes_of(kind: str) -> int:
    """How many lanes a type has: 1 where it is no vector."""
    return int(kind[1 : kind.index(" ")]) if kind[0] == "<" else 1


class Module:
    """Functions, and the intrinsics and outside functions that they call."""

    def __init__(self) -> None:
        self._functions: list[Function] = []
        self._declared: dict[str, str] = {}
        self._named = 0
        self._told, self._told_bytes = 0, 0  # functions, and bytes of them, that further_text() has given
        self._shared: dict[str, str] = {}
        self.shared_bytes = 0  # of the text of all functions that stand for others

    def function(self, name: str, parameters: Sequence[tuple[str, str]], result: str = VOID) -> "Function":
        """A new function; parameters are (type, name), a type may carry attributes ("ptr noalias")."""
        self._functions.append(Function(self, name, parameters, result))
        return self._functions[-1]

    def new_name(self, prefix: str) -> str:
        """A name that no function has."""
        self._named += 1
        return f"{prefix}{self._named}"

    def shared(self, name: str) -> str:
        """The function that does the same as the one added last: an earlier one, which then stands for both, or it."""
        body = self._functions[-1].text.replace(f"@{name}(", "@(", 1)
        known = self._shared.setdefault(body, name)
        if known != name:
            self._functions.pop()
        else:
            self.shared_bytes += len(body)
        return known

    def declare(self, name: str, result: str, types: Sequence[str]) -> None:
        """A function that is defined elsewhere, or in this module; the same one may be declared again."""
        self._declared[name] = f"declare {result} @{name}({', '.join(types)})"

    def has_declared(self, name: str) -> bool:
        return name in self._declared

    @property
    def text(self) -> str:
        """All of it."""
        return self._text_of(self._functions)

    @property
    def further_bytes(self) -> int:
        """Of functions that stand for others, since further_text() was asked for."""
        return self.shared_bytes - self._told_bytes

    def further_text(self) -> str:
        """The functions since the last time, as a module of their own."""
        first, self._told, self._told_bytes = self._told, len(self._functions), self.shared_bytes
        return self._text_of(self._functions[first:])

    def _text_of(self, functions: "Sequence[Function]") -> str:
        defined = {function.name for function in functions}
        outside = [line for name, line in self._declared.items() if name not in defined]
        return "\n".join([*outside, *(function.text for function in functions), ""])


class Function:
    """One function under construction; instructions are added at its end."""

    def __init__(self, module: Module, name: str, parameters: Sequence[tuple[str, str]], result: str) -> None:
        self._module = module
        self.name = name
        self._head = f"define {result} @{name}({', '.join(f'{kind} %{called}' for kind, called in parameters)})"
        self.parameters = [Register(f"%{called}", kind.split()[0]) for kind, called in parameters]
        self.attributes = "nounwind"
        self._reserved: list[str] = []  # allocas, which belong into the first block
        self._lines: list[str] = []
        self._count = 0
        self._block = "entry"

    @property
    def text(self) -> str:
        """Its definition."""
        lines = [f"{self._head} {self.attributes} {{", "entry:", *self._reserved, *self._lines, "}"]
        return "\n".join(lines)

    # Instructions -----------------------------------------------------------------------------------------------------

    def give(self, instruction: str, kind: str) -> Register:
        """A new register with an instruction's result."""
        self._count += 1
        name = f"%v{self._count}"
        self._lines.append(f"  {name} = {instruction}")
        return Register(name, kind)

    def do(self, instruction: str) -> None:
        """An instruction without a result."""
        self._lines.append(f"  {instruction}")

    def binary(self, operation: str, left: Register, right: Register) -> Register:
        """`operation` may carry flags ("fadd contract", "add nsw")."""
        return self.give(f"{operation} {left.type} {left.text}, {right.text}", left.type)

    def compare(self, how: str, left: Register, right: Register) -> Register:
        """`how` is an instruction with its condition ("icmp slt", "fcmp ogt")."""
        return self.give(f"{how} {left.operand}, {right.text}", vector(I1, lanes_of(left.type)))

    def choose(self, condition: Register, value: Register, other: Register) -> Register:
        """select: one of both, lane by lane where the condition is a vector."""
        return self.give(f"select {condition.operand}, {value.operand}, {other.operand}", value.type)

    def convert(self, how: str, value: Register, kind: str) -> Register:
        """A conversion ("sitofp", "fptosi", "bitcast", "zext") to a type."""
        return self.give(f"{how} {value.type} {value.text} to {kind}", kind)

    def call(self, name: str, result: str, *arguments: Register) -> Register:
        """A call of an intrinsic or an outside function, which it declares."""
        if not self._module.has_declared(name):
            self._module.declare(name, result, [argument.type for argument in arguments])
        text = f"call {result} @{name}({', '.join(argument.operand for argument in arguments)})"
        if result == VOID:
            self.do(text)
            return Register("", VOID)
        return self.give(text, result)

    def fma(self, left: Register, right: Register, addend: Register) -> Register:
        """left * right + addend, rounded once."""
        kind = left.type
        name = f"llvm.fma.{suffix(kind)}"
        if not self._module.has_declared(name):
            self._module.declare(name, kind, [kind] * 3)
        return self.give(f"call {kind} @{name}({kind} {left.text}, {kind} {right.text}, {kind} {addend.text})", kind)

    def opaque(self, value: Register) -> Register:
        """The same value, of which LLVM does not know how it was computed; of vectors x86's."""
        kept_in = "v" if lanes_of(value.type) > 1 else "r"
        return self.give(f'call {value.type} asm "", "={kept_in},0"({value.operand})', value.type)

    def hidden(self, value: Register) -> Register:
        """The same value, of which LLVM does not know that it is: what is computed from it stays where it is."""
        return self.give(f'call {value.type} asm sideeffect "", "=r,0"({value.operand})', value.type)

    def splat(self, value: Register, lanes: int) -> Register:
        """A vector of one number in all lanes."""
        if lanes == 1:
            return value
        kind = vector(value.type, lanes)
        one = self.give(f"insertelement {kind} poison, {value.operand}, i32 0", kind)
        return self.give(f"shufflevector {one.operand}, {kind} poison, <{lanes} x i32> zeroinitializer", kind)

    def shuffle(self, left: Register, right: Register, lanes: Sequence[int]) -> Register:
        """A vector of constant lanes of two vectors: those of the second one are numbered behind the first one's."""
        element = left.type.strip("<>").rpartition(" x ")[2]
        mask = ", ".join(f"i32 {lane}" for lane in lanes)
        text = f"shufflevector {left.operand}, {right.operand}, <{len(lanes)} x i32> <{mask}>"
        return self.give(text, vector(element, len(lanes)) if len(lanes) > 1 else f"<1 x {element}>")

    def lane(self, value: Register, lane: int) -> Register:
        """One lane of a vector."""
        element = value.type.strip("<>").rpartition(" x ")[2]
        return self.give(f"extractelement {value.operand}, i32 {lane}", element)

    # Memory -----------------------------------------------------------------------------------------------------------

    def at(self, pointer: Register, index: Register | int, element: str = FLOAT) -> Register:
        """The address of an element, by its index."""
        where = index if isinstance(index, int) else index.text
        kind = I64 if isinstance(index, int) else index.type
        return self.give(f"getelementptr inbounds {element}, {POINTER} {pointer.text}, {kind} {where}", POINTER)

    def load(self, kind: str, pointer: Register, align_bytes: int = 4) -> Register:
        """What stands at an address."""
        return self.give(f"load {kind}, {POINTER} {pointer.text}, align {align_bytes}", kind)

    def store(self, value: Register, pointer: Register, align_bytes: int = 4) -> None:
        """A value to an address."""
        self.do(f"store {value.operand}, {pointer.operand}, align {align_bytes}")

    def reserve(self, kind: str, count: int = 1, align_bytes: int = 64) -> Register:
        """The address of a variable, or of an array of so many, on the stack."""
        self._count += 1
        name, many = f"%a{self._count}", f", i32 {count}" if count > 1 else ""
        self._reserved.append(f"  {name} = alloca {kind}{many}, align {align_bytes}")
        return Register(name, POINTER)

    # Blocks -----------------------------------------------------------------------------------------------------------

    def label(self, name: str) -> None:
        """A new block begins; a branch to it must stand before."""
        self._lines.append(f"{name}:")
        self._block = name

    def new_label(self, what: str) -> str:
        """A name for a block that no other has."""
        self._count += 1
        return f"{what}{self._count}"

    @contextmanager
    def loop(self, start: Register, stop: Register, step: int = 1) -> Iterator[Register]:
        """What is added inside runs for each index start, start + step ... below stop (signed); yields the index."""
        head, body, latch, end = (self.new_label(what) for what in ("head", "body", "latch", "end"))
        before, index, following = self._block, f"%i{head}", f"%n{head}"
        self.do(f"br label %{head}")
        self.label(head)
        self.do(f"{index} = phi {start.type} [ {start.text}, %{before} ], [ {following}, %{latch} ]")
        inside = self.compare("icmp slt", Register(index, start.type), stop)
        self.do(f"br i1 {inside.text}, label %{body}, label %{end}")
        self.label(body)
        yield Register(index, start.type)
        self.do(f"br label %{latch}")
        self.label(latch)
        self.do(f"{following} = add nsw {start.type} {index}, {step}")
        self.do(f"br label %{head}")
        self.label(end)

    @contextmanager
    def repeat(
        self, count: int, before: Sequence[Register]
    ) -> Iterator[tuple[Register, list[Register], list[Register]]]:
        """What is added inside runs `count` times, at least once, with values that change from time to time.

        Yields the index (i64), these values, which begin with `before`, and an empty list that gets the next ones.
        """
        body, entered = self.new_label("body"), self._block
        self.do(f"br label %{body}")
        self.label(body)
        place = len(self._lines)
        index, *current = (self._new_register(kind) for kind in (I64, *(each.type for each in before)))
        following: list[Register] = []
        yield index, current, following
        step = self.give(f"add nuw nsw {index.operand}, 1", I64)
        latch = self._block
        pairs = zip((index, *current), (integer(0, I64), *before), (step, *following), strict=True)
        self._lines[place:place] = [
            f"  {phi.text} = phi {phi.type} [ {first.text}, %{entered} ], [ {after.text}, %{latch} ]"
            for phi, first, after in pairs
        ]
        again, end = self.compare("icmp slt", step, integer(count, I64)), self.new_label("end")
        self.do(f"br i1 {again.text}, label %{body}, label %{end}")
        self.label(end)

    @contextmanager
    def branch(self, condition: Register, before: Sequence[Register]) -> Iterator[list[Register]]:
        """What is added inside runs where a condition holds, and changes values.

        Yields an empty list that gets the new values; behind the block it holds these or those from before.
        """
        body, end, entered = self.new_label("then"), self.new_label("end"), self._block
        self.do(f"br i1 {condition.text}, label %{body}, label %{end}")
        self.label(body)
        after: list[Register] = []
        yield after
        left = self._block
        self.do(f"br label %{end}")
        self.label(end)
        after[:] = [
            self.give(f"phi {old.type} [ {new.text}, %{left} ], [ {old.text}, %{entered} ]", old.type)
            for new, old in zip(after, before, strict=True)
        ]

    def _new_register(self, kind: str) -> Register:
        """A name for a value that a later instruction gives."""
        self._count += 1
        return Register(f"%v{self._count}", kind)

    @contextmanager
    def either(self, condition: Register) -> Iterator["Otherwise"]:
        """What is added inside runs where a condition holds, what follows Otherwise.begin() where it does not."""
        body, other, end = (self.new_label(what) for what in ("then", "else", "end"))
        self.do(f"br i1 {condition.text}, label %{body}, label %{other}")
        self.label(body)
        yield Otherwise(self, other, end)
        self.do(f"br label %{end}")
        self.label(end)

    @contextmanager
    def when(self, condition: Register) -> Iterator[None]:
        """What is added inside runs where a condition holds."""
        body, end = self.new_label("then"), self.new_label("end")
        self.do(f"br i1 {condition.text}, label %{body}, label %{end}")
        self.label(body)
        yield
        self.do(f"br label %{end}")
        self.label(end)

    def give_back(self, value: Register | None = None) -> None:
        """The function's end."""
        self.do(f"ret {value.operand}" if value else "ret void")


class Otherwise:
    """Where the second one of two alternatives begins."""

    def __init__(self, function: Function, label: str, end: str) -> None:
        self._function, self._label, self._end = function, label, end

    def begin(self) -> None:
        """What is added from here on runs where the condition does not hold."""
        self._function.do(f"br label %{self._end}")
        self._function.label(self._label)


def suffix(kind: str) -> str:
    """A type as the names of intrinsics end: v16f32."""
    lanes, _, element = kind.strip("<>").rpartition(" x ")
    short = {FLOAT: "f32", POINTER: "p0"}.get(element, element)
    return f"v{lanes}{short}" if lanes else short
