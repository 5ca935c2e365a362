"""The sweep finds the work-group that is best over all sizes, and leaves out what there was no time for."""

import json
import math

import pytest

from tests.helpers.commands import Command
from tests.helpers.markers import exhaustive
from tests.helpers.simulated_device import SimulatedDevice
from tests.tools.work_groups.__main__ import main
from tests.tools.work_groups.adreno_groups import ADRENO_GROUPS, COLUMNS
from tests.tools.work_groups.sweep import CASES, GROUPS, SweepCase, best_groups, sweep
from texelflow.gpu_delegate.device.device import SOFTWARE
from texelflow.gpu_delegate.targets.glsl.glsl_kernel import Kernel
from texelflow.gpu_delegate.tuning.halving import Budget

DEVICE = SOFTWARE.with_limits(work_group_invocations=128)


def true_ms(kernel: Kernel) -> float:
    assert kernel.tile
    x, y, parts = kernel.tile.local
    return 1.0 + abs(x - 8) + abs(y - 4) + abs(parts - 2)


def test_the_best_over_a_domain() -> None:
    cases = [SweepCase("1x1", 8, 1), SweepCase("depthwise", 9, 2), SweepCase("3x3", 8, 3)]
    device = SimulatedDevice(true_ms, noise=0.0)
    found = [*sweep(device, DEVICE, Budget(1e9, device.clock), cases)]
    sums = [each for each in found if each.case.kind != "depthwise"]
    assert best_groups(sums) == ((8, 4, 2), 1.0)
    assert best_groups(found[1:2]) == ((8, 4, 1), 1.0)
    assert best_groups([]) is None
    assert {math.prod(local) for each in found for local in each.ms} <= {2**power for power in range(2, 8)}
    assert all(local[2] == 1 for local in found[1].ms)
    assert [*sweep(device, DEVICE, Budget(0.0, device.clock), cases)] == []


def test_a_case_that_is_cut_off_is_left_out() -> None:
    device, asked = SimulatedDevice(true_ms, noise=0.0), iter(range(1000))
    found = [*sweep(device, DEVICE, Budget(1e9, device.clock), CASES[:3], is_over=lambda: next(asked) > 100)]
    assert 0 < len(found) < 3


def test_the_domain_is_the_papers() -> None:
    assert {case.side for case in CASES} == {8, 16, 32, 64, 128}
    assert {case.stride for case in CASES} == {1, 2, 3}
    assert {side for local in GROUPS for side in local[:2]} == {2, 4, 8}
    assert all(len(groups) == len(COLUMNS) for groups in ADRENO_GROUPS.values())
    assert ADRENO_GROUPS["Adreno 630"][:2] == ((4, 8, 4), (4, 4, 8))


@exhaustive
@pytest.mark.gl
def test_the_tool_measures_on_this_machine(capsys: pytest.CaptureFixture[str]) -> None:
    tool = Command(capsys, main)
    figures = json.loads(tool("--budget", "0.1s", "--json").out)
    assert figures["cases"][0]["convolution"] == "1x1"
    assert all(ms > 0 for ms in figures["cases"][0]["ms"].values())
    assert "--budget" in tool("--budget", "0s").complaint
