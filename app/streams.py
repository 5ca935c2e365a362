"""Wraps stdout and stderr for a while, so that a full disk is reported.

If stdout cannot be written, results are lost: an error. If stderr cannot be written, the program goes on.
"""

import contextlib
import os
import sys
from collections.abc import Iterator
from typing import Any, TextIO, cast

from texelflow.gpu_delegate.base.errors import OutputError

__all__ = ["guarded", "named_failures"]


@contextlib.contextmanager
def guarded() -> Iterator[None]:
    """Within it what stdout does not take is OutputError, or BrokenPipeError if its reader left; stderr takes all."""
    _occupy()
    out, err = sys.stdout, sys.stderr
    with open(os.devnull, "w") as nowhere:
        sys.stdout, sys.stderr = cast(TextIO, _Strict(out or nowhere)), cast(TextIO, _Lenient(err or nowhere))
        try:
            yield
        finally:
            sys.stdout, sys.stderr = out, err
            for stream in (out, err):
                _empty(stream)


class _Wrapped:
    """A stream; everything not defined here is passed on to it."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


class _Strict(_Wrapped):
    """A stream whose failures become OutputError or BrokenPipeError."""

    def write(self, text: str) -> int:
        with named_failures():
            return self._stream.write(text)

    def flush(self) -> None:
        with named_failures():
            self._stream.flush()


class _Lenient(_Wrapped):
    """A stream that never fails: what it does not take now goes with the next lines, or is lost."""

    def write(self, text: str) -> int:
        with contextlib.suppress(OSError):
            self._stream.write(text)
        return len(text)

    def flush(self) -> None:
        with contextlib.suppress(OSError):
            self._stream.flush()


@contextlib.contextmanager
def named_failures() -> Iterator[None]:
    """Within it an OSError of standard output is OutputError, or BrokenPipeError if its reader left."""
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        why = error.strerror or str(error)
        raise OutputError(f"standard output cannot be written: {why[:1].lower()}{why[1:]}") from error


def _occupy() -> None:
    """Open the null device for closed standard streams, or a file opened later would get their numbers and output."""
    with contextlib.suppress(OSError):
        while (number := os.open(os.devnull, os.O_RDWR)) <= 2:
            os.set_inheritable(number, True)
        os.close(number)


def _empty(stream: TextIO | None) -> None:
    """Flush it, or drop what cannot be written: else Python would fail at the end of the process."""
    if stream is None:
        return
    try:
        stream.flush()
    except OSError:
        with contextlib.suppress(OSError), open(os.devnull, "wb") as nowhere:
            os.dup2(nowhere.fileno(), stream.fileno())
            stream.flush()
