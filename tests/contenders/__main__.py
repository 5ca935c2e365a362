"""Times whole models on the CPU: our own code, and in turn with it XNNPACK and, where it is installed, OpenVINO.

    make contenders                                # with OpenVINO; of MODELS=DIR, else networks of random weights
    python -m tests.contenders FILE.tflite ... --threads 2 --seconds 10

Of a model that native code does not run wholly, ours are its parts that pay, and TensorFlow Lite's for the rest.
From NumPy arrays to NumPy arrays, by the clock: the least and the median of all turns; *x* is how many times as long
the other takes, by the least. *differ* is how many values of all outputs are not those of TensorFlow Lite's reference
kernels. 8-bit inputs are any bytes, others numbers from -1 to 1. Exit code 1 where an 8-bit model differs, or ours is
slower than XNNPACK.
"""

import argparse
import importlib.util
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt
from ai_edge_litert import interpreter

from tests.tools.in_turn import call_in_turn
from texelflow.app.models.networks import NETWORKS, write_network
from texelflow.gpu_delegate.base.errors import TexelflowError, UnsupportedError
from texelflow.gpu_delegate.cpu.interpreter import InterpreterOptions, LocalInterpreter
from texelflow.gpu_delegate.delegate.native_delegate import NativePartsDelegate
from texelflow.gpu_delegate.model.graph import Graph, Shape
from texelflow.gpu_delegate.model.quantization import has_quantized
from texelflow.gpu_delegate.reading.reader import load_model
from texelflow.gpu_delegate.reading.writer import write_model
from texelflow.gpu_delegate.targets.llvm.native_runtime import NativeNetwork

MADE = Path("build/networks")
CALL_MS = 0.03  # that a call may take longer
Arrays = Sequence[npt.NDArray[Any]]
Run = Callable[[Arrays], Arrays]


def xnnpack(path: Path, threads: int) -> Run:
    """TensorFlow Lite as it comes."""
    return _interpreter(path, num_threads=threads)


def reference(path: Path) -> Run:
    """Its reference kernels; where one is missing, its builtin ones without XNNPACK."""
    kinds = interpreter.OpResolverType
    try:
        return _interpreter(path, experimental_op_resolver_type=kinds.BUILTIN_REF)
    except (RuntimeError, ValueError):
        return _interpreter(path, experimental_op_resolver_type=kinds.BUILTIN_WITHOUT_DEFAULT_DELEGATES)


def _interpreter(path: Path, **options: Any) -> Run:
    made = interpreter.Interpreter(str(path), **options)
    made.allocate_tensors()
    inputs, outputs = made.get_input_details(), made.get_output_details()

    def run(arrays: Arrays) -> Arrays:
        for detail, array in zip(inputs, arrays, strict=True):
            made.set_tensor(detail["index"], array)
        made.invoke()
        return [made.get_tensor(detail["index"]) for detail in outputs]

    return run


def openvino(path: Path, threads: int) -> Run:
    """OpenVINO with float32 for what is not quantized."""
    import openvino  # of this tool alone

    settings = {"INFERENCE_NUM_THREADS": threads, "INFERENCE_PRECISION_HINT": "f32", "NUM_STREAMS": 1}
    request = openvino.Core().compile_model(str(path), "CPU", settings).create_infer_request()
    return lambda arrays: [*request.infer(list(arrays)).values()]


OTHERS: Mapping[str, Callable[[Path, int], Run]] = MappingProxyType({"OpenVINO": openvino})  # where they are installed


def columns() -> Sequence[str]:
    """The names of all contenders that are here."""
    return "ours", "XNNPACK", *(name for name in OTHERS if importlib.util.find_spec(name.lower()))


def others(path: Path, threads: int) -> Mapping[str, Run]:
    """Those of OTHERS that are here and take a model."""
    found = dict[str, Run]()
    for name, make in OTHERS.items():
        if name in columns():
            with suppress(RuntimeError):  # which says at length what it lacks
                found[name] = make(path, threads)
    return found


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
            limits = np.iinfo(dtype) if dtype.itemsize == 1 else np.iinfo(np.int8)
            found.append(rng.integers(limits.min, limits.max + 1, shape).astype(dtype))
        else:
            found.append(rng.uniform(-1, 1, shape).astype(dtype))
    return found


def measured(path: Path, threads: int, seconds: float) -> tuple[str, bool]:
    """A line of the table, and whether all is as it should be."""
    graph = load_model(path)
    network = ours(graph, threads)
    inputs, is_quantized = some_inputs(network), has_quantized(graph)
    runs: dict[str, Run] = {"ours": network.run, "XNNPACK": xnnpack(path, threads), **others(path, threads)}
    expected = reference(path)(inputs)
    differing = sum(int((a != b).sum()) for a, b in zip(network.run(inputs), expected, strict=True))
    total = sum(array.size for array in expected)
    times = call_in_turn({name: lambda run=run: run(inputs) for name, run in runs.items()}, seconds, threads)  # type: ignore[misc]
    figures = {name: each.figures() for name, each in times.items()}
    ours_us = figures["ours"]["min_us"]
    cells = [path.stem[:40], ("8-bit" if is_quantized else "float") + network.what, f"{differing} of {total}"]
    for name in columns():
        if each := figures.get(name):
            ratio = "" if name == "ours" else f" x {each['min_us'] / ours_us:.2f}"
            cells.append(f"{each['min_us'] / 1e3:.3f}/{each['median_us'] / 1e3:.3f}{ratio}")
        else:
            cells.append("refused")
    is_fast = ours_us <= figures["XNNPACK"]["min_us"] + 1e3 * CALL_MS
    network.close()
    return f"| {' | '.join(cells)} |", is_fast and not (is_quantized and differing)


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tests.contenders", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("models", nargs="*", type=Path)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=4.0, help="for each model, of all contenders together")
    options = parser.parse_args()
    titles = ["model", "values", "differ", *(f"{name}, ms" for name in columns())]
    print(f"| {' | '.join(titles)} |\n|{'---|' * len(titles)}", flush=True)
    is_well = True
    for path in options.models or (write_network(name, MADE) for name in NETWORKS):
        try:
            line, is_as_wanted = measured(path, options.threads, options.seconds)
        except (RuntimeError, ValueError, TexelflowError) as error:  # TensorFlow Lite's, of ops
            line, is_as_wanted = f"| {path.stem[:40]} | refused: {' '.join(str(error).split())[:100]} |", True
        print(line, flush=True)
        is_well = is_well and is_as_wanted
    return 0 if is_well else 1


if __name__ == "__main__":
    sys.exit(main())
