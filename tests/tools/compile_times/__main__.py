"""Time how networks are planned whose shapes are hard to compile: `python -m tests.tools.compile_times`."""

import sys
from collections.abc import Sequence
from typing import Annotated

import typer

from tests.tools.command import run_tool
from tests.tools.compile_times.compile_times import bench_compile, show_bench_compile
from texelflow.app.console import Console
from texelflow.app.verb_options import JsonOption


def compile_tool(
    ops: Annotated[int, typer.Option(metavar="N", help="Ops of the largest networks; others have fewer.")] = 10_000,
    json: JsonOption = False,
) -> int:
    """Time how kernels, memory and barriers of networks are planned, by the shape and the size of the network."""
    console = Console(quiet=json)
    figures = bench_compile(ops, console)
    show_bench_compile(figures, console)
    if json:
        console.json(figures)
    return 0


def main(arguments: Sequence[str] | None = None) -> int:
    return run_tool("compile_times", compile_tool, arguments)


if __name__ == "__main__":
    sys.exit(main())
