"""The calls that name and time each stage, for stages whose calls are gathered and made together with others'.

What names and times a stage is gathered with its calls, too.
"""

import ctypes
from collections.abc import Sequence

from texelflow.gpu_delegate.base.native_clock import CLOCK, NativeClock
from texelflow.gpu_delegate.targets.gl.context import Context

_SECOND_NS = 1_000_000_000
_WORDS = 5  # of each stage: start and end, seconds and nanoseconds each, and what glGetError gave; all rows together


class StageMarks:
    """`begins` and `ends` belong around each stage's calls; read() tells of them when all are made."""

    def __init__(self, context: Context, clock: NativeClock, names: Sequence[str], waits: bool) -> None:
        """waits: the device is waited for at the end of each stage, and asked for errors; else those are 0."""
        self._count = count = len(names)
        self._words = (ctypes.c_int64 * (_WORDS * count + 1))()  # the last one is for what nobody wants
        first = ctypes.addressof(self._words)
        unused = first + 8 * _WORDS * count
        begins, ends = [], []
        for place, name in enumerate(names):
            start = first + 32 * place
            asked = [("glFinish", ())], [("glGetError", (first + 8 * (4 * count + place),))]
            waiting, asking = asked if waits else ([], [])
            begin_scope, end_scope = context.scope_calls(name)
            begins.append([(CLOCK, (unused, clock.number, start)), *begin_scope])
            ends.append([*end_scope, *waiting, (CLOCK, (unused, clock.number, start + 16)), *asking])
        self.begins, self.ends = (tuple(map(context.calls.listed, lists)) for lists in (begins, ends))

    def read(self) -> tuple[list[int], list[int], list[int]]:
        """Of all stages, when the first call was made, when the last one was and the device was waited for, in ns of
        perf_counter_ns, and what glGetError gave then."""
        words, end = self._words[:], 4 * self._count
        starts_ns = [s * _SECOND_NS + ns for s, ns in zip(words[:end:4], words[1:end:4], strict=True)]
        ends_ns = [s * _SECOND_NS + ns for s, ns in zip(words[2:end:4], words[3:end:4], strict=True)]
        return starts_ns, ends_ns, words[end:-1]
