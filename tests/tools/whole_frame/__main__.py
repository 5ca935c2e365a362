"""Measure what a whole frame takes without a GPU, from file to file, in turn with a script that uses MediaPipe.

    make script-env                                # an environment of its own for the script, once
    python -m tests.tools.whole_frame              # 640x480: a quarter of an hour on two cores
    python -m tests.tools.whole_frame --size 640x480 --size 1920x1080 --rounds 3 --frames 120
    python -m tests.tools.whole_frame --cores 1 --case replay --case script

Each case runs on a short and on a long clip, and the difference counts: CPU time (user and system, of all processes)
and time by the clock, by frames. So starts do not count. All encode with the same settings of x264. A live case plays
its clip at 30 frames a second, and ends after so many seconds. Where there is a GPU, LIBGL_ALWAYS_SOFTWARE=1 in front
of the command has Mesa leave it alone.
"""

import sys
from collections.abc import Sequence
from typing import Annotated

import typer

from tests.tools.command import run_tool
from tests.tools.whole_frame.whole_frame import WholeFrameBench, bench_whole_frame, show_whole_frame
from texelflow.app.console import Console
from texelflow.app.verb_options import JsonOption


def whole_frame_tool(
    size: Annotated[
        list[str] | None, typer.Option(metavar="WxH", help="Of the frames, several times for several; 640x480.")
    ] = None,
    rounds: Annotated[int, typer.Option(metavar="N", help="Of all cases in turn; medians are shown.")] = 5,
    frames: Annotated[int, typer.Option(metavar="N", help="That a long run has more than a short one.")] = 300,
    seconds: Annotated[float, typer.Option(metavar="N", help="The same for live cases.")] = 10.0,
    cores: Annotated[int | None, typer.Option(metavar="N", help="That all run on, the first ones; all.")] = None,
    case: Annotated[
        list[str] | None, typer.Option(metavar="TEXT", help="Those alone in whose names this stands; several times.")
    ] = None,
    json: JsonOption = False,
) -> int:
    """Measure what a whole frame takes without a GPU: replay, live, archive, in turn with a script with MediaPipe."""
    console = Console(quiet=json)
    options = WholeFrameBench(size or ("640x480",), rounds, frames, seconds, cores, case or ())
    figures = bench_whole_frame(options, console)
    show_whole_frame(figures, console)
    if json:
        console.json(figures)
    return 0


def main(arguments: Sequence[str] | None = None) -> int:
    return run_tool("whole_frame", whole_frame_tool, arguments)


if __name__ == "__main__":
    sys.exit(main())
