"""The loops that find the peaks of CPU cores: that they compute what they say, and what is made of their rates."""

import numpy as np
import pytest

from tests.tools.layers import cpu_roofs
from tests.tools.layers.cpu_roofs import CpuRoofs, measure_roofs
from texelflow.gpu_delegate.targets.llvm.compiler import compile_module, native_target


def test_loops_do_all_that_is_counted() -> None:
    target = native_target()
    code = compile_module(cpu_roofs._text(target), target)
    values = cpu_roofs._aligned(1024)
    values[:] = np.random.default_rng(0).random(1024, np.float32)
    whole = float(values.sum(dtype=np.float64))
    read = code.function("read", cpu_roofs._SIGNATURE)
    read(values.ctypes.data, 1024, 3)
    assert float(values[: target.lanes].sum(dtype=np.float64)) == pytest.approx(3 * whole, rel=1e-5)
    for lanes in (lanes for lanes in (4, 8, 16) if lanes <= target.lanes):
        code.function(f"multiply{lanes}", cpu_roofs._SIGNATURE)(values.ctypes.data, 0, 2)
        value = np.float32(1e-3)
        for _ in range(2):
            value = np.float32(value * np.float32(0.999) + np.float32(1e-3))
        assert np.allclose(values[:lanes], 12 * value, rtol=1e-5)


@pytest.mark.parametrize("threads", [1, 2])
def test_every_width_and_level_has_a_rate(threads: int) -> None:
    target = native_target()
    roofs = measure_roofs(target, threads, lambda: True)
    assert set(roofs.macs_per_s) == {lanes for lanes in (4, 8, 16) if lanes <= target.lanes}
    assert list(roofs.bytes_per_s) == ["L1", "L2", "L3", "DRAM"]
    assert all(rate > 0 for rate in (*roofs.macs_per_s.values(), *roofs.bytes_per_s.values()))
    assert roofs.level(1) == "L1"
    assert roofs.level(1 << 40) == "DRAM"


def test_data_comes_from_the_first_level_that_holds_it() -> None:
    fits = {"L1": 1 << 15, "L2": 1 << 20, "L3": 1 << 25}
    roofs = CpuRoofs(1, {4: 1e9, 8: 2e9}, {"L1": 4e9, "L2": 3e9, "L3": 2e9, "DRAM": 1e9}, fits)
    assert [roofs.level(size) for size in (1 << 15, (1 << 15) + 1, 1 << 20, 1 << 21, 1 << 26)] == [
        "L1", "L2", "L2", "L3", "DRAM",
    ]  # fmt: skip
    assert roofs.peaks("L2").ridge == pytest.approx(2 / 3)
