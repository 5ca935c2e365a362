"""Measure what several instances of a model take, without a WeightsCache and with one.

python -m tests.tools.weights                        # selfie and deeplab-v3, up to 16 instances, on every backend
python -m tests.tools.weights mobilenet-v1 --instances 1,4 --backend native --plot weights.svg
"""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from tests.tools.command import run_tool
from tests.tools.weights.shared_weights import MEASURED, WeightsBench, bench_weights, parse_backends, parse_instances
from tests.tools.weights.weights_tables import save_weights_plot, show_weights
from texelflow.app.console import Console
from texelflow.app.opengl_options import with_opengl
from texelflow.app.verb_options import ForceOption, JsonOption, path_option


@with_opengl
def weights_tool(
    names: Annotated[
        list[str] | None,
        typer.Argument(metavar="NAMES", help="Models as of `bench model`; by default selfie and deeplab-v3."),
    ] = None,
    instances: Annotated[
        str, typer.Option(metavar="1..16", help="How many: 1, 2, 4, 8 and 16, or just those of a list with commas.")
    ] = "1..16",
    backend: Annotated[
        str | None, typer.Option(metavar="gl,native,tflite", help="Where they run; by default on each of these.")
    ] = None,
    runs: Annotated[int, typer.Option(metavar="N", help="Of each instance, in turn.")] = 3,
    plot: Annotated[Path | None, path_option(metavar="FILE", help="Memory over instances: .svg or .png.")] = None,
    force: ForceOption = False,
    json: JsonOption = False,
) -> int:
    """Measure what several instances of a model take, without a WeightsCache and with one, soft and hard.

    Each number of instances has a process of its own; all of a process share one OpenGL context.
    """
    console = Console(quiet=json)
    counts, backends = parse_instances(instances), parse_backends(backend)
    options = WeightsBench(tuple(names or MEASURED), counts, backends, runs, plot, force)
    rows, code = bench_weights(options, console)
    show_weights(rows, console)
    if plot is not None and any(not row["reason"] for row in rows):
        save_weights_plot(plot, rows)
        console.say(f"plot: {plot}")
    if json:
        console.json(rows)
    return code


def main(arguments: Sequence[str] | None = None) -> int:
    return run_tool("weights", weights_tool, arguments)


if __name__ == "__main__":
    sys.exit(main())
