"""Reads the memory and the CPU time of a process, where the system tells them."""

import os
import re
import sys
from dataclasses import dataclass
from pathlib import Path
from time import process_time


@dataclass(frozen=True)
class ProcessUsage:
    """None where the system does not tell."""

    resident_bytes: int | None
    peak_bytes: int | None  # the most that was resident at once
    cpu_s: float | None  # of all threads, in user and system mode


def process_usage(process_id: int | None = None) -> ProcessUsage:
    """Of this process, or of another one of the same user, which may have ended."""
    own = process_id is None
    status = _status(Path("/proc", "self" if own else str(process_id)))
    peak_bytes = _kib(status, "VmHWM")
    return ProcessUsage(
        _kib(status, "VmRSS"),
        _peak_bytes() if own and peak_bytes is None else peak_bytes,
        process_time() if own else _cpu_s(Path("/proc", str(process_id))),
    )


def _status(folder: Path) -> str:
    try:
        return (folder / "status").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def _kib(status: str, name: str) -> int | None:
    """A line of Linux' /proc/PID/status, in bytes."""
    found = re.search(rf"^{name}:\s+(\d+) kB$", status, re.MULTILINE)
    return int(found[1]) << 10 if found else None


def _peak_bytes() -> int | None:
    """Of this process on other systems than Linux."""
    if sys.platform == "win32":
        return None
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << (0 if sys.platform == "darwin" else 10)


def _cpu_s(folder: Path) -> float | None:
    """By Linux' /proc/PID/stat, in ticks of 10 ms; the name in front of the numbers may hold spaces."""
    if sys.platform == "win32":
        return None
    try:
        fields = (folder / "stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    except (OSError, IndexError, ValueError):
        return None
