"""What kind of CPU this machine has, its caches, and how many cores the process may use.

Threads that wait for each other by spinning must have a core each, so cores that the process may not use do not count:
those outside its affinity, and what a control group's quota withholds (docs.kernel.org/admin-guide/cgroup-v2.html).
"""

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import Literal

from ...base.errors import DeviceError, UsageError
from ...model.layout import Precision

CPU_CHOICE = "TEXELFLOW_CPU"  # in the environment: a narrower kind than the machine's
_CPUS = Path("/sys/devices/system/cpu")
_CGROUPS = Path("/sys/fs/cgroup")
_OWN_CGROUPS = Path("/proc/self/cgroup")
_UNITS = {"K": 1 << 10, "M": 1 << 20}


@dataclass(frozen=True)
class CacheSizes:
    """Bytes of the caches that one core reads through; by default what small machines have."""

    l1_bytes: int = 32 << 10
    l2_bytes: int = 512 << 10
    l3_bytes: int = 4 << 20


@dataclass(frozen=True)
class CpuTarget:
    """A kind of CPU that code is made for: floats in a vector, vectors in registers, and what LLVM calls it."""

    name: str  # avx512, avx2 or neon
    lanes: int
    registers: int
    triple: str
    cpu: str
    features: str = ""
    caches: CacheSizes = CacheSizes()
    precision: Precision = "fp32"  # of products with weights: or bf16

    @property
    def products_together(self) -> Literal[1, 2, 4]:
        """Products of bytes that one instruction adds to an int: VPDPBUSD or SDOT, VPMADDWD, or multiplication."""
        adds_four = {"avx512": "+avx512vnni", "avx2": "+avxvnni", "neon": "+dotprod"}[self.name]
        if adds_four in self.features.split(","):
            return 4
        return 2 if self.is_x86 else 1

    @property
    def register_lanes(self) -> int:
        """Floats of a register: a kernel's vectors may have fewer lanes, or those of two registers."""
        return {"avx512": 16, "avx2": 8, "neon": 4}[self.name]

    @property
    def subtracts_products(self) -> bool:
        """Whether products of bytes, of weights with the other sign, are subtracted from sums: those of VPMADDWD.

        Of each addition LLVM asks whether both sides have bits in common, and for that what the six additions before
        may give: with subtractions compiling a network of bytes takes a seventh less, and the code is as fast.
        """
        return self.products_together == 2

    def with_precision(self, precision: Precision) -> "CpuTarget":
        """The same with products in fp32 or bf16. Raises DeviceError for what the CPU lacks, and for what GPUs have."""
        if precision not in ("fp32", "bf16"):
            raise DeviceError(f"{precision} is for the GPU: the CPU's own code has fp32 and bf16")
        if precision == "bf16" and "+avx512bf16" not in self.features.split(","):
            needed = "AVX512-BF16, as Intel's server CPUs have it from Sapphire Rapids on, and AMD's from Zen 4 on"
            raise DeviceError(f"bf16 needs code for {needed}: this is {self.name} on {self.cpu}")
        return replace(self, precision=precision)

    @property
    def is_x86(self) -> bool:
        """Whether it is of Intel's kind; else it is ARM's."""
        return self.name.startswith("avx")


# Without a machine at hand they stand for the oldest CPU of their kind
AVX512 = CpuTarget("avx512", 16, 32, "x86_64-unknown-linux-gnu", "x86-64-v4", "-prefer-256-bit")
AVX2 = CpuTarget("avx2", 8, 16, "x86_64-unknown-linux-gnu", "x86-64-v3")
NEON = CpuTarget("neon", 4, 32, "aarch64-unknown-linux-gnu", "cortex-a72")

_NEEDED = {"avx512": ("avx512f", "avx512dq", "avx512bw", "avx512vl", "avx2", "fma"), "avx2": ("avx2", "fma")}


def target_of(
    triple: str, cpu: str, features: Mapping[str, bool], wanted: str = "", caches: CacheSizes | None = None
) -> CpuTarget:
    """The widest kind that a machine offers as LLVM describes it, or the one wanted.

    Raises DeviceError where it has none with fused multiply-adds, UsageError for a wanted kind that it does not have.
    """
    known = [AVX512, AVX2] if triple.startswith(("x86_64", "amd64")) else []
    known += [NEON] if triple.startswith(("aarch64", "arm64")) else []
    offered = [target for target in known if all(features.get(name) for name in _NEEDED.get(target.name, ()))]
    if not offered:
        raise DeviceError(f"this CPU ({cpu}) has no fused multiply-adds on vectors (AVX2 with FMA, or NEON)")
    chosen = [target for target in offered if wanted in ("", target.name)]
    if not chosen:
        names = " or ".join(target.name for target in offered)
        raise UsageError(f"{CPU_CHOICE}={wanted}: this CPU has {names}")
    text = _feature_text(features, chosen[0])
    return replace(chosen[0], triple=triple, cpu=cpu, features=text, caches=caches or CacheSizes())


def _feature_text(features: Mapping[str, bool], target: CpuTarget) -> str:
    """Features as LLVM takes them; for a kind without AVX-512, without it. What is preferred for other code is not."""
    used = dict(features)
    if target.name == "avx2":
        used.update((name, False) for name in features if name.startswith(("avx512", "avx10")))
    text = ",".join(f"{'+' if present else '-'}{name}" for name, present in sorted(used.items()))
    return ",".join(filter(None, [text, target.features]))


# Cores ----------------------------------------------------------------------------------------------------------------


def usable_cores() -> int:
    """The cores that this process may keep busy: those of its affinity, less what its control groups withhold."""
    affinity = getattr(os, "sched_getaffinity", None)
    there = len(affinity(0)) if affinity else os.cpu_count() or 1
    return max(1, min(there, int(core_quota(_text(_OWN_CGROUPS), _CGROUPS))))


def core_quota(own_cgroups: str, mounted: Path) -> float:
    """Cores that control groups grant, the least of a group and those above it; a large number without a bound.

    `own_cgroups` is the text of /proc/self/cgroup, `mounted` where the file systems of control groups are.
    """
    granted = [1e6]
    for line in own_cgroups.splitlines():
        controllers, _, own = line.partition(":")[2].partition(":")
        if "cpu" not in controllers.split(",") and controllers:
            continue
        for folder in _folders(mounted, controllers, own):
            quota, period = _quota(folder)
            if quota > 0 and period > 0:
                granted.append(quota / period)
    return min(granted)


def _folders(mounted: Path, controllers: str, own: str) -> Iterator[Path]:
    """A group's folder and those above it; in a container the own group may be the root of what is seen."""
    parts = PurePosixPath(own).parts[1:]
    if ".." in parts:
        parts = ()
    for root in (mounted / controllers, mounted / "cpu") if controllers else (mounted, mounted / "unified"):
        for count in range(len(parts), -1, -1):
            yield root.joinpath(*parts[:count])


def _quota(folder: Path) -> tuple[int, int]:
    """Microseconds of every core together, and of how many; zeros without a bound."""
    together = _text(folder / "cpu.max").split()
    apart = [_text(folder / name).strip() for name in ("cpu.cfs_quota_us", "cpu.cfs_period_us")]
    for values in (together, apart):
        if len(values) == 2 and all(value.isdecimal() for value in values):
            return int(values[0]), int(values[1])
    return 0, 0


# Caches ---------------------------------------------------------------------------------------------------------------


def cache_sizes(cpus: Path = _CPUS) -> CacheSizes:
    """The caches of the first core as Linux lists them; the defaults for those that are not listed."""
    found = dict[str, int]()
    for index in range(8):
        folder = cpus / "cpu0" / "cache" / f"index{index}"
        level, kind, size = (_text(folder / name).strip() for name in ("level", "type", "size"))
        amount, unit = size[:-1], size[-1:]
        if kind in ("Data", "Unified") and level in ("1", "2", "3") and unit in _UNITS and amount.isdecimal():
            found[f"l{level}_bytes"] = max(1, int(amount)) * _UNITS[unit]
    return replace(CacheSizes(), **found)


def _text(path: Path) -> str:
    """A small file's text, empty where it cannot be read."""
    try:
        with path.open(encoding="ascii", errors="replace") as file:
            return file.read(1 << 16)
    except OSError:
        return ""
