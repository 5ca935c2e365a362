"""Measures a model on the GPU, and compares its outputs with TensorFlow Lite's.

The CPU runs the file itself, with XNNPACK and as many threads as there are CPUs: a software renderer has as many. Only
where TensorFlow Lite lacks an op of MediaPipe's it gets the graph as we write it.
"""

import os
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from statistics import median
from time import perf_counter, process_time
from typing import Any

import cv2
import numpy as np

from tests.helpers.engine import Floats, run
from texelflow.app.media.frames import clip_frames
from texelflow.app.models.metadata import read_metadata
from texelflow.app.verbs.peaks import measure_peaks
from texelflow.gpu_delegate.base.errors import TexelflowError
from texelflow.gpu_delegate.cpu.reference import Reference, load_interpreter_module
from texelflow.gpu_delegate.model.graph import Graph
from texelflow.gpu_delegate.ops.nodes import has_role
from texelflow.gpu_delegate.plan.admission import refusal
from texelflow.gpu_delegate.reading.reader import load_model
from texelflow.gpu_delegate.targets.gl.context import Context, open_context
from texelflow.gpu_delegate.targets.gl.dispatch_times import time_dispatches
from texelflow.gpu_delegate.targets.gl.runtime import Program, device_of
from texelflow.gpu_delegate.targets.glsl.compiled_graph import CompiledGraph, compile_graph
from texelflow.gpu_delegate.targets.glsl.roofline import cost_of

REAL, RANDOM = 10, 10  # inputs
ROUNDS = 5  # the least time of each counts, and of these the median
ROUND_S = 0.5  # of runs in one round, and 3 runs at least
PICTURES = ("background.jpg", "demo.jpg")  # beside frames of the demo clip
Cpu = Callable[[Sequence[Floats]], list[Floats]]


@dataclass(frozen=True)
class Target:
    """A model to measure."""

    name: str
    path: Path
    input_range: tuple[float, float] | None = None  # None: as its metadata says, else -1 to 1
    left: tuple[str, ...] = ()  # ops that are known to stay on the CPU: they are no failure


def measure(target: Target, round_s: float = ROUND_S) -> dict[str, Any]:
    """All figures of one model; `reason` is empty if it runs on the GPU as a whole."""
    figures: dict[str, Any] = {"name": target.name, "nodes": None, "reason": "", "load": os.getloadavg()[0]}
    graph = None
    try:
        graph = load_model(target.path)
        left = Counter(node.op for node in graph.nodes if refusal(graph, node))
        figures |= {"nodes": len(graph.nodes), "nodes_left": sum(left.values()), "left": dict(left)}
    except TexelflowError as error:
        figures["reason"] = str(error)
    try:
        cpu, shapes = interpreted(target.path, graph)
    except (ValueError, RuntimeError, TexelflowError) as error:
        said = " ".join(str(error).split())[:200]
        return figures | {"reason": figures["reason"] or f"nothing to compare with: {said}"}
    inputs = inputs_for(shapes, input_range(target))
    if graph is None:
        return figures | {"xnnpack_ms": rounds_ms(round_s, lambda: cpu(inputs[0]))[0]}
    with open_context() as context:
        return figures | _on_gpu(graph, cpu, inputs, context, round_s)


def inputs_for(shapes: Sequence[tuple[int, ...]], bounds: tuple[float, float]) -> list[list[Floats]]:
    """Ten times pictures, where an input can be one, and ten times noise, all within the bounds."""
    low, high = bounds
    rng = np.random.default_rng(0)
    noise = [[rng.uniform(low, high, shape).astype(np.float32) for shape in shapes] for _ in range(RANDOM)]
    if any(len(shape) != 4 or shape[3] != 3 for shape in shapes):
        return noise
    pictures = _pictures()
    return [[_fitted(pictures[n], shape, low, high) for shape in shapes] for n in range(REAL)] + noise


def error_of(found: Sequence[Floats], wanted: Sequence[Floats]) -> float:
    """The largest error of any output, in parts of its range or of its largest magnitude, whichever is more."""
    worst = 0.0
    for gpu, cpu in zip(found, wanted, strict=True):
        scale = max(float(np.ptp(cpu)), float(np.abs(cpu).max()))
        apart = float(np.abs(gpu.reshape(cpu.shape) - cpu).max())
        worst = max(worst, apart / scale if scale else apart) if np.isfinite(apart) else float("inf")
    return worst


def _on_gpu(graph: Graph, cpu: Cpu, inputs: Sequence[list[Floats]], context: Context, round_s: float) -> dict[str, Any]:
    start_s = process_time()
    try:
        compiled = compile_graph(graph, device_of(context))
    except TexelflowError as error:
        return {"reason": str(error), "xnnpack_ms": rounds_ms(round_s, lambda: cpu(inputs[0]))[0]}
    plan_s = process_time() - start_s
    with Program(context, compiled) as program:
        compile_s = process_time() - start_s
        wanted = [cpu(given) for given in inputs]
        found = [run(program, given) for given in inputs]
        gpu_ms, cpu_ms = rounds_ms(round_s, lambda: _finish(program, context), lambda: cpu(inputs[0]))
        each_ms = time_dispatches(program, 3).least_ms
    plain = own_kernels(graph, inputs)
    macs = sum(kernel.macs for kernel in compiled.kernels)
    return {
        "error": worst_error(found, wanted),
        "own_error": worst_error(found, plain),
        "cpu_error": worst_error(plain, wanted),
        "partitions": 1,
        "dispatches": len(compiled.kernels),
        "plan_s": round(plan_s, 2),
        "compile_s": round(compile_s, 2),
        "largest_kib": round(max(len(kernel.source) for kernel in compiled.kernels) / 1024, 1),
        "mmac": round(macs / 1e6, 1),
        "ms": gpu_ms,
        "gmacs": round(macs / 1e6 / gpu_ms, 2),
        "roof_ms": round(_roof_ms(compiled, context), 3),
        "moves_share": round(sum(_moves(compiled, each_ms)) / sum(each_ms), 4),
        "moves": len(_moves(compiled, each_ms)),
        "slowest": _slowest(compiled, each_ms),
        "xnnpack_ms": cpu_ms,
        "renderer": context.renderer,
    }


def own_kernels(graph: Graph, inputs: Sequence[list[Floats]]) -> list[list[Floats]]:
    """The outputs of TensorFlow Lite's kernels without XNNPACK, which add in another order."""
    plain = Reference(graph, len(os.sched_getaffinity(0)), keep_all_tensors=True)
    dtypes = plain.input_dtypes
    typed = [[values.astype(dtype) for values, dtype in zip(given, dtypes, strict=True)] for given in inputs]
    return [[np.asarray(out, np.float32) for out in plain.run(given)] for given in typed]


def worst_error(found: Sequence[Sequence[Floats]], wanted: Sequence[Sequence[Floats]]) -> float:
    return max(error_of(one, right) for one, right in zip(found, wanted, strict=True))


def _finish(program: Program, context: Context) -> None:
    program.run()
    context.gl.glFinish()


def rounds_ms(round_s: float, *works: Callable[[], object]) -> list[float]:
    """Milliseconds of each, round by round in turn: the median of each round's least."""
    best: list[list[float]] = [[] for _ in works]
    for _ in range(ROUNDS):
        for work, found in zip(works, best, strict=True):
            times, end = list[float](), perf_counter() + round_s
            while len(times) < 3 or perf_counter() < end:
                start = perf_counter()
                work()
                times.append((perf_counter() - start) * 1e3)
            found.append(min(times))
    return [round(median(found), 3) for found in best]


def _roof_ms(compiled: CompiledGraph, context: Context) -> float:
    """The least time that this machine could take for all dispatches, by its peaks."""
    peaks = measure_peaks(context)
    assert peaks, "whoever computes this much has times"
    return sum(peaks.least_ms(cost_of(compiled, kernel)) for kernel in compiled.kernels)


def _moves(compiled: CompiledGraph, each_ms: Sequence[float]) -> list[float]:
    """Milliseconds of the kernels that only move data."""
    kernels = zip(compiled.kernels, each_ms, strict=True)
    return [ms for kernel, ms in kernels if all(has_role(node, "movement") for node in kernel.nodes)]


def _slowest(compiled: CompiledGraph, each_ms: Sequence[float]) -> list[tuple[str, float, float]]:
    """(name, ms, GMAC/s) of the three slowest dispatches."""
    found = sorted(zip(each_ms, compiled.kernels, strict=True), key=lambda pair: -pair[0])[:3]
    return [(kernel.name[:60], round(ms, 2), round(kernel.macs / 1e6 / ms, 2)) for ms, kernel in found]


def interpreted(path: Path, graph: Graph | None) -> tuple[Cpu, list[tuple[int, ...]]]:
    """TensorFlow Lite on the file itself, and the shapes of its inputs. Raises ValueError where it lacks an op."""
    threads = len(os.sched_getaffinity(0))
    try:
        interpreter = load_interpreter_module().Interpreter(str(path), num_threads=threads)
        interpreter.allocate_tensors()
    except (ValueError, RuntimeError):
        if graph is None:
            raise
        reference = Reference(graph, threads)
        return lambda given: [np.asarray(out, np.float32) for out in reference.run(given)], [*reference.input_shapes]
    sources, results = interpreter.get_input_details(), interpreter.get_output_details()

    def infer(given: Sequence[Floats]) -> list[Floats]:
        for source, values in zip(sources, given, strict=True):
            interpreter.set_tensor(source["index"], values.astype(source["dtype"]))
        interpreter.invoke()
        return [np.asarray(interpreter.get_tensor(result["index"]), np.float32) for result in results]

    return infer, [tuple(int(size) for size in source["shape"]) for source in sources]


def input_range(target: Target) -> tuple[float, float]:
    return target.input_range or read_metadata(target.path.read_bytes(), target.name).input_range or (-1.0, 1.0)


def _pictures() -> list[Any]:
    """RGB pictures: frames of the demo clip, and others."""
    found: list[Any] = [frame[..., :3] for frame in clip_frames((640, 480))]
    for name in PICTURES:
        data = np.frombuffer((resources.files("texelflow.assets") / name).read_bytes(), np.uint8)
        found.append(cv2.cvtColor(cv2.imdecode(data, cv2.IMREAD_COLOR), cv2.COLOR_BGR2RGB))
    return found


def _fitted(picture: Any, shape: tuple[int, ...], low: float, high: float) -> Floats:
    small = cv2.resize(picture, (shape[2], shape[1]), interpolation=cv2.INTER_AREA)
    values: Floats = (low + (high - low) / 255 * small.astype(np.float32))[None].repeat(shape[0], 0)
    return values
