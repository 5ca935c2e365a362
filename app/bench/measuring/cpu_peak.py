"""Measures how many multiply-accumulates a second this machine's CPU reaches, to compare a GPU with.

Measured by NumPy's product of two matrices, which its BLAS library computes with all cores and vector units.
"""

import platform
from pathlib import Path
from time import perf_counter

import numpy as np

_SIDE = 1024
_LEAST_S = 1.0
_HALF_FLAGS = frozenset({"avx512_fp16", "asimdhp"})  # of x86 and ARM: vectors of halves are multiplied as such


def measure_cpu_macs() -> float:
    """Multiply-accumulates a second in float32, by the fastest product of about a second's."""
    a = np.random.default_rng(0).random((_SIDE, _SIDE), np.float32)
    b, times_s, start = a.T.copy(), list[float](), perf_counter()
    while perf_counter() - start < _LEAST_S:
        begin = perf_counter()
        a @ b
        times_s.append(perf_counter() - begin)
    return float(_SIDE) ** 3 / min(times_s)


def cpu_facts(text: str | None = None) -> dict[str, str | bool | None]:
    """Its name, and whether it computes in half precision, by Linux' /proc/cpuinfo; None where that is not known."""
    found = _cpuinfo() if text is None else text
    fields = dict(_field(line) for line in found.splitlines() if ":" in line)
    name = fields.get("model name") or fields.get("Model") or platform.machine()
    flags = fields.get("flags") or fields.get("Features")
    return {"name": name, "has_half_arithmetic": bool(_HALF_FLAGS & set(flags.split())) if flags else None}


def _field(line: str) -> tuple[str, str]:
    name, _, value = line.partition(":")
    return name.strip(), value.strip()


def _cpuinfo() -> str:
    try:
        return Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
