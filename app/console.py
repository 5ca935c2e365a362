"""Prints messages, progress and tables for a person: results on stdout, everything else on stderr.

Progress is drawn on terminals only; a log file gets warnings, but no progress.
"""

import contextlib
import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import rich.console
from rich.box import HEAVY_HEAD, SIMPLE_HEAD
from rich.console import JustifyMethod, RenderableType
from rich.live import Live
from rich.progress import (
    BarColumn,
    DownloadColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    TaskProgressColumn,
    TextColumn,
    TimeRemainingColumn,
)
from rich.table import Table
from rich.text import Text

from texelflow.gpu_delegate.base.wording import counted as counted  # for the program's lines, too

FILE_COLUMNS = 120  # the width of tables that go into a file or a pipe

Report = Callable[..., None]  # gets (done so far, in all), and what is being done where that changes


def printable(text: str) -> str:
    """Text without control characters, except for line ends: names of files may hold anything."""
    return "".join(c if c.isprintable() or c == "\n" else "\N{REPLACEMENT CHARACTER}" for c in text)


def one_line(text: str) -> str:
    """Printable text on one line."""
    return printable(" ".join(text.split()))


class FrameRate(ProgressColumn):
    """Frames per second of a running task."""

    def render(self, task: Any) -> Text:
        """The rate over the last seconds, nothing before there is one."""
        return Text(f"{task.speed:.1f} frames/s" if task.speed else "", style="progress.data.speed")


class Console:
    """Where a verb speaks. `quiet` keeps tables back, for output that a machine reads; `silent` all but warnings."""

    def __init__(self, quiet: bool = False, silent: bool = False) -> None:
        self.quiet, self._silent = quiet or silent, silent
        self._out = rich.console.Console(highlight=False)
        if not self._out.is_terminal and "COLUMNS" not in os.environ:
            self._out.width = FILE_COLUMNS
        self._err = rich.console.Console(stderr=True, highlight=False)
        self._told = set[str]()

    def warn(self, line: str) -> None:
        """One line that starts with the program's name, on stderr."""
        self._err.print(f"texelflow: {one_line(line)}", style="yellow", markup=False, soft_wrap=True)

    def note(self, line: str) -> None:
        """One line about what is being done, on stderr."""
        if self._silent:
            return
        self._err.print(one_line(line), style="dim", markup=False, soft_wrap=True)

    def note_once(self, line: str) -> None:
        """A note, unless it was made before: of a machine, for each of many inputs."""
        if line not in self._told:
            self._told.add(line)
            self.note(line)

    def say(self, line: str) -> None:
        """One line of the result, on stdout."""
        if not self.quiet:
            self._out.print(printable(line), markup=False, soft_wrap=True)

    @property
    def columns(self) -> int:
        """The width of what stdout shows."""
        return self._out.width

    def show(self, *parts: RenderableType) -> None:
        """Tables and styled text on stdout; plain strings are taken as they are."""
        if not self.quiet:
            for part in parts:
                self._out.print(Text(printable(part)) if isinstance(part, str) else part)

    def table(self, title: str, columns: Sequence[str], rows: Sequence[Sequence[object]], dense: bool = False) -> None:
        """A table on stdout; columns are aligned left where they hold text, right where they hold numbers.

        `dense` is for many columns: no lines between them.
        """
        if self.quiet:
            return
        self._out.print(Text(printable(title), style="bold"), soft_wrap=True)  # a table would break it to its own width
        table = Table(header_style="bold", box=SIMPLE_HEAD if dense else HEAVY_HEAD, collapse_padding=dense)
        numeric = [all(isinstance(row[i], int | float) for row in rows) for i in range(len(columns))]
        for column, right in zip(columns, numeric, strict=True):
            justify: JustifyMethod = "right" if right else "left"
            table.add_column(column, justify=justify, overflow="fold", no_wrap=dense and right)
        for row in rows:
            table.add_row(*(Text(f"{cell:.2f}" if isinstance(cell, float) else printable(str(cell))) for cell in row))
        self._out.print(table)

    def json(self, value: Mapping[str, Any] | Sequence[Mapping[str, Any]]) -> None:
        """One JSON object, or a list of them, as one line on stdout."""
        print(json.dumps(value), flush=True)

    @contextlib.contextmanager
    def compilation(self) -> Iterator[Report]:
        """Shows how many shaders are compiled, for as long as that takes."""
        with self.steps("compiling shaders") as report:
            yield report

    @contextlib.contextmanager
    def steps(self, what: str) -> Iterator[Report]:
        """Shows how many steps of so many are done."""
        with self._progress(what, MofNCompleteColumn(), transient=True) as report:
            yield report

    @contextlib.contextmanager
    def download(self, what: str = "the model") -> Iterator[Report]:
        """Shows how many bytes have come, once the first one has."""
        with self._progress(f"fetching {what}", DownloadColumn(), TimeRemainingColumn(), transient=True) as report:
            yield report

    @contextlib.contextmanager
    def tuning(self) -> Iterator[Report]:
        """Shows what is measured, and how much of the time is over, in percent."""
        with self._progress("tuning", TaskProgressColumn(), transient=True) as report:
            yield report

    @contextlib.contextmanager
    def frames(self, what: str) -> Iterator[Report]:
        """Shows frames, frames per second and the time left; 0 in all means unknown."""
        columns = MofNCompleteColumn(), FrameRate(), TextColumn("left"), TimeRemainingColumn()
        with self._progress(what, *columns, transient=False) as report:
            yield report

    @property
    def is_watched(self) -> bool:
        """Whether stderr is a terminal."""
        return self._err.is_terminal

    @contextlib.contextmanager
    def redrawn(self) -> Iterator[Callable[[RenderableType], None]]:
        """What it gets stands on a terminal in place of what it got before; lines that are told come above."""
        with Live(console=self._err, auto_refresh=False, transient=True) as shown:
            yield lambda drawn: shown.update(drawn, refresh=True)

    @contextlib.contextmanager
    def _progress(self, what: str, *columns: ProgressColumn, transient: bool) -> Iterator[Report]:
        shown = Progress(
            TextColumn("{task.description}", markup=False), BarColumn(), *columns,
            console=self._err, transient=transient, disable=self._silent or not self._err.is_terminal,
        )  # fmt: skip
        task = shown.add_task(one_line(what), total=None, visible=False)

        def report(done: int, total: int, what: str = what) -> None:
            shown.update(task, completed=done, total=total or None, visible=True, description=one_line(what))

        with shown:
            yield report
