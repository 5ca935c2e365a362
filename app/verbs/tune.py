"""`texelflow tune MODEL`: measures a model's kernels on this GPU, and keeps the fastest.

Whatever ends it, what was found until then is kept; results count whenever a model with the same kernels is compiled.
"""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from time import perf_counter, sleep
from typing import Any

from texelflow.gpu_delegate.base.errors import UnsupportedError, UsageError
from texelflow.gpu_delegate.device.choices import UNMEASURED, Choices
from texelflow.gpu_delegate.device.device import Device
from texelflow.gpu_delegate.model.graph import Graph, Hybrid
from texelflow.gpu_delegate.model.layout import Precision
from texelflow.gpu_delegate.plan.compile_options import CompileOptions
from texelflow.gpu_delegate.targets.gl.context import Context, open_context
from texelflow.gpu_delegate.targets.gl.runtime import device_of
from texelflow.gpu_delegate.targets.glsl.compiled_partitions import compile_partitions
from texelflow.gpu_delegate.tuning.halving import Budget
from texelflow.gpu_delegate.tuning.kernel_timer import KernelTimer
from texelflow.gpu_delegate.tuning.store import device_key, is_worth_tuning, keep_choices, load_choices, mark_tuned
from texelflow.gpu_delegate.tuning.switch import is_tuning_wanted
from texelflow.gpu_delegate.tuning.tuner import Tuner
from texelflow.gpu_delegate.tuning.whole_network import WholeComparison, compare_whole

from ..console import Console, Report, counted
from ..frame.inference.backends import check_bf16
from ..media.sources import parse_position
from ..models.catalogue import resolve
from ..signals import exit_code, stop_flag
from .chosen_signature import load_signature
from .tile_words import describe_tile

_MOST_BUDGET_S = 86400.0
_REST = 4.0  # times as long as each step, where frames are drawn meanwhile


@dataclass(frozen=True)
class TuneOptions:
    """The options of the verb."""

    budget_s: float = 10.0
    precision: Precision = "fp32"
    json: bool = False
    gentle: bool = False  # rest most of the time: another process needs the GPU
    only_on: str = ""  # a device_key: do nothing on any other device
    signature: str | None = None  # of the model; its first by default
    hybrid: Hybrid = "expanded"


def parse_budget(text: str) -> float:
    """Seconds of 10, 10s or 1:30. Raises UsageError."""
    try:
        budget_s = float(parse_position(text))
    except UsageError:
        budget_s = 0.0
    if not 0 < budget_s <= _MOST_BUDGET_S:
        raise UsageError(f"--budget {text[:40]}: a time such as 10s or 1:30 is needed, a day at most")
    return budget_s


def run_tune(model: str, options: TuneOptions, console: Console) -> int:
    """Tune, keep, show; the exit code is 0, or 130 or 143 if it was interrupted.

    Raises as models.resolve and load_model; UnsupportedError where nothing runs on the GPU, DeviceError without OpenGL.
    """
    check_bf16(options.precision, False, "what is tuned are kernels of the GPU, leave it out")
    with console.download() as progress:
        path = resolve(model, progress).path
    graph = load_signature(path, options.signature, console, options.hybrid)
    with open_context() as context:
        if options.only_on and options.only_on != device_key(context):
            return 0  # the caller's GPU is another one
        device = device_of(context, options.precision)
        parts = _parts(graph, device, options.precision)
        known = load_choices(context)
        budget = Budget(options.budget_s, perf_counter)
        with console.tuning() as report, stop_flag() as stopped:
            found = tune(context, parts, known, options, budget, lambda: bool(stopped), report)
        if not stopped and not budget.is_spent:
            mark_tuned(context, graph, options.precision)
        if stopped:
            console.note(f"interrupted; {counted(len(found.kernels), 'kernel')} measured so far are kept")
            return exit_code(stopped.number)
        tuned = replace(device, choices=known.updated(found))
        compared = parts if found else []  # nothing was found that could make a difference
        whole = [compare_whole(context, part, device, tuned, options.precision) for part in compared]
        renderer = context.renderer
    _show(graph.name, renderer, found, whole, console)
    if options.json:
        console.json(_as_json(graph.name, renderer, found, whole))
    return 0


def tune_first(graph: Graph, precision: Precision, console: Console) -> None:
    """Tune a model that is about to be measured, once for a GPU that is not known yet: beside it, it would disturb.

    Raises DeviceError without OpenGL.
    """
    if not is_tuning_wanted():
        return
    with open_context() as context:
        if not is_worth_tuning(context, graph, precision):
            return
        options = TuneOptions(precision=precision)
        console.note(f"this GPU is not tuned for {graph.name}: {options.budget_s:g} s first; --no-tune leaves that out")
        parts, budget = _parts(graph, device_of(context, precision), precision), Budget(options.budget_s, perf_counter)
        with console.tuning() as report:
            tune(context, parts, load_choices(context), options, budget, lambda: False, report)
        mark_tuned(context, graph, precision)


def tune(
    context: Context,
    parts: Sequence[Graph],
    known: Choices,
    options: TuneOptions,
    budget: Budget,
    is_over: Callable[[], bool],
    report: Report,
) -> Choices:
    """What is found out on a context about graphs that run there, in addition to what is known; it is kept, too."""
    device, timer, found = device_of(context, options.precision), KernelTimer(context), UNMEASURED
    for part in parts:
        here = replace(device, choices=known.updated(found))
        tuner = Tuner(timer, part, here, budget, options.precision)
        steps = tuner.steps()
        try:
            start = perf_counter()
            for step in steps:
                if is_over():
                    break
                report(round(100 * (1 - budget.left_s / options.budget_s)), 100, f"tuning: {step.what}")
                if options.gentle:
                    sleep(_REST * (perf_counter() - start))
                start = perf_counter()
        finally:
            steps.close()
            found = found.updated(tuner.choices)
            keep_choices(context, found)
    return found


def _parts(graph: Graph, device: Device, precision: Precision) -> list[Graph]:
    """What of a model runs on the GPU. Raises UnsupportedError where nothing does."""
    found = compile_partitions(graph, device, CompileOptions(precision=precision))
    if not found.compiled:
        reason = next(iter(found.reasons.values()), "it has no operators")
        raise UnsupportedError(f"{graph.name}: nothing of it runs on the GPU: {reason}; texelflow inspect says more")
    return [compiled.source for compiled in found.compiled]


def _show(name: str, renderer: str, found: Choices, whole: Sequence[WholeComparison], console: Console) -> None:
    slowest_first = sorted(found.kernels.items(), key=lambda item: -item[1].default_ms)
    rows = [
        (signature, f"{c.default_ms:.3f}", f"{c.ms:.3f}", describe_tile(c.tile), "yes" if c.same_bits else "nearly")
        for signature, c in slowest_first
    ]
    if rows:
        console.table("Kernels measured", ("signature", "before, ms", "now, ms", "tile", "same results"), rows)
    else:
        console.say("no kernel was measured to the end in this time; a longer --budget measures more")
    for each in whole:
        console.say(_line(name, renderer, each))


def _line(name: str, renderer: str, whole: WholeComparison) -> str:
    results = "the same bits" if whole.same_bits else "results within the tolerance of check"
    results = results if whole.agrees else "RESULTS DIFFER: run texelflow cache clear tuning, and report this"
    before, after = whole.dispatches
    return (
        f"{name} on {renderer}: {whole.default_ms:.2f} ms in {counted(before, 'dispatch')} by default, "
        f"{whole.ms:.2f} ms in {after} tuned; {results}"
    )


def _as_json(name: str, renderer: str, found: Choices, whole: Sequence[WholeComparison]) -> dict[str, Any]:
    return {
        "model": name,
        "renderer": renderer,
        "kernels": {signature: asdict(choice) for signature, choice in found.kernels.items()},
        "fusion": {
            signature: {"ms": each.ms, "default_ms": each.default_ms, **each.settings}
            for signature, each in found.graphs.items()
        },
        "whole": [asdict(each) for each in whole],
    }
