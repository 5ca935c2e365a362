"""`texelflow bench model`: times a model on the GPU, on the CPU or through the delegate.

The protocol is the paper's: some runs to warm up, then the mean of many (arXiv 1907.01989).
"""

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass, fields, is_dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Any

from texelflow.gpu_delegate.base.errors import UnsupportedError
from texelflow.gpu_delegate.cpu.delegation import Delegation
from texelflow.gpu_delegate.model.graph import Graph
from texelflow.gpu_delegate.reading.bundles import model_file_bytes
from texelflow.gpu_delegate.targets.gl.context import open_context
from texelflow.gpu_delegate.targets.gl.dispatch_times import time_dispatches

from ...console import Console
from ...files import Files, Read, settle
from ...models.catalogue import CATALOGUE, model_path, resolve
from ...models.networks import NETWORKS, write_network
from ...plots import check_matplotlib
from ...process_usage import ProcessUsage, process_usage
from ...signals import EndedBySignal, StopFlag, exit_code, stop_flag
from ...verbs.chosen_signature import load_signature, signature_figures
from ...verbs.peaks import measure_peaks
from ..measuring.energy import EnergyMeter, energy_counters, energy_figures
from ..measuring.memory_watch import MemoryWatch
from ..measuring.run_rule import Runs, repeat_runs
from .model_backends import GlRunner, Runner, TfliteRunner, gl_runner, native_runner, tflite_runner
from .model_exports import export_writes, state_rows, write_outputs, write_profile, write_runtime_info
from .model_figures import init_figures, memory_figures, per_op_figures, series_figures, share_figures, time_figures
from .model_options import BenchBackend, ModelBench

_Figures = dict[str, Any]

ANOTHER = ProcessUsage(0, 0, 0.0)  # of a process that did not exist yet


@dataclass(frozen=True)
class _Measured:
    """What the runs took; cpu_ms is of each that counts."""

    warmup: Runs
    runs: Runs
    cpu_ms: float | None
    energy: _Figures
    stop: StopFlag


def bench_model(options: ModelBench, console: Console) -> tuple[_Figures, int]:
    """Measure: the figures, and the exit code, which is a signal's if one ended the runs. Raises TexelflowError."""
    if options.plot is not None:
        check_matplotlib()
    for note in options.notes:
        console.note(note)
    if options.verbose:
        console.table("Options", ("option", "value"), list(_option_rows(options)))
    with model_file(options, console) as path, contextlib.ExitStack() as stack:
        before, ids = process_usage(), list[int | None]()
        watch = None
        if options.memory_interval_ms is not None:
            watch = stack.enter_context(MemoryWatch(options.memory_interval_ms, lambda: ids[-1] if ids else None))
        start = perf_counter()
        graph = load_signature(path, options.signature, console, options.hybrid)
        graph = options.inputs.resized(graph, path)
        read_ms = (perf_counter() - start) * 1e3
        with _runner(graph, options, read_ms, console) as (backend, runner):
            ids.append(runner.process_id)
            figures, code = _bench_ready(graph, backend, runner, before, options, console)
        figures["model_bytes"] = len(model_file_bytes(path))
    if watch is not None:
        figures["memory"] = {**figures["memory"], "watched_peak_bytes": watch.most_bytes, "looks": watch.looks}
    return figures, code


def _option_rows(options: Any, prefix: str = "") -> Iterator[tuple[str, str]]:
    """What every option is, those that were not given, too."""
    for name, value in ((field.name, getattr(options, field.name)) for field in fields(options)):
        if is_dataclass(value):
            yield from _option_rows(value, f"{prefix}{name}.")
        elif name != "notes":
            yield prefix + name, "-" if value is None or value == "" else str(value)


def _bench_ready(
    graph: Graph, backend: BenchBackend, runner: Runner, before: ProcessUsage, options: ModelBench, console: Console
) -> tuple[_Figures, int]:
    """Measure a model that is ready, and write what was asked for."""
    delegation = runner.delegation if isinstance(runner, TfliteRunner) else None
    if options.full_delegation and delegation is not None:
        _check_full(delegation)
    elif options.full_delegation and isinstance(runner, TfliteRunner):
        raise UnsupportedError("--require_full_delegation: TensorFlow Lite runs the model; choose another --backend")
    runner.settle()
    settled = process_usage(runner.process_id)
    if options.states[0]:
        _show_state("before the first run", graph, runner, {}, console)
    measured = _measure(runner, options, console)
    memory = memory_figures(before if runner.process_id is None else ANOTHER, settled, process_usage(runner.process_id))
    times = time_figures if len(measured.runs) else init_figures
    figures = {
        "model": graph.name,
        **({"benchmark_name": options.name} if options.name else {}),
        **signature_figures(graph),
        "backend": backend,
        "precision": options.compiling.precision,
        "hybrid": options.hybrid,
        **runner.facts(),
        "timed": runner.timed,
        **times(runner.init_ms, measured.warmup, measured.runs),
        "cpu_ms": None if measured.cpu_ms is None else round(measured.cpu_ms, 3),
        "energy": measured.energy,
        "memory": memory,
        "interrupted": bool(measured.stop),
    }
    if options.duration_s is not None:
        figures["series"] = series_figures(measured.runs)
    if not options.dry_run and isinstance(runner, GlRunner):
        figures |= _of_the_gpu(runner, figures, options, measured.stop)
    elif not options.dry_run and delegation is not None and delegation.dispatches:
        figures |= _of_the_delegate(delegation, figures, measured.stop)
    _export(graph, backend, runner, figures, options, console)
    return figures, exit_code(measured.stop.number)


def _check_full(delegation: Delegation) -> None:
    taken = sum(map(len, delegation.partitions))
    if taken < delegation.operators:
        raise UnsupportedError(f"--require_full_delegation: {delegation.line}")


def _export(
    graph: Graph, backend: BenchBackend, runner: Runner, figures: _Figures, options: ModelBench, console: Console
) -> None:
    """What was asked for besides the figures."""
    if options.profile_csv and "per_op" in figures:
        write_profile(options.profile_csv, figures["per_op"])
    if options.runtime_info:
        where = options.cpu if backend == "cpu" else backend
        delegation = runner.delegation if isinstance(runner, TfliteRunner) else None
        write_runtime_info(options.runtime_info, graph, where, delegation)
    if options.outputs or options.states[1]:
        outputs = runner.outputs()
        if options.outputs:
            write_outputs(options.outputs, outputs)
        if options.states[1]:
            shapes = {tensor: found.shape for tensor, found in zip(graph.outputs, outputs, strict=True)}
            _show_state("after the last run", graph, runner, shapes, console)


def _show_state(when: str, graph: Graph, runner: Runner, shapes: dict[int, tuple[int, ...]], console: Console) -> None:
    columns = ("", "tensor", "type", "shape", "kind", "bytes", "on the GPU")
    console.table(f"Tensors {when}", columns, list(state_rows(graph, runner.places(), shapes)))


@contextlib.contextmanager
def model_file(options: ModelBench, console: Console) -> Iterator[Path]:
    """The file of a model of the catalogue, of a published network, written for the time being, or of a path.

    Raises CatalogueError, UsageError.
    """
    is_network = options.model in NETWORKS and options.model not in CATALOGUE
    reads = () if is_network else (Read("the model", model_path(options.model)),)
    files = tuple(Read(f"input {layer.name}", layer.file) for layer in options.inputs.layers if layer.file)
    settle(Files((*reads, *files), export_writes(options)), options.force)
    if is_network:
        with TemporaryDirectory(prefix="texelflow-") as folder:
            yield write_network(options.model, Path(folder))
        return
    with console.download() as progress:
        resolved = resolve(options.model, progress)
    yield resolved.path


@contextlib.contextmanager
def _runner(
    graph: Graph, options: ModelBench, read_ms: float, console: Console
) -> Iterator[tuple[BenchBackend, Runner]]:
    """The backend's name, and the model ready there."""
    with contextlib.ExitStack() as stack:
        backend: BenchBackend = options.backend or "gl"
        runner: Runner | None = None
        if backend == "gl":
            try:
                runner = stack.enter_context(gl_runner(graph, options, read_ms, console))
            except UnsupportedError as error:
                if options.backend is not None:
                    raise
                console.note(f"through the delegate, since the GPU does not run all of it: {error}")
                backend = "delegate"
        if options.cpu == "native":
            runner = stack.enter_context(native_runner(graph, options, read_ms, console))
        yield backend, runner or tflite_runner(graph, replace(options, backend=backend), read_ms)


def _measure(runner: Runner, options: ModelBench, console: Console) -> _Measured:
    """The warm-up's runs, those that count, what each of these took, and which signal has ended them."""
    if options.duration_s is not None:
        console.note(f"running for {options.duration_s:g} s; Ctrl-C ends it earlier and keeps what was measured")
    counters, reasons = energy_counters()
    with stop_flag() as stop:
        if options.dry_run:
            return _Measured(Runs(), Runs(), None, energy_figures((), ["nothing ran"], EnergyMeter(()), 0), stop)
        warmup = repeat_runs(runner.run, options.warmup, lambda: bool(stop))
        start_s, meter = process_usage(runner.process_id).cpu_s, EnergyMeter(counters)
        runs = repeat_runs(runner.run, options.runs, lambda: bool(stop), meter.look)
        meter.stop()
        end_s = process_usage(runner.process_id).cpu_s
    if options.duration_s is None and len(runs) < options.runs.runs and not stop:
        console.note(
            f"{len(runs)} of {options.runs.runs} runs: more take longer than {options.runs.max_s:g} s (--max_secs)"
        )
    if not len(runs):
        assert stop.number is not None, "a rule asks for one run at least"
        raise EndedBySignal(stop.number)
    cpu_ms = None if start_s is None or end_s is None else (end_s - start_s) * 1e3 / len(runs)
    return _Measured(warmup, runs, cpu_ms, energy_figures(counters, reasons, meter, len(runs)), stop)


def _of_the_gpu(runner: GlRunner, figures: _Figures, options: ModelBench, stop: StopFlag) -> _Figures:
    """What OpenGL has of the model: bytes, the share of the GPU's peak, and, where asked for, each dispatch."""
    program, macs = runner.program, sum(kernel.macs for kernel in runner.program.compiled.kernels)
    found: _Figures = {
        "memory": {
            **figures["memory"],
            "gl_bytes": program.buffer_bytes,
            "tensor_bytes": program.compiled.plan.total_bytes,
        }
    }
    if stop:
        return found
    peaks = measure_peaks(runner.context)
    found |= share_figures(macs, figures["mean_ms"], peaks)
    if options.per_op:
        found["per_op"] = per_op_figures(program.compiled, time_dispatches(program), figures["median_ms"], peaks)
    return found


def _of_the_delegate(delegation: Delegation, figures: _Figures, stop: StopFlag) -> _Figures:
    """The same of its partitions; the time is that of the whole model, copies included."""
    found: _Figures = {"memory": {**figures["memory"], "gl_bytes": delegation.buffer_bytes}}
    if stop:
        return found
    with open_context() as context:
        return found | share_figures(delegation.macs, figures["mean_ms"], measure_peaks(context))
