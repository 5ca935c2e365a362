"""What a machine reports of itself becomes the kind of CPU to compile for, and the number of usable cores."""

import os
from pathlib import Path

import pytest

from texelflow.gpu_delegate.base.errors import DeviceError, UsageError
from texelflow.gpu_delegate.targets.llvm.machine import CacheSizes, cache_sizes, core_quota, target_of, usable_cores

X86 = "x86_64-pc-linux-gnu"
WIDE = dict.fromkeys(("avx2", "fma", "avx512f", "avx512dq", "avx512bw", "avx512vl", "avx512vnni"), True)
MOST = 1e6


def written(folder: Path, files: dict[str, str]) -> Path:
    """A folder with files in it."""
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


def test_the_widest_kind_is_taken_or_the_one_that_is_wanted() -> None:
    wide = target_of(X86, "znver4", WIDE)
    assert (wide.name, wide.lanes, wide.registers, wide.cpu) == ("avx512", 16, 32, "znver4")
    assert "+avx512vl" in wide.features.split(",")
    assert "-prefer-256-bit" in wide.features.split(",")
    narrow = target_of(X86, "znver4", WIDE, "avx2", CacheSizes(l2_bytes=9))
    assert (narrow.name, narrow.lanes, narrow.registers, narrow.caches.l2_bytes) == ("avx2", 8, 16, 9)
    assert {"+avx2", "+fma", "-avx512f", "-avx512vl", "-avx512vnni"} <= {*narrow.features.split(",")}
    old = target_of("x86_64-pc-windows-msvc", "haswell", {**WIDE, "avx512vl": False})
    assert old.name == "avx2"
    arm = target_of("arm64-apple-darwin23", "apple-m1", {"neon": True})
    assert (arm.name, arm.lanes) == ("neon", 4)


@pytest.mark.parametrize("triple", [X86, "riscv64-unknown-linux-gnu"])
def test_a_cpu_without_fused_multiply_adds_is_none(triple: str) -> None:
    with pytest.raises(DeviceError, match="no fused multiply-adds"):
        target_of(triple, "core2", {"sse2": True, "avx2": True, "fma": False})


def test_a_kind_that_the_machine_lacks_is_refused() -> None:
    for wanted in ("avx512", "neon", "mmx"):
        with pytest.raises(UsageError, match=f"TEXELFLOW_CPU={wanted}: this CPU has avx2$"):
            target_of(X86, "haswell", {"avx2": True, "fma": True}, wanted)


@pytest.mark.parametrize(
    ("own", "files", "cores"),
    [
        ("0::/", {}, MOST),
        ("0::/", {"cpu.max": "max 100000\n"}, MOST),
        ("0::/", {"cpu.max": "150000 100000\n"}, 1.5),
        ("0::/a/b", {"a/b/cpu.max": "max 100000", "a/cpu.max": "200000 50000"}, 4),
        ("0::/a/b", {"cpu.max": "50000 100000"}, 0.5),  # in a container the own group may be the root
        ("0::/../a", {"cpu.max": "300000 100000"}, 3),
        ("1:cpu,cpuacct:/", {"cpu,cpuacct/cpu.cfs_quota_us": "-1", "cpu,cpuacct/cpu.cfs_period_us": "100000"}, MOST),
        ("1:cpu:/a\n0::/", {"cpu/a/cpu.cfs_quota_us": "200000", "cpu/a/cpu.cfs_period_us": "100000"}, 2),
        ("1:memory:/a", {"memory/a/cpu.cfs_quota_us": "1", "memory/a/cpu.cfs_period_us": "1"}, MOST),
        ("nonsense\n::\n0::", {"cpu.max": "0 0 0"}, MOST),
        ("0::/", {"cpu.max": "1 0"}, MOST),
    ],
)  # fmt: skip
def test_control_groups_withhold_cores(own: str, files: dict[str, str], cores: float, tmp_path: Path) -> None:
    assert core_quota(own, written(tmp_path, files)) == cores


def test_no_more_cores_are_used_than_the_affinity_has() -> None:
    before = os.sched_getaffinity(0)
    assert 1 <= usable_cores() <= len(before)
    os.sched_setaffinity(0, {min(before)})
    try:
        assert usable_cores() == 1
    finally:
        os.sched_setaffinity(0, before)


def test_caches_that_linux_lists_count_and_others_are_assumed(tmp_path: Path) -> None:
    assert cache_sizes(tmp_path) == CacheSizes()
    folder = {"level": "1\n", "type": "Data\n", "size": "48K\n"}
    files = {f"cpu0/cache/index0/{name}": text for name, text in folder.items()}
    files |= {"cpu0/cache/index1/level": "1", "cpu0/cache/index1/type": "Instruction", "cpu0/cache/index1/size": "64K"}
    files |= {"cpu0/cache/index2/level": "2", "cpu0/cache/index2/type": "Unified", "cpu0/cache/index2/size": "2M"}
    files |= {"cpu0/cache/index3/level": "3", "cpu0/cache/index3/type": "Unified", "cpu0/cache/index3/size": "much"}
    assert cache_sizes(written(tmp_path, files)) == CacheSizes(48 << 10, 2 << 20)
