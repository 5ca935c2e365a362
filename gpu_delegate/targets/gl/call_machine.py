"""The native function that makes recorded lists of calls.

Its code is the same for all lists and in all processes, so that it is compiled once for each kind of CPU. It reads the
words of call_list.py: a switch over the forms, with a call in each branch.
"""

import ctypes
from collections.abc import Sequence
from typing import Any

from ..llvm.compiler import CompiledCode, compile_module, native_target
from ..llvm.ir import I32, I64, POINTER, Function, Module, Register, integer
from .call_list import CallForm, forms

_NAME = "make_calls"
_WORD_BYTES = 8


class CallMachine:
    """Makes calls. `make(lists, count)` takes an array of addresses of lists' words; Python's lock is let go."""

    def __init__(self) -> None:
        """Compiles, or takes from the cache on disk; takes 0.1 s. Raises DeviceError without LLVM."""
        self._code: CompiledCode = compile_module(machine_text(forms()), native_target())
        prototype = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64)
        self.make: Any = self._code.function(_NAME, prototype)


def machine_text(found: Sequence[CallForm]) -> str:
    """The function as LLVM's text."""
    module = Module()
    function = module.function(_NAME, [(POINTER, "lists"), (I64, "count")])
    lists, count = function.parameters
    place = function.reserve(POINTER, align_bytes=_WORD_BYTES)
    with function.loop(integer(0, I64), count) as index:
        first = function.load(POINTER, function.at(lists, index, POINTER), _WORD_BYTES)
        function.store(first, place, _WORD_BYTES)
        following, done = function.new_label("call"), function.new_label("done")
        branches = [function.new_label("form") for _ in found]
        function.do(f"br label %{following}")
        function.label(following)
        here = function.load(POINTER, place, _WORD_BYTES)
        form = function.load(I64, here, _WORD_BYTES)
        cases = " ".join(f"i64 {number}, label %{label}" for number, label in enumerate(branches, 1))
        function.do(f"switch {form.operand}, label %{done} [ {cases} ]")
        for label, each in zip(branches, found, strict=True):
            function.label(label)
            words = _add_call(function, here, each)
            function.store(function.at(here, words, I64), place, _WORD_BYTES)
            function.do(f"br label %{following}")
        function.label(done)
    function.give_back()
    return module.text


def _add_call(function: Function, here: Register, form: CallForm) -> int:
    """A call by the words from `here` on: the form, the function, where a result goes, the arguments; how many."""
    result, kinds = form
    called = function.load(POINTER, function.at(here, 1, I64), _WORD_BYTES)
    begin = 3 if result else 2
    arguments = [
        function.load(kind, function.at(here, begin + place, I64), _WORD_BYTES) for place, kind in enumerate(kinds)
    ]
    text = f"call {result or 'void'} {called.text}({', '.join(argument.operand for argument in arguments)})"
    if result:
        given = function.give(text, result)
        wide = function.convert("zext", given, I64) if result == I32 else given
        function.store(wide, function.load(POINTER, function.at(here, 2, I64), _WORD_BYTES), _WORD_BYTES)
    else:
        function.do(text)
    return begin + len(kinds)
