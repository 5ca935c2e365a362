"""Measures the joules that the CPU and the GPU take for a piece of work, by the counters of the system.

The CPU's are Intel's and AMD's RAPL (Linux: /sys/class/powercap), which only root may read on most systems; NVIDIA's
GPUs have one of their own in NVML, their driver's library.
"""

import ctypes
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from texelflow.gpu_delegate.targets.gl.library import load_library

POWERCAP = Path("/sys/class/powercap")
_NVML = "libnvidia-ml.so.1"


@dataclass(frozen=True)
class EnergyCounter:
    """Counts joules from any start on; `range_j` is where it begins anew, 0 if nowhere."""

    name: str
    read_j: Callable[[], float]
    range_j: float = 0.0


def energy_counters(powercap: Path = POWERCAP) -> tuple[list[EnergyCounter], list[str]]:
    """Those that can be read, and in a line each why others cannot."""
    counters, reasons = _rapl(powercap)
    try:
        counters.append(_nvml())
    except OSError:
        reasons.append(f"no NVIDIA GPU: {_NVML} is not there, or has no counter")
    return counters, reasons


def spent_j(counters: list[EnergyCounter], work: Callable[[], None]) -> Mapping[str, float]:
    """Joules by counter while the work was done."""
    before = [counter.read_j() for counter in counters]
    work()
    found = {}
    for counter, start in zip(counters, before, strict=True):
        spent = counter.read_j() - start
        found[counter.name] = spent if spent >= 0 else spent + counter.range_j
    return found


def _rapl(powercap: Path) -> tuple[list[EnergyCounter], list[str]]:
    counters, reasons = list[EnergyCounter](), list[str]()
    domains = sorted(powercap.glob("intel-rapl:*"))
    for domain in domains:
        try:
            name = (domain / "name").read_text(encoding="ascii").strip()
            range_j = _microjoules(domain / "max_energy_range_uj")
            _microjoules(domain / "energy_uj")
        except (OSError, ValueError) as error:
            reasons.append(f"RAPL, {domain.name}: {getattr(error, 'strerror', None) or error}")
            continue
        read_j = partial(_microjoules, domain / "energy_uj")
        counters.append(EnergyCounter(f"{name} ({domain.name})", read_j, range_j))
    return counters, reasons or ([] if domains else ["RAPL is not there"])


def _microjoules(path: Path) -> float:
    return int(path.read_text(encoding="ascii")) / 1e6


def _nvml() -> EnergyCounter:
    """The first GPU's. Raises OSError."""
    nvml, handle, energy_mj = load_library(_NVML), ctypes.c_void_p(), ctypes.c_ulonglong()
    if nvml.nvmlInit_v2() or nvml.nvmlDeviceGetHandleByIndex_v2(0, ctypes.byref(handle)):
        raise OSError("NVML finds no GPU")

    def read_j() -> float:
        if nvml.nvmlDeviceGetTotalEnergyConsumption(handle, ctypes.byref(energy_mj)):
            raise OSError("the GPU has no counter")
        return energy_mj.value / 1e3

    read_j()
    return EnergyCounter("NVIDIA GPU", read_j)
