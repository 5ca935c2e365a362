"""Time the layers of a network on the CPU: our code in turn with XNNPACK, ncnn and MNN.

python -m tests.tools.layers                         # at 320, 640 and 800 pixels, one thread: some three minutes
python -m tests.tools.layers --sizes 320 --threads 2 --against xnnpack,ncnn
python -m tests.tools.layers --markdown --plot roofline.svg
"""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from tests.tools.command import run_tool
from tests.tools.layers.layer_tables import show_layers
from tests.tools.layers.layer_times import LayersBench, bench_layers
from texelflow.app.console import Console
from texelflow.app.verb_options import ForceOption, JsonOption, path_option


def layers_tool(
    against: Annotated[
        str | None,
        typer.Option(metavar="NAMES", help="Of xnnpack,ncnn,mnn; all that are installed. XNNPACK always is."),
    ] = None,
    sizes: Annotated[str, typer.Option(metavar="N,N", help="Sides of the picture, in pixels.")] = "320,640,800",
    threads: Annotated[int, typer.Option(metavar="N", help="Of each.")] = 1,
    seconds: Annotated[float, typer.Option(metavar="N", help="For each layer, all in turn; the chain has more.")] = 1.0,
    markdown: Annotated[bool, typer.Option("--markdown", help="The tables in Markdown.")] = False,
    plot: Annotated[
        Path | None, path_option(metavar="FILE", help="The roofs and each layer under them: .svg or .png.")
    ] = None,
    force: ForceOption = False,
    json: JsonOption = False,
) -> int:
    """Time the layers of RetinaFace (MobileNet 0.25) on the CPU, ours in turn with XNNPACK, ncnn and MNN.

    Layer by layer, as a chain, and as rates beside peaks that are measured first. Rivals get their input packed for
    them, and in planes. Exit code 1 if our outputs differ from TensorFlow Lite's.
    """
    console = Console(quiet=json)
    figures, code = bench_layers(LayersBench(against, sizes, threads, seconds, plot, force), console)
    show_layers(figures, markdown, console)
    if plot is not None and any(found["layers"] for found in figures["sizes"].values()):
        from tests.tools.layers.roofline_plot import save_roofline

        save_roofline(plot, figures)
        console.say(f"plot: {plot}")
    if json:
        console.json(figures)
    return code


def main(arguments: Sequence[str] | None = None) -> int:
    return run_tool("layers", layers_tool, arguments)


if __name__ == "__main__":
    sys.exit(main())
