"""Recorded OpenGL calls, by native code and by the loop: the same calls, arguments and order."""

import ctypes
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from texelflow.gpu_delegate.base.native_clock import CLOCK
from texelflow.gpu_delegate.targets.gl import opengl
from texelflow.gpu_delegate.targets.gl.call_list import RECORDED, SWAP, CallList, ChangingAddress, ListedCall
from texelflow.gpu_delegate.targets.gl.calls import CALLS_CHOICE, CallCache, Calls
from texelflow.gpu_delegate.targets.gl.context import Context

SEEN = tuple[str, tuple[Any, ...]]
GIVEN = 0x500


class FakeGL:
    """Functions of C with the names and types of OpenGL's, which write down how they are called."""

    def __init__(self) -> None:
        self.seen: list[SEEN] = []
        self.addresses: dict[str, int] = {}
        self._functions: list[Any] = []
        for name in RECORDED:
            arguments, result = opengl.c_types(name)
            kinds = [ctypes.c_void_p if kind in (ctypes.Array, ctypes.c_char_p) else kind for kind in arguments]
            function = ctypes.CFUNCTYPE(result, *kinds)(self._writer(name, result))
            self.add(name, function)

    def add(self, name: str, function: Any) -> None:
        self._functions.append(function)
        self.addresses[name] = ctypes.cast(function, ctypes.c_void_p).value or 0
        setattr(self, name, function)

    def _writer(self, name: str, result: Any) -> Callable[..., Any]:
        def write(*arguments: Any) -> Any:
            self.seen.append((name, arguments))
            return GIVEN if result else None

        return write


def calls_of(gl: FakeGL) -> Calls:
    fake: Any = gl
    calls = Calls(fake)
    swap = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(lambda window: gl.seen.append((SWAP, (window,))))
    calls.adopt(SWAP, swap, ctypes.cast(swap, ctypes.c_void_p).value or 0)
    return calls


def natively(calls: Calls) -> None:
    calls.load()
    calls.wait()
    assert calls.make, "make setup has LLVM"


def some(kind: Any, rng: np.random.Generator) -> Any:
    """An argument of a type, often at the end of its range."""
    if kind is ctypes.c_float:
        return float(rng.choice([0.1, -3.5, 1e-30, np.inf]))
    if kind in (ctypes.c_int, ctypes.c_ssize_t):
        return int(rng.choice([-1, 0, -(1 << 31), (1 << 31) - 1]))
    if kind in (ctypes.c_void_p, ctypes.c_uint64):
        return int(rng.integers(1, 1 << 62))
    if kind in (ctypes.Array, ctypes.c_char_p):
        return (ctypes.c_uint * 2)(1, 2)
    return int(rng.choice([1, 200])) if kind is ctypes.c_ubyte else int(rng.integers(0, 1 << 32))


def all_kinds() -> tuple[list[ListedCall], Any]:
    """Each function several times, and words for results."""
    rng, results = np.random.default_rng(0), (ctypes.c_int64 * 2)()
    made: list[ListedCall] = [(SWAP, (77,))]
    for name in [str(name) for name in rng.permutation([*RECORDED] * 3)]:
        arguments, result = opengl.c_types(name)
        where = (ctypes.addressof(results),) if result else ()
        made.append((name, (*where, *(some(kind, rng) for kind in arguments))))
    return made, results


def test_native_code_calls_all_as_the_loop_does() -> None:
    gl = FakeGL()
    calls, (made, results) = calls_of(gl), all_kinds()
    listed = calls.listed(made)
    calls.run(listed)
    by_loop, given = gl.seen[:], results[0]
    gl.seen.clear()
    results[0] = 0
    natively(calls)
    calls.run(listed)
    assert len(by_loop) == len(made) > 90
    assert gl.seen == by_loop
    assert results[0] == given == GIVEN
    assert [name for name, _ in by_loop] == [name for name, _ in made]


@pytest.mark.parametrize("native", [False, True])
def test_the_clock_is_pythons(native: bool) -> None:
    from time import perf_counter_ns

    calls, words = calls_of(FakeGL()), (ctypes.c_int64 * 3)()
    if native:
        natively(calls)
    assert calls.clock, "on Linux"
    at = ctypes.addressof(words)
    listed = calls.listed([(CLOCK, (at, calls.clock.number, at + 8))])
    before_ns = perf_counter_ns()
    calls.run(listed)
    assert before_ns <= words[1] * 10**9 + words[2] <= perf_counter_ns()


@pytest.mark.parametrize("native", [False, True])
def test_what_comes_again_is_recorded_and_made_in_order(native: bool) -> None:
    gl = FakeGL()
    calls = calls_of(gl)
    cache, address, worked = CallCache(calls), ChangingAddress(), list[int]()
    if native:
        natively(calls)

    def work() -> None:
        worked.append(1)
        real: Any = gl
        real.glUseProgram(5)
        real.glTexSubImage2D(1, 2, 3, 4, 5, 6, 7, 8, address)

    for place in range(1, 5):
        address.value = place
        cache.run("key", work)
    assert len(worked) == 2, "once as it is, once to be recorded"
    assert gl.seen == [
        one for n in range(1, 5) for one in (("glUseProgram", (5,)), ("glTexSubImage2D", (1, 2, 3, 4, 5, 6, 7, 8, n)))
    ]


@pytest.mark.parametrize("native", [False, True])
def test_other_calls_come_behind_what_is_gathered(native: bool) -> None:
    gl = FakeGL()
    calls, real = calls_of(gl), gl
    if native:
        natively(calls)
    bind = calls.listed([("glUseProgram", (1,)), ("glUseProgram", (2,))])
    draw = calls.listed([("glDrawArrays", (4, 0, 3))])
    with calls.gathering():
        calls.run(bind)
        assert gl.seen == []
        vars(real)["glUseProgram"](3)
        calls.run(draw)
        assert [arguments for _, arguments in gl.seen] == [(1,), (2,), (3,)]
    assert gl.seen[3:] == [("glDrawArrays", (4, 0, 3))]

    def fail() -> None:
        with calls.gathering():
            calls.run(draw)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert len(gl.seen) == 4, "what was gathered is given up"
    calls.run(draw)
    assert len(gl.seen) == 5


def test_what_no_list_can_hold_is_refused(context: Context) -> None:
    gl = context.gl
    with pytest.raises(AssertionError, match="glGenTextures cannot be recorded"):
        context.calls.recorded(lambda: gl.generate("Textures"))
    assert gl.integer(opengl.MAJOR_VERSION) >= 4
    with pytest.raises(KeyError, match="glMapBufferRange"):
        CallList([("glMapBufferRange", ())], gl.addresses)


def test_native_code_can_be_turned_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(CALLS_CHOICE, "loop")
    gl = FakeGL()
    calls = calls_of(gl)
    listed = calls.listed([("glFinish", ())])
    for _ in range(300):
        calls.run(listed)
    calls.settle()
    assert calls.make is None
    monkeypatch.delenv(CALLS_CHOICE)
    settled = calls_of(gl)
    settled.settle()
    assert settled.make
    calls = calls_of(gl)
    for _ in range(300):
        calls.run(listed)
    calls.wait()
    assert calls.make
    assert len(gl.seen) == 600


def test_debug_records_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DEBUG", "2")
    gl = FakeGL()
    calls, worked = calls_of(gl), list[int]()
    with calls.gathering():
        for _ in range(4):
            CallCache(calls).run("key", lambda: worked.append(1))
        calls.run(calls.listed([("glFinish", ())]))
        assert len(gl.seen) == 1
    assert len(worked) == 4
