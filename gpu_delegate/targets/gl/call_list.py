"""Records lists of OpenGL calls, to be made again from Python or by native code.

Words of 64 bits are what native code reads (call_machine.py). A call is the number of its form, the address of its
function, for a result the address of the word that it goes to, and its arguments.
"""

import ctypes
import struct
from array import array
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, Final

from ...base.native_clock import CLOCK, CLOCK_FORM
from . import opengl

RECORDED: Final = (  # what a list may hold: calls that give nothing back, and read no memory that changes or goes
    "glUseProgram", "glDispatchCompute", "glMemoryBarrier", "glFinish",
    "glBindBuffer", "glBindBufferBase", "glBindBufferRange", "glBindBuffersRange",
    "glActiveTexture", "glBindTexture", "glBindTextures", "glBindTextureUnit", "glPixelStorei", "glTexSubImage2D",
    "glUniform1i", "glUniform2i", "glUniform4i", "glUniform1f", "glUniform2f", "glUniform4f", "glUniform1fv",
    "glPushDebugGroup", "glPopDebugGroup", "glQueryCounter", "glGetError",
    "glBindFramebuffer", "glViewport", "glClearColor", "glClear", "glBlitFramebuffer", "glBindVertexArray",
    "glDrawArrays", "glCopyBufferSubData", "glEnable", "glDisable", "glBlendFuncSeparate",
)  # fmt: skip

SWAP = "swap"  # a window's function that shows what was drawn; its argument is the window

ListedCall = tuple[str, tuple[Any, ...]]  # the name of an entry point, or CLOCK or SWAP, and its arguments
CallForm = tuple[str, tuple[str, ...]]  # the types of a result ("" for none) and of arguments, as LLVM names them
_INT, _FLOAT, _WIDE = "i32", "float", "i64"
_FOREIGN: Final[Mapping[str, "CallForm"]] = {CLOCK: CLOCK_FORM, SWAP: ("", ("i64",))}
_NAMES = {ctypes.c_uint: _INT, ctypes.c_int: _INT, ctypes.c_ubyte: _INT, ctypes.c_float: _FLOAT, None: ""}


class ChangingAddress:
    """An argument of recorded calls that is another one each time they are made: an address in memory."""

    def __init__(self) -> None:
        self._value = 0
        self._places: list[tuple[array[int], int]] = []  # in the words of lists

    @property
    def value(self) -> int:
        """The address; no list that is still to be made may need the one before."""
        return self._value

    @value.setter
    def value(self, value: int) -> None:
        self._value = value
        for words, place in self._places:
            words[place] = value

    @property
    def _as_parameter_(self) -> int:
        """What ctypes passes."""
        return self._value

    def follow(self, words: "array[int]", place: int) -> None:
        """Keep a word the same."""
        self._places.append((words, place))


class CallList:
    """Calls in their order: entry points' names with arguments. `words` are the same for native code."""

    def __init__(self, calls: Sequence[ListedCall], addresses: Mapping[str, int]) -> None:
        """`addresses` are those of the functions. Raises KeyError for a call that is not in RECORDED.

        The first argument of a call that has a result is where to put it: the address of a 64-bit word.
        """
        self.calls = tuple(calls)
        self.words: array[int] = array("q")
        self._kept: list[Any] = []  # what words have addresses of
        changing: list[tuple[int, ChangingAddress]] = []
        for name, arguments in self.calls:
            form = form_of(name)
            self.words.extend((1 + forms().index(form), _signed(addresses[name])))
            kinds = (_WIDE, *form[1]) if form[0] else form[1]
            for kind, argument in zip(kinds, arguments, strict=True):
                if isinstance(argument, ChangingAddress):
                    changing.append((len(self.words), argument))
                self.words.append(self._word(kind, argument))
        self.words.append(0)
        for place, argument in changing:
            argument.follow(self.words, place)
        self.address = self.words.buffer_info()[0]  # of the words, which never grow again

    def _word(self, kind: str, argument: Any) -> int:
        if kind == _FLOAT:
            return int(struct.unpack("<i", struct.pack("<f", argument))[0])
        if isinstance(argument, ChangingAddress):
            return argument.value
        if isinstance(argument, bytes):
            argument = ctypes.create_string_buffer(argument)
        if isinstance(argument, ctypes.Array):
            self._kept.append(argument)
            return _signed(ctypes.addressof(argument))
        return _signed(argument or 0)


@cache
def form_of(name: str) -> CallForm:
    """How a function is called."""
    if name in _FOREIGN:
        return _FOREIGN[name]
    if name not in RECORDED:
        raise KeyError(f"{name} cannot be recorded")
    arguments, result = opengl.c_types(name)
    return _NAMES[result], tuple(_NAMES.get(argument, _WIDE) for argument in arguments)


@cache
def has_result(name: str) -> bool:
    """Whether a function gives something back."""
    return bool(form_of(name)[0])


@cache
def forms() -> tuple[CallForm, ...]:
    """All forms of calls, in an order that is the same in every process."""
    return tuple(sorted({form_of(name) for name in (*RECORDED, *_FOREIGN)}))


def _signed(value: int) -> int:
    """An unsigned number of 64 bits as array("q") takes it."""
    return value - (1 << 64) if value >= 1 << 63 else value
