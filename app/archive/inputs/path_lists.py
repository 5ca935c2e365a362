"""Reads lists of paths, from a text file or standard input, a line at a time.

UTF-8, a path or an address a line; lines that are empty or begin with # say nothing.
"""

import io
import os
import stat
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import BinaryIO

from texelflow.gpu_delegate.base.errors import UsageError

from ...media.pipe import PIPE

LIST_ENDINGS = (".txt", ".list")
MOST_LINE_BYTES = 8192  # twice the longest path of Linux


@dataclass(frozen=True)
class PathList:
    """A file in which paths stand, as it was named; PIPE is standard input."""

    file: str

    @property
    def folder(self) -> str:
        """Where relative paths of it begin."""
        return os.getcwd() if self.file == PIPE else os.path.dirname(os.path.abspath(self.file))

    def check(self) -> None:
        """Read it through. Raises UsageError for what is wrong in it; of standard input only `lines` can tell."""
        if self.file != PIPE:
            for _ in self.lines():
                pass

    def lines(self) -> Iterator[tuple[int, str]]:
        """What stands in it, and the number of its line. Raises UsageError."""
        called = "standard input" if self.file == PIPE else self.file
        if self.file == PIPE:
            if sys.stdin is None or sys.stdin.closed:
                raise UsageError("standard input is closed; name a list of paths")
            yield from _lines(_standard_input(), called)
            return
        try:
            with open(self.file, "rb", opener=_open_without_waiting) as file:
                if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                    raise UsageError(f"{called}: not a regular file; - reads a list from standard input")
                yield from _lines(file, called)
        except OSError as error:
            raise UsageError(f"cannot read the list {called}: {error.strerror}") from None
        except ValueError:  # NUL
            raise UsageError(f"the list {called!r}: no file has such a name") from None


def _lines(file: BinaryIO, called: str) -> Iterator[tuple[int, str]]:
    number = 0
    while line := file.readline(MOST_LINE_BYTES + 1):
        number += 1
        if len(line) > MOST_LINE_BYTES:
            raise UsageError(f"{called}, line {number}: longer than {MOST_LINE_BYTES} bytes, which no path is")
        try:
            text = line.decode("utf-8-sig" if number == 1 else "utf-8").strip()
        except UnicodeDecodeError:
            raise UsageError(f"{called}, line {number}: not UTF-8; a list of paths has one a line") from None
        if not text.replace("\t", "").isprintable():
            raise UsageError(f"{called}, line {number}: control characters; a list of paths has one a line")
        if text and not text.startswith("#"):
            yield number, text


def _standard_input() -> BinaryIO:
    """Not Python's own reader, which the program closes at its end: that fails while a thread waits in it."""
    try:
        return os.fdopen(sys.stdin.buffer.fileno(), "rb", closefd=False)
    except io.UnsupportedOperation:  # it is no file
        return sys.stdin.buffer


def _open_without_waiting(path: str, flags: int) -> int:
    """Opening a pipe waits for somebody to write into it, otherwise."""
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))
