"""Measures the peaks of a CPU's cores: multiply-adds by vector width, and reading from each cache.

The loops are written for LLVM as kernels are, so that both go the same way. Multiply-adds: twelve chains that do not
wait for each other, all in registers. Reading: sums over a buffer that fits into a cache, or into none. Best of many.
"""

import ctypes
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from time import perf_counter

import numpy as np

from texelflow.gpu_delegate.targets.glsl.roofline import Peaks
from texelflow.gpu_delegate.targets.llvm.compiler import CompiledCode, compile_module
from texelflow.gpu_delegate.targets.llvm.ir import FLOAT, I64, Function, Module, Register, integer, number, vector
from texelflow.gpu_delegate.targets.llvm.machine import CpuTarget

from .retinaface_layers import FLOAT_BYTES

LEVELS = ("L1", "L2", "L3", "DRAM")
_CHAINS = 12  # more than any core has multiply-adds under way, and with their factors no more than 16 registers
_WIDTHS = (4, 8, 16)
_LOADS = 8  # of a round of the loop that reads
_TURN_S, _TURNS = 2e-3, 25
_MOST_BYTES = 256 << 20  # of a buffer
_BEYOND = 4  # times the last cache is in memory
_SIGNATURE = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)


@dataclass(frozen=True)
class CpuRoofs:
    """Of so many threads at once: multiply-adds a second by lanes of a vector, bytes read a second by level."""

    threads: int
    macs_per_s: dict[int, float]
    bytes_per_s: dict[str, float]
    fits_bytes: dict[str, int]  # what each level holds: of private caches for each thread

    def level(self, size_bytes: int) -> str:
        """The first level that holds so much."""
        return next((level for level in LEVELS if size_bytes <= self.fits_bytes.get(level, 0)), LEVELS[-1])

    def peaks(self, level: str) -> Peaks:
        """The two roofs where data comes from a level."""
        return Peaks(max(self.macs_per_s.values()), self.bytes_per_s[level])


def measure_roofs(target: CpuTarget, threads: int, is_over: Callable[[], bool] = bool) -> CpuRoofs:
    """Measure, in about a second; `is_over` is asked between measurements. Raises DeviceError."""
    code = compile_module(_text(target), target)
    caches = target.caches
    fits = {
        "L1": caches.l1_bytes * threads,
        "L2": caches.l2_bytes * threads,
        "L3": max(caches.l3_bytes, caches.l2_bytes * threads),
        "DRAM": 1 << 62,
    }
    beyond = min(_MOST_BYTES, _BEYOND * caches.l3_bytes)
    buffers = {"L1": caches.l1_bytes // 2, "L2": caches.l2_bytes // 2, "L3": caches.l3_bytes // 2 // threads}
    macs, rates = dict[int, float](), dict[str, float]()
    for lanes in _widths(target):
        macs[lanes] = _CHAINS * lanes * _best_rate(code, f"multiply{lanes}", 64, threads, is_over)
    for level, size_bytes in (*buffers.items(), ("DRAM", beyond // threads)):
        rates[level] = _best_rate(code, "read", size_bytes, threads, is_over) * FLOAT_BYTES
    return CpuRoofs(threads, macs, rates, fits)


def _widths(target: CpuTarget) -> Iterator[int]:
    return (lanes for lanes in _WIDTHS if lanes <= target.lanes)


# Code -----------------------------------------------------------------------------------------------------------------


def _text(target: CpuTarget) -> str:
    module = Module()
    for lanes in _widths(target):
        _write_multiply(module, lanes)
    _write_read(module, target.lanes)
    return module.text


def _write_multiply(module: Module, lanes: int) -> None:
    """So many rounds of one multiply-add in each chain."""
    function = _function(module, f"multiply{lanes}")
    data, _, rounds = function.parameters
    kind = vector(FLOAT, lanes)
    factor, addend = (function.splat(number(value), lanes) for value in (0.999, 1e-3))
    sums = _variables(function, kind, _CHAINS, addend)
    with function.loop(integer(0, I64), rounds):
        for place in sums:
            function.store(function.fma(function.load(kind, place, 64), factor, addend), place, 64)
    _finish(function, kind, sums, data)


def _write_read(module: Module, lanes: int) -> None:
    """So many times all floats of a buffer, a whole number of rounds."""
    function = _function(module, "read")
    data, count, rounds = function.parameters
    kind = vector(FLOAT, lanes)
    sums = _variables(function, kind, _LOADS, function.splat(number(0.0), lanes))
    with (
        function.loop(integer(0, I64), rounds),
        function.loop(integer(0, I64), count, _LOADS * lanes) as start,
    ):
        first = function.at(data, start)
        for offset, place in enumerate(sums):
            value = function.load(kind, function.at(first, offset * lanes), 64)
            function.store(function.binary("fadd", function.load(kind, place, 64), value), place, 64)
    _finish(function, kind, sums, data)


def _function(module: Module, name: str) -> Function:
    return module.function(name, (("ptr", "data"), (I64, "count"), (I64, "rounds")))


def _variables(function: Function, kind: str, count: int, value: Register) -> list[Register]:
    places = [function.reserve(kind) for _ in range(count)]
    for place in places:
        function.store(value, place, 64)
    return places


def _finish(function: Function, kind: str, sums: list[Register], data: Register) -> None:
    """Their sum to the start of the buffer, so that nothing was in vain."""
    total = function.load(kind, sums[0], 64)
    for place in sums[1:]:
        total = function.binary("fadd", total, function.load(kind, place, 64))
    function.store(total, data, 64)
    function.give_back()


# Measuring ------------------------------------------------------------------------------------------------------------


def _best_rate(code: CompiledCode, name: str, size_bytes: int, threads: int, is_over: Callable[[], bool]) -> float:
    """Rounds, or floats of the buffer, a second, of all threads together, in the best of some turns."""
    run = code.function(name, _SIGNATURE)
    step = _LOADS * max(_WIDTHS)
    count = 1 if name != "read" else max(step, size_bytes // FLOAT_BYTES // step * step)
    buffers = [_aligned(max(count, step)) for _ in range(threads)]
    rounds, seconds = 1, 0.0
    while (seconds := _seconds(run, buffers[:1], count, rounds)) < _TURN_S:
        rounds = max(2 * rounds, int(rounds * _TURN_S / max(seconds, 1e-9)))
    best_s = seconds if threads == 1 else float("inf")
    for turn in range(_TURNS):
        if turn and is_over():
            break
        best_s = min(best_s, _seconds(run, buffers, count, rounds))
    return count * rounds * threads / best_s


def _aligned(count: int) -> np.ndarray[tuple[int], np.dtype[np.float32]]:
    """So many floats from a multiple of 64 bytes on, each page of them written."""
    values = np.zeros(count + 16, np.float32)
    values[:] = 1e-3
    first = -values.ctypes.data // FLOAT_BYTES % 16
    return values[first : first + count]


def _seconds(run: Callable[..., None], buffers: list[np.ndarray], count: int, rounds: int) -> float:  # type: ignore[type-arg]
    """What a call on each buffer takes, all at the same time."""
    if len(buffers) == 1:
        start = perf_counter()
        run(buffers[0].ctypes.data, count, rounds)
        return perf_counter() - start
    spans: list[tuple[float, float]] = []
    barrier = threading.Barrier(len(buffers))

    def work(buffer: np.ndarray) -> None:  # type: ignore[type-arg]
        barrier.wait()
        start = perf_counter()
        run(buffer.ctypes.data, count, rounds)
        spans.append((start, perf_counter()))

    workers = [threading.Thread(target=work, args=(buffer,)) for buffer in buffers]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    return max(end for _, end in spans) - min(start for start, _ in spans)
