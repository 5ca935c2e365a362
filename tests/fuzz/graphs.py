"""Compares many random graphs with TensorFlow Lite.

    python -m tests.fuzz.graphs --count 5000             # seeds 0 to 4999
    python -m tests.fuzz.graphs --only 1234              # one graph again, in this process
    python -m tests.fuzz.graphs --quantized int8 --count 500

Graphs run in child processes, some at a time. One that fails is made small and kept as build/graphs/SEED.tflite, with
its ops in SEED.txt. Exit code 1 if any failed; Ctrl-C ends with what was done so far.
"""

import argparse
import json
import os
import sys
import time
from collections import Counter
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import rich.console
from rich.progress import track

from tests.fuzz.children import in_child
from tests.fuzz.models import noise
from tests.fuzz.reduction import reduced
from tests.generators.profiles import random_graph
from tests.generators.random_graphs import described
from tests.helpers.checked_graphs import RUNS, CheckedGraph, first_difference, ways_of
from tests.model_files.model_builder import Array, ModelBuilder
from tests.quantized.quantizer import Scheme, quantized_twin
from texelflow.gpu_delegate.base.errors import TexelflowError
from texelflow.gpu_delegate.cpu.reference import load_interpreter_module
from texelflow.gpu_delegate.reading.reader import read_model
from texelflow.gpu_delegate.targets.gl.context import Context, open_context

AT_A_TIME = 20
SECONDS_EACH = 20.0
FOLDER = Path("build", "graphs")
KINDS = ("no", "int8", "uint8")
BORDERS = ("own", "own", "float32", "uint8")
LEAST_SCALE = 1e-6
NEXT = 1 << 32  # further seed
SAMPLES = 4  # from which a quantized graph's ranges come


def made(seed: int, kind: str) -> tuple[bytes, Sequence[Sequence[Array]]]:
    """A graph's file and inputs for it; of bytes, another one in place of one with a scale of nearly nothing.

    TensorFlow Lite ends its process for such a scale, which a tensor has that was zero on all samples.
    """
    graph = random_graph(seed, "any" if kind == "no" else "quantized")
    if kind == "no":
        return graph.build(), [graph.values(run) for run in range(RUNS)]
    samples = [graph.values(run) for run in range(SAMPLES)]
    border = BORDERS[seed % len(BORDERS)] if kind == "int8" else "own"
    model = quantized_twin(graph, samples, Scheme(kind, per_channel=seed % 3 > 0, border=border))
    read = read_model(model)
    scales = [
        scale for t in read.tensors.values() if t.quantization and not t.is_constant for scale in t.quantization.scales
    ]
    if not all(LEAST_SCALE < scale < 1 / LEAST_SCALE for scale in scales):
        return made(seed + NEXT, kind)
    return model, [noise(read, run) for run in range(RUNS)]


def outcome(seed: int, kind: str, context: Context | None) -> str:
    """agrees, in part (where some op is left to the CPU), or what differs."""
    text, in_part = first_difference(CheckedGraph(*made(seed, kind), seed), ways_of(seed), context)
    return text or ("in part" if in_part else "agrees")


def some(seeds: Sequence[int], kind: str) -> str:
    """The outcomes of several graphs, as JSON."""
    with open_context() as context:
        found = []
        for seed in seeds:
            try:
                found.append(outcome(seed, kind, context))
            except Exception as error:
                found.append(f"{type(error).__name__}: {' '.join(str(error).split())[:150]}")
        return json.dumps(found)


def outcomes(seeds: Sequence[int], kind: str) -> list[str]:
    """The same, computed by a child; where that crashed or hung, by a child for each."""
    ending = in_child(lambda: some(seeds, kind), SECONDS_EACH * len(seeds))
    if ending.how == "text":
        found: list[str] = json.loads(ending.text)
        return found
    if len(seeds) == 1:
        return [f"{ending.how}: {ending.text}"]
    return [text for seed in seeds for text in outcomes([seed], kind)]


def keep(seed: int, kind: str, text: str) -> str:
    """A failing graph as it is, and a small one with what it is made of; where they are."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    (FOLDER / f"{seed}.txt").write_text(
        f"{text}\nagain: python -m tests.fuzz.graphs --only {seed} --quantized {kind}\n"
    )
    data, _ = made(seed, kind)
    (FOLDER / f"{seed}.tflite").write_bytes(data)
    where = str(FOLDER / f"{seed}.tflite")
    with open_context() as context:
        small = small_failure(seed, kind, context)
    if kind == "no":
        (FOLDER / f"{seed}.tflite").write_bytes(small.build())
    with (FOLDER / f"{seed}.txt").open("a") as file:
        file.write(f"{described(small)}\n")
    return where


def small_failure(seed: int, kind: str, context: Context) -> ModelBuilder:
    """The smallest graph that still fails of one that does; of a quantized one its float twin as it is."""
    graph = random_graph(seed, "any" if kind == "no" else "quantized")
    if kind != "no":
        return graph

    def fails(model: ModelBuilder) -> bool:
        try:
            data = model.build()
            checked = CheckedGraph(data, [noise(read_model(data), run) for run in range(RUNS)], seed)
            return first_difference(checked, ways_of(seed), context)[0] != ""
        except (TexelflowError, ValueError, RuntimeError):  # another fault than the one that is sought
            return False

    return reduced(graph, fails)


def main() -> int:
    """Run and tell."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz.graphs", description="Compare random graphs.")
    parser.add_argument("--count", type=int, default=5000)
    parser.add_argument("--seed", type=int, default=0, help="the first")
    parser.add_argument("--quantized", choices=KINDS, default="no")
    parser.add_argument("--only", type=int, metavar="SEED")
    options = parser.parse_args()
    os.environ.setdefault("GALLIVM_PERF", "nopt")  # of kernels that run a few times, most of the time is compilation
    if options.only is not None:
        with open_context() as context:
            print(outcome(options.only, options.quantized, context))
        return 0
    load_interpreter_module()  # before the children, which then need not
    return fuzz(range(options.seed, options.seed + options.count), options.quantized)


def fuzz(seeds: range, kind: str) -> int:
    """All of them; a line for each that fails."""
    start, counted, failed = time.perf_counter(), Counter[str](), 0
    console = rich.console.Console(stderr=True)
    parts = [seeds[k : k + AT_A_TIME] for k in range(0, len(seeds), AT_A_TIME)]
    try:
        for part in track(parts, f"{len(seeds)} graphs", console=console, disable=not console.is_terminal):
            for seed, text in zip(part, outcomes(part, kind), strict=True):
                counted[text if text in ("agrees", "in part") else "fails"] += 1
                if text not in ("agrees", "in part"):
                    failed += 1
                    print(f"{seed}: {text}", file=sys.stderr, flush=True)
                    in_child(partial(keep, seed, kind, text), 600.0)
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
    print(f"{sum(counted.values())} graphs in {time.perf_counter() - start:.0f} s: {dict(counted)}")
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
