"""Compares mutated 8-bit models with TensorFlow Lite's reference kernels.

    python -m tests.fuzz.quantized --count 20000                # seeds 0 to 19999
    python -m tests.fuzz.quantized --folder DIR --seed 500 --count 100
    python -m tests.fuzz.quantized --only 1234                  # one again, in this process

Each runs in a child process, as this CPU's code and one of GL_EVERY on OpenGL too. One that differs, crashes, hangs or
takes too much memory is kept in build/quantized, and the exit code is 1. TensorFlow Lite's own crashes are counted.
Ctrl-C ends with what was done so far; --seed goes on from there.
"""

import argparse
import os
import re
import sys
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import rich.console
from rich.progress import track

from tests.fuzz.children import Ending, in_child
from tests.fuzz.models import noise
from tests.fuzz.quantized_mutants import Mutant, is_cut_from, mutant, with_all_outputs
from tests.fuzz.refusals import check_line
from tests.model_files.model_builder import Array
from tests.quantized.op_by_op import first_fault
from tests.quantized.ours import our_run
from tests.quantized.runs import TfliteRun, litert
from texelflow.gpu_delegate.base.errors import InferenceError, TexelflowError, UnsupportedError
from texelflow.gpu_delegate.model.graph import Graph
from texelflow.gpu_delegate.reading.reader import read_model
from texelflow.gpu_delegate.targets.llvm.compiler import native_target

RUNS = 2  # on other inputs
GL_EVERY = 16
SECONDS, MEMORY_BYTES = 20.0, 3 << 30
FOLDER = Path("build", "quantized")
# Outcomes: equal; near, where only ops differ that may; what refused it; what is wrong.
# raised: a length behind the end of the values that REVERSE_SEQUENCE turns, where TensorFlow Lite reads on.
GOOD = (
    *("equal", "near", "unread", "refused", "raised", "failed as TensorFlow Lite"),
    *("not by TensorFlow Lite", "TensorFlow Lite crashed"),
)


def inputs_of(graph: Graph) -> list[list[Array]]:
    """Of every run: all bytes, floats of -2 to 2."""
    return [noise(graph, run) for run in range(RUNS)]


def theirs(data: bytes, graph: Graph, keep_all: bool = False) -> list[list[Array]] | None:
    """Outputs of the reference kernels; None where TensorFlow Lite refuses the model before it runs.

    Without `keep_all` it computes in place, over outputs that other operators read, too. Raises RuntimeError where an
    operator fails.
    """
    try:
        run = TfliteRun(data, keep_all=keep_all)
    except (ValueError, RuntimeError, TypeError):
        return None
    try:
        return [run(values) for values in inputs_of(graph)]
    except (ValueError, TypeError):
        return None


def ours(data: bytes, graph: Graph, way: str) -> list[list[Array]]:
    """The same by ourselves. Raises TexelflowError."""
    with our_run(data, way) as run:
        return [run(values) for values in inputs_of(graph)]


def outcome(data: bytes, ways: Sequence[str]) -> str:
    """One of GOOD, or what is wrong."""
    try:
        graph = read_model(data)
    except TexelflowError as error:
        check_line(error)
        return "unread"
    try:
        wanted = theirs(data, graph)
    except RuntimeError as error:
        if re.search(r"only supports|not supported", str(error)):  # whatever the values
            return "not by TensorFlow Lite"
        return failing(data, graph, ways, str(error))
    if wanted is None:
        return "not by TensorFlow Lite"
    found = "equal"
    for way in ways:
        try:
            got = ours(data, graph, way)
        except UnsupportedError as error:
            check_line(error)
            return "refused"
        except InferenceError as error:
            check_line(error)
            if "REVERSE_SEQUENCE" in str(error):
                return "raised"
            raise
        if any(not _equal(a, b) for a, b in zip(got, wanted, strict=True)):
            text = explained(data, way)
            if text:
                return f"{way}: {text}"
            found = "near"
    return found


def failing(data: bytes, graph: Graph, ways: Sequence[str], reason: str) -> str:
    """Of a model at whose values TensorFlow Lite fails: so have we to, where we do not refuse it before."""
    for way in ways:
        try:
            ours(data, graph, way)
        except UnsupportedError as error:
            check_line(error)
            return "refused"
        except InferenceError as error:
            check_line(error)
        else:
            return f"{way}: TensorFlow Lite fails: {reason.splitlines()[0]}"
    return "failed as TensorFlow Lite"


def _equal(one: Sequence[Array], other: Sequence[Array]) -> bool:
    return all(a.dtype == b.dtype and a.tobytes() == b.tobytes() for a, b in zip(one, other, strict=True))


def explained(data: bytes, way: str) -> str:
    """The op that differs and may not, of a model with other outputs than the reference's; "" where there is none."""
    whole = with_all_outputs(data)
    graph = read_model(whole)
    try:
        wanted = theirs(whole, graph, keep_all=True)
    except RuntimeError:
        wanted = None
    if wanted is None:
        return "outputs differ, and TensorFlow Lite does not tell the other tensors"
    for a, b in zip(ours(whole, graph, way), wanted, strict=True):
        text = first_fault(graph, dict(zip(graph.outputs, a, strict=True)), dict(zip(graph.outputs, b, strict=True)))
        if text:
            return text
    return ""


def ways_of(seed: int) -> tuple[str, ...]:
    """This CPU's code, and now and then OpenGL."""
    return ("native", "gl") if seed % GL_EVERY == 0 else ("native",)


def judged(seed: int, files: Sequence[Path]) -> str:
    """The outcome of one, in a child; whose crash it was is told by another, which runs TensorFlow Lite alone."""
    ending = in_child(lambda: outcome(mutant(seed, files).data, ways_of(seed)), SECONDS, MEMORY_BYTES)
    if ending.how == "text":
        return ending.text
    alone = in_child(lambda: _alone(mutant(seed, files)), SECONDS, MEMORY_BYTES)
    return "TensorFlow Lite crashed" if alone.how not in ("text", "raised") else _said(ending)


def _alone(made: Mutant) -> str:
    for data in (made.data, with_all_outputs(made.data)):
        theirs(data, read_model(data))
    return "ran"


def _said(ending: Ending) -> str:
    return f"{ending.how}: {ending.text}"


def keep(seed: int, files: Sequence[Path], text: str) -> None:
    """The mutant, and what was found."""
    made = mutant(seed, files)
    FOLDER.mkdir(parents=True, exist_ok=True)
    (FOLDER / f"{seed}.tflite").write_bytes(made.data)
    (FOLDER / f"{seed}.txt").write_text(f"{text}\n{made.base}: {', '.join(made.changes)}\n")
    print(f"{seed}: {text} ({made.base}: {', '.join(made.changes)})", file=sys.stderr, flush=True)


def fuzz(seeds: range, files: Sequence[Path]) -> dict[str, int]:
    """How many ended how; a line for each that fails. This process must have no threads."""
    counted, console = Counter[str](), rich.console.Console(stderr=True)
    try:
        for seed in track(seeds, f"{len(seeds)} models", console=console, disable=not console.is_terminal):
            text = judged(seed, files)
            counted[text if text in GOOD else "fails"] += 1
            if text not in GOOD:
                keep(seed, files, text)
    except KeyboardInterrupt:
        print(f"interrupted; --seed {seeds.start + sum(counted.values())} goes on", file=sys.stderr)
    return dict(counted)


def main() -> int:
    """Run and tell."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz.quantized", description="Mutate 8-bit models.")
    parser.add_argument("--count", type=int, default=20000)
    parser.add_argument("--seed", type=int, default=0, help="the first")
    parser.add_argument("--folder", type=Path, metavar="DIR", help="8-bit .tflite files that parts are cut from, too")
    parser.add_argument("--only", type=int, metavar="SEED")
    options = parser.parse_args()
    os.environ.setdefault("GALLIVM_PERF", "nopt")  # of kernels that run a few times, most of the time is compilation
    files = [path for path in sorted(options.folder.glob("*.tflite")) if is_cut_from(path)] if options.folder else []
    litert(), native_target()  # before the children, which then need not
    if options.only is not None:
        made = mutant(options.only, files)
        print(f"{made.base}: {', '.join(made.changes)}: {outcome(made.data, ways_of(options.only))}")
        return 0
    start = time.perf_counter()
    counted = fuzz(range(options.seed, options.seed + options.count), files)
    print(f"{sum(counted.values())} models in {time.perf_counter() - start:.0f} s: {counted}")
    return int("fails" in counted)


if __name__ == "__main__":
    sys.exit(main())
