"""Measure which work-groups are best on this GPU over many convolutions: `python -m tests.tools.work_groups`."""

import sys
from collections.abc import Sequence
from typing import Annotated

import typer

from tests.tools.command import run_tool
from tests.tools.work_groups.best_groups import run_sweep
from texelflow.app.console import Console
from texelflow.app.opengl_options import with_opengl
from texelflow.app.verb_options import JsonOption
from texelflow.app.verbs.tune import parse_budget


@with_opengl
def work_groups_tool(
    budget: Annotated[str, typer.Option(metavar="TIME", help="How long to search: 10s, 1:30.")] = "3:00",
    json: JsonOption = False,
) -> int:
    """Measure the work-groups that are best for convolutions of many sizes, beside TensorFlow Lite's for Adrenos."""
    return run_sweep(parse_budget(budget), Console(quiet=json), json)


def main(arguments: Sequence[str] | None = None) -> int:
    return run_tool("work_groups", work_groups_tool, arguments)


if __name__ == "__main__":
    sys.exit(main())
