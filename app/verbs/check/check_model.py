"""Compares the tensors of a model with TensorFlow Lite's, and prints which differ, from which op on."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from rich.table import Table
from rich.text import Text

from texelflow.gpu_delegate.base.errors import UnsupportedError, UsageError
from texelflow.gpu_delegate.cpu.compare import (
    TOLERANCE,
    ComparedProgram,
    Difference,
    Distances,
    compare,
    describe_operator,
    first_divergence,
    rounding_error,
)
from texelflow.gpu_delegate.cpu.float64_judge import Float64Judge, first_growth, furthest, has_truth
from texelflow.gpu_delegate.cpu.reference import Reference
from texelflow.gpu_delegate.model.graph import Graph, Tensor
from texelflow.gpu_delegate.model.layout import Precision, stores_halves
from texelflow.gpu_delegate.model.quantization import (
    has_quantized,
    precision_for,
    quantized,
    real_range,
    with_real_weights,
)
from texelflow.gpu_delegate.plan.compile_options import COMPILE_DEFAULTS, CompileOptions
from texelflow.gpu_delegate.reading.bundles import model_file_bytes
from texelflow.gpu_delegate.targets.gl.context import Context, open_context
from texelflow.gpu_delegate.targets.gl.runtime import Program
from texelflow.gpu_delegate.targets.glsl.compiled_graph import compile_graph
from texelflow.gpu_delegate.targets.llvm.compiler import compile_module, native_target
from texelflow.gpu_delegate.targets.llvm.machine import CpuTarget
from texelflow.gpu_delegate.targets.llvm.native_program import compile_native
from texelflow.gpu_delegate.targets.llvm.native_runtime import CheckedNetwork
from texelflow.gpu_delegate.truth.float64 import without_truth
from texelflow.gpu_delegate.tuning.store import tuned_device

from ...console import Console
from ...media.frames import CLIP_FRAMES, clip_frames
from ...models.metadata import read_metadata
from ...picture.picture import rgba_format, rgba_picture
from ...picture.preprocess import Preprocessor
from .hybrid_check import Loads, hybrid_errors, show_hybrid

_CLIP_SIZE = (640, 480)
MOST_VALUES = 1 << 26  # of an input
_ROWS = 12  # of the table: tensors worth a look


@dataclass(frozen=True)
class Subject:
    """What is checked."""

    name: str
    graph: Graph
    input_range: tuple[float, float]


@dataclass(frozen=True)
class Sample:
    """One input of the model, as tensors, and what it is."""

    what: str
    tensors: tuple[npt.NDArray[Any], ...]


def subject_of(name: str, path: Path, graph: Graph, input_range: tuple[float, float] | None) -> Subject:
    """A model file that was read already; if no option gives the range, its metadata does, or its input's scale."""
    said = read_metadata(model_file_bytes(path), name, graph).input_range
    if said is None and graph.inputs:
        said = real_range(graph.tensors[graph.inputs[0]])
    return Subject(name, graph, input_range or said or (0.0, 1.0))


@dataclass(frozen=True)
class TensorCheck:
    """Compares the tensors of a subject, which `loads` compiles with keep_all=True."""

    subject: Subject
    tolerance: float
    loads: Loads
    judge: Float64Judge | None = None  # measures distances to float64, too
    truth_decides: bool = False  # where the tolerance is exceeded

    def run(self, samples: Sequence[Sample], fuse: bool) -> list[tuple[Difference, ...]]:
        """Every sample's differences, of one compiled program and one reference. Raises as they do."""
        with self.loads(fuse) as program:
            reference = Reference(with_real_weights(self.subject.graph), keep_all_tensors=True)
            return [self._compared(program, reference, sample) for sample in samples]

    def _compared(self, program: ComparedProgram, reference: Reference, sample: Sample) -> tuple[Difference, ...]:
        found = compare(program, reference, sample.tensors, self.tolerance)
        if self.judge is None:
            return found
        if has_quantized(self.subject.graph):  # its kernels have run one by one, on the reference's values
            for tensor, values in zip(self.subject.graph.inputs, sample.tensors, strict=True):
                program.write(tensor, values)
            program.run()
        stored = {each.tensor for each in found}
        is_past = self.truth_decides and any(not each.max_error <= each.limit for each in found)
        measured = self.judge.measure(program.read, reference.tensor, sample.tensors, stored, is_past)
        return tuple(replace(each, truth=measured.get(each.tensor), truth_decides=self.truth_decides) for each in found)

    def explain(self, first: Difference, sample: Sample) -> str:
        """One line that names the op at fault; of ops that were computed at once each is tried on its own."""
        line = f"first to diverge on {sample.what}: {_where(first)}"
        if not first.behind:
            return line
        others = ", ".join(describe_operator(node) for node in first.behind)
        try:
            culprit = first_divergence(self.run([sample], fuse=False)[0])
        except UnsupportedError:  # some ops have kernels only together with others
            return f"{line}, or what is computed with it: {others}"
        if culprit is None:
            return f"{line}; one dispatch per op agrees, so its fusion with {others} is at fault"
        return f"{line}; with one dispatch per op: {_where(culprit)}"


def gl_programs(context: Context, graph: Graph, console: Console, options: CompileOptions) -> Loads:
    """Programs of a graph in a context."""

    @contextmanager
    def load(fuse: bool) -> Iterator[ComparedProgram]:
        device = tuned_device(context, options.precision)
        compiled = compile_graph(graph, device, replace(options, fuse=fuse, keep_all=True))
        with console.compilation() as progress:
            program = Program(context, compiled, progress)
        with program:
            yield program

    return load


def native_programs(target: CpuTarget, graph: Graph) -> Loads:
    """Networks of a graph as this CPU's code."""

    @contextmanager
    def load(fuse: bool) -> Iterator[ComparedProgram]:
        compiled = compile_native(graph, target, fuse, keep_all=True)
        yield CheckedNetwork(compiled, compile_module(compiled.text, target))

    return load


@contextmanager
def _ways(
    backend: str, console: Console, options: CompileOptions
) -> Iterator[tuple[Callable[[Graph], Loads], Mapping[str, str]]]:
    """How graphs are loaded, and where they run."""
    if backend == "native":
        target = native_target(options.precision)
        yield lambda graph: native_programs(target, graph), {"cpu": target.name}
        return
    with open_context() as context:
        where = {"renderer": context.renderer, "gl_version": context.gl_version}
        yield lambda graph: gl_programs(context, graph, console, options), where


def check_model(
    subject: Subject,
    tolerance: float | None,
    console: Console,
    options: CompileOptions = COMPILE_DEFAULTS,
    backend: str = "gl",
) -> tuple[dict[str, Any], int]:
    """Compare all that the program stores, on frames of the demo clip and on noise: the figures, and the exit code.

    `backend` is gl or native. Raises UnsupportedError for a model that does not run wholly there, ModelError,
    DeviceError, UsageError.
    """
    limit = TOLERANCE if tolerance is None else tolerance
    unfused, samples = not options.fuse, samples_for(subject)
    precision = precision_for(subject.graph, options.precision) if backend == "native" else options.precision
    is_real = has_truth(subject.graph) and subject.graph.hybrid != "reference"  # which rounds inputs to steps
    judge = Float64Judge(subject.graph, every_tensor=True) if is_real else None
    with _ways(backend, console, options) as (loads_of, where):
        check = TensorCheck(subject, limit, loads_of(subject.graph), judge, truth_decides=tolerance is None)
        runs = check.run(samples, fuse=options.fuse)
        worst = [max(same, key=_badness) for same in zip(*runs, strict=True)]
        measured = _furthest(runs)
        first = first_divergence(worst)
        _show(console, f"{subject.name} on {next(iter(where.values()))}", worst, unfused, measured)
        if judge:
            show_truth(console, subject.graph, measured)
            _show_growth(console, worst, measured)
        if first is None:
            rule = _rule(limit, precision, any(difference.step for difference in worst))
            rule += ", and a step of one value in a hybrid operator" if subject.graph.hybrid == "reference" else ""
            by_truth = sum(not difference.max_error <= difference.limit for difference in worst)
            near = f", {by_truth} of them as near to float64 as TensorFlow Lite or rounding is" if by_truth else ""
            verdict = f"all {len(worst)} tensors agree on {len(samples)} inputs, within {rule}{near}"
        else:
            sample = next(s for s, run in zip(samples, runs, strict=True) if _diverges(run, first.tensor))
            verdict = check.explain(first, sample)
        console.say(verdict)
        hybrid = hybrid_errors(subject.graph, [sample.tensors for sample in samples], loads_of, options.fuse)
        show_hybrid(hybrid, console)
    figures = {
        "model": subject.name,
        **where,
        "fused": options.fuse,
        "precision": precision,
        "inputs": [sample.what for sample in samples],
        "tensors": [_as_json(difference, measured) for difference in worst],
        "first_divergence": None if first is None else _as_json(first, measured),
        **_growth_figures(worst, measured),
        "verdict": verdict,
        "passed": first is None,
        **({"hybrid": {way: asdict(error) for way, error in hybrid.items()}} if hybrid else {}),
    }
    return figures, 0 if first is None else 1


def samples_for(subject: Subject) -> list[Sample]:
    """Frames of the demo clip where the model takes one picture, and noise."""
    inputs = [subject.graph.tensors[tensor] for tensor in subject.graph.inputs]
    samples = [noise_for(subject, np.random.default_rng(0))]
    if len(inputs) == 1 and len(inputs[0].shape) == 4 and inputs[0].shape[0] == 1 and inputs[0].shape[3] == 3:
        _, height, width, _ = inputs[0].shape
        preprocessor = Preprocessor(rgba_format(_CLIP_SIZE), (width, height), "stretch", subject.input_range)
        frames = zip(CLIP_FRAMES, clip_frames(_CLIP_SIZE), strict=True)
        real = [
            Sample(
                f"frame {number} of the demo clip",
                (quantized(preprocessor.image_to_tensor(rgba_picture(rgba)), inputs[0]),),
            )
            for number, rgba in frames
        ]
        samples = real + samples
    return samples


def noise_for(subject: Subject, rng: np.random.Generator) -> Sample:
    """Values of the input range, in the types that the model takes: integers without a scale are rounded.

    Raises UsageError for an input of unknown size, and of a type of which NumPy has no values.
    """
    inputs = [subject.graph.tensors[tensor] for tensor in subject.graph.inputs]
    return Sample("noise", tuple(_noise(subject, tensor, rng) for tensor in inputs))


def _noise(subject: Subject, tensor: Tensor, rng: np.random.Generator) -> npt.NDArray[Any]:
    where, (low, high) = f"{subject.name}: input {tensor.name}", subject.input_range
    if min(tensor.shape, default=0) < 0:
        raise UsageError(f"{where} has the shape {list(tensor.shape)}, so there are no values to check the model with")
    try:
        np.dtype(tensor.dtype)
    except TypeError:
        raise UsageError(f"{where} holds {tensor.dtype}, so there are no values to check the model with") from None
    if math.prod(tensor.shape) > MOST_VALUES:
        raise UsageError(f"{where} has {math.prod(tensor.shape)} values, {MOST_VALUES} are checked at most")
    values = low + (high - low) * rng.random(tensor.shape, np.float32)
    return quantized(np.asarray(values, np.float32), tensor)


def _rule(limit: float, precision: Precision, has_steps: bool) -> str:
    """What is allowed, for a person."""
    steps = (
        "a step for each quantized operator of a kernel that gets TensorFlow Lite's inputs, and " if has_steps else ""
    )
    what = "stored as halves" if stores_halves(precision) else "rounded to bfloat16"
    each = f", and {rounding_error(precision):.2g} for each time that values were {what}" if precision != "fp32" else ""
    return f"{steps}{limit:g} of 1 or of their magnitude{each}"


def _where(difference: Difference) -> str:
    error, step = difference.max_error, difference.step
    said = f"{error:.2g} steps ({error * step:.2g})" if step else f"{error:.2g}"
    return f"{difference.operator}, {difference.name}: error {said}, allowed {difference.limit:.2g}"


def _excess(difference: Difference) -> float:
    """The error in parts of the limit; NaN is worse than all others."""
    parts = difference.max_error / difference.limit if difference.limit else difference.max_error
    return float("inf") if np.isnan(parts) else parts


def _badness(difference: Difference) -> tuple[bool, float]:
    """What diverges is worse than what does not."""
    return difference.diverges, _excess(difference)


def _furthest(runs: Sequence[Sequence[Difference]]) -> dict[int, Distances]:
    """Of each tensor that float64 has, on all inputs."""
    by_tensor = {same[0].tensor: [each.truth for each in same if each.truth] for same in zip(*runs, strict=True)}
    return {tensor: furthest(found) for tensor, found in by_tensor.items() if found}


def _diverges(run: Sequence[Difference], tensor: int) -> bool:
    return any(difference.diverges for difference in run if difference.tensor == tensor)


def _show(
    console: Console, what: str, worst: Sequence[Difference], unfused: bool, measured: Mapping[int, Distances]
) -> None:
    """The tensors next to their limits or, if some are past it, those from the first of them on."""
    start = next((i for i, difference in enumerate(worst) if difference.diverges), None)
    if start is None:
        near = set(sorted(range(len(worst)), key=lambda i: -_excess(worst[i]))[:_ROWS])
        shown, which = [worst[i] for i in sorted(near)], "nearest to their limits"
    else:
        shown, which = list(worst[start : start + _ROWS]), "from the first that diverges on"
    way = "one dispatch per op" if unfused else "fused"
    console.show(Text(f"{what}, {way}: {len(worst)} tensors, those {which}", "bold"))
    table = Table(box=None, header_style="bold dim", pad_edge=False)
    for name in ("operator", "tensor", "shape"):
        table.add_column(name, overflow="fold")
    for name in ("max error", "mean error", "of magnitude", "allowed"):
        table.add_column(name, justify="right")
    for name in ("from float64", "TensorFlow Lite", "XNNPACK") if measured else ():
        table.add_column(name, justify="right")
    for d in shown:
        numbers = (d.max_error, d.mean_error, d.relative_error, d.limit)
        said = [f"{number:.1e}" for number in numbers]
        if d.step:
            said[0], said[3] = f"{d.max_error:g} x {d.step:.2g}", f"{d.limit:.3g} x {d.step:.2g}"
        if d.tensor in measured:
            said += _distances(measured[d.tensor])
        cells = [d.operator, d.name, "x".join(map(str, d.shape)), *said]
        table.add_row(*map(Text, cells), style="red" if d.diverges else "")
    console.show(table)


def show_truth(console: Console, graph: Graph, measured: Mapping[int, Distances]) -> None:
    """How far each output is from float64, and what that does not say."""
    for tensor in dict.fromkeys(graph.outputs):
        if tensor in measured:
            ours, reference, xnnpack = _distances(measured[tensor])
            console.say(
                f"{graph.tensors[tensor].name}: {ours} from float64 at most, TensorFlow Lite {reference}, XNNPACK "
                f"{xnnpack}, of values up to {measured[tensor].magnitude:.1e}"
            )
    lacking = without_truth(graph)
    if lacking:
        console.say(f"in float64 there is no {', '.join(lacking)}: what follows is compared with TensorFlow Lite alone")


def _show_growth(console: Console, worst: Sequence[Difference], measured: Mapping[int, Distances]) -> None:
    grown = first_growth(worst, measured)
    if grown:
        first, before, after = grown
        others = ", ".join(map(describe_operator, first.behind))
        where = f"{first.operator}, {first.name}" + (f", or what is computed with it: {others}" if others else "")
        found = measured[first.tensor]
        theirs = [
            "-" if each is None else f"{each / (found.magnitude or 1):.1e}" for each in (found.reference, found.xnnpack)
        ]
        console.say(
            f"the error first grows at {where}: from {before:.1e} to {after:.1e} of the magnitude (TensorFlow Lite "
            f"{theirs[0]}, XNNPACK {theirs[1]})"
        )


def _distances(found: Distances) -> list[str]:
    return ["-" if each is None else f"{each:.1e}" for each in (found.ours, found.reference, found.xnnpack)]


def _growth_figures(worst: Sequence[Difference], measured: Mapping[int, Distances]) -> dict[str, Any]:
    """None of a model that float64 says nothing of, or where the error grows nowhere."""
    grown = first_growth(worst, measured)
    if grown is None:
        return {"first_growth": None}
    first, before, after = grown
    return {"first_growth": {**_as_json(first, measured), "from": finite(before), "to": finite(after)}}


def _as_json(difference: Difference, measured: Mapping[int, Distances]) -> dict[str, Any]:
    found = measured.get(difference.tensor)
    return {
        "operator": difference.node.index if difference.node.index >= 0 else None,
        "op": difference.node.op,
        "tensor": difference.tensor,
        "name": difference.name,
        "shape": difference.shape,
        "max_error": finite(difference.max_error),
        "mean_error": finite(difference.mean_error),
        "magnitude": difference.magnitude,
        "limit": difference.limit,
        "step": difference.step or None,
        "computed_with": [node.index for node in difference.behind],
        "float64": truth_figures(found),
    }


def truth_figures(found: Distances | None) -> dict[str, float | None] | None:
    """For JSON; None of what float64 does not say."""
    return None if found is None else {key: finite(value) for key, value in asdict(found).items()}


def finite(value: float | None) -> float | None:
    """The value for JSON, which has no word for infinity and for what is not a number."""
    return value if value is not None and np.isfinite(value) else None
