"""`texelflow bench model`: times a model on the GPU, on the CPU or through the delegate.

The protocol is the paper's: some runs to warm up, then the mean of many (arXiv 1907.01989).
"""

import contextlib
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Any

from texelflow.gpu_delegate.base.errors import UnsupportedError
from texelflow.gpu_delegate.cpu.delegation import Delegation
from texelflow.gpu_delegate.model.graph import Graph
from texelflow.gpu_delegate.targets.gl.context import open_context
from texelflow.gpu_delegate.targets.gl.dispatch_times import time_dispatches

from ...console import Console
from ...files import Files, Read, Write, settle
from ...models.catalogue import CATALOGUE, model_path, resolve
from ...models.networks import NETWORKS, write_network
from ...plots import check_matplotlib
from ...process_usage import ProcessUsage, process_usage
from ...signals import EndedBySignal, StopFlag, exit_code, stop_flag
from ...verbs.chosen_signature import load_signature, signature_figures
from ...verbs.peaks import measure_peaks
from ..measuring.run_rule import Runs, repeat_runs
from .model_backends import GlRunner, Runner, TfliteRunner, gl_runner, native_runner, tflite_runner
from .model_figures import memory_figures, per_op_figures, series_figures, share_figures, time_figures
from .model_options import BenchBackend, ModelBench

_Figures = dict[str, Any]

ANOTHER = ProcessUsage(0, 0, 0.0)  # of a process that did not exist yet


def bench_model(options: ModelBench, console: Console) -> tuple[_Figures, int]:
    """Measure: the figures, and the exit code, which is a signal's if one ended the runs. Raises TexelflowError."""
    if options.plot is not None:
        check_matplotlib()
    with model_file(options, console) as path:
        before = process_usage()
        start = perf_counter()
        graph = load_signature(path, options.signature, console, options.hybrid)
        read_ms = (perf_counter() - start) * 1e3
        with _runner(graph, options, read_ms, console) as (backend, runner):
            runner.settle()
            settled = process_usage(runner.process_id)
            warmup, runs, cpu_ms, stop = _measure(runner, options, console)
            memory = memory_figures(
                before if runner.process_id is None else ANOTHER, settled, process_usage(runner.process_id)
            )
            figures = {
                "model": graph.name,
                **signature_figures(graph),
                "backend": backend,
                "precision": options.compiling.precision,
                "hybrid": options.hybrid,
                "model_bytes": path.stat().st_size,
                **runner.facts(),
                "timed": runner.timed,
                **time_figures(runner.init_ms, warmup, runs),
                "cpu_ms": None if cpu_ms is None else round(cpu_ms, 3),
                "memory": memory,
                "interrupted": bool(stop),
            }
            if options.duration_s is not None:
                figures["series"] = series_figures(runs)
            if isinstance(runner, GlRunner):
                figures |= _of_the_gpu(runner, figures, options, stop)
            elif isinstance(runner, TfliteRunner) and runner.delegation and runner.delegation.dispatches:
                figures |= _of_the_delegate(runner.delegation, figures, stop)
    return figures, exit_code(stop.number)


@contextlib.contextmanager
def model_file(options: ModelBench, console: Console) -> Iterator[Path]:
    """The file of a model of the catalogue, of a published network, written for the time being, or of a path.

    Raises CatalogueError, UsageError.
    """
    is_network = options.model in NETWORKS and options.model not in CATALOGUE
    writes = (Write("--plot", options.plot, "picture"),) if options.plot else ()
    settle(Files(() if is_network else (Read("the model", model_path(options.model)),), writes), options.force)
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


def _measure(runner: Runner, options: ModelBench, console: Console) -> tuple[Runs, Runs, float | None, StopFlag]:
    """The warm-up's runs, those that count, CPU milliseconds of each of these, and which signal has ended them."""
    if options.duration_s is not None:
        console.note(f"running for {options.duration_s:g} s; Ctrl-C ends it earlier and keeps what was measured")
    with stop_flag() as stop:
        warmup = repeat_runs(runner.run, options.warmup, lambda: bool(stop))
        start_s = process_usage(runner.process_id).cpu_s
        runs = repeat_runs(runner.run, options.runs, lambda: bool(stop))
        end_s = process_usage(runner.process_id).cpu_s
    if options.duration_s is None and len(runs) < options.runs.runs and not stop:
        console.note(
            f"{len(runs)} of {options.runs.runs} runs: more take longer than {options.runs.max_s:g} s (--max_secs)"
        )
    if not len(runs):
        assert stop.number is not None, "a rule asks for one run at least"
        raise EndedBySignal(stop.number)
    cpu_ms = None if start_s is None or end_s is None else (end_s - start_s) * 1e3 / len(runs)
    return warmup, runs, cpu_ms, stop


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
