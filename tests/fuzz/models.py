"""Models go in; how reader, writer and TensorFlow Lite came through thousands of mutations of them comes out.

    python -m tests.fuzz.models --cases 20000 --seed 1 --save crashes MODEL.tflite ...

Each case runs in a process of its own: read_model, Reference with XNNPACK and without, one run of each. The same seed
gives the same cases, and case N is the same whatever comes before it.
"""

import argparse
import sys
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random

import numpy as np

from gpu_delegate.errors import TexelflowError
from gpu_delegate.graph import Graph
from gpu_delegate.reader import read_model
from gpu_delegate.reference import Reference, load_interpreter_module
from tests.fuzz.children import Ending, in_child
from tests.fuzz.mutations import mutated

FINE = ("refused", "refused by TensorFlow Lite", "ran")


@dataclass(frozen=True)
class Failure:
    """A case that ended as none may: crashed, hung, took too much memory or raised what is no refusal."""

    case: int
    ending: Ending


@dataclass(frozen=True)
class Counts:
    """How the cases ended."""

    cases: int
    endings: Mapping[str, int]  # refused, refused by TensorFlow Lite, ran; raised, crashed, hung, too large
    failures: tuple[Failure, ...]
    slowest_s: float
    most_bytes: int

    def __str__(self) -> str:
        found = ", ".join(f"{count} {how}" for how, count in sorted(self.endings.items()))
        most = f"slowest {self.slowest_s:.1f} s, most memory {self.most_bytes / 2**30:.2f} GiB"
        lines = [f"case {failure.case}: {failure.ending.how} ({failure.ending.text})" for failure in self.failures]
        return "\n".join([f"{self.cases} cases: {found}; {most}", *lines])


def run_models(
    cases: int,
    seed: int,
    models: Sequence[Path],
    save: Path | None = None,
    first: int = 0,
    report: Callable[[int], None] | None = None,
) -> Counts:
    """Cases `first` to `first + cases` of a seed. Files of failures go to the folder `save`; `report` gets each number.

    The process forks: it should have no threads.
    """
    files = [path.read_bytes() for path in models]
    sound = [file for file in files if is_taken(file)]
    load_interpreter_module()
    endings: Counter[str] = Counter()
    failures: list[Failure] = []
    slowest_s, most_bytes = 0.0, 0
    for case in range(first, first + cases):
        ending = in_child(lambda case=case: judged(case_of(sound, files, seed, case)))  # type: ignore[misc]
        how = ending.text if ending.how == "text" else ending.how
        endings[how] += 1
        slowest_s, most_bytes = max(slowest_s, ending.seconds), max(most_bytes, ending.most_bytes)
        if how not in FINE:
            failures.append(Failure(case, ending))
            if save:
                save.mkdir(parents=True, exist_ok=True)
                file = save / f"{seed}-{case}-{ending.how.replace(' ', '-')}.tflite"
                in_child(lambda c=case, f=file: str(f.write_bytes(case_of(sound, files, seed, c))))  # type: ignore[misc]
        if report:
            report(case)
    return Counts(cases, dict(endings), tuple(failures), slowest_s, most_bytes)


def case_of(sound: Sequence[bytes], files: Sequence[bytes], seed: int, case: int) -> bytes:
    """The mutated file of a case: one of those that the reader takes, with parts of any."""
    random = Random(f"{seed}:{case}")
    return mutated(random.choice(sound), random.choice(files), random)


def is_taken(data: bytes) -> bool:
    """Whether the reader takes a file."""
    try:
        read_model(data)
    except TexelflowError:
        return False
    return True


def judged(data: bytes) -> str:
    """How a file is refused, or that it ran; with XNNPACK and without."""
    try:
        graph = read_model(data)
    except TexelflowError as error:
        return _refused("refused", error)
    how = "ran"
    for keep_all in (False, True):
        try:
            run_once(graph, keep_all)
        except TexelflowError as error:
            how = _refused("refused by TensorFlow Lite", error)
    return how


def run_once(graph: Graph, keep_all: bool) -> None:
    """One run on noise."""
    rng = np.random.default_rng(0)
    inputs = [rng.uniform(-2, 2, graph.tensors[i].shape).astype(graph.tensors[i].dtype) for i in graph.inputs]
    Reference(graph, threads=1, keep_all_tensors=keep_all).run(inputs)


def _refused(how: str, error: TexelflowError) -> str:
    """Fails unless the refusal is one line that says something."""
    line = str(error)
    if not line or not line.isprintable():
        raise AssertionError(f"a refusal of several lines, or of none: {line!r}")
    return how


def main() -> int:
    """Runs the cases that the command line asks for; exit code 1 if any failed."""
    parser = argparse.ArgumentParser(description="Mutated models through the reader, the writer and TensorFlow Lite.")
    parser.add_argument("models", nargs="+", type=Path, help="files that the mutations begin with")
    parser.add_argument("--cases", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--first", type=int, default=0, help="the first case's number")
    parser.add_argument("--save", type=Path, help="a folder for the files of failures")
    options = parser.parse_args()
    counts = run_models(options.cases, options.seed, options.models, options.save, options.first, _every_hundred)
    print(counts)
    return 1 if counts.failures else 0


def _every_hundred(case: int) -> None:
    if case % 100 == 99:
        print(f"case {case}", file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main())
