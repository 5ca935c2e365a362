"""Nothing goes in; the options of the command line that several verbs have come out."""

from functools import partial
from typing import Annotated

import typer

# Options by the panel of the help in which they stand; all others stand under Options.
picture_option, output_option, window_option, model_option, meaning_option = (
    partial(typer.Option, rich_help_panel=panel)
    for panel in (
        "Picture",
        "Output",
        "Window",
        "Model",
        "What the model's numbers mean, where neither it nor the catalogue says so",
    )
)

Model = Annotated[str, model_option("--model", "-m", metavar="NAME|FILE", help="A name of the catalogue or a .tflite.")]
Backend = Annotated[str, model_option(metavar="auto|gl|cpu", help="Where the network runs.")]
Fit = Annotated[str, model_option(metavar="stretch|crop|letterbox", help="How frames get the network's aspect.")]
First = Annotated[str, typer.Option("--from", metavar="FRAME|TIME", help="The first frame: 120, 4s or 1:02.5.")]
Last = Annotated[str | None, typer.Option("--to", metavar="FRAME|TIME", help="The last frame, it included.")]
InputRange = Annotated[str | None, meaning_option(metavar="LO,HI", help="What black and white are for the network.")]
Activation = Annotated[
    str | None,
    meaning_option(metavar="none|sigmoid|softmax", help="What its output still needs."),
]
Channel = Annotated[int | None, meaning_option(metavar="N", help="The class to show.")]
PrecisionOption = Annotated[
    str,
    model_option(
        "--precision", metavar="fp32|fp16", help="Of what the GPU keeps between kernels; it computes in fp32."
    ),
]
Json = Annotated[bool, typer.Option("--json", help="One JSON object on stdout instead of tables.")]
