"""Times whole models on the CPU: our own code, and in turn with it XNNPACK and what else is installed.

    make contenders                                # with OpenVINO, onnxruntime, MNN and ncnn; of MODELS=DIR, else
                                                   # networks of random weights
    python -m tests.contenders FILE.tflite ... --threads 2 --seconds 10

Of a model that native code does not run wholly, ours are its parts that pay, and TensorFlow Lite's for the rest.
From NumPy arrays to NumPy arrays, by the clock: the least and the median of all turns; *x* is how many times as long
the other takes, by the least. *differ* is how many values of all outputs are not those of TensorFlow Lite's reference
kernels. XNNPACK counts, and a rival whose largest error is at most four times XNNPACK's, or 1 % of its output's
largest value; *largest error* is that of the worst that counts, *best rival* the fastest. Below the table is why others
do not count. 8-bit inputs are any bytes, other whole numbers 0 to 127, others numbers from -1 to 1. Exit code 1 where
an 8-bit model differs, or a rival is faster than ours.
"""

import argparse
import importlib.util
import shutil
import sys
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from tests.tools.in_turn import call_in_turn
from tests.tools.layers.contenders import silenced
from texelflow.app.models.networks import NETWORKS, write_network
from texelflow.gpu_delegate.base.errors import TexelflowError, UnsupportedError
from texelflow.gpu_delegate.cpu.interpreter import InterpreterOptions, LocalInterpreter
from texelflow.gpu_delegate.delegate.native_delegate import NativePartsDelegate
from texelflow.gpu_delegate.model.graph import Graph, Shape
from texelflow.gpu_delegate.model.quantization import has_quantized
from texelflow.gpu_delegate.reading.reader import load_model
from texelflow.gpu_delegate.reading.writer import write_model
from texelflow.gpu_delegate.targets.llvm.native_runtime import NativeNetwork

from .rival_runs import GIVEN, PLAIN, RIVALS, Arrays, Run, reference
from .rival_trial import INPUTS, tried, write_arrays

MADE = Path("build/networks")
CALL_MS = 0.03  # that a call may take longer
ALWAYS_COUNTS = "XNNPACK"
MOST_ERROR, TIMES_ITS_ERROR = 0.01, 4.0


def columns() -> Sequence[str]:
    """The names of all contenders that are here."""
    return "ours", *(name for name, rival in RIVALS.items() if importlib.util.find_spec(rival.module))


@dataclass(frozen=True)
class Ours:
    """A model in our own code, or in parts beside TensorFlow Lite."""

    run: Run
    close: Callable[[], object]
    shapes: Sequence[Shape]  # of inputs
    dtypes: Sequence[np.dtype[Any]]
    what: str = ""  # how much is in our own code, if not all


def ours(graph: Graph, threads: int) -> Ours:
    """In this process, as all others."""
    try:
        network = NativeNetwork.load(graph, threads)
        return Ours(network.run, network.close, network.input_shapes, network.input_dtypes)
    except UnsupportedError:
        delegate, options = NativePartsDelegate(threads), InterpreterOptions(threads, len(graph.outputs))
        options = replace(options, operators=len(graph.nodes), fast_bytes=True)
        made = LocalInterpreter(graph.original or write_model(graph), options, delegate)
        given, found = made.signature, made.delegation
        taken = sum(map(len, found.partitions)) if found else 0
        dtypes = [np.dtype(dtype) for dtype in given.input_dtypes]
        return Ours(made.run, made.close, given.input_shapes, dtypes, f", {taken} of {len(graph.nodes)} operators")


def some_inputs(network: Ours) -> Arrays:
    rng, found = np.random.default_rng(1), list[npt.NDArray[Any]]()
    for shape, dtype in zip(network.shapes, network.dtypes, strict=True):
        if dtype.kind in "iu":
            least, most = (np.iinfo(dtype).min, np.iinfo(dtype).max) if dtype.itemsize == 1 else (0, 127)
            found.append(rng.integers(least, most + 1, shape).astype(dtype))
        else:
            found.append(rng.uniform(-1, 1, shape).astype(dtype))
    return found


def largest_error(found: Arrays, expected: Arrays) -> float:
    """The largest difference, as a share of its output's largest value; infinite where it cannot be told."""
    if [array.size for array in found] != [array.size for array in expected]:
        return np.inf
    errors = [
        _error(np.asarray(a, np.float64).ravel(), np.asarray(b, np.float64).ravel())
        for a, b in zip(found, expected, strict=True)
    ]
    return max(errors, default=0.0)


def _error(found: npt.NDArray[np.float64], expected: npt.NDArray[np.float64]) -> float:
    largest = float(np.abs(expected).max(initial=0)) or 1.0
    error = float(np.abs(found - expected).max(initial=0)) / largest
    return error if np.isfinite(error) else np.inf


@dataclass(frozen=True)
class Rivals:
    """What came of the rivals of one model."""

    runs: Mapping[str, Run]  # of those that compute what TensorFlow Lite does
    errors: Mapping[str, float]  # of the same
    notes: Mapping[str, Sequence[str]]  # why others do not count, and which


def rivals(folder: Path, expected: Arrays, threads: int) -> Rivals:
    """Each has its first run in a process of its own, and is started here only if that went well."""
    runs, errors, notes = dict[str, Run](), dict[str, float](), defaultdict[str, list[str]](list)
    for name in columns()[1:]:
        found = tried(name, folder, threads)
        if isinstance(found, str):
            notes[found].append(name)
            continue
        error = largest_error(found, expected)
        if not counts(name, error, errors.get(ALWAYS_COUNTS, 0.0)):
            what = (
                f"an error of {error:.2g} of the largest value" if error < np.inf else "outputs of other sizes, or NaN"
            )
            notes[f"something else is computed: {what}"].append(name)
            continue
        errors[name] = error
        with silenced():
            runs[name] = RIVALS[name].start(folder, threads)
    return Rivals(runs, errors, notes)


def counts(name: str, error: float, its_error: float) -> bool:
    """Whether a rival computes the model: of 8-bit models XNNPACK is far from the reference kernels, too."""
    return name == ALWAYS_COUNTS or error <= max(MOST_ERROR, TIMES_ITS_ERROR * its_error)


@dataclass(frozen=True)
class Row:
    """A line of the table, whether all is as it should be, and what to say below the table."""

    line: str
    is_well: bool
    notes: Sequence[str] = ()


def measured(path: Path, threads: int, seconds: float) -> Row:
    """All contenders in turn. Raises what TensorFlow Lite does of operators, and TexelflowError."""
    graph = load_model(path)
    network = ours(graph, threads)
    inputs, is_quantized = some_inputs(network), has_quantized(graph)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        shutil.copyfile(path, folder / GIVEN)
        (folder / PLAIN).write_bytes(graph.original or write_model(graph))
        write_arrays(folder / INPUTS, inputs)
        expected = reference(folder)(inputs)
        found = rivals(folder, expected, threads)
    differing = sum(int((a != b).sum()) for a, b in zip(network.run(inputs), expected, strict=True))
    total = sum(array.size for array in expected)
    runs = {"ours": network.run, **found.runs}
    times = call_in_turn({name: lambda run=run: run(inputs) for name, run in runs.items()}, seconds, threads)  # type: ignore[misc]
    figures = {name: each.figures() for name, each in times.items()}
    network.close()
    values = ("8-bit" if is_quantized else "float") + network.what
    cells = [path.stem[:40], values, f"{differing} of {total}", *_times(figures), *_best(figures, found.errors)]
    least = min(each["min_us"] for each in figures.values())
    is_fast = figures["ours"]["min_us"] <= least + 1e3 * CALL_MS
    notes = [f"{path.stem[:40]}: {', '.join(names)}: {why}" for why, names in found.notes.items()]
    return Row(f"| {' | '.join(cells)} |", is_fast and not (is_quantized and differing), notes)


def _times(figures: Mapping[str, Mapping[str, float]]) -> Iterator[str]:
    for name in columns():
        if each := figures.get(name):
            ratio = "" if name == "ours" else f" x {each['min_us'] / figures['ours']['min_us']:.2f}"
            yield f"{each['min_us'] / 1e3:.3f}/{each['median_us'] / 1e3:.3f}{ratio}"
        else:
            yield "-"


def _best(figures: Mapping[str, Mapping[str, float]], errors: Mapping[str, float]) -> tuple[str, str]:
    """The fastest rival, and the one that is least near to TensorFlow Lite's reference kernels."""
    if not errors:
        return "-", "-"
    best = min(errors, key=lambda name: figures[name]["min_us"])
    worst = max(errors, key=lambda name: errors[name])
    return f"{best} x {figures[best]['min_us'] / figures['ours']['min_us']:.2f}", f"{worst} {errors[worst]:.1e}"


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tests.contenders", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("models", nargs="*", type=Path)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=4.0, help="for each model, of all contenders together")
    options = parser.parse_args()
    names = columns()
    print(", ".join(f"{name} {version(RIVALS[name].module)}" for name in names[1:]), end="\n\n")
    titles = ["model", "values", "differ", *(f"{name}, ms" for name in names), "best rival", "largest error"]
    print(f"| {' | '.join(titles)} |\n|{'---|' * len(titles)}", flush=True)
    rows = []
    for path in options.models or (write_network(name, MADE) for name in NETWORKS):
        try:
            rows.append(measured(path, options.threads, options.seconds))
        except (RuntimeError, ValueError, TexelflowError) as error:  # TensorFlow Lite's, of ops
            rows.append(Row(f"| {path.stem[:40]} | refused: {' '.join(str(error).split())[:100]} |", True))
        print(rows[-1].line, flush=True)
    print("", *(f"* {note}" for row in rows for note in row.notes), sep="\n")
    return 0 if all(row.is_well for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
