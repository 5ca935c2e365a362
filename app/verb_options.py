"""Options of the command line that several verbs share: types for parameters of the verbs."""

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from texelflow.gpu_delegate.base.errors import UsageError

from .files import refuse_name
from .names import local_name
from .settings.flags import as_in_settings

if TYPE_CHECKING:
    from .media.sources import Position


def _output_path(name: str) -> Path:
    if not name:
        raise UsageError("an output has an empty name; give one, or leave the option out")
    return Path(local_name(name))


def _named(param: typer.CallbackParam, path: Path | None) -> Path | None:
    """What is written, before anything is done. Raises UsageError for an address."""
    if path is not None:
        refuse_name(param.opts[0], path)
    return path


# Options by the panel of the help in which they stand; all others stand under Options.
output_option, window_option, meaning_option = (
    partial(typer.Option, rich_help_panel=panel)
    for panel in ("Output", "Window", "What the model's numbers mean, where neither it nor the catalogue says so")
)
path_option = partial(output_option, parser=_output_path, callback=_named)

shell_option = partial(typer.Option, metavar="bash|zsh|fish", is_eager=True)
COMPLETION_ASKED = "_TEXELFLOW_COMPLETE"  # in the environment: by a shell, for candidates in place of work

ModelOption = Annotated[str, as_in_settings("model")]
PrecisionOption = Annotated[str, as_in_settings("precision")]
HybridOption = Annotated[str, as_in_settings("hybrid")]
MemoryOption = Annotated[str, as_in_settings("memory")]
PlannerOption = Annotated[str, as_in_settings("planner")]
ReorderOption = Annotated[bool, as_in_settings("reorder")]
PreprocessingOption = Annotated[str, as_in_settings("preprocessing")]
CpuOption = Annotated[str | None, as_in_settings("cpu")]
ThreadsOption = Annotated[int | None, as_in_settings("threads")]
CompileBudgetOption = Annotated[float, as_in_settings("compile_budget")]
SignatureOption = Annotated[
    str | None,
    typer.Option("--signature", metavar="NAME", help="Of a model with several: the one that is meant; the first."),
]
FirstOption = Annotated[str, typer.Option("--from", metavar="FRAME|TIME", help="The first frame: 120, 4s or 1:02.5.")]
LastOption = Annotated[str | None, typer.Option("--to", metavar="FRAME|TIME", help="The last frame, it included.")]
InputRangeOption = Annotated[
    str | None, meaning_option(metavar="LO,HI", help="What black and white are for the network.")
]
ActivationOption = Annotated[
    str | None,
    meaning_option(metavar="none|sigmoid|softmax", help="What its output still needs."),
]
ChannelOption = Annotated[
    str | None, meaning_option("--channel", "--classes", metavar="N|NAME,…", help="The class to show, or several.")
]
TaskOption = Annotated[
    str | None,
    meaning_option(
        metavar="TASK",
        help="What it does: segmentation, picture, classification, detection, points; or the task of --data.",
    ),
]
OutputRangeOption = Annotated[
    str | None, meaning_option(metavar="LO,HI", help="What black and white are in the picture that it puts out.")
]
ForceOption = Annotated[
    bool, output_option("--force", help="Write over what is there; in folders, pictures of other frames stay.")
]
QuietOption = Annotated[bool, typer.Option("--quiet", "-q", help="Say nothing but warnings and errors.")]
JsonOption = Annotated[bool, typer.Option("--json", help="JSON on stdout instead of tables.")]


def refuse_given(options: Mapping[str, object], why: str) -> None:
    """Raise UsageError for the first option that was given (is not None), where it has no meaning."""
    for name, value in options.items():
        if value is not None:
            raise UsageError(f"{name} {why}")


def frame_range(first: str, last: str | None) -> "tuple[Position, Position | None]":
    """What --from and --to name. Raises UsageError."""
    from .media.sources import parse_position

    return parse_position(first), None if last is None else parse_position(last)
