"""Makes recorded OpenGL calls again and again, many of them by one call of native code.

What is called with the same arguments in each run is recorded (call_list.py). A list is made by native code with
Python's lock let go, once LLVM is loaded, which a thread does beside the first runs; before that, and without LLVM, by
a loop. Lists can be gathered, and are then made together: whatever else calls OpenGL makes them first, but for what
does not call the entry points of this context's GL (moderngl, Dear ImGui, glfw), ahead of which somebody calls flush().
"""

import contextlib
import ctypes
import os
import threading
from array import array
from collections.abc import Callable, Hashable, Sequence
from functools import cache, partial
from typing import TYPE_CHECKING, Any

from ...base import debug
from ...base.errors import TexelflowError
from ...base.native_clock import CLOCK, native_clock
from .call_list import RECORDED, CallList, ListedCall, has_result
from .opengl import GL

if TYPE_CHECKING:  # loaded by the thread
    from .call_machine import CallMachine

CALLS_CHOICE = "TEXELFLOW_CALLS"  # in the environment: "loop" for no native code
_LOOPS = 200  # lists made by the loop before LLVM is loaded: who makes few does not need it
_MOST_LISTS = 96  # of one cache


class Calls:
    """Makes lists of calls in one context. Belongs to its thread.

    run(calls) makes a list: now, or with all that is gathered, or has it recorded with what is recorded. `make` is what
    native code makes lists by, None as long as there is none. is_plain: nothing is recorded, because DEBUG is set and
    what is called depends on it; gathers: whether gathering() keeps lists back; `flushes`: how often it made them.
    """

    def __init__(self, gl: GL) -> None:
        self._gl, self.clock = gl, native_clock()
        self._functions: dict[str, Callable[..., Any]] = {}  # of lists, but for OpenGL's
        self._addresses = dict(gl.addresses)
        if self.clock:
            self.adopt(CLOCK, self.clock.function, self.clock.address)
        self.is_plain = debug.level() > debug.OFF
        self.gathers = self.clock is not None and not self.is_plain
        self.is_recording = self._is_guarded = False
        self.gathered: list[CallList] = []  # in their order
        self.flushes = 0
        self.run: Callable[[CallList], None] = self._run_now
        self.make: Callable[[int, int], None] | None = None
        self._left = 0 if os.environ.get(CALLS_CHOICE, "").strip() == "loop" else _LOOPS
        self._loading: threading.Thread | None = None
        self._gathering = _Gathering(self)

    def adopt(self, name: str, function: Callable[..., Any], address: int) -> None:
        """Let lists hold calls of CLOCK or SWAP: the function as Python calls it, and where it is."""
        self._functions[name], self._addresses[name] = function, address

    def recorded(self, work: Callable[[], object]) -> CallList:
        """What work calls, which is not made. Raises AssertionError for calls that no list can hold."""
        found: list[ListedCall] = []
        real = {name: function for name, function in vars(self._gl).items() if name.startswith("gl")}
        run, self.run, self.is_recording = self.run, lambda calls: found.extend(calls.calls), True
        try:
            for name in real:
                setattr(self._gl, name, partial(_record, found, name))
            work()
        finally:
            self.run, self.is_recording = run, False
            vars(self._gl).update(real)
        return self.listed(found)

    def listed(self, calls: Sequence[ListedCall]) -> CallList:
        """A list of calls by their names."""
        return CallList(calls, self._addresses)

    def gathering(self) -> contextlib.AbstractContextManager[None]:
        """Lists are kept back in the with-block, and made at its end; given up if it raises."""
        if not self._is_guarded:
            self._guard()
        return self._gathering

    def flush(self) -> None:
        """Make what was gathered up to now."""
        if self.gathered:
            lists = self.gathered[:]
            self.gathered.clear()
            self.flushes += 1
            self._make(lists)

    def load(self) -> None:
        """Make lists by native code from now on, as soon as a thread has LLVM loaded; wait() waits for that."""
        self._left = 0
        self._loading = threading.Thread(target=self._load, name="call machine", daemon=True)
        self._loading.start()

    def settle(self) -> None:
        """Make lists from now on as long runs do: by native code, unless the environment says otherwise. Waits."""
        if self._left > 0:
            self.load()
        self.wait()

    def wait(self) -> None:
        """Until what is being loaded is there."""
        if self._loading:
            self._loading.join()

    def _load(self) -> None:
        with contextlib.suppress(TexelflowError):  # without LLVM the loop stays
            self.make = _machine().make

    def _run_now(self, calls: CallList) -> None:
        self._make([calls])

    def _make(self, lists: Sequence[CallList]) -> None:
        if self.make:
            addresses = array("Q", [each.address for each in lists])
            self.make(addresses.buffer_info()[0], len(lists))
            return
        for each in lists:
            for name, arguments in each.calls:
                function = self._functions.get(name) or getattr(self._gl, name)
                if has_result(name):
                    ctypes.c_int64.from_address(arguments[0]).value = function(*arguments[1:])
                else:
                    function(*arguments)
        if self._left > 0:
            self._left -= len(lists)
            if self._left <= 0:
                self.load()

    def _guard(self) -> None:
        """From now on entry points make what was gathered first."""
        self._is_guarded = True
        for name, function in [*vars(self._gl).items()]:
            if name.startswith("gl"):
                setattr(self._gl, name, partial(_after, self.gathered, self.flush, function))


class _Gathering:
    """A with-block in which lists are gathered. A class, since a generator takes longer, in each frame."""

    def __init__(self, calls: Calls) -> None:
        self._calls = calls

    def __enter__(self) -> None:
        if self._calls.gathers:
            self._run, self._calls.run = self._calls.run, self._calls.gathered.append

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        calls = self._calls
        if calls.gathers:
            calls.run = self._run
        if kind is not None:
            calls.gathered.clear()
        calls.flush()


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
    from .call_machine import CallMachine

    return CallMachine()


def _record(found: list[ListedCall], name: str, *arguments: Any) -> None:
    assert name in RECORDED, f"{name} cannot be recorded"
    found.append((name, arguments))


def _after(gathered: Sequence[CallList], flush: Callable[[], None], function: Any, *arguments: Any) -> Any:
    if gathered:
        flush()
    return function(*arguments)
