"""Work-groups that are best on this GPU, over many convolutions, as a table beside those of Adrenos."""

from collections.abc import Callable, Mapping, Sequence
from time import perf_counter
from types import MappingProxyType

from tests.tools.work_groups.adreno_groups import ADRENO_GROUPS, COLUMNS, GroupSides
from tests.tools.work_groups.sweep import CASES, CaseTimes, SweepCase, best_groups, sweep
from texelflow.app.console import Console
from texelflow.app.signals import exit_code, stop_flag
from texelflow.gpu_delegate.targets.gl.context import open_context
from texelflow.gpu_delegate.targets.gl.runtime import device_of
from texelflow.gpu_delegate.tuning.halving import Budget
from texelflow.gpu_delegate.tuning.kernel_timer import KernelTimer

_OF_COLUMNS: Mapping[str, Callable[[SweepCase], bool]] = MappingProxyType(
    {  # of the published columns those that the sweep covers
        "convolution": lambda case: case.kind != "depthwise",
        "depthwise": lambda case: case.kind == "depthwise",
        "1x1, stride 1": lambda case: (case.kind, case.stride) == ("1x1", 1),
        "3x3, stride 2": lambda case: (case.kind, case.stride) == ("3x3", 2),
        "depthwise 3x3, stride 2": lambda case: (case.kind, case.stride) == ("depthwise", 2),
    }
)


def run_sweep(budget_s: float, console: Console, as_json: bool) -> int:
    """Measure and print it; the exit code is 0, or that of an interruption. Raises DeviceError without OpenGL."""
    found = list[CaseTimes]()
    with open_context() as context, console.tuning() as report, stop_flag() as stopped:
        budget, timer = Budget(budget_s, perf_counter), KernelTimer(context)
        for each in sweep(timer, device_of(context), budget, is_over=lambda: bool(stopped)):
            found.append(each)
            report(len(found), len(CASES), f"{each.case.kind}, {each.case.side}x{each.case.side} /{each.case.stride}")
        renderer = context.renderer
    if stopped:
        console.note("interrupted; what was measured so far follows")
    _show(renderer, found, console)
    if as_json:
        console.json({"renderer": renderer, "cases": [_case(each) for each in found]})
    return exit_code(stopped.number)


def _show(renderer: str, found: Sequence[CaseTimes], console: Console) -> None:
    rows = [(renderer, *(_best(found, _OF_COLUMNS.get(column)) for column in COLUMNS))]
    rows += [(name, *map(_sides, groups)) for name, groups in ADRENO_GROUPS.items()]
    console.table(
        "Best work-groups (x, y, z), and how much longer than each size's own best they take", ("GPU", *COLUMNS), rows
    )
    details = []
    for each in found:
        if each.ms:
            best = min(each.ms, key=each.ms.__getitem__)
            worst = max(each.ms.values())
            case = each.case
            details.append((case.kind, case.side, case.stride, _sides(best), f"{each.ms[best]:.4f}", f"{worst:.4f}"))
    console.table("Each size", ("convolution", "side", "stride", "best", "ms", "worst, ms"), details, dense=True)
    console.say(
        f"{len(found)} of {len(CASES)} cases measured; sides of 2, 4 and 8; z: threads that share a sum, 1 if none do"
    )
    console.say("Adreno: TensorFlow Lite's OpenGL delegate, after Table 2 of arXiv 1907.01989")


def _best(found: Sequence[CaseTimes], belongs: Callable[[SweepCase], bool] | None) -> str:
    best = best_groups([each for each in found if belongs(each.case)]) if belongs else None
    return f"{_sides(best[0])} +{best[1] - 1:.0%}" if best else "-"


def _sides(group: GroupSides | None) -> str:
    return ",".join(map(str, group)) if group else "-"


def _case(each: CaseTimes) -> dict[str, object]:
    case = each.case
    times = {_sides(local): ms for local, ms in each.ms.items()}
    return {"convolution": case.kind, "side": case.side, "stride": case.stride, "ms": times}
