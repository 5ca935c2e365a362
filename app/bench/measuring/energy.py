"""Measures the joules that the CPU and the GPU take for a piece of work, by the counters of the system.

The CPU's are Intel's and AMD's RAPL (Linux: /sys/class/powercap), which only root may read on most systems; NVIDIA's
GPUs have one of their own in NVML, their driver's library.
"""

import ctypes
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Any

from texelflow.gpu_delegate.targets.gl.library import load_library

POWERCAP = Path("/sys/class/powercap")
_NVML = "libnvidia-ml.so.1"
_LOOK_S = 10.0  # counters begin anew after a minute at the earliest


@dataclass(frozen=True)
class EnergyCounter:
    """Counts joules from any start on; `range_j` is where it begins anew, 0 if nowhere."""

    name: str
    read_j: Callable[[], float]
    range_j: float = 0.0
    in_sum: bool = True  # False: what it counts is in another counter, too


def energy_counters(powercap: Path | None = None) -> tuple[list[EnergyCounter], list[str]]:
    """Those that can be read, and in a line each why others cannot."""
    counters, reasons = _rapl(powercap or POWERCAP)
    try:
        counters.append(_nvml())
    except OSError:
        reasons.append(f"no NVIDIA GPU: {_NVML} is not there, or has no counter")
    return counters, reasons


class EnergyMeter:
    """Joules by counter since it was made, and the seconds that it took; a counter that fails is left out."""

    def __init__(self, counters: Sequence[EnergyCounter]) -> None:
        self._counters = {counter.name: counter for counter in counters}
        self._last_j: dict[str, float] = {}
        self.spent_j: dict[str, float] = {}
        self.reasons: list[str] = []
        self._start_s = self._looked_s = perf_counter()
        self.took_s = 0.0
        self._read()

    def look(self) -> None:
        """To be called now and then in long work, so that no counter begins anew twice unseen."""
        if perf_counter() - self._looked_s > _LOOK_S:
            self.stop()

    def stop(self) -> None:
        """Count all until now."""
        self._looked_s = perf_counter()
        self.took_s = self._looked_s - self._start_s
        self._read()

    def _read(self) -> None:
        for name, counter in [*self._counters.items()]:
            try:
                now_j = counter.read_j()
            except (OSError, ValueError) as error:
                del self._counters[name]
                self.spent_j.pop(name, None)
                self.reasons.append(f"{name}: {getattr(error, 'strerror', None) or error}")
                continue
            passed = now_j - self._last_j.get(name, now_j)
            self.spent_j[name] = self.spent_j.get(name, 0.0) + (passed if passed >= 0 else passed + counter.range_j)
            self._last_j[name] = now_j


def spent_j(counters: Sequence[EnergyCounter], work: Callable[[], None]) -> Mapping[str, float]:
    """Joules by counter while the work was done."""
    meter = EnergyMeter(counters)
    work()
    meter.stop()
    return meter.spent_j


def energy_figures(
    counters: Sequence[EnergyCounter], reasons: Sequence[str], meter: EnergyMeter, runs: int
) -> dict[str, Any]:
    """Joules of a run and mean watts, by counter and of all together; None where nothing counts."""
    found = meter.spent_j if runs and meter.took_s else {}
    together = [found[each.name] for each in counters if each.in_sum and each.name in found]
    return {
        "j_per_run": round(sum(together) / runs, 6) if together else None,
        "mean_w": round(sum(together) / meter.took_s, 3) if together else None,
        "counters": [
            {
                "name": counter.name,
                "j_per_run": round(found[counter.name] / runs, 6),
                "mean_w": round(found[counter.name] / meter.took_s, 3),
                "in_sum": counter.in_sum,
            }
            for counter in counters
            if counter.name in found
        ],
        "reasons": [*reasons, *meter.reasons],
    }


def energy_line(figures: Mapping[str, Any]) -> str:
    """The same in one line."""
    reasons = "; ".join(figures["reasons"])
    if figures["j_per_run"] is None:
        return f"energy: no counter can be read here ({reasons})"
    parts = (f"{each['name']} {each['mean_w']:.2f} W" for each in figures["counters"])
    line = f"energy: {figures['j_per_run']:.4g} J a run, {figures['mean_w']:.2f} W in the mean: {', '.join(parts)}"
    return f"{line}; not counted: {reasons}" if reasons else line


def _rapl(powercap: Path) -> tuple[list[EnergyCounter], list[str]]:
    found, reasons = dict[str, tuple[str, EnergyCounter]](), list[str]()
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
        found[domain.name] = name, EnergyCounter(f"{name} ({domain.name})", read_j, range_j)
    has_packages = any(name.startswith("package") for name, _ in found.values())
    counters = [
        replace(counter, in_sum=_is_own(zone, name, found.keys(), has_packages))
        for zone, (name, counter) in found.items()
    ]
    return counters, reasons or ([] if domains else ["RAPL is not there"])


def _is_own(zone: str, name: str, zones: Collection[str], has_packages: bool) -> bool:
    """Whether no other zone that can be read counts the same: cores are in their package, a machine's memory is not,
    and what is called psys is all of the machine."""
    parent = zone.rpartition(":")[0]
    return name == "dram" or (parent not in zones and not (name == "psys" and has_packages))


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
