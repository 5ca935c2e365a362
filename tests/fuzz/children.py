"""An attempt and its cases go in; what became of each comes out: ran, refused, a defect, a crash, a hang, too large.

Cases run one after the other in a forked child, which tells of each as it begins and ends it. A child that dies or
hangs is replaced, and the case that it was at is the culprit.
"""

import contextlib
import faulthandler
import os
import resource
import select
import signal
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from gpu_delegate.errors import TexelflowError

Attempt = Callable[[bytes], object]
"""Takes hostile bytes; returns, or raises TexelflowError. Anything else is a finding."""

HANG_S = 20.0
MOST_BYTES = 4 << 30  # resident memory of one child
_MOST_ADDRESSES_BYTES = 16 << 30  # so that one case cannot fill the machine
_BATCH = 256  # cases of a child: what they leave behind in memory ends with it
_KILOBYTE = 1024  # ru_maxrss counts in them on Linux

OUTCOMES = ("ran", "refused", "defect", "crashed", "hung", "too large")
FINDINGS = OUTCOMES[2:]


@dataclass(frozen=True)
class Result:
    """What became of one case; `detail` is a line for findings and refusals."""

    number: int
    outcome: str
    detail: str = ""


def run_cases(attempt: Attempt, make: Callable[[int], bytes], cases: int, hang_s: float = HANG_S) -> Iterator[Result]:
    """The results of cases 0 to `cases` - 1, whose bytes `make` makes of their numbers, in the child."""
    first = 0
    while first < cases:
        for result in _child(attempt, make, range(first, min(first + _BATCH, cases)), hang_s):
            yield result
            first = result.number + 1


def _child(attempt: Attempt, make: Callable[[int], bytes], numbers: range, hang_s: float) -> Iterator[Result]:
    """The results of these cases, up to and including the first that ends the child."""
    reading, writing = os.pipe()
    with warnings.catch_warnings():  # Python 3.12 and later warn of threads, none of which the child needs
        warnings.simplefilter("ignore", DeprecationWarning)
        process = os.fork()
    if not process:
        os.close(reading)
        _attempt_all(attempt, make, numbers, writing)
    os.close(writing)
    try:
        yield from _told(process, reading, numbers, hang_s)
    finally:
        os.close(reading)
        with contextlib.suppress(ProcessLookupError):
            os.kill(process, signal.SIGKILL)
        with contextlib.suppress(ChildProcessError):
            os.waitpid(process, 0)


def _told(process: int, reading: int, numbers: range, hang_s: float) -> Iterator[Result]:
    """What the child says of its cases, and at last how it ended if that was before the last of them."""
    number, rest = numbers.start, b""
    while number < numbers.stop:
        if not select.select([reading], [], [], hang_s)[0]:
            yield Result(number, "hung", f"longer than {hang_s:g} s")
            return
        told = os.read(reading, 1 << 16)
        if not told:
            yield _death(process, number)
            return
        *lines, rest = (rest + told).split(b"\n")
        for line in lines:
            outcome, _, detail = line.decode("utf-8", "replace").partition("\t")
            yield Result(number, outcome, detail)
            number += 1
            if outcome == "too large":
                return


def _death(process: int, number: int) -> Result:
    _, status = os.waitpid(process, 0)
    if os.WIFSIGNALED(status):
        return Result(number, "crashed", signal.Signals(os.WTERMSIG(status)).name)
    return Result(number, "crashed", f"exit code {os.waitstatus_to_exitcode(status)}")


def _attempt_all(attempt: Attempt, make: Callable[[int], bytes], numbers: range, writing: int) -> None:
    """In the child: every case, and never back to the parent's code."""
    try:
        faulthandler.disable()
        resource.setrlimit(resource.RLIMIT_AS, (_MOST_ADDRESSES_BYTES, _MOST_ADDRESSES_BYTES))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        for number in numbers:
            outcome, detail = _attempt_one(attempt, make(number))
            if resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * _KILOBYTE > MOST_BYTES:
                outcome, detail = "too large", f"over {MOST_BYTES >> 30} GiB; {outcome} {detail}"
            os.write(writing, f"{outcome}\t{detail}\n".encode("utf-8", "replace"))
    finally:
        os._exit(0)


def _attempt_one(attempt: Attempt, data: bytes) -> tuple[str, str]:
    try:
        attempt(data)
    except TexelflowError as error:
        text = str(error)
        return ("refused", text[:200]) if text.isprintable() else ("defect", f"not one line: {text[:200]!r}")
    except BaseException as error:
        return "defect", " ".join(f"{type(error).__name__}: {error}".split())[:200]
    return "ran", ""
