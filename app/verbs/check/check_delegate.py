"""Compares a model's outputs through a delegate with TensorFlow Lite's on the CPU, and prints how far they are apart.

This is TensorFlow Lite's Inference Diff tool: the same inputs go through an interpreter of one thread and through one
with the delegate. The error of an output in one run is the mean of the absolute differences of its values; avg_error,
std_dev, min_error and max_error are those of all runs. Both interpreters read the file that is written from the graph.

Quantized models differ between TensorFlow Lite's own kernels, too: XNNPACK rounds other than its reference kernels. So
the delegate is compared with the latter, and may give other values more often than XNNPACK does by one in a hundred.

How far each output of a float model is from float64 is told besides, and decides nothing here.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt

from texelflow.gpu_delegate.base.errors import ModelError, UnsupportedError, UsageError
from texelflow.gpu_delegate.cpu.compare import Distances
from texelflow.gpu_delegate.cpu.delegation import DelegateMaker, Delegation
from texelflow.gpu_delegate.cpu.float64_judge import Float64Judge, furthest, has_truth
from texelflow.gpu_delegate.cpu.reference import Reference
from texelflow.gpu_delegate.model.graph import Graph
from texelflow.gpu_delegate.model.layout import Precision
from texelflow.gpu_delegate.model.quantization import dequantized, has_quantized, with_real_weights

from ...console import Console, counted
from .check_model import Sample, Subject, finite, noise_for, samples_for, show_truth, truth_figures

DIFF_TOLERANCES: Mapping[Precision, float] = MappingProxyType({"fp32": 1e-3, "fp16": 0.1, "fp16-arithmetic": 0.2})
DIFF_RUNS = 50
TOLERANCE_OF_STEPS = 0.02  # five of 256
FEWER_EQUAL = 0.01  # values of quantized models than XNNPACK has, as a share of all
MOST_DIFF_RUNS = 100_000
MOST_TRUE_RUNS = 10  # of which the distance from float64 is measured


@dataclass(frozen=True)
class OutputDiff:
    """How far one output was from the reference's, over all runs."""

    number: int
    avg_error: float  # as the other three of the runs' mean absolute errors
    std_dev: float
    min_error: float
    max_error: float
    largest: float  # of any value in any run
    allowed: float
    equal: float  # the share of values that are the reference's
    least_equal: float = 1.0  # that is allowed where errors are larger

    @property
    def diverges(self) -> bool:
        return not (self.largest <= self.allowed or self.equal >= self.least_equal)  # NaN diverges


@dataclass(frozen=True)
class RunLatency:
    """Of an interpreter's runs, without copying inputs and outputs."""

    avg_us: float
    std_dev_us: float


class OutputErrors:
    """The errors of one output, run by run."""

    def __init__(self) -> None:
        self.means: list[float] = []
        self.shares: list[float] = []
        self.largest = 0.0
        self.low, self.high = math.inf, -math.inf  # of the reference's values

    def add(self, found: npt.NDArray[Any], expected: npt.NDArray[Any]) -> None:
        """One run. Another shape is an infinite error."""
        if found.shape != expected.shape:
            apart = np.full(1, np.inf)
        elif expected.dtype.kind in "SO":
            apart = (found != expected).astype(np.float64)
        else:
            apart = _apart(found.astype(np.float64), expected.astype(np.float64))
            known = expected[np.isfinite(expected)].astype(np.float64)
            self.low, self.high = min(self.low, known.min(initial=np.inf)), max(self.high, known.max(initial=-np.inf))
        self.means.append(float(apart.mean()) if apart.size else 0.0)
        self.shares.append(float((apart == 0).mean()) if apart.size else 1.0)
        self.largest = float(np.maximum(self.largest, apart.max(initial=0)))  # keeps NaN

    @property
    def equal(self) -> float:
        """The share of values that are the reference's."""
        return float(np.mean(self.shares))

    def result(self, number: int, tolerance: float, least_equal: float = 1.0) -> OutputDiff:
        """`tolerance` is of the larger of the reference's range and magnitude."""
        size = max(self.high - self.low, abs(self.low), abs(self.high)) if self.low <= self.high else 1.0
        means = np.array(self.means)
        with np.errstate(invalid="ignore"):  # of infinite errors
            mean, deviation = float(means.mean()), float(means.std())
        return OutputDiff(
            number, mean, deviation, float(means.min()), float(means.max()), self.largest, tolerance * size,
            self.equal, least_equal,
        )  # fmt: skip


def _apart(found: npt.NDArray[np.float64], expected: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Absolute differences; the same infinity, or NaN, on both sides agrees."""
    with np.errstate(invalid="ignore"):
        same = (found == expected) | (np.isnan(found) & np.isnan(expected))
        return np.where(same, 0.0, np.abs(found - expected))


def check_delegate(
    subject: Subject,
    tolerance: float | None,
    runs: int | None,
    console: Console,
    delegate: DelegateMaker,
    precision: Precision,
    refused: str = "",
) -> tuple[dict[str, Any], int]:
    """Compare the outputs of a model on frames of the demo clip and on noise: the figures, and the exit code.

    `refused` says why the model is in parts, for a delegate that has to take some. Raises UsageError, UnsupportedError
    where it does not, and for a model that needs too much memory or time, ModelError, DeviceError.
    """
    count, is_bytes = DIFF_RUNS if runs is None else runs, has_quantized(subject.graph)
    usual = max(DIFF_TOLERANCES[precision], TOLERANCE_OF_STEPS if is_bytes else 0.0)
    limit = usual if tolerance is None else tolerance
    if not 1 <= count <= MOST_DIFF_RUNS:
        raise UsageError(f"--runs goes from 1 to {MOST_DIFF_RUNS}")
    graph = subject.graph
    reference, test = (
        Reference(with_real_weights(graph), threads=1, judges=True),
        Reference(graph, threads=1, delegate=delegate),
    )
    assert test.delegation is not None
    if refused:
        test.delegation.check_taken(refused)
    other = Reference(graph, threads=1) if is_bytes else None
    judges = _judges(graph)
    measured: dict[int, list[Distances]] = {}
    errors, others = ([OutputErrors() for _ in graph.outputs] for _ in range(2))
    latencies_ms: tuple[list[float], list[float]] = ([], [])
    with console.frames("comparing runs") as report:
        for number, sample in enumerate(_inputs(subject, count)):
            expected, found = reference.run(sample.tensors), test.run(sample.tensors)
            for each, values, right, index in zip(errors, found, expected, graph.outputs, strict=True):
                each.add(_real(values, graph, index), _real(right, graph, index))
            if other:
                for each, values, right in zip(others, other.run(sample.tensors), expected, strict=True):
                    each.add(values, right)
            if judges and number < MOST_TRUE_RUNS:
                judge, own = judges
                own.run(sample.tensors)
                ours = dict(zip(graph.outputs, found, strict=True))
                for tensor, far in judge.measure(ours.__getitem__, own.tensor, sample.tensors, ours).items():
                    measured.setdefault(tensor, []).append(far)
            for taken, interpreter in zip(latencies_ms, (reference, test), strict=True):
                taken.append(interpreter.invoke_ms)
            report(number + 1, count)
    least = [each.equal - FEWER_EQUAL if other else 1.0 for each in others]
    outputs = [error.result(number, limit, least[number]) for number, error in enumerate(errors)]
    latencies = _latency(latencies_ms[0]), _latency(latencies_ms[1])
    figures = _figures(subject, test.delegation, count, latencies, outputs)
    _show(console, figures, limit, other is not None)
    if judges:
        by_output = {tensor: furthest(each) for tensor, each in measured.items()}
        show_truth(console, graph, by_output)
        figures["float64"] = [truth_figures(by_output.get(tensor)) for tensor in graph.outputs]
    return figures | {"precision": precision}, 0 if figures["passed"] else 1


def _judges(graph: Graph) -> tuple[Float64Judge, Reference] | None:
    """What measures distances from float64, and TensorFlow Lite's own kernels; None where they cannot run it.

    And where inputs are rounded to steps, as by these.
    """
    if graph.hybrid == "reference" or not has_truth(graph):
        return None
    try:
        own = Reference(with_real_weights(graph), keep_all_tensors=True)
    except (ModelError, UnsupportedError):
        return None
    return Float64Judge(graph, every_tensor=False), own


def _inputs(subject: Subject, count: int) -> Iterator[Sample]:
    """Those of check, then noise, `count` in all."""
    known = samples_for(subject)[:count]
    yield from known
    rng = np.random.default_rng(1)
    for _ in range(count - len(known)):
        yield noise_for(subject, rng)


def _real(values: npt.NDArray[Any], graph: Graph, index: int) -> npt.NDArray[Any]:
    """What values mean: those of quantized tensors are integers in memory."""
    tensor = graph.tensors[index]
    return dequantized(values, tensor) if tensor.quantization is not None else values


def _latency(times_ms: Sequence[float]) -> RunLatency:
    return RunLatency(float(np.mean(times_ms)) * 1e3, float(np.std(times_ms)) * 1e3)


def _figures(
    subject: Subject,
    delegation: Delegation,
    runs: int,
    latencies: tuple[RunLatency, RunLatency],
    outputs: list[OutputDiff],
) -> dict[str, Any]:
    """By the names of Inference Diff's results, where it has them; `latencies` are the reference's and the test's."""
    passed = not any(output.diverges for output in outputs)
    worst = max(outputs, key=lambda output: np.nan_to_num(output.largest / (output.allowed or 1), nan=np.inf))
    verdict = (
        f"{counted(len(outputs), 'output')} {'agrees' if len(outputs) == 1 else 'agree'} in {counted(runs, 'run')}"
        if passed
        else f"output {worst.number}: error {worst.largest:.2g}, allowed {worst.allowed:.2g}"
    )
    return {
        "model": subject.name,
        "renderer": delegation.renderer,
        "partitions": delegation.partitions,
        "operators": delegation.operators,
        "summary": delegation.line,
        "num_evaluation_runs": runs,
        "reference_latency": asdict(latencies[0]),
        "test_latency": asdict(latencies[1]),
        "output_errors": [{name: finite(value) for name, value in asdict(output).items()} for output in outputs],
        "verdict": verdict,
        "passed": passed,
    }


def _show(console: Console, figures: dict[str, Any], limit: float, is_shared: bool) -> None:
    """The lines that Inference Diff prints, and ours."""
    console.say(f"{figures['model']}: {figures['summary']}")
    if figures["partitions"]:
        console.say(f"on {figures['renderer']}")
    console.say(f"Num evaluation runs: {figures['num_evaluation_runs']}")
    for name, key in (("Reference", "reference_latency"), ("Test", "test_latency")):
        latency = figures[key]
        console.say(f"{name} run latency: avg={latency['avg_us']:.1f}(us), std_dev={latency['std_dev_us']:.1f}(us)")
    for number, output in enumerate(figures["output_errors"]):
        names = ("avg_error", "std_dev", "min_error", "max_error")
        shown = ", ".join(f"{n}={'nan' if output[n] is None else format(output[n], '.6g')}" for n in names)
        share = f"; {output['equal']:.2%} equal, XNNPACK {output['least_equal'] + FEWER_EQUAL:.2%}" if is_shared else ""
        console.say(f"OutputDiff[{number}]: {shown}{share}")
    instead = ", or equal values as XNNPACK's, less one in a hundred" if is_shared else ""
    console.say(f"{figures['verdict']}; allowed for each value: {limit:g} of its output's range or magnitude{instead}")
