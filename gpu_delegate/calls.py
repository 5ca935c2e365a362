"""Work that calls OpenGL goes in; the same calls are made again and again, many of them by one call of native code.

What is called with the same arguments in each run is recorded (call_list.py). A list is made by native code with
Python's lock let go, once LLVM is loaded, which a thread does beside the first runs; before that, and without LLVM, by
a loop. Lists can be gathered, and are then made together: whatever else calls OpenGL makes them first, but for what
does not call the entry points of this context's GL (moderngl, Dear ImGui, glfw), ahead of which somebody calls flush().
"""

import contextlib
import os
import threading
from array import array
from collections.abc import Callable, Hashable, Iterator, Sequence
from functools import cache, partial
from typing import TYPE_CHECKING, Any

from . import debug
from .call_list import RECORDED, CallList
from .errors import TexelflowError
from .native_clock import CLOCK, native_clock
from .opengl import GL

if TYPE_CHECKING:  # loaded by the thread
    from .llvm.call_machine import CallMachine

CALLS_CHOICE = "TEXELFLOW_CALLS"  # in the environment: "loop" for no native code
_LOOPS = 200  # lists made by the loop before LLVM is loaded: who makes few does not need it
_MOST_LISTS = 96  # of one cache


class Calls:
    """Makes lists of calls in one context. Belongs to its thread.

    `make` is what native code makes them by, None as long as there is none. is_plain: nothing is recorded, because
    DEBUG is set and what is called depends on it; gathers: whether gathering() keeps lists back.
    """

    def __init__(self, gl: GL) -> None:
        self._gl, self.clock = gl, native_clock()
        self._addresses = {**gl.addresses, CLOCK: self.clock.address if self.clock else 0}
        self.is_plain = debug.level() > debug.OFF
        self.gathers = self.clock is not None and not self.is_plain
        self.make: Callable[[int, int], None] | None = None
        self._recording: list[tuple[str, tuple[Any, ...]]] | None = None
        self._gathered: list[CallList] = []
        self._is_gathering = self._is_guarded = False
        self.flushes = 0  # how often gathered lists were made
        self.native_calls = 0  # in lists that native code makes
        self._left = 0 if os.environ.get(CALLS_CHOICE, "").strip() == "loop" else _LOOPS
        self._loading: threading.Thread | None = None

    @property
    def is_recording(self) -> bool:
        """Whether calls are recorded now, and not made."""
        return self._recording is not None

    def recorded(self, work: Callable[[], object]) -> CallList:
        """What work calls, which is not made. Raises AssertionError for calls that no list can hold."""
        found: list[tuple[str, tuple[Any, ...]]] = []
        real = {name: function for name, function in vars(self._gl).items() if name.startswith("gl")}
        self._recording = found
        try:
            for name in real:
                setattr(self._gl, name, partial(_record, found, name))
            work()
        finally:
            self._recording = None
            vars(self._gl).update(real)
        return CallList(found, self._addresses)

    def listed(self, calls: Sequence[tuple[str, tuple[Any, ...]]]) -> CallList:
        """A list of calls by their names."""
        return CallList(calls, self._addresses)

    def run(self, calls: CallList) -> None:
        """Make them now, or with all that is gathered, or have them recorded with what is recorded."""
        if self._recording is not None:
            self._recording += calls.calls
            return
        if self.make:
            self.native_calls += len(calls.calls)
        if self._is_gathering:
            self._gathered.append(calls)
        else:
            self._make([calls])

    @contextlib.contextmanager
    def gathering(self) -> Iterator[None]:
        """Lists are kept back in the with-block, and made at its end; given up if it raises."""
        self._guard()
        self._is_gathering = self.gathers
        try:
            yield
        except BaseException:
            self._gathered.clear()
            raise
        finally:
            self._is_gathering = False
            self.flush()

    def flush(self) -> None:
        """Make what was gathered up to now."""
        if self._gathered:
            lists, self._gathered[:] = self._gathered[:], []
            self.flushes += 1
            self._make(lists)

    def load(self) -> None:
        """Make lists by native code from now on, as soon as a thread has LLVM loaded; wait() waits for that."""
        self._left = 0
        self._loading = threading.Thread(target=self._load, name="call machine", daemon=True)
        self._loading.start()

    def wait(self) -> None:
        """Until what is being loaded is there."""
        if self._loading:
            self._loading.join()

    def _load(self) -> None:
        with contextlib.suppress(TexelflowError):  # without LLVM the loop stays
            self.make = _machine().make

    def _make(self, lists: Sequence[CallList]) -> None:
        if self.make:
            addresses = array("Q", [each.address for each in lists])
            self.make(addresses.buffer_info()[0], len(lists))
            return
        for each in lists:
            for number, (name, arguments) in enumerate(each.calls):
                function = self.clock.function if name == CLOCK and self.clock else getattr(self._gl, name)
                result = function(*arguments)
                if result is not None:
                    each.keep_result(number, result)
        if self._left > 0:
            self._left -= len(lists)
            if self._left <= 0:
                self.load()

    def _guard(self) -> None:
        """From now on entry points make what was gathered first."""
        if not self._is_guarded:
            self._is_guarded = True
            for name, function in [*vars(self._gl).items()]:
                if name.startswith("gl"):
                    setattr(self._gl, name, partial(_after, self._gathered, self.flush, function))


class CallCache:
    """Lists of calls by what they depend on, of one part of a context."""

    def __init__(self, calls: Calls) -> None:
        self._calls = calls
        self._lists: dict[Hashable, CallList | None] = {}  # None: was called once

    def run(self, key: Hashable, work: Callable[[], object]) -> None:
        """Have work call OpenGL, whose calls depend on nothing but the key: when that comes again, they are recorded.

        The first time work runs as it is, and may make what it needs.
        """
        calls, known = self._calls, self._lists.get(key)
        if known is not None:
            calls.run(known)
        elif calls.is_plain or calls.is_recording:
            work()
        elif key in self._lists:
            self._lists[key] = known = calls.recorded(work)
            calls.run(known)
        else:
            if len(self._lists) >= _MOST_LISTS:
                self._lists.clear()
            work()
            self._lists[key] = None


@cache
def _machine() -> "CallMachine":
    """One for all contexts. Raises DeviceError without LLVM."""
    from .llvm.call_machine import CallMachine

    return CallMachine()


def _record(found: list[tuple[str, tuple[Any, ...]]], name: str, *arguments: Any) -> None:
    assert name in RECORDED, f"{name} cannot be recorded"
    found.append((name, arguments))


def _after(gathered: Sequence[CallList], flush: Callable[[], None], function: Any, *arguments: Any) -> Any:
    if gathered:
        flush()
    return function(*arguments)
