"""Names of stages go in; what is called before and after their calls, to name and to measure them, comes out as lists.

For stages whose calls are gathered, and made together with those of others: what tells of them is gathered, too.
"""

import ctypes
from collections.abc import Sequence

from texelflow.gpu_delegate.context import Context
from texelflow.gpu_delegate.native_clock import CLOCK, CLOCK_WORDS, NativeClock, time_ns


class StageMarks:
    """`begins` and `ends` belong around each stage's calls; times_ns() and errors() tell of them when all are made."""

    def __init__(self, context: Context, clock: NativeClock, names: Sequence[str], waits: bool) -> None:
        """waits: the device is waited for at the end of each stage, and asked for errors."""
        self._words = (ctypes.c_int64 * (2 * CLOCK_WORDS * len(names)))()
        first, one = ctypes.addressof(self._words), 8 * CLOCK_WORDS
        waiting, asking = ([("glFinish", ())], [("glGetError", ())]) if waits else ([], [])
        begins, ends = [], []
        for place, name in enumerate(names):
            start, end = first + 2 * place * one, first + (2 * place + 1) * one
            begin_scope, end_scope = context.scope_calls(name)
            begins.append([(CLOCK, (clock.number, start)), *begin_scope])
            ends.append([*end_scope, *waiting, (CLOCK, (clock.number, end)), *asking])
        self.begins, self.ends = (tuple(map(context.calls.listed, lists)) for lists in (begins, ends))
        self._errors = [(each.words, each.place_of_result(len(each.calls) - 1)) for each in self.ends] if waits else []

    def times_ns(self) -> list[tuple[int, int]]:
        """Of each stage, when its first call was made, and when its last one was, and the device was waited for."""
        words = self._words[:]
        times_ns = [time_ns(*words[at : at + CLOCK_WORDS]) for at in range(0, len(words), CLOCK_WORDS)]
        return [*zip(times_ns[::2], times_ns[1::2], strict=True)]

    def errors(self) -> list[int]:
        """What glGetError gave after each stage, 0 for nothing; empty where it was not asked."""
        return [words[place] for words, place in self._errors]
