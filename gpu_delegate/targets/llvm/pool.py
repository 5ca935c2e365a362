"""The pool of threads that runs tables of work in native code.

Workers are threads that stay in native code, without Python's lock: they take tasks, wait a moment for more, and sleep
on locks of Python's own kind, which any thread may use on every system. Numbers too small for a normal float count as
0 in there. A process that forks goes on without workers: the child's runs do all by themselves.
"""

import ctypes
import os
import threading
import weakref
from collections.abc import Callable, Sequence
from time import perf_counter
from typing import Any

import numpy as np
import numpy.typing as npt

from . import pool_code
from .compiler import CompiledCode, compile_module
from .machine import CpuTarget, usable_cores
from .work import WorkTable

_DEFAULT_THREADS = 2  # more gain little on networks of a millisecond
MOST_POOL_THREADS = 64
_LINE_BYTES = 64
_TWO = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)  # calls of these leave Python's lock to others
_NUMBERED = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int)
_ONE = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


def default_threads(spared_cores: int = 0) -> int:
    """Threads for a network where nobody asks for a number: two, or as many as there are cores for, others' spared."""
    return max(1, min(_DEFAULT_THREADS, usable_cores() - spared_cores))


class WorkerPool:
    """Threads for runs of WorkTables, the caller's among them; of one alone there is no other thread."""

    def __init__(self, target: CpuTarget, threads: int, adapts: bool = False) -> None:
        """Start threads - 1 workers. One that adapts leaves a run to the caller's thread where that takes less time.

        Raises DeviceError without LLVM, ValueError for a number out of range.
        """
        if not 1 <= threads <= MOST_POOL_THREADS:
            raise ValueError(f"{threads} threads; 1 to {MOST_POOL_THREADS} are possible")
        self.threads, self._adapts = threads, adapts
        self._code = compile_module(pool_code.pool_text(target), target, _outside())
        self._run_alone = self._code.function("run_alone", _ONE)
        self._run = self._code.function("run", _TWO)
        self._lock = threading.Lock()  # held by the run that the workers take part in
        self._stop: Callable[[], object] = _nothing
        if threads > 1:
            self._state = _state(threads)
            workers = [_started(self._code, self._state, number) for number in range(1, threads)]
            self._stop = weakref.finalize(self, _stop, self._code, self._state, workers, os.getpid())

    def run(self, table: WorkTable) -> None:
        """Do all of a table; alone where there are no workers, or another thread's run has them."""
        if not table.tasks:
            return
        if self.threads == 1 or not self._lock.acquire(blocking=False):
            self._run_alone(table.address)
            return
        try:
            start = perf_counter()
            if self._adapts and not table.choice.shares:
                self._run_alone(table.address)
            else:
                self._run(self._state.ctypes.data, table.address)
            if self._adapts:
                table.choice.note(perf_counter() - start)
        finally:
            self._lock.release()

    def close(self) -> None:
        """End the workers after the run that they are at; later runs do without."""
        with self._lock:
            self.threads = 1
            self._stop()


def _nothing() -> None:
    """What ends no workers."""


def _state(threads: int) -> npt.NDArray[np.int64]:
    """The memory that the threads of a pool share, on lines of its own, with a lock to sleep on for each, held."""
    size_bytes = pool_code.FIRST_SLEEPER + threads * pool_code.SLEEPER_BYTES
    whole = np.zeros(size_bytes + _LINE_BYTES, np.uint8)
    start = -whole.ctypes.data % _LINE_BYTES
    state = whole[start : start + size_bytes]
    state[pool_code.SLEEPERS :][:4].view(np.int32)[0] = threads
    for number in range(threads):
        lock = _of_python("PyThread_allocate_lock", ctypes.c_void_p)()
        if not lock:
            raise MemoryError("no lock for a thread")
        _of_python("PyThread_acquire_lock", ctypes.c_int, ctypes.c_void_p, ctypes.c_int)(lock, 0)
        state.view(np.uint64)[_lock_place(number)] = lock
    return state.view(np.int64)


def _lock_place(number: int) -> int:
    """Where a thread's lock is among words of 64 bits."""
    return (pool_code.FIRST_SLEEPER + number * pool_code.SLEEPER_BYTES + pool_code.LOCK) // 8


def _started(code: CompiledCode, state: npt.NDArray[np.int64], number: int) -> threading.Thread:
    """A worker's thread, which knows nothing of the pool, so that this can be forgotten."""
    serve = code.function("serve", _NUMBERED)
    thread = threading.Thread(target=serve, args=(state.ctypes.data, number), name="texelflow-worker", daemon=True)
    thread.start()
    return thread


def _stop(code: CompiledCode, state: npt.NDArray[np.int64], workers: Sequence[threading.Thread], process: int) -> None:
    """End the workers, unless they stayed behind in the process that this one was forked from."""
    if os.getpid() != process:
        return
    code.function("stop", _ONE)(state.ctypes.data)
    for worker in workers:
        worker.join()
    _free_locks(state, 1 + len(workers))


def _free_locks(state: npt.NDArray[np.int64], threads: int) -> None:
    for number in range(threads):
        lock = int(state.view(np.uint64)[_lock_place(number)])
        _of_python("PyThread_free_lock", None, ctypes.c_void_p)(lock)


def _of_python(name: str, result: type | None, *arguments: type) -> Any:
    """A function of Python's own library."""
    return ctypes.CFUNCTYPE(result, *arguments)((name, ctypes.pythonapi))


def _outside() -> dict[str, int]:
    """The functions that the pool's code calls."""
    found = {
        pool_code.ACQUIRE: ctypes.pythonapi.PyThread_acquire_lock,
        pool_code.RELEASE: ctypes.pythonapi.PyThread_release_lock,
    }
    return {name: ctypes.cast(function, ctypes.c_void_p).value or 0 for name, function in found.items()}
