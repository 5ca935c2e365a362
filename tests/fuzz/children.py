"""Runs a function in a child process, and says how it ended: normally, by a signal, too late or too large.

The parent forks, so what it has imported is there at once; it should have no threads.
"""

import os
import resource
import signal
from collections.abc import Callable
from dataclasses import dataclass
from time import monotonic, sleep

PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
TICKS = os.sysconf("SC_CLK_TCK")
WAITING = 5
MOST_TEXT = 4096  # of a child, less than a pipe holds, so that no child waits for its parent to read


@dataclass(frozen=True)
class Ending:
    """How a child ended."""

    how: str  # "text", "raised", "crashed", "hung", "too large"
    text: str = ""  # of the function, its exception, or the signal
    seconds: float = 0.0
    most_bytes: int = 0  # of memory that it had at one time, the parent's pages included


def in_child(work: Callable[[], str], timeout_s: float = 20.0, memory_bytes: int = 4 << 30) -> Ending:
    """Runs a function in a forked child, silently; what it returns is the ending's text.

    It has so many seconds of the CPU, and WAITING times as many by the clock: others may keep the CPU busy.
    """
    reader, writer = os.pipe()
    started = monotonic()
    pid = os.fork()
    if not pid:
        _work_and_exit(work, writer)
    os.close(writer)
    how = "interrupted"
    try:
        how = _watch(pid, started + WAITING * timeout_s, timeout_s, memory_bytes)
    finally:
        if how:
            os.kill(pid, signal.SIGKILL)
    _, status, usage = os.wait4(pid, 0)
    with os.fdopen(reader, "rb") as pipe:
        text = pipe.read().decode("utf-8", "replace")
    most_bytes = usage.ru_maxrss << 10
    if not how and most_bytes > memory_bytes:
        how = "too large"
    if not how and os.WIFSIGNALED(status):
        how, text = "crashed", signal.Signals(os.WTERMSIG(status)).name
    if not how and status:
        how = "raised"
    return Ending(how or "text", text, monotonic() - started, most_bytes)


def _work_and_exit(work: Callable[[], str], writer: int) -> None:
    """In the child: never returns."""
    code = 1
    try:
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, 1)
        os.dup2(nowhere, 2)
        os.write(writer, work().encode()[:MOST_TEXT])
        code = 0
    except BaseException as error:
        os.write(writer, f"{type(error).__name__}: {error}".encode()[:MOST_TEXT])
    finally:
        os._exit(code)


def _watch(pid: int, end: float, cpu_s: float, memory_bytes: int) -> str:
    """Waits until the child has ended, but leaves it to be collected; "hung" or "too large" where it must be ended."""
    pause = 0.0005
    while os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
        if monotonic() > end or _cpu_seconds(pid) > cpu_s:
            return "hung"
        if _resident_bytes(pid) > memory_bytes:
            return "too large"
        sleep(pause)
        pause = min(2 * pause, 0.02)
    return ""


def _cpu_seconds(pid: int) -> float:
    """Of all its threads."""
    with open(f"/proc/{pid}/stat", "rb") as file:
        fields = file.read().rpartition(b")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def _resident_bytes(pid: int) -> int:
    with open(f"/proc/{pid}/statm", "rb") as file:
        return int(file.read().split()[1]) * PAGE_BYTES
