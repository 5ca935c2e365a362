"""Runs every model of the catalogue and of a folder on OpenGL and in native code, and tells how each one does.

    make league MODELS=DIR                                    # build/league.json; again: goes on, if it is not whole
    python -m tests.tools.league --folder DIR --model lstm    # those alone in whose names this stands
    python -m tests.tools.league --show --write               # of what has been measured; into docs/models.md

Each step of a model is a process of its own, bounded in time and memory; what crashes, hangs or grows is a row with
that as its reason. Other work on a machine disturbs milliseconds, but no share, no error, and CPU seconds little.
"""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from tests.tools.command import run_tool
from tests.tools.league.document import document_lines, write_document
from tests.tools.league.entrants import entrants
from tests.tools.league.league import FILE, League, run_league
from tests.tools.league.trials import Bounds


def league_tool(
    folder: Annotated[
        list[Path] | None, typer.Option(metavar="DIR", help="Of .tflite files, also in folders below; several times.")
    ] = None,
    model: Annotated[
        list[str] | None, typer.Option(metavar="TEXT", help="Those alone in whose names this stands; several times.")
    ] = None,
    catalogue: Annotated[bool, typer.Option(help="The catalogue's models, too.")] = True,
    seconds: Annotated[float, typer.Option(metavar="N", help="CPU seconds that a step may take.")] = 300.0,
    memory: Annotated[int, typer.Option(metavar="GIB", help="Memory that a step may take.")] = 6,
    times: Annotated[float, typer.Option(metavar="N", help="Seconds of runs in turn of each model; 0: none.")] = 3.0,
    file: Annotated[Path, typer.Option(metavar="FILE", help="Where the figures are.")] = FILE,
    anew: Annotated[bool, typer.Option("--anew", help="Do not go on with an interrupted run.")] = False,
    show: Annotated[bool, typer.Option("--show", help="Measure nothing.")] = False,
    write: Annotated[bool, typer.Option("--write", help="Renew the tables in docs/models.md.")] = False,
) -> int:
    """Run every model of the catalogue and of folders on OpenGL and in native code, and tell how each one does."""
    bounds = Bounds(seconds, memory << 30, times)
    if show:
        league = League.read(file)
    else:
        chosen = [*entrants(folder or (), model or (), catalogue)]
        league = run_league(chosen, file, bounds, anew, lambda line: print(line, file=sys.stderr, flush=True))
    print("\n".join(document_lines(league)))
    if write:
        write_document(league)
    return 0


def main(arguments: Sequence[str] | None = None) -> int:
    return run_tool("league", league_tool, arguments)


if __name__ == "__main__":
    sys.exit(main())
