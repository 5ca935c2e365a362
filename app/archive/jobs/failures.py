"""Classifies the error of a job: whether the input, the machine or the output is at fault, with one line on it."""

import errno
import os
from collections.abc import Iterator
from pathlib import Path

from texelflow.gpu_delegate.base.errors import (
    CatalogueError,
    DeviceError,
    ModelError,
    OutputError,
    TexelflowError,
    UnsupportedError,
)

from ...console import one_line
from ...media.piece_file import PieceError
from .jobs import FailureCause, JobFailed

_OF_DISKS = {errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES, errno.EPERM, errno.EFBIG}
_LONGEST = 500  # characters of a reason


class StoppedError(Exception):
    """Somebody asked for an end."""


class MachineError(TexelflowError):
    """This machine lacks something that others may have."""


class InputError(TexelflowError):
    """An input is not what it was, or cannot be what it claims."""


def failure_of(error: Exception, writes: Path, seconds: float = 0.0, reads: str = "") -> JobFailed:
    """What is told of an error; `writes` is the folder in which all is that the job writes, `reads` its input."""
    return JobFailed(_cause(error, writes, reads), failure_reason(error), seconds)


def failure_reason(error: BaseException) -> str:
    """One line on it; of what nobody expected with its kind."""
    text = one_line(str(error)) or "no reason given"
    if isinstance(error, OSError) and not isinstance(error, TexelflowError):
        named = f"'{error.filename}': " if error.filename is not None else ""
        text = f"{named}{error.strerror or text}"
    elif not isinstance(error, TexelflowError):
        text = f"{type(error).__name__}: {text}"
    return text if len(text) <= _LONGEST else text[: _LONGEST - 3] + "..."


def _cause(error: Exception, writes: Path, reads: str) -> FailureCause:
    of_system = next((each for each in _chain(error) if isinstance(each, OSError)), None)
    if isinstance(error, MachineError | DeviceError | ModelError | CatalogueError | UnsupportedError | MemoryError):
        return "machine"
    if isinstance(error, OutputError):
        return "output"
    if isinstance(error, InputError | PieceError):  # without pieces all of it is rendered
        return "input"
    if of_system and (error is of_system or _is_about(error, writes)):
        forbidden = of_system.errno in _OF_DISKS
        return "machine" if not forbidden else "input" if reads and f"'{reads}'" in str(error) else "output"
    return "input"


def _is_about(error: Exception, folder: Path) -> bool:
    """Whether it names the folder, or something in it."""
    return any(f"'{folder}{end}" in str(error) for end in ("'", os.sep))


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__
