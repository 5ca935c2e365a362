"""`texelflow inspect MODEL`: prints what becomes of a model on the GPU.

Every model is explained: what the GPU cannot take is named with the reason, and the rest is reported as it would run.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from texelflow.gpu_delegate.base.errors import DeviceError, UsageError
from texelflow.gpu_delegate.base.wording import meant
from texelflow.gpu_delegate.delegate.report import op_lines
from texelflow.gpu_delegate.delegate.selection import DelegationRates, rates_of, selection
from texelflow.gpu_delegate.device.device import SOFTWARE, Device
from texelflow.gpu_delegate.device.families import TUNINGS, device_like
from texelflow.gpu_delegate.model.graph import Graph, Hybrid
from texelflow.gpu_delegate.plan.compile_options import COMPILE_DEFAULTS, CompileOptions
from texelflow.gpu_delegate.plan.memory.memory_options import MemoryOptions
from texelflow.gpu_delegate.targets.gl.context import open_context
from texelflow.gpu_delegate.targets.glsl.compiled_partitions import CompiledPartitions, Select, compile_partitions
from texelflow.gpu_delegate.targets.glsl.roofline import Peaks
from texelflow.gpu_delegate.tuning.store import tuned_device

from ...advice.advice import advise
from ...advice.cost import RunRates
from ...compile_words import compile_line
from ...console import Console, counted
from ...files import Files, Read, Write, settle
from ...frame.inference.backends import check_bf16
from ...models.catalogue import model_path, resolve
from ...models.meaning import model_meaning
from ...plots import check_matplotlib
from ...tracking.solutions import solution_ending_with
from ..chosen_signature import load_signature, signature_figures
from ..peaks import measure_peaks
from .advice_tables import show_advice
from .coverage import borders, delegate_line, left_as_json, summary
from .inspect_native import inspect_native
from .inspect_ops import list_ops
from .inspect_tables import show_coverage, show_head, show_partitions, show_report, types_line
from .inspection import Inspection, inspect_compiled
from .memory_lines import Memory, memory_in_native_code
from .memory_picture import memory_page
from .memory_plot import save_memory_plot
from .shader_files import write_shaders


@dataclass(frozen=True)
class InspectOptions:
    """The options of the verb."""

    json: bool = False
    ops: bool = False  # say what ops run where: all of them, or the model's
    peaks: bool = True  # measure the machine's peaks
    compiling: CompileOptions = COMPILE_DEFAULTS
    shaders: Path | None = None  # the folder for the GLSL
    tuning: str | None = None  # one of TUNINGS; that of the machine by default
    force: bool = False  # write over what is in that folder
    advise: bool = False  # say what to change in the model
    cpu: str | None = None  # native: the steps of the CPU's own code instead
    plot: Path | None = None  # the picture of the memory
    signature: str | None = None  # of the model; its first by default
    hybrid: Hybrid = "expanded"


@dataclass(frozen=True)
class _Machine:
    """What the model is compiled for, and one line that says so."""

    device: Device
    family: str
    peaks: Peaks | None
    line: str

    @property
    def delegation_rates(self) -> DelegationRates:
        """What the delegate decides with."""
        return rates_of(self.device.tuning == SOFTWARE.tuning)

    @property
    def rates(self) -> RunRates | None:
        """What times are estimated with, if peaks were measured."""
        return RunRates(self.peaks, self.delegation_rates.hand_over_ms) if self.peaks else None


def run_inspect(model: str | None, options: InspectOptions, console: Console) -> int:
    """Print it all; the exit code is 0. Raises as models.resolve, load_model and settle, and UsageError."""
    if options.ops and model is None:
        list_ops(None, console, options.json)
        return 0
    if model is None:
        raise UsageError("name a model, such as selfie, or a .tflite file; --ops lists the supported ops")
    if options.tuning is not None and options.tuning not in TUNINGS:
        raise UsageError(
            f"--tuning {options.tuning}: one of {', '.join(TUNINGS)} is needed{meant(options.tuning, TUNINGS)}"
        )
    if options.cpu not in (None, "native"):
        raise UsageError(f"--cpu {options.cpu}: native is needed here; TensorFlow Lite has no steps to show")
    if options.cpu and (options.advise or options.shaders or options.tuning or options.compiling.precision != "fp32"):
        raise UsageError("--cpu native goes with none of --advise, --shaders, --tuning and --precision")
    check_bf16(options.compiling.precision, False, "inspect shows programs of the GPU, leave it out")
    if options.advise and not options.compiling.fuse:
        raise UsageError("--advise is about kernels of several ops; leave --unfused out")
    _check_files(model, options)
    with console.download() as progress:
        resolved = resolve(model, progress)
    path = resolved.path
    graph = load_signature(path, options.signature, console, options.hybrid)
    if options.ops:
        list_ops(graph, console, options.json)
        return 0
    meaning = model_meaning(path, resolved.entry, graph)
    if row := solution_ending_with(resolved.entry.name if resolved.entry else graph.name, meaning.decoder):
        meaning = replace(meaning, after=row.models[:-1])
    if options.cpu:
        return inspect_native(graph, meaning, options.compiling.fuse, options.json, console, options.plot)
    machine = _machine(options)

    def compiled(graph: Graph, select: Select = lambda found: {}) -> CompiledPartitions:
        return compile_partitions(graph, machine.device, options.compiling.with_memory(keeps_inputs=False), select)

    found, delegated = _with_delegate(lambda select: compiled(graph, select), machine.delegation_rates)
    reports = [inspect_compiled(each, machine.peaks, machine.device, machine.family) for each in found.compiled]
    if options.plot:
        _plot(options.plot, found, machine, options.compiling.memory)
    is_whole = len(reports) == 1 and not found.reasons and not options.advise
    on_cpu = memory_in_native_code(graph, options.compiling.fuse) if is_whole else None
    files = write_shaders(options.shaders, found.compiled) if options.shaders else ()
    advice = advise(found, machine.rates, compiled) if options.advise else None
    if options.json:
        more: dict[str, Any] = {"shown": asdict(meaning)}
        more |= {} if advice is None else {"advice": [asdict(each) for each in advice]}
        more |= {"shaders": [*map(str, files)]} if files else {}
        more |= {"plot": str(options.plot)} if options.plot else {}
        more |= {"cpu_memory": asdict(on_cpu)} if on_cpu else {}
        more["delegated"] = [partition.nodes for partition in delegated.partitions]
        console.json(_as_json(found, reports, machine, options) | more)
        return 0
    show_head(console, graph, meaning, machine.line, machine.peaks)
    if advice is None or not found.partitions:
        _show(console, found, delegated, reports, on_cpu)
        if reports:
            seconds = sum(report.compile_s for report in reports)
            console.show("", compile_line(seconds, options.compiling.compile_budget_s))
    else:
        console.show("", summary(found))
        show_advice(console, graph, advice, machine.peaks is not None)
    if options.shaders:
        console.show("", f"{counted(len(files), 'kernel')} written to {options.shaders}")
    if options.plot:
        console.show("", f"plot: {options.plot}")
    return 0


def _check_files(model: str, options: InspectOptions) -> None:
    """Raises UsageError for a file or folder that cannot be written, or where matplotlib is needed and missing."""
    writes: tuple[Write, ...] = (Write("--shaders", options.shaders, "shaders"),) if options.shaders else ()
    if options.plot:
        check_matplotlib()
        writes += (Write("--plot", options.plot, "drawing"),)
    settle(Files((Read("the model", model_path(model)),), writes), options.force)


def _plot(path: Path, found: CompiledPartitions, machine: _Machine, memory: MemoryOptions) -> None:
    """Draw the memory of the largest partition. Raises UsageError where there is none."""
    if not found.compiled:
        raise UsageError("--plot draws the memory of what runs on the GPU, and nothing of this model does")
    largest = found.largest
    part = f", partition {largest} of {len(found.partitions)}" if len(found.partitions) > 1 else ""
    where = f"on the GPU, tuned as {machine.family}{part}"
    alignment_bytes = machine.device.offset_alignment_bytes
    save_memory_plot(path, memory_page(found.compiled[largest], alignment_bytes, memory.strategy.name, where))


def _machine(options: InspectOptions) -> _Machine:
    """The device and its peaks; without OpenGL, or for a tuning by name, the least that OpenGL guarantees."""
    if options.tuning is not None:
        line = f"planned with the tuning of the family {options.tuning} and OpenGL's least limits"
        return _Machine(device_like(options.tuning), options.tuning, None, line)
    try:
        with open_context() as context:
            peaks = measure_peaks(context) if options.peaks else None
            family = context.family
            line = f"{context.renderer}, tuned as {family.name}: {family.reason}"
            if options.peaks and peaks is None:
                line += "; no peaks, since its driver executes no shaders"
            return _Machine(tuned_device(context, options.compiling.precision), family.name, peaks, line)
    except DeviceError as error:
        return _Machine(SOFTWARE, "software", None, f"planned for a software renderer, without measured peaks: {error}")


def _with_delegate(
    compiled: Callable[[Select], CompiledPartitions], rates: DelegationRates
) -> tuple[CompiledPartitions, CompiledPartitions]:
    """All that runs on the GPU, and what the delegate takes of it by default."""
    seen, select = list[CompiledPartitions](), selection(rates)

    def recorded(found: CompiledPartitions) -> Mapping[int, str]:
        seen.append(found)
        return select(found)

    delegated = compiled(recorded)
    return seen[0], delegated


def _show(
    console: Console,
    found: CompiledPartitions,
    delegated: CompiledPartitions,
    reports: Sequence[Inspection],
    on_cpu: Memory | None,
) -> None:
    """What runs where, then the report of the largest partition."""
    show_coverage(console, found)
    if not reports:
        return
    if found.reasons:
        costs = [(len(report.dispatches), sum(d.mmac for d in report.dispatches)) for report in reports]
        show_partitions(console, found, costs)
        console.show(delegate_line(found, delegated))
    largest = found.largest
    if len(reports) > 1:
        console.show("", f"What follows is about partition {largest}, the largest; --json has all of them.")
    show_report(console, reports[largest], found.compiled[largest], on_cpu)


def _as_json(
    found: CompiledPartitions, reports: Sequence[Inspection], machine: _Machine, options: InspectOptions
) -> dict[str, Any]:
    """What there is to say of the model. The report of one partition is a part of it, those of several are a list."""
    graph = found.graph
    each = [{**asdict(report), "programs": report.programs, "barriers": report.barriers} for report in reports]
    return {
        **(each[0] if len(each) == 1 else {"reports": each}),
        "name": graph.name,
        **signature_figures(graph),
        "precision": options.compiling.precision,
        "inputs": [graph.tensors[tensor].shape for tensor in graph.inputs],
        "outputs": [graph.tensors[tensor].shape for tensor in graph.outputs],
        "types": types_line(graph) or "float32",
        "operators": {line.op: line.count for line in op_lines(found)},
        "partitions": [partition.nodes for partition in found.partitions],
        "borders": [asdict(border) for border in borders(found)],
        "nodes_left": left_as_json(found),
        "peaks": asdict(machine.peaks) if machine.peaks else None,
        "machine": machine.line,
        "compile_budget_s": options.compiling.compile_budget_s,
    }
