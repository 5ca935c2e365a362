"""Runs many random graphs on OpenGL and in native code, and compares both with TensorFlow Lite.

    python -m tests.fuzz.graphs --count 5000             # seeds 0 to 4999
    python -m tests.fuzz.graphs --only 1234              # one graph again, in this process
    python -m tests.fuzz.graphs --kind states --count 500

Graphs run in child processes, some at a time. Outcomes go to build/graphs/KIND.jsonl, where the next run goes on;
--afresh forgets them, as is due after a change of the engine. A graph that fails is made small and kept as
build/graphs/KIND_SEED.tflite, with its ops in a .txt beside it. Exit code 1 if any failed; Ctrl-C ends with what was
done so far.
"""

import argparse
import contextlib
import json
import os
import sys
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

import rich.console
from rich.progress import track

from tests.fuzz.children import in_child
from tests.fuzz.models import noise
from tests.fuzz.reduction import reduced
from tests.generators.profiles import random_graph
from tests.generators.random_graphs import RandomGraph, described
from tests.helpers.checked_graphs import RUNS, CheckedGraph, all_ways, first_difference
from tests.model_files.model_builder import Array, ModelBuilder
from tests.quantized.quantizer import Scheme, quantized_twin
from texelflow.gpu_delegate.cpu.reference import load_interpreter_module
from texelflow.gpu_delegate.reading.reader import read_model
from texelflow.gpu_delegate.targets.gl.context import Context, open_context

AT_A_TIME = 20
SECONDS_EACH = 20.0
FINE = ("agrees", "in part")
FOLDER = Path("build", "graphs")
VALUES = ("float", "int8", "uint8")  # what graphs compute with that run whole
KINDS = (*VALUES, "subgraphs", "states")
PROFILE: Mapping[str, str] = MappingProxyType({"float": "any", "int8": "quantized", "uint8": "quantized"})
QUANTIZED = ("int8", "uint8")
STATE_RUNS = 4  # of graphs with states or branches
BORDERS = ("own", "own", "float32", "uint8")
LEAST_SCALE = 1e-6
NEXT = 1 << 32  # further seed
SAMPLES = 4  # from which a quantized graph's ranges come


class MadeGraph(NamedTuple):
    """A graph's file, inputs for its runs, and which of them are outputs of the run before, once there was one."""

    model: bytes
    inputs: Sequence[Sequence[Array]]
    fed: Mapping[int, int] = MappingProxyType({})


def fed_places(model: ModelBuilder, fed: Mapping[int, int]) -> dict[int, int]:
    """The places of inputs and of the outputs that they are, of those that a model has."""
    inputs, outputs = model.inputs, model.outputs
    return {inputs.index(i): outputs.index(out) for i, out in fed.items() if i in inputs and out in outputs}


def drawn_graph(seed: int, kind: str) -> RandomGraph:
    return random_graph(seed, PROFILE.get(kind, kind))


def made(seed: int, kind: str) -> MadeGraph:
    """Of bytes, another graph in place of one with a scale of nearly nothing.

    TensorFlow Lite ends its process for such a scale, which a tensor has that was zero on all samples.
    """
    graph = drawn_graph(seed, kind)
    if kind not in QUANTIZED:
        runs = RUNS if kind == "float" else STATE_RUNS
        return MadeGraph(graph.build(), [graph.values(run) for run in range(runs)], fed_places(graph, graph.fed))
    samples = [graph.values(run) for run in range(SAMPLES)]
    border = BORDERS[seed % len(BORDERS)] if kind == "int8" else "own"
    model = quantized_twin(graph, samples, Scheme(kind, per_channel=seed % 3 > 0, border=border))
    read = read_model(model)
    scales = [
        scale for t in read.tensors.values() if t.quantization and not t.is_constant for scale in t.quantization.scales
    ]
    if not all(LEAST_SCALE < scale < 1 / LEAST_SCALE for scale in scales):
        return made(seed + NEXT, kind)
    return MadeGraph(model, [noise(read, run) for run in range(RUNS)])


def outcome(seed: int, kind: str, context: Context | None) -> str:
    """agrees, in part (where some op is left to the CPU), or what differs."""
    text, in_part = first_difference(CheckedGraph(*made(seed, kind), seed=seed), all_ways(seed), context)
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
    path = FOLDER / f"{kind}_{seed}.tflite"
    path.with_suffix(".txt").write_text(f"{text}\nagain: {again(seed, kind)}\n")
    path.write_bytes(made(seed, kind).model)
    with open_context() as context:
        small = small_failure(seed, kind, context)
    if kind not in QUANTIZED:
        path.write_bytes(small.build())
    with path.with_suffix(".txt").open("a") as file:
        file.write(f"{described(small)}\n")
    return str(path)


def again(seed: int, kind: str) -> str:
    """The command that runs one graph."""
    return f"python -m tests.fuzz.graphs --only {seed} --kind {kind}"


def small_failure(seed: int, kind: str, context: Context) -> ModelBuilder:
    """The smallest graph that still fails of one that does; of a quantized one its float twin as it is."""
    graph = drawn_graph(seed, kind)
    if kind in QUANTIZED:
        return graph
    runs = RUNS if kind == "float" else STATE_RUNS

    def fails(model: ModelBuilder) -> bool:
        try:
            data = model.build()
            inputs = [noise(read_model(data), run) for run in range(runs)]
            checked = CheckedGraph(data, inputs, fed_places(model, graph.fed), seed)
            return first_difference(checked, all_ways(seed), context)[0] != ""
        except Exception:  # another fault than the one that is sought, or no model that runs
            return False

    return reduced(graph, fails)


def main() -> int:
    """Run and tell."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz.graphs", description="Compare random graphs.")
    parser.add_argument("--count", type=int, default=5000)
    parser.add_argument("--seed", type=int, default=0, help="the first")
    parser.add_argument("--kind", choices=KINDS, default="float", help="of graphs")
    parser.add_argument("--only", type=int, metavar="SEED")
    parser.add_argument("--afresh", action="store_true", help="forget what earlier runs have found")
    options = parser.parse_args()
    os.environ.setdefault("GALLIVM_PERF", "nopt")  # of kernels that run a few times, most of the time is compilation
    if options.only is not None:
        with open_context() as context:
            print(outcome(options.only, options.kind, context))
        return 0
    load_interpreter_module()  # before the children, which then need not
    seeds, log = range(options.seed, options.seed + options.count), FOLDER / f"{options.kind}.jsonl"
    if options.afresh:
        log.unlink(missing_ok=True)
    known = known_outcomes(log)
    found = {seed: known[seed] for seed in seeds if seed in known}
    start, before = time.perf_counter(), len(found)
    try:
        for seed, text in fuzz([seed for seed in seeds if seed not in known], options.kind, log):
            found |= {seed: text}
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
    failed = [seed for seed, text in found.items() if text not in FINE]
    counted = Counter(text if text in FINE else "fails" for text in found.values())
    earlier = f", {before} of them by an earlier run" if before else ""
    print(f"{len(found)} graphs in {time.perf_counter() - start:.0f} s{earlier}: {dict(counted)}")
    if failed:
        print(f"fails: {' '.join(map(str, failed))}")
    return int(bool(failed))


def known_outcomes(log: Path) -> dict[int, str]:
    """By seed, what earlier runs have found; a line that was cut off does not count."""
    found = dict[int, str]()
    for line in log.read_text().splitlines() if log.exists() else ():
        with contextlib.suppress(ValueError):
            seed, text = json.loads(line)
            found[seed] = text
    return found


def fuzz(seeds: Sequence[int], kind: str, log: Path) -> Iterator[tuple[int, str]]:
    """The outcome of each, which is logged; a line for each that fails, which is kept."""
    console = rich.console.Console(stderr=True)
    parts = [seeds[k : k + AT_A_TIME] for k in range(0, len(seeds), AT_A_TIME)]
    log.parent.mkdir(parents=True, exist_ok=True)
    for part in track(parts, f"{len(seeds)} graphs", console=console, disable=not console.is_terminal):
        for seed, text in zip(part, outcomes(part, kind), strict=True):
            if text not in FINE:
                print(f"{seed}: {text}", file=sys.stderr, flush=True)
                in_child(partial(keep, seed, kind, text), 600.0)
            with log.open("a") as file:
                file.write(f"{json.dumps([seed, text])}\n")
            yield seed, text


if __name__ == "__main__":
    sys.exit(main())
