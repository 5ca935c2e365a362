"""Runs a command line in this process, and returns its exit code, output and errors."""

from collections.abc import Callable
from dataclasses import dataclass

import pytest

from texelflow.app.cli import main


@dataclass(frozen=True)
class Result:
    """What a command came to."""

    code: int
    out: str
    err: str

    @property
    def complaint(self) -> str:
        """The one line on stderr; fails if there is another, or output on stdout, or the code is not 2."""
        lines = self.err.splitlines()
        assert len(lines) == 1, self.err
        assert lines[0].startswith("texelflow: ")
        assert self.out == ""
        assert self.code == 2
        return lines[0]


class Command:
    """Runs texelflow, or a tool that ends as its verbs do, with capsys."""

    def __init__(self, captured: pytest.CaptureFixture[str], run: Callable[[list[str]], int] = main) -> None:
        self._captured, self._run = captured, run

    def __call__(self, *arguments: object) -> Result:
        self._captured.readouterr()
        code = self._run([str(argument) for argument in arguments])
        out, err = self._captured.readouterr()
        return Result(code, out, err)
