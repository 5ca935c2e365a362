"""Times what chooses by itself (Interpreter, Delegate) beside XNNPACK alone, on any models: none may be slower.

    python -m tests.tools.never_slower --folder DIR          # the catalogue's models, and those of folders
    python -m tests.tools.never_slower --drawn 40 --no-catalogue    # random networks of tests/generators

Each model is a process of its own. Runs are in turn, from arrays to arrays (set_tensor, invoke, get_tensor). XNNPACK is
TensorFlow Lite as it comes, the better one of one thread and two for Interpreter, of one for Delegate, which an
interpreter without num_threads has; with --threads of so many for all. Choices that were kept count.
"""

import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

import texelflow
from tests.generators.profiles import PROFILES, random_graph
from tests.tools.command import run_tool
from tests.tools.in_turn import call_in_turn
from tests.tools.league.entrants import entrants
from tests.tools.league.trials import Bounds, Figures, step_in_child
from texelflow.app.bench.measuring.markdown_table import markdown_lines
from texelflow.gpu_delegate.cpu.interpreter_module import load_interpreter_module
from texelflow.gpu_delegate.reading.reader import load_model
from texelflow.gpu_delegate.targets.llvm.pool import default_threads
from texelflow.gpu_delegate.tuning.trial_inputs import drawn_input
from texelflow.gpu_delegate.tuning.way_costs import computes_bytes

COLUMNS = ("model", "XNNPACK", "Interpreter", "ratio", "way", "XNNPACK, 1 thread", "Delegate", "ratio", "way", "")


@dataclass(frozen=True)
class Allowance:
    """What a run may take more than XNNPACK's."""

    share: float
    ms: float

    def holds(self, ms: float, base_ms: float) -> bool:
        return ms <= base_ms * (1 + self.share) + self.ms


FLOATS, BYTES = Allowance(0.05, 0.03), Allowance(0.10, 0.05)  # of exact 8-bit models


def timed(path: Path, seconds: float, asked: int | None) -> Figures:
    """Milliseconds of each, the least and the medians, and what was chosen."""
    module = load_interpreter_module(newer=True)
    chosen, delegate = texelflow.Interpreter(path, threads=asked), texelflow.Delegate(quiet=True)
    made: dict[str, Any] = {"auto": chosen}
    made["delegate"] = module.Interpreter(str(path), experimental_delegates=[delegate], num_threads=asked)
    for threads in [asked] if asked else sorted({1, default_threads()}):
        made[f"xnnpack {threads}"] = module.Interpreter(str(path), num_threads=threads)
    calls, failures = dict[str, Callable[[], object]](), dict[str, str]()
    for name, interpreter in made.items():
        try:
            calls[name] = _call(interpreter)
            calls[name]()
        except (RuntimeError, ValueError) as error:
            failures[name] = " ".join(str(error).split())[:100]
    times = call_in_turn(calls, seconds, asked or default_threads())
    least = {name: min(each.wall_s) * 1e3 for name, each in times.items()}
    middle = {name: each.figures()["median_us"] / 1e3 for name, each in times.items()}
    ways = {"auto": chosen.backend, "delegate": delegate.way}
    exact = computes_bytes(load_model(path))
    return {"least": least, "median": middle, "ways": ways, "failures": failures, "exact": exact}


def _call(interpreter: Any) -> Callable[[], object]:
    interpreter.allocate_tensors()
    inputs = [(detail["index"], drawn_input(detail)) for detail in interpreter.get_input_details()]
    outputs = [detail["index"] for detail in interpreter.get_output_details()]
    give, run, take = interpreter.set_tensor, interpreter.invoke, interpreter.get_tensor

    def call() -> object:
        for index, values in inputs:
            give(index, values)
        run()
        return [take(index) for index in outputs]

    return call


def verdict(found: Figures, by: str, bases: Sequence[str]) -> tuple[float, float, bool]:
    """XNNPACK's milliseconds, those of what chooses, and whether that is allowed: by the least, or by medians."""
    allowance = BYTES if found["exact"] else FLOATS
    pairs = [(min(found[kind][base] for base in bases), found[kind][by]) for kind in ("least", "median")]
    (base_ms, ms) = min(pairs, key=lambda pair: pair[1] / pair[0])
    return base_ms, ms, allowance.holds(ms, base_ms)


def row_of(name: str, found: Figures) -> tuple[list[str], bool]:
    """A line of the table, and whether all is allowed in it."""
    if "failed" in found:
        return [name, *[""] * 8, found["failed"][:100]], True
    bases = [base for base in found["least"] if base.startswith("xnnpack")]
    cells, is_allowed = [name], True
    for by, own in (("auto", bases), ("delegate", bases[:1])):
        if by not in found["least"] or not own:
            cells += ["", "", "", found["ways"][by]]
            continue
        base_ms, ms, holds = verdict(found, by, own)
        cells += [
            f"{base_ms:.3f}",
            f"{ms:.3f}",
            f"{ms / base_ms:.2f}{'' if holds else ' **slower**'}",
            found["ways"][by],
        ]
        is_allowed &= holds
    failures = "; ".join(f"{each}: {why}" for each, why in found["failures"].items())
    return [*cells, "exact 8-bit" * found["exact"] + failures], is_allowed


def drawn_models(count: int, folder: Path) -> Iterator[tuple[str, Path]]:
    """Random networks of every profile in turn."""
    profiles = [*PROFILES]
    for seed in range(count):
        profile = profiles[seed % len(profiles)]
        path = folder / f"{profile}-{seed}.tflite"
        path.write_bytes(random_graph(seed, profile).build())
        yield path.stem, path


def never_slower_tool(
    folder: Annotated[list[Path] | None, typer.Option(metavar="DIR", help="Of .tflite files; several times.")] = None,
    model: Annotated[
        list[str] | None, typer.Option(metavar="TEXT", help="Those alone in whose names this stands; several times.")
    ] = None,
    catalogue: Annotated[bool, typer.Option(help="The catalogue's models, too.")] = True,
    drawn: Annotated[int, typer.Option(metavar="N", help="So many random networks.")] = 0,
    seconds: Annotated[float, typer.Option(metavar="N", help="Of runs in turn of each model.")] = 2.0,
    threads: Annotated[int | None, typer.Option(metavar="N", help="Of all; by default as many as pay.")] = None,
) -> int:
    """Time Interpreter and Delegate beside XNNPACK alone; exit code 1 if one is slower than is allowed."""
    rows, is_allowed = list[list[str]](), True
    with tempfile.TemporaryDirectory() as work:
        chosen = [(each.name, each.path) for each in entrants(folder or (), model or (), catalogue)]
        for name, path in [*chosen, *drawn_models(drawn, Path(work))]:
            found = step_in_child(partial(timed, path, seconds, threads), Path(work), Bounds())
            row, holds = row_of(name, found)
            rows.append(row)
            is_allowed &= holds
            print(" ".join(row), file=sys.stderr, flush=True)
    print("\n".join(markdown_lines([COLUMNS, *rows])))
    return 0 if is_allowed else 1


def main(arguments: Sequence[str] | None = None) -> int:
    return run_tool("never_slower", never_slower_tool, arguments)


if __name__ == "__main__":
    sys.exit(main())
