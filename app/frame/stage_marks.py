"""A stage's name goes in; what is called before and after its calls, to measure and name them, comes out as two lists.

For stages whose calls are gathered, and made together with those of others: what tells of them is gathered, too.
"""

import ctypes

from texelflow.gpu_delegate.context import Context
from texelflow.gpu_delegate.native_clock import CLOCK, CLOCK_WORDS, NativeClock, time_ns


class StageMarks:
    """`begin` and `end` belong around the stage's calls; times_ns() and `error` tell of them when all are made.

    `error` is what glGetError gave then, 0 unless it was asked.
    """

    def __init__(self, context: Context, clock: NativeClock, name: str, waits: bool) -> None:
        """waits: the device is waited for at the end, and asked for errors."""
        self.name, self._waits = name, waits
        self._times = (ctypes.c_int64 * (2 * CLOCK_WORDS))()
        start = ctypes.addressof(self._times)
        end = start + ctypes.sizeof(self._times) // 2
        calls = context.calls
        scope = context.scope_calls(name)
        self.begin = calls.listed([(CLOCK, (clock.number, start)), *scope[:1]])
        waiting = [("glFinish", ())] if waits else []
        asking = [("glGetError", ())] if waits else []
        ended = [*scope[1:], *waiting, (CLOCK, (clock.number, end)), *asking]
        self.end = calls.listed(ended)
        self._last = len(ended) - 1

    def times_ns(self) -> tuple[int, int]:
        """When its first call was made, and when its last one was; where the device was waited for, when that ended."""
        words = self._times[:]
        return time_ns(words[:CLOCK_WORDS]), time_ns(words[CLOCK_WORDS:])

    @property
    def error(self) -> int:
        """What glGetError gave after it; 0 for no error, and where it was not asked."""
        return self.end.result(self._last) if self._waits else 0
