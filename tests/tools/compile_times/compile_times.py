"""Times how long networks take to compile, by their shape and their number of ops."""

from time import perf_counter
from typing import Any

from texelflow.app.console import Console
from texelflow.gpu_delegate.base.errors import UnsupportedError, UsageError
from texelflow.gpu_delegate.device.device import SOFTWARE
from texelflow.gpu_delegate.model.graph import Graph
from texelflow.gpu_delegate.reading.reader import MAX_OPERATORS
from texelflow.gpu_delegate.targets.glsl.compiled_graph import compile_graph

from .compile_shapes import SHAPES, shaped

_FEWEST_OPS = 100  # of the largest: each shape needs a few
_PARTS = (10, 5, 2, 1)  # of the ops: 1,000, 2,000, 5,000 and 10,000


def bench_compile(ops: int, console: Console) -> dict[str, Any]:
    """Seconds for each shape and number of ops, or why it was refused; no OpenGL is needed. Raises UsageError."""
    if not _FEWEST_OPS <= ops <= MAX_OPERATORS:
        raise UsageError(f"--ops goes from {_FEWEST_OPS} to {MAX_OPERATORS}")
    sizes, rows = [ops // part for part in _PARTS], {}
    with console.frames("planning") as report:
        for number, name in enumerate(SHAPES):
            report(number, len(SHAPES))
            rows[name] = [_planned(shaped(name, size)) for size in sizes]
        report(len(SHAPES), len(SHAPES))
    return {"ops": sizes, "shapes": rows}


def _planned(graph: Graph) -> dict[str, Any]:
    """For a software renderer, whose kernels have the longest source."""
    start, kernels, refused = perf_counter(), 0, ""
    try:
        kernels = len(compile_graph(graph, SOFTWARE).kernels)
    except UnsupportedError as error:
        refused = str(error)
    seconds = perf_counter() - start
    return {"ops": len(graph.nodes), "seconds": round(seconds, 3), "kernels": kernels, "refused": refused}


def show_bench_compile(figures: dict[str, Any], console: Console) -> None:
    """The same as a table, with how many times as long each op takes among the most as among the fewest."""
    shapes = figures["shapes"].items()
    rows = [(name, *(f"{run['seconds']:.2f}" for run in runs), _growth(runs)) for name, runs in shapes]
    columns = ("shape", *(f"{size} ops, s" for size in figures["ops"]), "time of an op, last to first")
    console.table("Planning networks", columns, rows)
    for name, runs in shapes:
        if runs[-1]["refused"]:
            console.say(f"{name}: refused: {runs[-1]['refused']}")


def _growth(runs: list[dict[str, Any]]) -> str:
    first, last = runs[0], runs[-1]
    if last["refused"]:
        return "refused"
    return f"{last['seconds'] / last['ops'] / (first['seconds'] / first['ops']):.2f}"
