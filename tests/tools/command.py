"""What a tool is asked to do, as options of a function, makes a command that ends as the program's own verbs do."""

from collections.abc import Callable, Sequence

import typer

from texelflow.app.cli import main


def run_tool(name: str, verb: Callable[..., int], arguments: Sequence[str] | None = None) -> int:
    """Run `python -m tests.tools.NAME`: its exit code; every error is one line on stderr."""
    tool = typer.Typer(add_completion=False, context_settings={"help_option_names": ["-h", "--help"]})
    tool.command()(verb)
    return main(None if arguments is None else [*arguments], tool, f"python -m tests.tools.{name}")
